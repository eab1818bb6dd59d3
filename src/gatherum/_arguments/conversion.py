"""Convert the operands of calls to arrays. Errors are raised in the order of the checks."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from itertools import chain
from typing import Any

import numpy as np

from gatherum._frameworks import refusals, registry
from gatherum._model import errors, narrow_floats
from gatherum._model.call import Array, ArraySpec, Attributes
from gatherum._model.dtypes import AnyDType, DType, Extension, check_units
from gatherum._model.errors import Shape
from gatherum._model.operators import OPERATORS
from gatherum._system import native

from .casting import (
    KIND_RANK,
    all_integers,
    as_integers,
    is_extension,
    is_integer,
    is_number,
    is_same_value,
    keeps_kind,
    kind_rank,
    same_integers,
    stays_finite,
    stays_infinite,
)
from .checks import check_before_updates, check_out_spec
from .plain_values import as_attributes

# The maximum depth of nested lists that NumPy converts: the maximum number of dimensions.
_DEEPEST = 64
# Types of list items that are never arrays.
_ITEMS = frozenset((bool, int, float, complex, str, bytes))
# The names of each kind of number, singular and plural.
_KIND_NAMES = (
    ("True or False", "True or False"),
    ("an integer", "integers"),
    ("a real number", "real numbers"),
)


def is_masked(value: object) -> bool:
    """Return True for an ndarray with a mask, from numpy.ma or another subclass."""
    kind = type(value)
    return issubclass(kind, np.ndarray) and not callable(getattr(kind, "mask", is_masked))


def is_plain(value: object) -> bool:
    """Return True for an ndarray, or an instance of a subclass, without a mask.

    The type is checked because ``isinstance`` trusts an object's ``__class__``, and the core would
    access the object's memory as an array.
    """
    return issubclass(type(value), np.ndarray) and not is_masked(value)


def levels_of(value: object) -> Iterator[tuple[list[Any], set[type]]]:
    """Yield the lists at each depth of a list or tuple, and the types of their items.

    The depth is limited to that of NumPy. Each list is in a level only once, because a list may
    contain itself, or may contain another list many times.
    """
    if not isinstance(value, (list, tuple)):
        return
    level: list[Any] = [value]
    for _ in range(_DEEPEST):
        kinds = set(map(type, chain.from_iterable(level)))
        yield level, kinds
        lists = {kind for kind in kinds if issubclass(kind, (list, tuple))}
        if not lists:
            return
        inner = (item for item in chain.from_iterable(level) if type(item) in lists)
        level = list({id(item): item for item in inner}.values())


def _arrays_in(value: object) -> Iterator[object]:
    """Yield the arrays in a list or tuple, at any depth that NumPy reads.

    Also yield arrays of other frameworks, and objects that can be converted to an array.
    """
    for level, kinds in levels_of(value):
        array_types = {kind for kind in kinds - _ITEMS if _is_array(kind)}
        if array_types:
            yield from (item for item in chain.from_iterable(level) if type(item) in array_types)


def _is_array(kind: type) -> bool:
    """Return True if values of a type are arrays of any framework, or can be converted to one."""
    if issubclass(kind, np.generic):
        return False
    return hasattr(kind, "__array__") or registry.foreign(kind) is not None


def _refuse(
    op: str, operand: str, value: object, arrays: Iterable[object], *, integers: bool = False
) -> None:
    """Raise TypeError for masked or foreign arrays and values not in memory, also in lists."""
    for array in (value, *arrays):
        if type(array) in registry.COMMON:
            continue
        if is_masked(array) or refusals.has_mask(array):
            raise errors.masked_array(op, operand)
        refusals.refuse_nulls(op, operand, array, in_list=array is not value, integers=integers)
        if array is not value:
            refusals.refuse_held(op, operand, value, type(array))  # type: ignore[arg-type]
        refusals.refuse(op, operand, array)
        if array is not value:
            _convert(op, operand, array)  # if the value has a mask, NumPy would drop it


def check_items(op: str, operand: str, value: object) -> None:
    """Raise TypeError for a list or a tuple that contains arrays of another framework."""
    for array in _arrays_in(value):
        refusals.refuse_held(op, operand, value, type(array))  # type: ignore[arg-type]


def as_array(op: str, operand: str, value: object) -> Array:
    """Convert an operand by `numpy.asarray` to a plain ndarray."""
    _refuse(op, operand, value, _arrays_in(value))
    _refuse_text(op, operand, value)
    return check_decimals(op, operand, _convert(op, operand, value))


def _refuse_text(op: str, operand: str, value: object) -> None:
    if isinstance(value, (str, bytes)) and not isinstance(value, np.generic):
        raise errors.no_array(op, operand, value)


def _convert(op: str, operand: str, value: object) -> Array:
    try:
        array = np.asanyarray(value)
    except ValueError as why:  # ragged lists
        raise errors.not_an_array(op, operand, why) from None
    if is_masked(array):  # returned by the object's __array__
        raise errors.masked_array(op, operand)
    array = np.asarray(array)
    if array.dtype.kind == "O" and array.ndim == 0 and not isinstance(value, (int, np.ndarray)):
        raise errors.no_array(op, operand, value)
    return array


def check_decimals(op: str, operand: str, array: Array) -> Array:
    """Return the array, or raise TypeError if a `Decimal` is among its first items."""
    # `flat` supports at most 32 dimensions.
    items = array[(0,) * (array.ndim - 1)][:100] if array.ndim and array.size else []
    if array.dtype.kind == "O" and any(isinstance(item, Decimal) for item in items):
        raise errors.decimals(op, operand)
    return array


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


def as_out(op: str, out: object) -> Array:
    """Return `out` unchanged if it is an ndarray without a mask."""
    if is_plain(out):
        return out  # type: ignore[return-value]  # is_plain has checked it
    raise errors.masked_array(op, "out") if is_masked(out) else errors.out_not_an_array(op, out)


def as_plain_out(op: str, out: object, shape: Shape, dtype: DType) -> Array:
    """Return `out` as a plain array, or raise if it cannot hold a result of the shape and dtype."""
    plain = np.asarray(as_out(op, out))
    check_out_spec(op, shape, dtype, ArraySpec.of(plain))
    if not plain.flags.writeable:
        raise errors.out_read_only(op)
    return plain


def as_indices(op: str, value: object, operand: str = "indices") -> Array:
    """Return `indices` as an array; an empty list becomes an array of integers."""
    arrays = list(_arrays_in(value))
    if arrays and refusals.whole_tuple(type(value)):
        check_items(op, operand, value)
    if arrays and not any(map(is_masked, arrays)):
        raise errors.holds_arrays(op, value, operand)
    _refuse(op, operand, value, arrays, integers=True)
    _refuse_text(op, operand, value)
    array = _convert(op, operand, value)
    if isinstance(value, (int, list, tuple)) and array.dtype.kind in "Of":
        if array.size == 0:
            return array.astype(np.int64)
        _refuse_wide(op, operand, np.array(value, object))
    return array


def _refuse_wide(op: str, operand: str, values: Array) -> None:
    """Raise ValueError for the first integer that exceeds int64, if all values are integers."""
    wide = None
    for position, value in np.ndenumerate(values):
        if type(value) is not int:
            return
        if wide is None and not -(2**63) <= value < 2**63:
            wide = errors.too_wide_index(op, operand, value, position)
    if wide is not None:
        raise wide


def _as_numpy(op: str, dtype: AnyDType) -> DType:
    if isinstance(dtype, Extension):
        raise errors.needs_ml_dtypes(op, dtype)
    return dtype


def is_weak(value: object) -> bool:
    """Return True for a Python value without a dtype. Such values adopt the data's dtype."""
    weak = (bool, int, float, complex, str, bytes, list, tuple)
    return isinstance(value, weak) and not isinstance(value, np.generic)


def as_updates(op: str, value: object, dtype: AnyDType, operand: str = "updates") -> Array:
    """Return `updates` as an array; plain Python values and lists get the data's dtype."""
    if not is_weak(value):
        return as_array(op, operand, value)
    return _convert_weak(op, operand, value, _as_numpy(op, dtype))


def as_narrow(op: str, operand: str, value: object, dtype: AnyDType) -> narrow_floats.Rounded:
    """Round plain Python values to a dtype that NumPy lacks, registered or not."""
    exact = _convert_weak(op, operand, value, np.dtype(np.float64), dtype)
    narrow = narrow_floats.rounded(exact, dtype.name)
    if not narrow.stay_finite:
        raise errors.not_finite(op, operand, dtype, value)
    if not narrow.have_codes:
        raise errors.does_not_fit(op, operand, dtype, value)
    return narrow


def _convert_weak(
    op: str, operand: str, value: object, dtype: DType, named: AnyDType | None = None
) -> Array:
    """Convert plain Python values as NumPy converts weak scalars.

    The kind must be compatible, and an integer must be in range; floats are rounded, and finite
    numbers must remain finite. Errors name the dtype `named`.
    """
    if named is None and dtype.name in narrow_floats.FORMATS:
        return as_narrow(op, operand, value, dtype).codes.view(dtype)
    named = named or dtype
    if dtype.names is not None:
        return _convert_records(op, operand, value, dtype)
    _refuse(op, operand, value, _arrays_in(value))
    array = check_decimals(op, operand, _convert(op, operand, value))
    if array.size == 0:
        return np.empty(array.shape, dtype)
    if array.dtype.kind == "O" or (array.dtype.kind == "f" and is_integer(dtype)):
        array = as_integers(value, array)  # NumPy converts large integers to objects or floats
    rank, wanted = KIND_RANK.get(array.dtype.kind), kind_rank(dtype)
    if array.dtype.kind == "O" and all_integers(array):
        rank = 1
    if rank is None or wanted is None:
        return _convert_same_kind(op, operand, value, array, dtype, named)
    if rank > wanted:
        kind = _KIND_NAMES[wanted][isinstance(value, (list, tuple))]
        raise errors.loses_kind(op, operand, named, kind, value)
    try:
        with np.errstate(all="ignore"), native.FloatMode():
            # Large integers are first converted to float64, which converts to every float type.
            by_float = array.dtype.kind == "O" and wanted == 2
            converted = (array.astype(np.float64) if by_float else array).astype(dtype)
    except OverflowError:
        unfit = errors.does_not_fit if wanted < 2 else errors.not_finite
        raise unfit(op, operand, named, value) from None
    if is_integer(dtype) and not same_integers(array, converted):
        raise errors.does_not_fit(op, operand, dtype, value)
    if not stays_finite(array, converted):
        raise errors.not_finite(op, operand, dtype, value)
    if not stays_infinite(array, converted):
        raise errors.does_not_fit(op, operand, dtype, value)
    return converted


def _convert_records(op: str, operand: str, value: object, dtype: DType) -> Array:
    """Convert tuples, or lists of them, to records."""
    _refuse(op, operand, value, _arrays_in(value))
    try:
        return np.array(value, dtype=dtype)
    except (TypeError, ValueError, OverflowError):
        raise errors.not_convertible(op, operand, dtype, value) from None


def _convert_same_kind(
    op: str, operand: str, value: object, array: Array, dtype: DType, named: AnyDType
) -> Array:
    """Convert strings and dates. The conversion must not change them."""
    if array.dtype.kind in KIND_RANK or (
        array.dtype.kind != dtype.kind and dtype.kind not in "VmM"
    ):
        raise errors.not_convertible(op, operand, named, value)
    check_units(op, operand, array.dtype)
    try:
        converted = np.asarray(value, dtype=dtype)
        same = array.dtype.kind != dtype.kind or np.array_equal(array, converted)
    except (TypeError, ValueError, OverflowError):
        raise errors.not_convertible(op, operand, named, value) from None
    if not same:
        raise errors.does_not_fit(op, operand, dtype, value)
    return converted


def as_operands(
    attributes: Attributes,
    operands: tuple[object, object, object],
    owns: Callable[[object], bool],
    spec: Callable[[str, str, Any], ArraySpec],
) -> tuple[list[Any], list[ArraySpec]]:
    """Return the operands of a call on another framework's arrays, and their specs.

    Arrays for which `owns` returns True are unchanged; other operands become NumPy arrays. `spec`
    describes both.
    """
    op, (data, indices, updates) = attributes.op, operands
    converted = [data if owns(data) else as_array(op, "data", data)]
    specs = [spec(op, "data", converted[0])]
    converted.append(indices if owns(indices) else as_indices(op, indices))
    specs.append(spec(op, "indices", converted[1]))
    if attributes.operator.scatters:
        check_before_updates(op, specs[0], specs[1], attributes.axis)
        converted.append(updates if owns(updates) else as_updates(op, updates, specs[0].dtype))
        specs.append(spec(op, "updates", converted[2]))
    return converted, specs


def fill_item(op: str, given_dtype: AnyDType, fill_value: object) -> Array:
    """Return `fill_value` as one item of the data's dtype, or raise ValueError.

    Python numbers are converted in the same way as updates; other values must convert exactly. An
    integer 0 means an item whose bits are all zero, for any dtype.
    """
    dtype = _as_numpy(op, given_dtype)
    item = np.zeros((), dtype)
    if is_integer_zero(fill_value):
        return item
    plain = isinstance(fill_value, (int, float, complex)) and not isinstance(fill_value, np.generic)
    if plain and kind_rank(dtype) is not None:
        return _convert_weak(op, "fill_value", fill_value, dtype)
    _refuse(op, "fill_value", fill_value, _arrays_in(fill_value))
    if _is_array(type(fill_value)):
        fill_value = _convert(op, "fill_value", fill_value)
    try:
        array = np.array(fill_value, dtype=dtype if dtype.names else None)
        check_units(op, "fill_value", array.dtype)
        source = fill_value
        if isinstance(source, int) and is_extension(dtype) and not is_integer(dtype):
            source = float(source)  # ml_dtypes does not support integers beyond int64
        with native.FloatMode():
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the comparison below detects a lost part
                converted = array if array.dtype == dtype else np.asarray(source, dtype=dtype)
            finite = not is_number(array) or stays_finite(array, converted)
            exact = array.shape == () and is_same_value(fill_value, array, converted)
    except (TypeError, ValueError, OverflowError):
        finite, exact = True, False
    if not finite:
        raise errors.not_finite(op, "fill_value", dtype, fill_value)
    if not exact:
        rounds = isinstance(fill_value, np.inexact) and keeps_kind(fill_value.dtype, dtype)
        raise errors.does_not_fit(op, "fill_value", dtype, fill_value, rounds)
    return np.array(converted, copy=True)


def is_integer_zero(value: object) -> bool:
    """Return True if a fill value is an integer 0, which means zero bits in any dtype."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, np.timedelta64)
    return whole and value == 0


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
    axis, *others = attributes.positional
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
    return (
        op,
        data,
        indices,
        updates,
        axis,
        *others,
        fill_value,
        out,
    )
