"""What the operators need to know of a dtype: whether it may move, index, or be reduced."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _core
from ._core import Mode, Reduction, Value

DType = np.dtype[Any]
REDUCTIONS = tuple(reduction.name for reduction in Reduction)
MODES = ("raise", "clip", "wrap", "fill", "drop")


def value_of(dtype: DType) -> Value:
    """Return the value type of a dtype, `Value.none` where no reduction is defined."""
    if not dtype.isnative:
        return Value.none
    if dtype.kind == "V":  # bfloat16 of ml_dtypes, which need not be installed
        return Value.bfloat16 if dtype.name == "bfloat16" else Value.none
    if dtype.kind not in "biufc" or dtype.char in "gG":
        return Value.none
    return Value.__members__.get(dtype.name, Value.none)


def is_reducible(dtype: DType, reduction: str) -> bool:
    """Whether a reduction other than "none" is defined for the dtype."""
    return _core.has_meaning(value_of(dtype), Reduction[reduction])


def needs_accumulator(dtype: DType, reduction: str, include_self: bool) -> bool:
    """Whether a fold cannot live in the output: it rounds once, counts, or starts afresh."""
    return _core.needs_accumulator(value_of(dtype), Reduction[reduction], include_self)


def core_mode(mode: str) -> Mode:
    """Return what the core does with an invalid index in a mode: it drops for "fill", too."""
    return Mode["drop" if mode == "fill" else mode]


def accumulator_dtype(dtype: DType, reduction: str) -> DType:
    """Return the dtype in which a reduction of this dtype accumulates."""
    name = _core.sum_type(value_of(dtype), Reduction[reduction]).name
    return dtype if name == value_of(dtype).name else np.dtype(name)


def is_index(dtype: DType) -> bool:
    """Whether an array of the dtype may hold indices."""
    return dtype.kind in "iu"


def is_movable(dtype: DType) -> bool:
    """Whether elements are plain bytes: no objects, no references."""
    return not dtype.hasobject
