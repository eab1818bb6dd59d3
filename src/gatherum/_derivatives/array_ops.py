"""The destinations that a call's indices address, as arrays of a framework."""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple, Protocol, TypeAlias

from gatherum._model.arrays import AnyArray
from gatherum._model.call import Attributes, FoldRule
from gatherum._model.dimensions import Dimensions
from gatherum._model.modes import FILLING
from gatherum._model.operators import Operator, inverse

Shape: TypeAlias = tuple[int, ...]
REPLACE, ADD = FoldRule(), FoldRule("add")


class ArrayOps(Protocol):
    """Functions that a framework supplies for both derivatives and groups.

    They are the operators, and functions with the names of the array API. Arrays also support
    arithmetic and comparisons.
    """

    def where(self, mask: AnyArray, x: AnyArray, y: AnyArray, /) -> AnyArray:
        """Choose elements from two arrays by a mask."""

    def isnan(self, x: AnyArray, /) -> AnyArray:
        """Return a mask of the NaN elements."""

    def astype(self, x: AnyArray, dtype: Any, /) -> AnyArray:
        """Convert to another dtype, without a copy if the dtype is the same."""

    def reshape(self, x: AnyArray, shape: Shape, /) -> AnyArray:
        """Reshape in row-major order."""

    def broadcast_to(self, x: AnyArray, shape: Shape, /) -> AnyArray:
        """Broadcast an array to a shape."""

    def flip(self, x: AnyArray, axes: Shape, /) -> AnyArray:
        """Reverse the order along some dimensions."""

    def arange(self, start: int, stop: int, like: AnyArray, /) -> AnyArray:
        """Return a range of integers on the device of `like`, with a dtype that can hold `stop`."""

    def full(self, shape: Shape, value: int, dtype: Any, like: AnyArray, /) -> AnyArray:
        """Return an array filled with one number; it may be a broadcast view."""

    def stop_gradient(self, x: AnyArray, /) -> AnyArray:
        """Return the values without a derivative."""

    def gather(
        self, attributes: Attributes, data: AnyArray, indices: AnyArray, fill_value: Any = 0, /
    ) -> AnyArray:
        """Run a gather that returns a number for each invalid index."""

    def scatter(
        self, attributes: Attributes, data: AnyArray, indices: AnyArray, updates: AnyArray, /
    ) -> AnyArray:
        """Run a scatter."""

    def cumulate(
        self,
        function: str,
        values: AnyArray,
        groups: AnyArray,
        group_count: int,
        factors: AnyArray | None = None,
        /,
    ) -> AnyArray:
        """Return the results of a cumulative function of the values of groups; see `cumulative`.

        All arrays are flat, and the groups are integers of 32 or 64 bits.
        """


class DerivativeOps(ArrayOps, Protocol):
    """Functions that a framework supplies for derivatives.

    The framework can differentiate every composition of these functions.
    """

    def maximum(self, x: AnyArray, scalar: int) -> AnyArray:
        """Return the larger of each element and a number."""

    def conj(self, x: AnyArray) -> AnyArray:
        """Return the complex conjugate; real numbers are unchanged."""

    def stack(self, arrays: tuple[AnyArray, ...], axis: int) -> AnyArray:
        """Join arrays along a new dimension."""

    def unstack(self, x: AnyArray, axis: int) -> tuple[AnyArray, ...]:
        """Split an array along a dimension and drop the dimension."""

    def roll(self, x: AnyArray, shift: int, axis: int) -> AnyArray:
        """Shift elements along a dimension; elements at the end wrap around."""

    def argsort(self, x: AnyArray) -> AnyArray:
        """Return the stable sort order of a vector."""

    def sum_to(self, x: AnyArray, shape: Shape) -> AnyArray:
        """Sum over the dimensions along which `shape` was broadcast to the shape of `x`."""

    def product_of_others(
        self, destinations: Destinations, data: AnyArray, updates: AnyArray
    ) -> AnyArray:
        """Compute `derivatives.product_of_others` with the framework's fastest method."""

    def bool_dtype(self) -> Any:
        """Return the boolean dtype."""

    def count_dtype(self, largest: int) -> Any:
        """Return an integer dtype that can hold the count `largest`."""

    def derivative_dtype(self, dtype: Any) -> Any:
        """Return the dtype in which derivatives are computed: float32 for narrower floats."""

    def has_sums(self, dtype: Any) -> bool:
        """Return True if addition is supported; some 8-bit types can only be copied."""


class Destinations(NamedTuple):
    """The destinations that the indices of a call address. The call is a gather or a scatter."""

    xp: DerivativeOps
    # The attributes of the call, which is a gather or a scatter. The axis is nonnegative.
    attributes: Attributes
    indices: AnyArray
    shape: Shape  # the shape of the call's data

    @property
    def operator(self) -> Operator:
        """The operator of the call."""
        return self.attributes.operator

    @property
    def axis(self) -> int:
        """The dimension attribute of the call, nonnegative."""
        return self.attributes.axis

    @property
    def skips(self) -> bool:
        """Whether invalid indices are skipped."""
        return self.attributes.mode in FILLING

    def gather(self, table: AnyArray, fill_value: Any = 0) -> AnyArray:
        """Gather from an array of the data's shape; skipped entries yield `fill_value`."""
        attributes = self.attributes
        op = inverse(self.operator).name if self.operator.scatters else attributes.op
        gather = attributes.gathering(op, attributes.axis)
        return self.xp.gather(gather, table, self.indices, fill_value)

    def scatter(self, table: AnyArray, updates: AnyArray, fold: FoldRule = REPLACE) -> AnyArray:
        """Scatter into an array of the data's shape."""
        attributes = self.attributes
        op = attributes.op if self.operator.scatters else inverse(self.operator).name
        reduction, include_self = fold
        scatter = attributes._replace(
            op=op, reduction=reduction, include_self=include_self, fill=b""
        )
        return self.xp.scatter(scatter, table, self.indices, updates)

    def full(self, value: int, dtype: Any) -> AnyArray:
        """Return an array of the data's shape filled with one number."""
        return self.xp.full(self.shape, value, dtype, self.indices)

    def sum_updates(self, updates: AnyArray) -> AnyArray:
        """Sum the updates of each destination.

        The result has the dtype of the updates.
        """
        dtype = updates.dtype
        wide = dtype if self.xp.has_sums(dtype) else self.xp.derivative_dtype(dtype)
        totals = self.scatter(self.full(0, wide), self.xp.astype(updates, wide), ADD)
        return self.xp.astype(totals, dtype)

    def zeroed(self, table: AnyArray) -> AnyArray:
        """Return a copy of an array of the data's shape with zeros at all destinations."""
        return self.scatter(table, self.xp.full((), 0, table.dtype, table))

    def moved_shape(self) -> Shape:
        """Return the shape of a gather's result and of a scatter's updates."""
        return self.dimensions.choose(self.shape, tuple(self.indices.shape))

    @property
    def dimensions(self) -> Dimensions:
        """The roles of the dimensions of the call's data and indices."""
        indices = tuple(self.indices.shape)
        return self.operator.dimensions(len(self.shape), indices, self.axis)

    # If the call moves slices, one number for each slice is enough.

    def addressed(self) -> Destinations:
        """Return the same destinations without the free dimensions."""
        shape, axis = self.operator.space(self.shape, tuple(self.indices.shape), self.axis)
        return self._replace(shape=shape, attributes=self.attributes._replace(axis=axis))

    def entries_begin(self) -> int:
        """Return the first dimension of the moved shape along which entries differ."""
        return self.dimensions.addressed.start

    def _with_rank(self, table: AnyArray, rank: int) -> AnyArray:
        if len(table.shape) == rank:
            return table
        before = self.entries_begin()
        after = rank - before - len(table.shape)
        return self.xp.reshape(table, (1,) * before + tuple(table.shape) + (1,) * after)

    def with_data_rank(self, table: AnyArray) -> AnyArray:
        """Reshape an array with one number per destination to the data's rank."""
        return self._with_rank(table, len(self.shape))

    def with_moved_rank(self, table: AnyArray) -> AnyArray:
        """Reshape an array with one number per entry to the rank of the moved shape."""
        return self._with_rank(table, len(self.moved_shape()))

    def reversed(self, updates: AnyArray) -> tuple[Destinations, AnyArray]:
        """Return the destinations and the updates in reverse order of entries."""
        dimensions = self.dimensions  # shared dimensions are not reversed
        indices = self.xp.flip(self.indices, tuple(dimensions.entries))
        return self._replace(indices=indices), self.xp.flip(
            updates, tuple(dimensions.moved_entries)
        )

    def counts(self) -> AnyArray:
        """Return the number of updates of each destination."""
        addressed = self.addressed()
        dtype = self.xp.count_dtype(prod(self.indices.shape))
        return addressed.scatter(
            addressed.full(0, dtype), self.xp.full((), 1, dtype, self.indices), ADD
        )

    def valid_entries(self) -> AnyArray:
        """Return a mask of the entries that are not skipped, with the rank of the moved shape."""
        addressed = self.addressed()
        return self.with_moved_rank(addressed.gather(addressed.full(1, self.xp.bool_dtype())))

    def last_entries(self) -> AnyArray:
        """Return a mask of the last entry of each destination, with the rank of the moved shape.

        Entries are numbered from 1 and the numbers are scattered, so that the last one remains.
        """
        addressed = self.addressed()
        entries = addressed.moved_shape()
        entry_numbers = self.xp.arange(1, 1 + prod(entries), self.indices)
        entry_numbers = self.xp.reshape(entry_numbers, entries)
        last = addressed.scatter(addressed.full(0, entry_numbers.dtype), entry_numbers)
        return self.with_moved_rank(addressed.gather(last) == entry_numbers)
