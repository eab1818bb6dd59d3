"""A DaskCall describes one call without its arrays; tasks send it to the workers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from gatherum._model.call import Array, Call
from gatherum._model.dimensions import Dimensions
from gatherum._model.dtypes import DType
from gatherum._model.errors import Shape
from gatherum._model.modes import MOVING
from gatherum._model.operators import Operator

from .errors import other_block


@dataclass(frozen=True)
class DaskCall:
    """A call, and the properties of it that tasks use."""

    call: Call

    @property
    def operator(self) -> Operator:
        """The row of the operator in this process. Rows are compared by identity."""
        return self.call.operator

    @cached_property
    def axis(self) -> int:
        """The dimension attribute, nonnegative."""
        return self.call.resolved_axis

    @cached_property
    def dimensions(self) -> Dimensions:
        """The roles of the dimensions of its data and indices."""
        call = self.call
        return self.operator.dimensions(len(call.data.shape), call.indices.shape, self.axis)

    @property
    def dtype(self) -> DType:
        """The dtype of the data."""
        dtype: DType = np.dtype(self.call.data.dtype)  # type: ignore[arg-type]  # of an array
        return dtype

    @property
    def fill_item(self) -> Array:
        """The value that a gather stores for an invalid index, as an array of one item."""
        fill = self.call.attributes.fill
        if not fill:
            return np.zeros(1, self.dtype)
        return np.frombuffer(bytearray(fill), np.uint8).view(self.dtype).reshape(1)

    @property
    def refuses(self) -> bool:
        """Whether an invalid index raises: the mode is "raise" or a dimension has size 0."""
        call = self.call
        if call.mode in MOVING:
            return any(call.data.shape[d] == 0 for d in self.dimensions.indexed)
        return call.mode == "raise"

    def attributes(self) -> dict[str, Any]:
        """Return the keyword arguments of the call's operator, with a nonnegative axis."""
        return self.call.attributes.keywords | {self.operator.attribute: self.axis}

    def data_block(self, block: Array) -> Array:
        """Return a block of data in the declared byte order.

        Raise TypeError if the block does not have the declared dtype.
        """
        if np.can_cast(block.dtype, self.dtype, "equiv"):
            return block.astype(self.dtype, copy=False)
        raise other_block(self.call.op, "data", self.dtype, block.dtype)

    def table(self, block: Array) -> Array:
        """Reshape a block of data to (before, rows, after), where entries address rows."""
        addressed = self.dimensions.addressed
        three = _three(block.shape, addressed.start, addressed.stop)
        return self.data_block(block).reshape(three)

    @property
    def moved_rows(self) -> tuple[int, int]:
        """The range of index dimensions in the gather's result or the scatter's updates."""
        first = self.dimensions.addressed.start
        return first, first + len(self.call.indices.shape) - self.operator.takes_tuples

    @cached_property
    def one_update(self) -> bool:
        """Whether one update broadcasts to all entries."""
        call = self.call
        if call.updates is None:
            return False
        moved = self.operator.moved(call.data.shape, call.indices.shape, self.axis)
        padded = (1,) * (len(moved) - len(call.updates.shape)) + call.updates.shape
        return all(padded[d] == 1 for d in range(*self.moved_rows))

    def moved(self, shape: Shape) -> Shape:
        """Return the shape of a block of moved elements as (before, entries, after)."""
        return _three(shape, *self.moved_rows)


def _three(shape: Shape, first: int, last: int) -> Shape:
    return prod(shape[:first]), prod(shape[first:last]), prod(shape[last:])
