"""A DaskCall describes one call without its arrays; it is sent to the workers with the tasks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from gatherum._model.arrays import NumpyArray
from gatherum._model.call import Call
from gatherum._model.dimensions import Dimensions
from gatherum._model.dtypes import DType
from gatherum._model.errors import Shape
from gatherum._model.modes import MOVING
from gatherum._model.operators import Operator

from .errors import other_block


@dataclass(frozen=True)
class DaskCall:
    """A call, and those of its properties that tasks use."""

    array_call: Call

    @property
    def operator(self) -> Operator:
        """The row of the operator in this process. Rows are compared by identity."""
        return self.array_call.operator

    @cached_property
    def axis(self) -> int:
        """The axis, or `batch_dims`, as a nonnegative integer."""
        return self.array_call.resolved_axis

    @cached_property
    def dimensions(self) -> Dimensions:
        """The roles of the dimensions of the call's data and indices."""
        array_call = self.array_call
        return self.operator.dimensions(
            len(array_call.data.shape), array_call.indices.shape, self.axis
        )

    @property
    def dtype(self) -> DType:
        """The dtype of the data."""
        dtype: DType = np.dtype(self.array_call.data.dtype)  # type: ignore[arg-type]  # of an array
        return dtype

    @property
    def fill_item(self) -> NumpyArray:
        """The value that a gather stores for an invalid index, as an array of one item."""
        fill = self.array_call.attributes.fill
        if not fill:
            return np.zeros(1, self.dtype)
        return np.frombuffer(bytearray(fill), np.uint8).view(self.dtype).reshape(1)

    @property
    def raises_if_invalid(self) -> bool:
        """Whether an invalid index raises: the mode is "raise" or a dimension has size 0."""
        array_call = self.array_call
        if array_call.mode in MOVING:
            return any(array_call.data.shape[d] == 0 for d in self.dimensions.indexed)
        return array_call.mode == "raise"

    def attributes(self) -> dict[str, Any]:
        """Return the keyword arguments of the call's operator, with a nonnegative axis."""
        return self.array_call.attributes.keywords | {self.operator.attribute: self.axis}

    def data_block(self, block: NumpyArray) -> NumpyArray:
        """Return a block of data in the declared byte order.

        Raise TypeError if the block does not have the declared dtype.
        """
        if np.can_cast(block.dtype, self.dtype, "equiv"):
            return block.astype(self.dtype, copy=False)
        raise other_block(self.array_call.op, "data", self.dtype, block.dtype)

    def table(self, block: NumpyArray) -> NumpyArray:
        """Reshape a block of data to (before, rows, after), where entries address rows."""
        addressed = self.dimensions.addressed
        three = _three(block.shape, addressed.start, addressed.stop)
        return self.data_block(block).reshape(three)

    @property
    def moved_rows(self) -> tuple[int, int]:
        """The range of index dimensions in the gather's result or the scatter's updates."""
        first = self.dimensions.addressed.start
        return first, first + len(self.array_call.indices.shape) - self.operator.takes_tuples

    @cached_property
    def broadcasts_update(self) -> bool:
        """Whether one update broadcasts to all entries."""
        array_call = self.array_call
        if array_call.updates is None:
            return False
        moved_shape = self.operator.moved_shape(
            array_call.data.shape, array_call.indices.shape, self.axis
        )
        missing = len(moved_shape) - len(array_call.updates.shape)
        padded = (1,) * missing + array_call.updates.shape
        return all(padded[d] == 1 for d in range(*self.moved_rows))

    def moved_in_three(self, shape: Shape) -> Shape:
        """Return the shape of a block of moved elements as (before, entries, after)."""
        return _three(shape, *self.moved_rows)


def _three(shape: Shape, first: int, last: int) -> Shape:
    return prod(shape[:first]), prod(shape[first:last]), prod(shape[last:])
