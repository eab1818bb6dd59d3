"""The dtypes of `aggregate`: numpy_groupies' rules, and what results are computed in before."""

from __future__ import annotations

from typing import Any

import numpy as np

from gatherum.dtypes import DType

from . import errors

TRUTHS = ("any", "all", "anynan", "allnan")
WHOLE = ("len", "argmax", "argmin")
_AVERAGES = ("mean", "var", "std")
_SUMS = ("sum", "sumofsquares")
# The next dtype that holds more; after the last one a fill value does not fit.
_NEXT = {
    "bool": "i1", "int8": "i2", "uint8": "i2", "int16": "i4", "uint16": "i4", "int32": "i8",
    "uint32": "i8", "int64": "f4", "uint64": "f4", "float16": "f4", "float32": "f8",
    "float64": "c8", "complex64": "c16",
}  # fmt: skip


def plain_name(name: str) -> str:
    """Return the name of the function that does not skip NaN."""
    return name if name in TRUTHS else name.removeprefix("nan")


def result_dtype(op: str, name: str, values: DType, given: Any, count: int) -> DType:
    """Return the dtype of a result before its fill value is considered.

    `given` is the dtype that the caller asks for, and `count` the number of values: sums of narrow
    integers get a dtype that holds every sum of so many.
    """
    summed, name = name, plain_name(name)
    if name in TRUTHS:
        return np.dtype(bool)
    if given is not None:
        found: DType = np.dtype(given)
        if found.kind == "b" or (name == "len" and found.kind not in "iu"):
            raise errors.other_result(op, name, found)
        return found
    if name in WHOLE or (name == "sumofsquares" and values.kind in "bi"):
        return np.dtype(np.int64)
    if name in _AVERAGES:
        kept = values.kind == "f" or (values.kind == "c" and name == "mean")
        return values if kept else _real(values)
    if summed == "sum" and values.kind in "biu" and values.itemsize < 8:
        largest = 1 if values.kind == "b" else int(np.iinfo(values).max)
        return widened(largest * count, values)
    return values


def _real(dtype: DType) -> DType:
    return np.dtype(np.float32 if dtype.name == "complex64" else np.float64)


def widened(value: Any, dtype: DType) -> DType:
    """Return the first dtype from this one on that holds a number; NaN is held by all."""
    while not _holds(value, dtype) and dtype.name in _NEXT:
        dtype = np.dtype(_NEXT[dtype.name])
    return dtype


def _holds(value: Any, dtype: DType) -> bool:
    with np.errstate(all="ignore"):
        try:
            return bool(np.isnan(value) or np.asarray(value).astype(dtype) == value)
        except (TypeError, ValueError, OverflowError):
            return False


def working_dtype(name: str, values: DType, result: DType) -> DType:
    """Return the dtype that values are converted to before they are reduced to a result.

    Sums and averages of floats are computed in float64, sums of integers in 64 bits.
    """
    if name in (*TRUTHS, *WHOLE):
        return values
    if name == "prod":
        return np.result_type(values, result)
    if name not in (*_SUMS, *_AVERAGES):
        return result
    if values.kind in "biu":
        wide = np.uint64 if values.name == "uint64" else np.int64
        return np.dtype(wide if name in _SUMS else np.float64)
    return np.dtype(np.complex128 if values.kind == "c" else np.float64)


def check_fill(op: str, name: str, dtype: DType, fill_value: Any) -> None:
    """Raise ValueError for a fill value that a result cannot hold."""
    try:
        if name in TRUTHS:
            fits = fill_value in (0, 1)
        else:
            dtype.type(fill_value)
            fits = True
    except OverflowError:
        fits = True  # the result gets a wider dtype
    except (TypeError, ValueError):
        fits = False
    if not fits:
        raise errors.other_fill(op, name, dtype, fill_value)
