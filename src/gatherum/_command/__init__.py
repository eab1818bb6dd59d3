"""The command line, and `verify`.

`cli` has the commands; verify.py compares digests; startup.py begins the process. It imports
every package. Start with cli/command_group.py.
"""
