"""The command line, and `verify`.

`cli` contains the commands, verify.py compares digests, and startup.py starts the process. This
package imports every other package. Start with cli/command_group.py.
"""
