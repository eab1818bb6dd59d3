"""Convert plain Python values to the dtype of the data."""

from __future__ import annotations

import numpy as np

from gatherum._model import errors, narrow_floats
from gatherum._model.arrays import NumpyArray
from gatherum._model.dtypes import AnyDType, DType, check_units
from gatherum._system import native

from .array_likes import arrays_in, check_decimals, convert, refuse
from .casting import (
    KIND_RANK,
    all_integers,
    as_integers,
    is_integer,
    kind_rank,
    same_integers,
    stays_finite,
    stays_infinite,
)

# The names of each kind of number, singular and plural.
_KIND_NAMES = (
    ("True or False", "True or False"),
    ("an integer", "integers"),
    ("a real number", "real numbers"),
)


def is_weak(value: object) -> bool:
    """Return True for a Python value without a dtype. Such values adopt the data's dtype."""
    weak = (bool, int, float, complex, str, bytes, list, tuple)
    return isinstance(value, weak) and not isinstance(value, np.generic)


def as_narrow(op: str, operand: str, value: object, dtype: AnyDType) -> narrow_floats.Rounded:
    """Round plain Python values to a dtype that NumPy lacks, registered or not."""
    exact = convert_weak(op, operand, value, np.dtype(np.float64), dtype)
    rounded = narrow_floats.rounded(exact, dtype.name)
    if not rounded.stay_finite:
        raise errors.not_finite(op, operand, dtype, value)
    if not rounded.have_codes:
        raise errors.does_not_fit(op, operand, dtype, value)
    return rounded


def convert_weak(
    op: str, operand: str, value: object, dtype: DType, named: AnyDType | None = None
) -> NumpyArray:
    """Convert plain Python values as NumPy converts weak scalars.

    The kind must be compatible, and an integer must be in range; floats are rounded, and finite
    numbers must remain finite. Error messages call the dtype `named`.
    """
    if named is None and dtype.name in narrow_floats.FORMATS:
        return as_narrow(op, operand, value, dtype).codes.view(dtype)
    named = named or dtype
    if dtype.names is not None:
        return _convert_records(op, operand, value, dtype)
    refuse(op, operand, value, arrays_in(value))
    array = check_decimals(op, operand, convert(op, operand, value))
    if array.size == 0:
        return np.empty(array.shape, dtype)
    if array.dtype.kind == "O" or (array.dtype.kind == "f" and is_integer(dtype)):
        array = as_integers(value, array)  # NumPy converts large integers to objects or floats
    rank, dtype_rank = KIND_RANK.get(array.dtype.kind), kind_rank(dtype)
    if array.dtype.kind == "O" and all_integers(array):
        rank = 1
    if rank is None or dtype_rank is None:
        return _convert_same_kind(op, operand, value, array, dtype, named)
    if rank > dtype_rank:
        numbers = _KIND_NAMES[dtype_rank][isinstance(value, (list, tuple))]
        raise errors.loses_kind(op, operand, named, numbers, value)
    try:
        with np.errstate(all="ignore"), native.FloatMode():
            # Large integers are first converted to float64, which can be converted to every float
            # type.
            by_float = array.dtype.kind == "O" and dtype_rank == 2
            converted = (array.astype(np.float64) if by_float else array).astype(dtype)
    except OverflowError:
        unfit = errors.does_not_fit if dtype_rank < 2 else errors.not_finite
        raise unfit(op, operand, named, value) from None
    if is_integer(dtype) and not same_integers(array, converted):
        raise errors.does_not_fit(op, operand, dtype, value)
    if not stays_finite(array, converted):
        raise errors.not_finite(op, operand, dtype, value)
    if not stays_infinite(array, converted):
        raise errors.does_not_fit(op, operand, dtype, value)
    return converted


def _convert_records(op: str, operand: str, value: object, dtype: DType) -> NumpyArray:
    """Convert tuples, or lists of them, to records."""
    refuse(op, operand, value, arrays_in(value))
    try:
        return np.array(value, dtype=dtype)
    except (TypeError, ValueError, OverflowError):
        raise errors.not_convertible(op, operand, dtype, value) from None


def _convert_same_kind(
    op: str, operand: str, value: object, array: NumpyArray, dtype: DType, named: AnyDType
) -> NumpyArray:
    """Convert strings and dates. The conversion must not change them."""
    if array.dtype.kind in KIND_RANK or (
        array.dtype.kind != dtype.kind and dtype.kind not in "VmM"
    ):
        raise errors.not_convertible(op, operand, named, value)
    check_units(op, operand, array.dtype)
    try:
        converted = np.asarray(value, dtype=dtype)
        is_unchanged = array.dtype.kind != dtype.kind or np.array_equal(array, converted)
    except (TypeError, ValueError, OverflowError):
        raise errors.not_convertible(op, operand, named, value) from None
    if not is_unchanged:
        raise errors.does_not_fit(op, operand, dtype, value)
    return converted
