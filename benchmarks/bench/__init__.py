"""Compare gatherum's times with this machine's limits and with the installed peers."""
