"""Outputs that appear complete or not at all, and runs that resume."""
