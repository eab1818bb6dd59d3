"""Reductions over groups of values in files.

`reduction` contains the function. `calls` checks the operands and selects where a call runs: batch
by batch with accumulators in memory (`folds`), in memory, or with buckets on the disk.
"""

from .reduction import reduce_file

__all__ = ["reduce_file"]
