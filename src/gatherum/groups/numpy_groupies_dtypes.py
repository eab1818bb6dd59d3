"""The dtypes of `aggregate`: numpy_groupies' rules for results, and the dtypes of computation."""

from __future__ import annotations

from enum import Enum
from typing import Any

import numpy as np

from gatherum._arguments.casting import has_nan, is_same_value, keeps_kind, kind_rank, stays_finite
from gatherum._model.arrays import NumpyArray
from gatherum._model.dtypes import DType

from . import errors
from .dtypes import not_a_number
from .evaluation import WIDEST, check_defined
from .functions import FUNCTIONS


class FillValue(Enum):
    """The default of the argument `fill_value`."""

    DEFAULT_FILL_VALUE = "the fill value of the function"

    def __repr__(self) -> str:
        """Return the same text as numpy_groupies."""
        return self.name


DEFAULT_FILL_VALUE = FillValue.DEFAULT_FILL_VALUE

# Functions by the kind of their result: booleans; counts and positions; floats.
BOOLEAN = ("any", "all", "anynan", "allnan")
INTEGER = ("len", "argmax", "argmin")
_AVERAGES = ("mean", "var", "std")
_SUMS = ("sum", "sumofsquares")
_MOVES = ("first", "last")
_EXTREMES = ("max", "min")
# The default fill values other than 0 and NaN.
_DEFAULTS = {"prod": 1, "argmax": -1, "argmin": -1}
# Functions whose result dtype is widened to hold the fill value.
_WIDENED = ("sum", "prod", "len", *_EXTREMES, *_MOVES)
# The dtype that numpy_groupies tries next. After 64-bit integers it is float32, which holds NaN and
# infinity, although it rounds large integers. In the last dtype, a fill value is rounded, or raises
# an error if it does not fit.
_NEXT = {
    "bool": "i1", "int8": "i2", "uint8": "i2", "int16": "i4", "uint16": "i4", "int32": "i8",
    "uint32": "i8", "int64": "f4", "uint64": "f4", "float16": "f4", "float32": "f8",
    "complex64": "c16",
}  # fmt: skip


def plain_name(name: str) -> str:
    """Return the name of a function of numpy_groupies without the prefix ``nan``."""
    return name if name in BOOLEAN else name.removeprefix("nan")


def result_dtype(op: str, name: str, values: DType, requested: Any, count: int) -> DType:
    """Return the dtype of a result before its fill value is considered.

    `requested` is the caller's dtype, or None. Sums of narrow integers get a dtype that holds every
    sum of `count` values.
    """
    full_name, name = name, plain_name(name)
    if name not in (*_MOVES, "len", "anynan", "allnan"):
        check_number(op, full_name, values)
    if requested is not None:
        return _requested(op, name, values, requested)
    if name in (*BOOLEAN, *INTEGER):
        return np.dtype(bool if name in BOOLEAN else np.int64)
    if name == "sumofsquares" and values.kind in "biu":
        return working_dtype(name, values, values)
    if name in _AVERAGES:
        keeps_dtype = values.kind == "f" or (values.kind == "c" and name == "mean")
        return values if keeps_dtype else _real(values)
    if full_name == "sum" and values.kind in "biu" and values.itemsize < 8:
        largest = 1 if values.kind == "b" else int(np.iinfo(values).max)
        return widened(largest * count, values)
    return values


def _requested(op: str, name: str, values: DType, requested: Any) -> DType:
    """Return the requested dtype, or raise TypeError if the result cannot have it."""
    # Dates, text and records keep their kind.
    moves = name in (*_MOVES, *_EXTREMES) and kind_rank(values) is None
    expected = "an integer dtype" if name == "len" else "a dtype of numbers"
    if moves:
        expected = f"of the kind of `a`, {values},"
    try:
        dtype: DType = np.dtype(requested)
    except (TypeError, ValueError):
        raise errors.other_result(op, name, expected, requested) from None
    if name in BOOLEAN:
        return np.dtype(bool)
    if name == "len":
        fits = dtype.kind in "iu"
    elif moves:
        fits = dtype.kind == values.kind and not dtype.hasobject
    else:
        fits = kind_rank(dtype) is not None and dtype.kind != "b"
    if fits and dtype.char in WIDEST and name not in _MOVES:
        fits, expected = False, f"{WIDEST[dtype.char]} or narrower"
    if fits and values.kind == "c" and dtype.kind != "c" and name not in ("len", "var", "std"):
        fits, expected = False, "a complex dtype"
    if not fits:
        raise errors.other_result(op, name, expected, dtype)
    return dtype


def _real(dtype: DType) -> DType:
    return np.dtype(np.float32 if dtype.name == "complex64" else np.float64)


def widened(value: Any, dtype: DType) -> DType:
    """Return the narrowest dtype, no narrower than `dtype`, that can hold a number (or NaN)."""
    while not _holds(value, dtype) and dtype.name in _NEXT:
        dtype = np.dtype(_NEXT[dtype.name])
    return dtype


def _holds(value: Any, dtype: DType) -> bool:
    array = np.asarray(value)
    with np.errstate(all="ignore"):
        try:
            item = array.astype(dtype)
            return bool(np.isnan(array) or item == value) and stays_finite(array, item)
        except (TypeError, ValueError, OverflowError):
            return False


def check_number(op: str, name: str, values: DType) -> None:
    """Raise TypeError for values that are not numbers, that are wider than any supported dtype, or
    that are complex if the function needs real numbers.
    """
    plain = plain_name(name)
    row = FUNCTIONS["logsumexp" if plain == "sumofsquares" else plain]  # both need real numbers
    if kind_rank(values) is None or values.char in WIDEST or values.kind == "c":
        check_defined(op, row, name, values.newbyteorder("="))


def working_dtype(name: str, values: DType, result: DType) -> DType:
    """Return the dtype to which values are converted before their reduction.

    Sums and averages of floats are computed in float64, sums of integers in 64 bits. Variances of
    integers, and of floats with a result of the same dtype, need no conversion.
    """
    if name in (*BOOLEAN, *INTEGER):
        return values
    if name == "prod":
        return np.result_type(values, result)
    if name not in (*_SUMS, *_AVERAGES):
        return result
    if name in ("var", "std") and (values.kind in "iu" or FUNCTIONS[name].result(values) == result):
        return values
    if values.kind in "biu":
        wide_integer = np.uint64 if values.name == "uint64" else np.int64
        return np.dtype(wide_integer if name in _SUMS else np.float64)
    return np.dtype(np.complex128 if values.kind == "c" else np.float64)


def filled(op: str, name: str, dtype: DType, fill_value: Any) -> tuple[DType, NumpyArray]:
    """Return a result dtype that also holds the fill value, and the fill value in that dtype.

    Raise ValueError for a fill value that the result cannot hold.
    """
    if fill_value is DEFAULT_FILL_VALUE:
        fill_value = _default(name, dtype)
    if isinstance(fill_value, (list, tuple)) or getattr(fill_value, "ndim", 0) != 0:
        raise errors.several_fills(op, fill_value)
    try:
        array = np.asarray(fill_value)
        if kind_rank(dtype) is None:
            dtype.type(fill_value)
            item = array.astype(dtype)
            if array.dtype.kind == dtype.kind and not is_same_value(fill_value, array, item):
                raise errors.other_fill(op, name, dtype, fill_value)
            return dtype, item
        value = array.item()
        fits = _is_number(array.dtype, dtype) or isinstance(fill_value, int)
        if fits and name in BOOLEAN:
            fits = value in (0, 1)
        elif fits and name in _WIDENED:
            dtype = widened(fill_value, dtype)
        with np.errstate(all="ignore"):
            item = np.asarray(dtype.type(value)).astype(dtype)
        if fits and stays_finite(array, item):
            return dtype, item
    except (TypeError, ValueError, OverflowError):
        pass
    raise errors.other_fill(op, name, dtype, fill_value)


def holds_fill(name: str, working: DType, result: DType) -> bool:
    """Return True if `reduced` returns the result dtype for values of the dtype `working`.

    It can then insert the fill value itself. Otherwise, the fill value is inserted after the
    result is converted.
    """
    if name in INTEGER:
        return result.kind in "iu"
    is_real = name in ("var", "std") and result.kind == "c"  # these are real
    return name in BOOLEAN or (working == result and not is_real)


def _default(name: str, dtype: DType) -> Any:
    """Return numpy_groupies' default fill value.

    For averages it is NaN. For extremes, and for values that are copied unchanged, it is NaN or NaT
    if the dtype has one of them, and otherwise 0 or an item of zeros.
    """
    if name in _AVERAGES:
        return np.nan if name != "mean" else not_a_number(dtype)
    if name not in (*_EXTREMES, *_MOVES):
        return _DEFAULTS.get(name, 0)
    if has_nan(dtype):
        return not_a_number(dtype)
    return 0 if kind_rank(dtype) is not None else np.zeros((), dtype)[()]


def _is_number(fill: DType, result: DType) -> bool:
    """Return True if a fill value is a number that a result of another dtype can hold."""
    return keeps_kind(fill, np.result_type(result, np.float64)) and (
        fill.char not in WIDEST or result.char in WIDEST
    )
