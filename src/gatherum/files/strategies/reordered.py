"""Reorder a table so that index tuples address its first dimensions.

The table is not copied; boxes of the file are transposed when they are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatherum._arguments.plain_values import as_axis
from gatherum._model import errors
from gatherum._model.errors.audience import argument
from gatherum._model.operators import OPERATORS
from gatherum.files.formats.storage import BoxStorage, Source, boxes_of
from gatherum.files.row_access.grid import BoxArray

Order = tuple[int, ...]
Axes = Sequence[int | str]


def reordered(op: str, table: Source, indices: errors.Shape, axes: Axes, batch_dims: int) -> Source:
    """Return a table with its batch dimensions first, followed by the dimensions in `axes`.

    `axes` are numbers, or names in the file. The first `batch_dims` dimensions of the file are its
    batch dimensions. Raise TypeError or ValueError unless `axes` is one dimension of the table for
    each component, and `batch_dims` is valid.
    """
    addressed = _resolved(op, table, axes)
    batch = range(OPERATORS[op].resolve(table.shape, indices, as_axis(op, batch_dims)))
    if len(addressed) != indices[-1]:
        raise ValueError(
            f"{op}: {argument('axes')} must name a dimension for each component of an index tuple, "
            f"{indices[-1]} here, got {len(addressed)}"
        )
    if repeated := [axis for axis in addressed if axis in batch]:
        raise ValueError(
            f"{op}: {argument('axes')} must name no batch dimension, got {repeated[0]} with "
            f"{argument('batch_dims')} {len(batch)}"
        )
    other_axes = (
        axis for axis in range(len(table.shape)) if axis not in batch and axis not in addressed
    )
    order = (*batch, *addressed, *other_axes)
    if order == tuple(range(len(order))):
        return table
    boxes = Reordered(boxes_of(table.storage), order)
    storage = BoxStorage(boxes, "its dimensions are read in another order")
    return replace(table, shape=boxes.shape, storage=storage, order=order)


def _resolved(op: str, table: Source, axes: Axes) -> Order:
    """Return the dimensions for names and numbers, each counted from the front."""
    listed, rank, dimensions = _listed(op, axes), len(table.shape), list[int]()
    for axis in listed:
        if isinstance(axis, str):
            dimensions.append(_named(op, table, axis))
        elif -rank <= axis < rank:
            dimensions.append(int(axis) % rank)
        else:
            raise ValueError(f"{op}: {argument('axes')} must be in [{-rank}, {rank}), got {axis}")
    for i, axis in enumerate(dimensions):
        if axis in dimensions[:i]:
            raise ValueError(
                f"{op}: {argument('axes')} must name each dimension once, got {listed[i]!r} twice"
            )
    return tuple(dimensions)


def _listed(op: str, axes: Axes) -> list[int | str]:
    """Return the integers and names in `axes`. A str is not a sequence of names."""
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
    matches = [axis for axis, spellings_of_axis in enumerate(names) if name in spellings_of_axis]
    if len(matches) != 1:
        dimensions = ", ".join(
            " or ".join(map(repr, spellings)) for spellings in names if spellings
        )
        raise ValueError(
            f"{op}: {table.location} must have one dimension {name!r}; its dimensions are "
            f"{dimensions}"
        )
    return matches[0]


class Reordered(BoxArray):
    """An array with the dimensions of another array in the order `order`."""

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
        """Cancel pending work, because the call is over."""
        self._array.stop()
