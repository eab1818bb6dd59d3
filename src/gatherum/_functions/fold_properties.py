"""Properties of folds: the size of accumulators, and whether the order of updates matters."""

from __future__ import annotations

from gatherum._core import Reduction
from gatherum._model.call import FoldRule
from gatherum._model.dtypes import DType, accumulator_dtype, value_of
from gatherum._system import native


def element_bytes(dtype: DType, reduction: str) -> int:
    """Return the maximum size of an element in bytes: its count, accumulator and two values."""
    return 2 * dtype.itemsize + accumulator_dtype(dtype, reduction).itemsize + 8


def can_merge(dtype: DType, reduction: str) -> bool:
    """Return True if accumulators can be merged: the order of updates does not matter."""
    return core_fold(FoldRule(reduction), dtype).any_order


def core_fold(fold: FoldRule, dtype: DType) -> native.Fold:
    """Return the core's description of a fold."""
    code = Reduction[fold.reduction], value_of(dtype), fold.include_self
    return native.Fold(*code, max(1, dtype.itemsize))
