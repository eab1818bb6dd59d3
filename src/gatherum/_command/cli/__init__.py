"""Commands that run the operators on files, check and explain calls, and report the installation.

Errors are one line on standard error, with exit status 2 for usage and 1 for data.
"""

from . import checks, explain, files, groups, machine, models, vectors  # noqa: F401  # their commands
from .command_group import commands, run

__all__ = ["commands", "run"]
