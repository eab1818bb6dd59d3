"""A Table is a handle of a table that stays open, for one lookup after another."""

from gatherum.files.handle.counts import TableStats
from gatherum.files.handle.opening import open
from gatherum.files.handle.table import Table

__all__ = ["Table", "TableStats", "open"]
