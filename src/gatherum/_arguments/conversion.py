"""Convert the operands of calls to arrays. Errors are raised in the order of the checks."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from gatherum._frameworks import refusals, registry
from gatherum._model import errors
from gatherum._model.arrays import NumpyArray
from gatherum._model.call import ArraySpec, Attributes
from gatherum._model.dtypes import AnyDType, DType, Extension, check_units
from gatherum._model.errors import Shape
from gatherum._model.operators import OPERATORS
from gatherum._system import native

from .array_likes import (
    arrays_in,
    check_decimals,
    check_items,
    convert,
    is_array,
    is_masked,
    is_plain,
    refuse,
    refuse_text,
)
from .casting import (
    is_extension,
    is_integer,
    is_number,
    is_same_value,
    keeps_kind,
    kind_rank,
    stays_finite,
)
from .checks import check_before_updates, check_out_spec
from .plain_values import as_attributes
from .weak_values import convert_weak, is_weak


def as_array(op: str, operand: str, value: object) -> NumpyArray:
    """Convert an operand by `numpy.asarray` to a plain ndarray."""
    refuse(op, operand, value, arrays_in(value))
    refuse_text(op, operand, value)
    return check_decimals(op, operand, convert(op, operand, value))


def pinned(*arrays: object) -> list[weakref.ref[Any]]:
    """Return weak references to arrays and to their base arrays.

    ndarray.resize does not reallocate an array with a weak reference, even in a finalizer or in
    another thread.
    """
    pins = []
    for array in arrays:
        while isinstance(array, np.ndarray):
            pins.append(weakref.ref(array))
            array = array.base  # noqa: PLW2901  # the chain of owners
    return pins


def as_out(op: str, out: object) -> NumpyArray:
    """Return `out` unchanged if it is an ndarray without a mask."""
    if is_plain(out):
        return out  # type: ignore[return-value]  # is_plain has checked it
    raise (
        errors.masked_array(op, "out") if is_masked(out) else errors.out_not_a_numpy_array(op, out)
    )


def as_plain_out(op: str, out: object, shape: Shape, dtype: DType) -> NumpyArray:
    """Return `out` as a plain array, or raise if it cannot hold a result of the shape and dtype."""
    plain_out = np.asarray(as_out(op, out))
    check_out_spec(op, shape, dtype, ArraySpec.of(plain_out))
    if not plain_out.flags.writeable:
        raise errors.out_read_only(op)
    return plain_out


def as_indices(op: str, value: object, operand: str = "indices") -> NumpyArray:
    """Return `indices` as an array; an empty list becomes an array of integers."""
    arrays = list(arrays_in(value))
    if arrays and refusals.whole_tuple(type(value)):
        check_items(op, operand, value)
    if arrays and not any(map(is_masked, arrays)):
        raise errors.holds_arrays(op, value, operand)
    refuse(op, operand, value, arrays, integers=True)
    refuse_text(op, operand, value)
    array = convert(op, operand, value)
    if isinstance(value, (int, list, tuple)) and array.dtype.kind in "Of":
        if array.size == 0:
            return array.astype(np.int64)
        _refuse_wide(op, operand, np.array(value, object))
    return array


def _refuse_wide(op: str, operand: str, values: NumpyArray) -> None:
    """Raise ValueError for the first integer that exceeds int64, if all values are integers."""
    error = None
    for position, value in np.ndenumerate(values):
        if type(value) is not int:
            return
        if error is None and not -(2**63) <= value < 2**63:
            error = errors.too_wide_index(op, operand, value, position)
    if error is not None:
        raise error


def _as_numpy(op: str, dtype: AnyDType) -> DType:
    if isinstance(dtype, Extension):
        raise errors.needs_ml_dtypes(op, dtype)
    return dtype


def as_updates(op: str, value: object, dtype: AnyDType, operand: str = "updates") -> NumpyArray:
    """Return `updates` as an array; plain Python values and lists get the data's dtype."""
    if not is_weak(value):
        return as_array(op, operand, value)
    return convert_weak(op, operand, value, _as_numpy(op, dtype))


def as_operands(
    attributes: Attributes,
    operands: tuple[object, object, object],
    owns: Callable[[object], bool],
    spec_of: Callable[[str, str, Any], ArraySpec],
) -> tuple[list[Any], list[ArraySpec]]:
    """Return the operands of a call on another framework's arrays, and their specs.

    Arrays for which `owns` returns True are unchanged; other operands become NumPy arrays.
    `spec_of` describes both.
    """
    op, (data, indices, updates) = attributes.op, operands
    converted = [data if owns(data) else as_array(op, "data", data)]
    specs = [spec_of(op, "data", converted[0])]
    converted.append(indices if owns(indices) else as_indices(op, indices))
    specs.append(spec_of(op, "indices", converted[1]))
    if attributes.operator.scatters:
        check_before_updates(op, specs[0], specs[1], attributes.axis)
        converted.append(updates if owns(updates) else as_updates(op, updates, specs[0].dtype))
        specs.append(spec_of(op, "updates", converted[2]))
    return converted, specs


def fill_item(op: str, given_dtype: AnyDType, fill_value: object) -> NumpyArray:
    """Return `fill_value` as one item of the data's dtype, or raise ValueError.

    Python numbers are converted in the same way as updates; other values must convert exactly. An
    integer 0 means an item whose bits are all zero, for any dtype.
    """
    dtype = _as_numpy(op, given_dtype)
    item = np.zeros((), dtype)
    if is_integer_zero(fill_value):
        return item
    is_python_number = isinstance(fill_value, (int, float, complex)) and not isinstance(
        fill_value, np.generic
    )
    if is_python_number and kind_rank(dtype) is not None:
        return convert_weak(op, "fill_value", fill_value, dtype)
    refuse(op, "fill_value", fill_value, arrays_in(fill_value))
    if is_array(type(fill_value)):
        fill_value = convert(op, "fill_value", fill_value)
    try:
        array = np.array(fill_value, dtype=dtype if dtype.names else None)
        check_units(op, "fill_value", array.dtype)
        number = fill_value
        if isinstance(number, int) and is_extension(dtype) and not is_integer(dtype):
            number = float(number)  # ml_dtypes does not support integers beyond int64
        with native.FloatMode():
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the comparison below detects a lost part
                converted = array if array.dtype == dtype else np.asarray(number, dtype=dtype)
            is_finite = not is_number(array) or stays_finite(array, converted)
            is_exact = array.shape == () and is_same_value(fill_value, array, converted)
    except (TypeError, ValueError, OverflowError):
        is_finite, is_exact = True, False
    if not is_finite:
        raise errors.not_finite(op, "fill_value", dtype, fill_value)
    if not is_exact:
        rounds = isinstance(fill_value, np.inexact) and keeps_kind(fill_value.dtype, dtype)
        raise errors.does_not_fit(op, "fill_value", dtype, fill_value, rounds)
    return np.array(converted, copy=True)


def is_integer_zero(value: object) -> bool:
    """Return True if a fill value is the integer 0, which means all bits zero in any dtype."""
    is_integer_value = isinstance(value, (int, np.integer)) and not isinstance(
        value, np.timedelta64
    )
    return is_integer_value and value == 0


def normalize(
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
    attributes = as_attributes(op, axis, reduction, include_self, mode, negative)
    axis, *other_attributes = attributes.positional
    if not registry.COMMON.issuperset(map(type, (data, indices, updates, out, fill_value))):
        operands = {"data": data, "indices": indices, "updates": updates, "out": out}
        registry.check_one_framework(op, operands | {"fill_value": fill_value})
    data, indices = as_array(op, "data", data), as_indices(op, indices)
    operator = OPERATORS[op]
    check_before_updates(op, data, indices, axis)
    if not (indices if operator.counts_indices else data).shape:
        axis = 0  # every axis raises an error later; the core requires an axis of 64 bits
    if operator.scatters:
        updates = as_updates(op, updates, data.dtype)
    return op, data, indices, updates, axis, *other_attributes, fill_value, out
