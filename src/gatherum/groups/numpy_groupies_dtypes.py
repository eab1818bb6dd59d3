"""The dtypes of `aggregate`: numpy_groupies' rules, and what results are computed in before."""

from __future__ import annotations

from enum import Enum
from typing import Any

import numpy as np

from gatherum._arguments.casting import has_nan, is_same_value, keeps_kind, kind_rank, stays_finite
from gatherum._model.call import Array
from gatherum._model.dtypes import DType

from . import errors
from .functions import FUNCTIONS, not_a_number
from .reducing import WIDEST, check_defined


class FillValue(Enum):
    """What `fill_value` is where the caller gives none."""

    DEFAULT_FILL_VALUE = "the fill value of the function"

    def __repr__(self) -> str:
        """Return the name that numpy_groupies prints, too."""
        return self.name


DEFAULT_FILL_VALUE = FillValue.DEFAULT_FILL_VALUE

TRUTHS = ("any", "all", "anynan", "allnan")
WHOLE = ("len", "argmax", "argmin")
_AVERAGES = ("mean", "var", "std")
_SUMS = ("sum", "sumofsquares")
_MOVES = ("first", "last")
_EXTREMES = ("max", "min")
# The fill values of functions that have a number for an empty group; averages have NaN.
_DEFAULTS = {"prod": 1, "argmax": -1, "argmin": -1}
# Functions whose results get a dtype that holds the fill value, too.
_WIDENED = ("sum", "prod", "len", *_EXTREMES, *_MOVES)
# The next dtype that holds more; after the last one a fill value is rounded, or does not fit.
_NEXT = {
    "bool": "i1", "int8": "i2", "uint8": "i2", "int16": "i4", "uint16": "i4", "int32": "i8",
    "uint32": "i8", "int64": "f4", "uint64": "f4", "float16": "f4", "float32": "f8",
    "complex64": "c16",
}  # fmt: skip


def plain_name(name: str) -> str:
    """Return the name of the function that does not skip NaN."""
    return name if name in TRUTHS else name.removeprefix("nan")


def result_dtype(op: str, name: str, values: DType, given: Any, count: int) -> DType:
    """Return the dtype of a result before its fill value is considered.

    `given` is the dtype that the caller asks for, and `count` the number of values: sums of narrow
    integers get a dtype that holds every sum of so many.
    """
    given_name, name = name, plain_name(name)
    if name not in (*_MOVES, "len", "anynan", "allnan"):
        check_number(op, given_name, values)
    if given is not None:
        return _given(op, name, values, given)
    if name in (*TRUTHS, *WHOLE):
        return np.dtype(bool if name in TRUTHS else np.int64)
    if name == "sumofsquares" and values.kind in "biu":
        return working_dtype(name, values, values)
    if name in _AVERAGES:
        kept = values.kind == "f" or (values.kind == "c" and name == "mean")
        return values if kept else _real(values)
    if given_name == "sum" and values.kind in "biu" and values.itemsize < 8:
        largest = 1 if values.kind == "b" else int(np.iinfo(values).max)
        return widened(largest * count, values)
    return values


def _given(op: str, name: str, values: DType, given: Any) -> DType:
    """Return the dtype that the caller asks for, or raise TypeError where it is none."""
    # Dates, text and records keep their kind.
    moved = name in (*_MOVES, *_EXTREMES) and kind_rank(values) is None
    expected = "an integer dtype" if name == "len" else "a dtype of numbers"
    if moved:
        expected = f"of the kind of `a`, {values},"
    try:
        found: DType = np.dtype(given)
    except (TypeError, ValueError):
        raise errors.other_result(op, name, expected, given) from None
    if name in TRUTHS:
        return np.dtype(bool)
    if name == "len":
        fits = found.kind in "iu"
    elif moved:
        fits = found.kind == values.kind and not found.hasobject
    else:
        fits = kind_rank(found) is not None and found.kind != "b"
    if fits and found.char in WIDEST and name not in _MOVES:
        fits, expected = False, f"{WIDEST[found.char]} or narrower"
    if fits and values.kind == "c" and found.kind != "c" and name not in ("len", "var", "std"):
        fits, expected = False, "a complex dtype"
    if not fits:
        raise errors.other_result(op, name, expected, found)
    return found


def _real(dtype: DType) -> DType:
    return np.dtype(np.float32 if dtype.name == "complex64" else np.float64)


def widened(value: Any, dtype: DType) -> DType:
    """Return the first dtype from this one on that holds a number; NaN is held by all."""
    while not _holds(value, dtype) and dtype.name in _NEXT:
        dtype = np.dtype(_NEXT[dtype.name])
    return dtype


def _holds(value: Any, dtype: DType) -> bool:
    given = np.asarray(value)
    with np.errstate(all="ignore"):
        try:
            item = given.astype(dtype)
            return bool(np.isnan(given) or item == value) and stays_finite(given, item)
        except (TypeError, ValueError, OverflowError):
            return False


def check_number(op: str, name: str, values: DType) -> None:
    """Raise TypeError for values that are no numbers, that are wider than what is computed in, or
    that are complex where the function is for real numbers.
    """
    plain = plain_name(name)
    row = FUNCTIONS["logsumexp" if plain == "sumofsquares" else plain]  # both are for real numbers
    if kind_rank(values) is None or values.char in WIDEST or values.kind == "c":
        check_defined(op, row, name, values.newbyteorder("="))


def working_dtype(name: str, values: DType, result: DType) -> DType:
    """Return the dtype that values are converted to before they are reduced to a result.

    Sums and averages of floats are computed in float64, sums of integers in 64 bits. Variances of
    integers, and of floats whose result has their dtype, need no conversion.
    """
    if name in (*TRUTHS, *WHOLE):
        return values
    if name == "prod":
        return np.result_type(values, result)
    if name not in (*_SUMS, *_AVERAGES):
        return result
    if name in ("var", "std") and (values.kind in "iu" or FUNCTIONS[name].result(values) == result):
        return values
    if values.kind in "biu":
        wide = np.uint64 if values.name == "uint64" else np.int64
        return np.dtype(wide if name in _SUMS else np.float64)
    return np.dtype(np.complex128 if values.kind == "c" else np.float64)


def filled(op: str, name: str, dtype: DType, fill_value: Any) -> tuple[DType, Array]:
    """Return the dtype of a result that holds its fill value too, and that value as an item of it.

    Raises ValueError for a fill value that the result cannot hold.
    """
    if fill_value is DEFAULT_FILL_VALUE:
        fill_value = _default(name, dtype)
    if isinstance(fill_value, (list, tuple)) or getattr(fill_value, "ndim", 0) != 0:
        raise errors.several_fills(op, fill_value)
    try:
        given = np.asarray(fill_value)
        if kind_rank(dtype) is None:
            dtype.type(fill_value)
            item = given.astype(dtype)
            if given.dtype.kind == dtype.kind and not is_same_value(fill_value, given, item):
                raise errors.other_fill(op, name, dtype, fill_value)
            return dtype, item
        value = given.item()
        fits = _is_number(given.dtype, dtype) or isinstance(fill_value, int)
        if fits and name in TRUTHS:
            fits = value in (0, 1)
        elif fits and name in _WIDENED:
            dtype = widened(fill_value, dtype)
        with np.errstate(all="ignore"):
            item = np.asarray(dtype.type(value)).astype(dtype)
        if fits and stays_finite(given, item):
            return dtype, item
    except (TypeError, ValueError, OverflowError):
        pass
    raise errors.other_fill(op, name, dtype, fill_value)


def holds_fill(name: str, work: DType, result: DType) -> bool:
    """Whether what `reduced` gives of values of a dtype has the dtype of the result, so that it
    takes its fill value; otherwise the result is filled after it has been converted.
    """
    if name in WHOLE:
        return result.kind in "iu"
    spreads = name in ("var", "std") and result.kind == "c"  # of which those are real
    return name in TRUTHS or (work == result and not spreads)


def _default(name: str, dtype: DType) -> Any:
    """Return numpy_groupies' fill value of a function: NaN for averages; for extremes and moved
    values NaN or NaT if the dtype has one, else 0 or an item of zeros.
    """
    if name in _AVERAGES:
        return np.nan if name != "mean" else not_a_number(dtype)
    if name not in (*_EXTREMES, *_MOVES):
        return _DEFAULTS.get(name, 0)
    if has_nan(dtype):
        return not_a_number(dtype)
    return 0 if kind_rank(dtype) is not None else np.zeros((), dtype)[()]


def _is_number(given: DType, result: DType) -> bool:
    """Whether a fill value's dtype is one of numbers that a result can hold."""
    return keeps_kind(given, np.result_type(result, np.float64)) and (
        given.char not in WIDEST or result.char in WIDEST
    )
