"""Check that a conversion keeps the kind, the range and the values of an operand."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatherum._model.arrays import NumpyArray
from gatherum._model.dtypes import AnyDType, DType, Extension

# The ranks of the kinds of plain Python values: bool < int < float < complex.
KIND_RANK = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}


def as_integers(value: object, array: NumpyArray) -> NumpyArray:
    """Return the values as Python integers if all of them are integers."""
    exact = np.array(value, dtype=object)
    return exact if exact.shape == array.shape and all_integers(exact) else array


def all_integers(array: NumpyArray) -> bool:
    """Return True if all items are Python or NumPy integers."""
    return all(isinstance(item, (int, np.integer)) for item in array.ravel())


def same_integers(original: NumpyArray, converted: NumpyArray) -> bool:
    """Return True if a conversion did not change integers."""
    # Compare Python integers: NumPy compares uint64 and int64 as float64.
    numbers = converted if converted.dtype.kind in "iub" else converted.astype(np.int64)
    return bool(np.array_equal(original.astype(object), numbers.astype(object)))


def stays_finite(original: NumpyArray, converted: NumpyArray) -> bool:
    """Return True if all finite numbers, and finite parts of complex numbers, are still finite."""
    if (kind_rank(converted.dtype) or 0) < 2:
        return True
    with np.errstate(all="ignore"):
        before, after = (np.isfinite(_parts(array)) for array in (original, converted))
    return bool((after | ~before).all())


def stays_infinite(original: NumpyArray, converted: NumpyArray) -> bool:
    """Return True if a conversion kept infinities. Some narrow types have no infinity."""
    if not is_extension(converted.dtype) or original.dtype.kind != "f":
        return True
    return bool((np.isinf(_parts(converted)) | ~np.isinf(_parts(original))).all())


def _parts(array: NumpyArray) -> NDArray[np.float64]:
    return np.ascontiguousarray(array.astype(np.complex128)).view(np.float64)


def kind_rank(dtype: DType) -> int | None:
    """Return the rank of a number dtype's kind, or None for any other dtype."""
    if is_extension(dtype):
        return 1 if is_integer(dtype) else 2
    return KIND_RANK.get(dtype.kind)


@lru_cache
def has_nan(dtype: AnyDType) -> bool:
    """Return True if the dtype has NaN or NaT. Some 4-bit and 6-bit types have no NaN."""
    if isinstance(dtype, Extension) or dtype.kind in "mM":
        return True
    if (kind_rank(dtype) or 0) < 2:
        return False
    item = np.asarray(np.nan).astype(dtype)
    return bool(np.isnan(item))


def keeps_kind(source: DType, target: DType) -> bool:
    """Return True if the kind of `target` includes the kind of `source`."""
    ranks = kind_rank(source), kind_rank(target)
    return None not in ranks and ranks[0] <= ranks[1]  # type: ignore[operator]  # not None


def is_integer(dtype: DType) -> bool:
    """Return True for an integer dtype of NumPy or ml_dtypes."""
    return dtype.kind in "iu" or (is_extension(dtype) and dtype.name.startswith(("int", "uint")))


def is_extension(dtype: DType) -> bool:
    """Return True for a number type that NumPy lacks (ml_dtypes)."""
    return dtype.kind == "V" and dtype.names is None and dtype.type is not np.void


def is_same_value(value: object, original: NumpyArray, converted: NumpyArray) -> bool:
    """Return True if a conversion did not change a scalar. NaN equals NaN."""
    if converted.dtype.names is not None:
        return _is_same_record(value, converted)
    if original.dtype == converted.dtype:
        return True
    if is_number(original) and kind_rank(converted.dtype) is not None:
        return _is_same_number(original[()], converted)
    if original.dtype.kind != converted.dtype.kind:
        return False
    if original.dtype.kind in "mM" and np.isnat(original):
        return bool(np.isnat(converted))
    return bool(original == converted)


def is_number(array: NumpyArray) -> bool:
    """Return True if values are NumPy numbers or Python integers."""
    return array.dtype.kind in KIND_RANK or (array.dtype.kind == "O" and all_integers(array))


def _is_same_record(value: object, converted: NumpyArray) -> bool:
    """Return True if a value contains a value for every field of the structured dtype.

    NumPy would assign a single number to every field.
    """
    if isinstance(value, tuple):
        return bool(converted.item() == value)
    return isinstance(value, (np.void, np.ndarray)) and value.dtype == converted.dtype


def _is_same_number(original: Any, converted: NumpyArray) -> bool:
    """Compare real and imaginary parts separately, and integers as Python integers."""
    result = converted[()]
    if original.imag != 0 or result.imag != 0 or original.imag != original.imag:  # NaN
        pairs = (original.real, result.real), (original.imag, result.imag)
        return all(
            _is_same_number(before_cast, np.asarray(after_cast))
            for before_cast, after_cast in pairs
        )
    original, result = original.real, result.real
    if is_extension(converted.dtype):
        result = converted.astype(np.float64)[()]
    if isinstance(original, (int, np.integer, np.bool_)):
        is_whole = bool(np.isfinite(result)) and bool(result == np.trunc(result))
        return is_whole and int(result) == int(original)
    with np.errstate(invalid="ignore"):  # a signalling NaN
        is_equal = np.longdouble(result) == np.longdouble(original)
    return bool(is_equal) or bool(np.isnan(result) and np.isnan(original))
