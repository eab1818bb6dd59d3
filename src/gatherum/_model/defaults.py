"""Defaults that the functions and the command line share."""

from typing import Final

# The memory of a run on files.
MEMORY: Final = "1GiB"
