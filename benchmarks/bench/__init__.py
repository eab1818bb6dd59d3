"""Measure our times against this machine's limits and against the installed peers."""
