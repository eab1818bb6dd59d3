"""The command line, and `verify`."""
