"""Requests. A call requests one row of its table for every index, in row-major order.

All operators are expressed in this form. The leading dimensions of the table are *keyed*: a request
has a coordinate for each of them, either from its position (the dimensions before `axis`, batch
dimensions, all other dimensions of the elements operators) or from the value of an index. The
trailing dimensions form the row that is moved.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatherum._arguments.indices import first_invalid, resolve
from gatherum._model import errors
from gatherum._model.modes import FILLING
from gatherum._model.operators import OPERATORS
from gatherum._model.shape_limits import coordinates_of

from .flat import FlatArray
from .table import RowTable

Ints = NDArray[np.int64]


class Requests:
    """All requests of one call, read from the index file one window at a time.

    `axis` is not negative. Up to `resident` bytes of indices are kept in memory. `order`: the
    numbers of the table's dimensions in error messages.
    """

    def __init__(
        self,
        op: str,
        data_shape: tuple[int, ...],
        indices: FlatArray,
        *,
        mode: str,
        negative: bool,
        axis: int,
        resident: int,
        order: tuple[int, ...] | None = None,
    ) -> None:
        self.op, self.indices = op, indices
        self.order = range(len(data_shape)) if order is None else order
        self.mode, self.negative = mode, negative
        operator, shape = OPERATORS[op], indices.shape
        dimensions = operator.dimensions(len(data_shape), shape, axis)
        self.indexed, self.tuple_size = dimensions.indexed, len(dimensions.indexed)
        # At each position of the free dimensions before the axis, all entries are requested.
        shape_before = data_shape[: dimensions.addressed.start]
        entries = shape[: len(shape) - operator.takes_tuples]
        self.repeats, self.cycle = math.prod(shape_before), math.prod(entries)
        self.shape = shape_before + entries  # the shape of the moved elements without the row
        self.depth = dimensions.addressed.stop
        self.keyed, self.row_shape = data_shape[: self.depth], data_shape[self.depth :]
        # The table's dimension for each dimension of the requests, or None for dimensions of the
        # indices.
        self._dimensions = [d for d, _ in dimensions.moved_dimensions[: len(self.shape)]]
        self._kept: NDArray[Any] | None = None
        if self.repeats > 1 and indices.nbytes <= resident:
            self._kept = indices.read(0, indices.size)

    @property
    def count(self) -> int:
        """The number of requests."""
        return self.repeats * self.cycle

    def windows(self, length: int) -> Iterator[tuple[int, int]]:
        """Divide the requests into windows of at most `length`."""
        for start in range(0, self.count, length):
            yield start, min(start + length, self.count)

    def values(self, start: int, stop: int) -> NDArray[Any]:
        """Return the index values of requests `start` to `stop`, one row of components each."""
        if self.repeats == 1:
            values = self.indices.read(start * self.tuple_size, stop * self.tuple_size)
        elif self._kept is not None:
            values = self._kept[np.arange(start, stop) % self.cycle]
        else:
            values = np.concatenate(list(self._cycled(start, stop)))
        return values.reshape(stop - start, self.tuple_size)

    def _cycled(self, start: int, stop: int) -> Iterator[NDArray[Any]]:
        while start < stop:
            first = start % self.cycle
            last = min(self.cycle, first + stop - start)
            yield self.indices.read(first, last)
            start += last - first

    def coordinates(
        self, start: int, stop: int
    ) -> tuple[list[Ints | None], NDArray[np.bool_] | None]:
        """Return the keyed coordinates of requests `start` to `stop`, and a mask of invalid ones.

        Raise IndexError for the first invalid index in row-major order, unless the mode skips it.
        """
        values = self.values(start, stop)
        invalid: NDArray[np.bool_] | None = None
        coordinates = self._positional(start, stop)
        for component, dim in enumerate(self.indexed):
            column, size = values[:, component], self.keyed[dim]
            coordinates[dim], invalid_in_dim = resolve(column, size, self.mode, self.negative)
            if invalid_in_dim is not None:
                invalid = invalid_in_dim if invalid is None else invalid | invalid_in_dim
        if invalid is not None:
            self._refuse_invalid(start, values)
        return coordinates, invalid

    def row_numbers(
        self, table: RowTable, start: int, stop: int
    ) -> tuple[Ints, NDArray[np.bool_] | None]:
        """Return the row numbers of requests in a table, and a mask of invalid ones."""
        coordinates, invalid = self.coordinates(start, stop)
        return table.row_numbers_at(coordinates, stop - start), invalid

    def check(self, length: int) -> None:
        """Check every index, even if no request uses it. Raise IndexError like `coordinates`."""
        for start in range(0, self.cycle, length):
            stop = min(start + length, self.cycle)
            entries = self.indices.read(start * self.tuple_size, stop * self.tuple_size)
            self._refuse_invalid(start, entries.reshape(stop - start, self.tuple_size))

    def _positional(self, start: int, stop: int) -> list[Ints | None]:
        """Return the coordinates that depend on the position of a request."""
        coordinates: list[Ints | None] = [None] * self.depth
        if all(d is None for d in self._dimensions):
            return coordinates
        position = np.arange(start, stop, dtype=np.int64)
        step = 1
        for d, size in zip(reversed(self._dimensions), reversed(self.shape), strict=True):
            if d is None:
                step *= size
            elif size != 1:
                if step > 1:
                    position //= step
                position, coordinates[d] = np.divmod(position, size)
                step = 1
        return coordinates

    def _refuse_invalid(self, start: int, values: NDArray[Any]) -> None:
        """Raise IndexError for the first invalid index of requests, unless the mode skips it."""
        if self.mode in FILLING:
            return
        sizes = [self.keyed[dim] for dim in self.indexed]
        invalid = first_invalid(values, sizes, self.mode, self.negative, tuples=True)
        if invalid is None:
            return
        (row,), component, value = invalid
        dim = self.indexed[component]
        item = (start + row) % self.cycle * self.tuple_size + component
        shape = self.indices.shape
        where = coordinates_of(item, shape)
        axis, size = self.order[dim], self.keyed[dim]
        raise errors.index_out_of_bounds(self.op, value, axis, size, where, self.mode)
