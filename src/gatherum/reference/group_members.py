"""Check the arguments of a function over groups, and list the values of each group."""

import operator
from typing import Any, TypeAlias

import numpy as np

from .arguments import as_array, as_axis, check_boolean, check_choice
from .items import Array, Position, as_bytes
from .positions import MODES, resolve_all

Members: TypeAlias = list[tuple[Position, bytes]]
"""The position and the bytes of each value of a group, in row-major order."""


def listed(
    op: str,
    values: Any,
    groups: Any,
    size: Any,
    axis: Any,
    mode: str,
    negative: bool,
    names: frozenset[str] | None,
) -> tuple[Array, int, Array]:
    """Check the arguments. Return the values, the axis, and the members of each group."""
    axis = operator.index(axis)
    check_choice(op, "mode", mode, MODES)
    check_boolean(op, "negative", negative)
    if size is not None and operator.index(size) < 0:
        raise ValueError(f"{op}: `size` must be at least 0, got {size}")
    values, groups = as_array(op, "values", values), as_array(op, "groups", groups)
    if groups.size == 0 and groups.dtype.kind == "f":
        groups = groups.astype(np.int64)
    if values.dtype.hasobject or groups.dtype.kind not in "iu":
        raise TypeError(f"{op}: got values of {values.dtype} and groups of {groups.dtype}")
    if values.ndim == 0:
        raise ValueError(f"{op}: `values` must have at least 1 dimension")
    axis = as_axis(op, axis, values.ndim)
    along = (values.shape[axis],)
    if groups.shape not in (along, values.shape):
        raise ValueError(f"{op}: `groups` must have shape {along}, got {groups.shape}")
    name = values.dtype.name.partition("[")[0]
    if names is not None and (name not in names or not values.dtype.isnative):
        raise TypeError(f"{op}: `func` is not defined for dtype {values.dtype}")
    if size is None:
        size = max([int(group) + 1 for group in groups.flat] + [0])
    counted = np.empty(operator.index(size), "V0")
    group_numbers = resolve_all(op, counted, groups, lambda _: 0, mode=mode, negative=negative)
    return values, axis, _members(values, group_numbers, len(counted), axis)


def _members(values: Array, group_numbers: Array, size: int, axis: int) -> Array:
    """Return the members of each group."""
    shape = values.shape[:axis] + (size,) + values.shape[axis + 1 :]
    members = np.empty(shape, dtype=object)
    for cell in np.ndindex(shape):
        members[cell] = []
    items = as_bytes(values)
    for position in np.ndindex(values.shape):
        group = group_numbers[position if group_numbers.ndim > 1 else position[axis]]
        if group is not None:
            members[(*position[:axis], group, *position[axis + 1 :])].append(
                (position, items[position].tobytes())
            )
    return members
