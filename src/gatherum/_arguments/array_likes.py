"""Values that NumPy converts to arrays. Reject masked and foreign arrays, even in lists."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal
from itertools import chain
from typing import Any

import numpy as np

from gatherum._frameworks import refusals, registry
from gatherum._model import errors
from gatherum._model.arrays import NumpyArray
from gatherum._model.shape_limits import MAX_RANK

# Types of list items that are never arrays.
_ITEMS = frozenset((bool, int, float, complex, str, bytes))


def is_masked(value: object) -> bool:
    """Return True for an ndarray with a mask, from numpy.ma or another subclass."""
    array_type = type(value)
    return issubclass(array_type, np.ndarray) and not callable(
        getattr(array_type, "mask", is_masked)
    )


def is_plain(value: object) -> bool:
    """Return True for an ndarray (or an instance of a subclass) that has no mask.

    The type is checked because ``isinstance`` trusts an object's ``__class__``, and the core would
    access the object's memory as an array.
    """
    return issubclass(type(value), np.ndarray) and not is_masked(value)


def levels_of(value: object) -> Iterator[tuple[list[Any], set[type]]]:
    """Yield the lists at each depth of a list or tuple, and the types of their items.

    The depth is limited to the maximum rank of an array. At each depth, a list is yielded only
    once, because a list may contain itself, or may contain another list many times.
    """
    if not isinstance(value, (list, tuple)):
        return
    level: list[Any] = [value]
    for _ in range(MAX_RANK):
        types = set(map(type, chain.from_iterable(level)))
        yield level, types
        lists = {array_type for array_type in types if issubclass(array_type, (list, tuple))}
        if not lists:
            return
        inner_lists = (item for item in chain.from_iterable(level) if type(item) in lists)
        level = list({id(item): item for item in inner_lists}.values())


def arrays_in(value: object) -> Iterator[object]:
    """Yield the arrays in a list or tuple, at any depth that NumPy reads.

    Also yield arrays of other frameworks, and objects that can be converted to an array.
    """
    for level, types in levels_of(value):
        array_types = {array_type for array_type in types - _ITEMS if is_array(array_type)}
        if array_types:
            yield from (item for item in chain.from_iterable(level) if type(item) in array_types)


def is_array(array_type: type) -> bool:
    """Return True if values of a type are arrays of any framework, or can be converted to one."""
    if issubclass(array_type, np.generic):
        return False
    return hasattr(array_type, "__array__") or registry.foreign_type(array_type) is not None


def refuse(
    op: str, operand: str, value: object, arrays: Iterable[object], *, integers: bool = False
) -> None:
    """Raise TypeError for masked or foreign arrays and values not in memory, even in lists."""
    for array in (value, *arrays):
        if type(array) in registry.COMMON:
            continue
        if is_masked(array) or refusals.has_mask(array):
            raise errors.masked_array(op, operand)
        refusals.refuse_nulls(op, operand, array, in_list=array is not value, integers=integers)
        if array is not value:
            refusals.refuse_held(op, operand, value, type(array))  # type: ignore[arg-type]  # a list
        refusals.refuse(op, operand, array)
        if array is not value:
            convert(op, operand, array)  # if the value has a mask, NumPy would drop it


def check_items(op: str, operand: str, value: object) -> None:
    """Raise TypeError for a list or a tuple that contains arrays of another framework."""
    for array in arrays_in(value):
        refusals.refuse_held(op, operand, value, type(array))  # type: ignore[arg-type]  # a list


def refuse_text(op: str, operand: str, value: object) -> None:
    """Raise TypeError for a Python string or bytes."""
    if isinstance(value, (str, bytes)) and not isinstance(value, np.generic):
        raise errors.not_array_like(op, operand, value)


def convert(op: str, operand: str, value: object) -> NumpyArray:
    """Convert a value by `numpy.asarray`, or raise an error that names the operand."""
    try:
        array = np.asanyarray(value)
    except ValueError as why:  # ragged lists
        raise errors.not_convertible_to_array(op, operand, why) from None
    if is_masked(array):  # returned by the object's __array__
        raise errors.masked_array(op, operand)
    array = np.asarray(array)
    if array.dtype.kind == "O" and array.ndim == 0 and not isinstance(value, (int, np.ndarray)):
        raise errors.not_array_like(op, operand, value)
    return array


def check_decimals(op: str, operand: str, array: NumpyArray) -> NumpyArray:
    """Return the array, or raise TypeError if a `Decimal` is among its first items."""
    # `flat` supports at most 32 dimensions.
    items = array[(0,) * (array.ndim - 1)][:100] if array.ndim and array.size else []
    if array.dtype.kind == "O" and any(isinstance(item, Decimal) for item in items):
        raise errors.has_decimals(op, operand)
    return array
