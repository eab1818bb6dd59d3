"""What the operators need to know of a dtype: whether it may move, index, or be reduced."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np

DType = np.dtype[Any]

REDUCTIONS = ("none", "add", "mul", "max", "min", "mean")
MODES = ("raise", "clip", "wrap", "fill", "drop")


class Value(IntEnum):
    """The value types that reductions know; numbered as in the core."""

    NONE = 0
    BOOL = 1
    INT8 = 2
    INT16 = 3
    INT32 = 4
    INT64 = 5
    UINT8 = 6
    UINT16 = 7
    UINT32 = 8
    UINT64 = 9
    FLOAT16 = 10
    BFLOAT16 = 11
    FLOAT32 = 12
    FLOAT64 = 13
    COMPLEX64 = 14
    COMPLEX128 = 15


_COMPLEX = (Value.COMPLEX64, Value.COMPLEX128)
_HALF = (Value.FLOAT16, Value.BFLOAT16)
_INTEGER = tuple(value for value in Value if "INT" in value.name)


def value_of(dtype: DType) -> Value:
    """Return the value type of a dtype, NONE where no reduction is defined."""
    if not dtype.isnative:
        return Value.NONE
    if dtype.kind == "V":  # bfloat16 of ml_dtypes, which need not be installed
        return Value.BFLOAT16 if dtype.name == "bfloat16" else Value.NONE
    if dtype.kind not in "biufc" or dtype.char in "gG":
        return Value.NONE
    return Value.__members__.get(dtype.name.upper(), Value.NONE)


def is_reducible(dtype: DType, reduction: str) -> bool:
    """Whether a reduction other than "none" is defined for the dtype."""
    value = value_of(dtype)
    if value is Value.NONE:
        return False
    if value in _COMPLEX:
        return reduction not in ("max", "min")
    return value is not Value.BOOL or reduction != "mean"


def needs_accumulator(value: Value, reduction: str, include_self: bool) -> bool:
    """Whether the fold cannot live in the output: it rounds once, counts, or starts afresh."""
    if reduction == "none":
        return False
    return (
        not include_self or reduction == "mean" or (value in _HALF and reduction in ("add", "mul"))
    )


def needs_counter(reduction: str, include_self: bool) -> bool:
    """Whether the fold must know how many updates a destination has had."""
    return reduction == "mean" or (reduction != "none" and not include_self)


def accumulator_bytes(value: Value, item: int, reduction: str) -> int:
    """Return the bytes of the type in which a reduction of `item`-byte values accumulates."""
    if value in _HALF and reduction in ("add", "mul", "mean"):
        return 4
    return 8 if value in _INTEGER and reduction == "mean" else item


def is_index(dtype: DType) -> bool:
    """Whether an array of the dtype may hold indices."""
    return dtype.kind in "iu"


def is_movable(dtype: DType) -> bool:
    """Whether elements are plain bytes: no objects, no references."""
    return not dtype.hasobject
