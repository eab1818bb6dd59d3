"""A table is read with the dimensions that index tuples address in front of the others.

Nothing is copied: boxes of the file are transposed as they are read.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatherum._arguments.plain_values import as_axis
from gatherum._model import errors
from gatherum._model.audience import argument
from gatherum._model.operators import OPERATORS
from gatherum.files.formats.storage import BoxStorage, Source, boxes_of
from gatherum.files.row_access.grid import BoxArray

__all__ = ["Axes", "reordered"]

Order = tuple[int, ...]
Axes = Sequence[int | str]


def reordered(op: str, table: Source, indices: errors.Shape, axes: Axes, batch_dims: int) -> Source:
    """Return a table with its batch dimensions first, then those that `axes` lists.

    `axes` are numbers, or names in the file; the first `batch_dims` dimensions of the file are its
    batch dimensions. TypeError or ValueError where `axes` are not one dimension of the table for
    each component, or `batch_dims` is not one of its values.
    """
    found = _resolved(op, table, axes)
    batch = range(OPERATORS[op].resolve(table.shape, indices, as_axis(op, batch_dims)))
    if len(found) != indices[-1]:
        raise ValueError(
            f"{op}: {argument('axes')} must name a dimension for each component of an index tuple, "
            f"{indices[-1]} here, got {len(found)}"
        )
    if shared := [axis for axis in found if axis in batch]:
        raise ValueError(
            f"{op}: {argument('axes')} must name no batch dimension, got {shared[0]} with "
            f"{argument('batch_dims')} {len(batch)}"
        )
    rest = (axis for axis in range(len(table.shape)) if axis not in batch and axis not in found)
    order = (*batch, *found, *rest)
    if order == tuple(range(len(order))):
        return table
    boxes = Reordered(boxes_of(table.storage), order)
    storage = BoxStorage(boxes, "its dimensions are read in another order")
    return replace(table, shape=boxes.shape, storage=storage, order=order)


def _resolved(op: str, table: Source, axes: Axes) -> Order:
    """Return the dimensions that names and numbers stand for, each counted from the front."""
    given, rank, found = _listed(op, axes), len(table.shape), list[int]()
    for axis in given:
        if isinstance(axis, str):
            found.append(_named(op, table, axis))
        elif -rank <= axis < rank:
            found.append(int(axis) % rank)
        else:
            raise ValueError(f"{op}: {argument('axes')} must be in [{-rank}, {rank}), got {axis}")
    for place, axis in enumerate(found):
        if axis in found[:place]:
            raise ValueError(
                f"{op}: {argument('axes')} must name each dimension once, got {given[place]!r} "
                "twice"
            )
    return tuple(found)


def _listed(op: str, axes: Axes) -> list[int | str]:
    """Return the integers and names in `axes`; texts, whose characters are a sequence, are none."""
    listed: Any = axes
    if isinstance(listed, np.ndarray):
        ordered = listed.ndim == 1
    else:
        ordered = isinstance(listed, Sequence) and not isinstance(listed, (str, bytes, bytearray))
    if not (
        ordered and all(axis if isinstance(axis, str) else _is_integer(axis) for axis in listed)
    ):
        raise errors.not_axes(op, axes)
    return list(listed)


def _is_integer(value: object) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.timedelta64))


def _named(op: str, table: Source, name: str) -> int:
    names = table.names()
    if not any(names):
        raise ValueError(
            f"{op}: {table.location} has no names of dimensions, got {name!r}; write "
            f"{argument('axes')} as numbers"
        )
    found = [axis for axis, known in enumerate(names) if name in known]
    if len(found) != 1:
        known = ", ".join(" or ".join(map(repr, each)) for each in names if each)
        raise ValueError(
            f"{op}: {table.location} must have one dimension {name!r}; its dimensions are {known}"
        )
    return found[0]


class Reordered(BoxArray):
    """An array whose dimensions are those of another; `order` has that of each."""

    def __init__(self, array: BoxArray, order: Order) -> None:
        self._array, self._order = array, order
        self._inverse = [order.index(axis) for axis in range(len(order))]
        self.shape = tuple(array.shape[axis] for axis in order)
        self.chunks = tuple(array.chunks[axis] for axis in order)
        self.dtype = array.dtype

    def _box(self, box: tuple[slice, ...]) -> tuple[slice, ...]:
        return tuple(box[axis] for axis in self._inverse)

    def read_box(self, box: tuple[slice, ...]) -> NDArray[Any]:
        """Return a box of the array."""
        return self._array.read_box(self._box(box)).transpose(self._order)

    def announce(self, boxes: Iterator[tuple[slice, ...]]) -> None:
        """Prepare to read these boxes next, in this order."""
        self._array.announce(map(self._box, boxes))

    def stop(self) -> None:
        """Cancel pending work, as the call is over."""
        self._array.stop()
