"""Resolve index values to positions, as Python integers, which cannot overflow."""

from collections.abc import Callable

import numpy as np

from .items import Array, Position

MODES = ("raise", "clip", "wrap", "fill", "drop")


def resolve_all(
    op: str,
    data: Array,
    indices: Array,
    axis_at: Callable[[Position], int],
    *,
    mode: str,
    negative: bool,
) -> Array:
    """Resolve every element of `indices` to a position, or to None if it is skipped."""
    resolved = np.empty(indices.shape, dtype=object)
    for position in np.ndindex(indices.shape):
        axis = axis_at(position)
        value, size = int(indices[position]), data.shape[axis]
        element = _resolve(value, size, mode, negative)
        if element is None and mode not in ("fill", "drop"):
            where = ", ".join(map(str, position))
            raise IndexError(
                f"{op}: index {value} is out of bounds for axis {axis} of size {size} "
                f"(indices[{where}])"
            )
        resolved[position] = element
    return resolved


def _resolve(value: int, size: int, mode: str, negative: bool) -> int | None:
    if negative and -size <= value < 0:
        value += size
    if 0 <= value < size:
        return value
    if mode == "clip" and size > 0:
        return 0 if value < 0 else size - 1
    if mode == "wrap" and size > 0:
        return value % size
    return None
