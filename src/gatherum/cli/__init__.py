"""The command line runs the operators on files, checks and explains, and shows what is installed.

Errors are one line on standard error, with exit status 2 for usage and 1 for data.
"""

from . import (  # noqa: F401  # their commands
    checks,
    explain,
    files,
    groups,
    machine,
    models,
    vectors,
)
from .command_group import commands, run

__all__ = ["commands", "run"]
