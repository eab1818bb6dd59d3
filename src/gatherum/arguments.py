"""From what a caller passes to arrays and plain values, in the order in which errors are due."""

from __future__ import annotations

import operator
import sys
from typing import Any

import numpy as np

from . import errors
from .dtypes import MODES, REDUCTIONS, DType
from .signature import Array, axis_name, check_axis

# How far each kind of plain Python value reaches: bool < int < float < complex.
_KIND_RANK = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}


def as_axis(op: str, value: object) -> int:
    """Return `axis` or `batch_dims` as an int."""
    try:
        return operator.index(value)  # type: ignore[arg-type]  # what is no integer raises
    except TypeError:
        raise errors.not_an_integer(op, axis_name(op), value) from None


def as_choice(op: str, name: str, value: object, choices: tuple[str, ...]) -> str:
    """Return one of a few words, interned."""
    if not isinstance(value, str) or value not in choices:
        raise errors.not_one_of(op, name, value, choices)
    return choices[choices.index(value)]


def is_masked(value: object) -> bool:
    """Whether the value is a numpy.ma array, without importing numpy.ma for it."""
    ma = sys.modules.get("numpy.ma")
    return ma is not None and isinstance(value, ma.MaskedArray)


def as_array(op: str, operand: str, value: object) -> Array:
    """Return what `numpy.asarray` makes of an operand, as a plain ndarray."""
    if is_masked(value):
        raise errors.masked_array(op, operand)
    try:
        return np.asarray(value)
    except ValueError as why:  # ragged lists
        raise errors.not_an_array(op, operand, why) from None


def as_indices(op: str, value: object) -> Array:
    """Return `indices` as an array; an empty list is one of integers."""
    array = as_array(op, "indices", value)
    if isinstance(value, (list, tuple)) and array.size == 0 and array.dtype.kind == "f":
        return array.astype(np.int64)
    return array


def as_updates(op: str, value: object, dtype: DType) -> Array:
    """Return `updates` as an array; plain Python values and lists take the data's dtype."""
    if isinstance(value, np.generic) or not isinstance(
        value, (bool, int, float, complex, str, bytes, list, tuple)
    ):
        return as_array(op, "updates", value)
    return _convert_weak(op, value, dtype)


def _convert_weak(op: str, value: object, dtype: DType) -> Array:
    """Convert plain Python values as NumPy's weak scalars: the kind must fit, and so must the
    range of an integer; floats round.
    """
    found = as_array(op, "updates", value)
    if found.size == 0:
        return np.empty(found.shape, dtype)
    rank = _KIND_RANK.get(found.dtype.kind)
    wanted = _KIND_RANK.get(dtype.kind, 2 if _is_extension(dtype) else None)
    if rank is None or wanted is None:
        return _convert_same_kind(op, value, found, dtype)
    if rank > wanted:
        raise errors.loses_kind(op, dtype, value)
    with np.errstate(all="ignore"):
        converted = found.astype(dtype)
    if dtype.kind in "iu" and not _same_integers(found, converted):
        raise errors.does_not_fit(op, "updates", dtype, value)
    return converted


def _same_integers(found: Array, converted: Array) -> bool:
    # Compared as Python integers: uint64 against int64 would be compared as float64.
    return bool(np.array_equal(found.astype(object), converted.astype(object)))


def _is_extension(dtype: DType) -> bool:
    """Whether the dtype is a number type that NumPy itself does not have (ml_dtypes)."""
    return dtype.kind == "V" and dtype.names is None and dtype.type is not np.void


def _convert_same_kind(op: str, value: object, found: Array, dtype: DType) -> Array:
    """Convert strings, dates and records, which must come back unchanged."""
    if found.dtype.kind == "O" and dtype.kind in "iu" and _all_integers(found):
        raise errors.does_not_fit(op, "updates", dtype, value)
    if found.dtype.kind in _KIND_RANK or (
        found.dtype.kind != dtype.kind and dtype.kind not in "VmM"
    ):
        raise errors.loses_kind(op, dtype, value)
    try:
        converted = np.asarray(value, dtype=dtype)
    except (TypeError, ValueError):
        raise errors.loses_kind(op, dtype, value) from None
    if (
        found.dtype.kind == dtype.kind
        and dtype.names is None
        and not np.array_equal(found, converted)
    ):
        raise errors.does_not_fit(op, "updates", dtype, value)
    return converted


def _all_integers(found: Array) -> bool:
    return all(isinstance(item, int) for item in found.ravel())


def fill_item(op: str, dtype: DType, fill_value: object) -> Array:
    """Return `fill_value` as one item of the data's dtype, or raise ValueError unless it converts
    exactly. An integer 0 is the all-zero item of any dtype.
    """
    item = np.zeros((), dtype)
    if isinstance(fill_value, (int, np.integer)) and fill_value == 0:
        return item
    if is_masked(fill_value):
        raise errors.masked_array(op, "fill_value")
    try:
        given = np.asarray(fill_value)
        with np.errstate(all="ignore"):
            converted = np.asarray(fill_value, dtype=dtype) if given.dtype != dtype else given
        exact = given.shape == () and _is_same_value(given, converted)
    except (TypeError, ValueError, OverflowError):
        exact = False
    if not exact:
        raise errors.does_not_fit(op, "fill_value", dtype, fill_value)
    return np.array(converted, copy=True)


def _is_same_value(given: Array, converted: Array) -> bool:
    """Whether a scalar has come through a conversion unchanged (NaN counts as equal to NaN)."""
    if given.dtype == converted.dtype:
        return True
    if given.dtype.kind == "O":
        return bool(converted.item() == given.item())
    kinds = _KIND_RANK.get(given.dtype.kind), _KIND_RANK.get(converted.dtype.kind)
    if kinds[0] is not None and (kinds[1] is not None or _is_extension(converted.dtype)):
        return _is_same_number(given.item(), converted)
    return given.dtype.kind == converted.dtype.kind and bool(given == converted)


def _is_same_number(given: Any, converted: Array) -> bool:
    # Python compares int, float and complex exactly, whatever their size; NaN is not itself.
    found = converted.item()
    if not isinstance(found, (bool, int, float, complex)):
        found = converted.astype(np.float64).item()
    return bool(found == given) or (found != found and given != given)  # noqa: PLR0124


def normalise(
    op: str,
    data: object,
    indices: object,
    updates: object,
    axis: object,
    reduction: object,
    include_self: object,
    mode: object,
    negative: object,
    fill_value: object,
    out: object,
) -> tuple[object, ...]:
    """Return the arguments of a call as plain values and arrays; `updates` is None for gathers."""
    axis = as_axis(op, axis)
    reduction = as_choice(op, "reduction", reduction, REDUCTIONS)
    mode = as_choice(op, "mode", mode, MODES)
    data, indices = as_array(op, "data", data), as_indices(op, indices)
    check_axis(op, data.shape, indices.shape, axis)
    if op.startswith("scatter"):
        updates = as_updates(op, updates, data.dtype)
    return (
        op,
        data,
        indices,
        updates,
        axis,
        reduction,
        bool(include_self),
        mode,
        bool(negative),
        fill_value,
        out,
    )
