"""The places that the indices of a call address, as arrays of the framework that holds them."""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple, Protocol, TypeAlias

from gatherum._model.call import Attributes, FoldRule
from gatherum._model.dimensions import Dimensions
from gatherum._model.modes import FILLING
from gatherum._model.operators import Operator, inverse

Array: TypeAlias = Any  # a framework's
Shape: TypeAlias = tuple[int, ...]
REPLACE, ADD = FoldRule(), FoldRule("add")


class Basics(Protocol):
    """Functions that a framework supplies both for derivatives and for groups, under the names of
    the array API, and the operators. Arrays also have arithmetic and comparisons.
    """

    def where(self, mask: Array, one: Array, other: Array, /) -> Array:
        """Choose between two arrays."""

    def isnan(self, x: Array, /) -> Array:
        """Return where numbers are NaN."""

    def astype(self, x: Array, dtype: Any, /) -> Array:
        """Convert to another dtype; without a copy where it is the same."""

    def reshape(self, x: Array, shape: Shape, /) -> Array:
        """Give items in row-major order another shape."""

    def broadcast_to(self, x: Array, shape: Shape, /) -> Array:
        """Repeat an array to a shape."""

    def flip(self, x: Array, axes: Shape, /) -> Array:
        """Reverse the order along some dimensions."""

    def arange(self, start: int, stop: int, like: Array, /) -> Array:
        """Count in a type of integers that holds `stop`, on the device of `like`."""

    def full(self, shape: Shape, value: int, dtype: Any, like: Array, /) -> Array:
        """Return one number everywhere, which may lie in memory once."""

    def stop_gradient(self, x: Array, /) -> Array:
        """Return values alone, which have no derivative."""

    def gather(
        self, attributes: Attributes, data: Array, indices: Array, fill_value: Any = 0, /
    ) -> Array:
        """Run a gather, which stores a number for an invalid index."""

    def scatter(
        self, attributes: Attributes, data: Array, indices: Array, updates: Array, /
    ) -> Array:
        """Run a scatter."""


class Namespace(Basics, Protocol):
    """What a framework supplies for derivatives. It differentiates what is made of them."""

    def maximum(self, x: Array, number: int) -> Array:
        """Return the larger of each item and a number."""

    def conj(self, x: Array) -> Array:
        """Return the complex conjugate; real numbers as they are."""

    def stack(self, arrays: tuple[Array, ...], axis: int) -> Array:
        """Join arrays along a new dimension."""

    def unstack(self, x: Array, axis: int) -> tuple[Array, ...]:
        """Return the parts along a dimension, without it."""

    def roll(self, x: Array, shift: int, axis: int) -> Array:
        """Shift items along a dimension; the last ones come first."""

    def argsort(self, x: Array) -> Array:
        """Sort one dimension; equal values keep their order."""

    def sum_to(self, x: Array, shape: Shape) -> Array:
        """Sum over the dimensions along which a shape was broadcast to that of `x`."""

    def product_of_others(self, places: Places, data: Array, updates: Array) -> Array:
        """Return what the function of this name in `derivatives` does, by whatever is fastest."""

    def truth(self) -> Any:
        """Return the dtype of truths."""

    def counting(self, most: int) -> Any:
        """Return a dtype of integers that counts that far."""

    def wide(self, dtype: Any) -> Any:
        """Return the dtype in which derivatives are computed: float32 for narrower floats."""

    def has_sums(self, dtype: Any) -> bool:
        """Return whether items can be added up: some types of 8 bits only move."""


class Places(NamedTuple):
    """The places that the indices of one call address, as a gather and as a scatter."""

    xp: Namespace
    # Of the call, a gather or a scatter, with the axis counted from the front.
    attributes: Attributes
    indices: Array
    shape: Shape  # that of its data

    @property
    def operator(self) -> Operator:
        """The operator of the call."""
        return self.attributes.operator

    @property
    def axis(self) -> int:
        """Its dimension attribute, counted from the front."""
        return self.attributes.axis

    @property
    def skips(self) -> bool:
        """Whether invalid indices address nothing."""
        return self.attributes.mode in FILLING

    def take(self, table: Array, fill_value: Any = 0) -> Array:
        """Gather from an array of the data's shape; skipped entries take a number."""
        attributes = self.attributes
        op = inverse(self.operator).name if self.operator.scatters else attributes.op
        own = op, attributes.axis, attributes.mode, attributes.negative
        gather = Attributes(*own, caller=attributes.caller)
        return self.xp.gather(gather, table, self.indices, fill_value)

    def put(self, table: Array, updates: Array, fold: FoldRule = REPLACE) -> Array:
        """Scatter into an array of the data's shape."""
        attributes = self.attributes
        op = attributes.op if self.operator.scatters else inverse(self.operator).name
        own = op, attributes.axis, attributes.mode, attributes.negative
        how = Attributes(*own, *fold, caller=attributes.caller)
        return self.xp.scatter(how, table, self.indices, updates)

    def full(self, value: int, dtype: Any) -> Array:
        """Return one number everywhere in an array of the data's shape."""
        return self.xp.full(self.shape, value, dtype, self.indices)

    def total(self, updates: Array) -> Array:
        """Add updates up in each place, in a type that has sums, and return their own."""
        dtype = updates.dtype
        wide = dtype if self.xp.has_sums(dtype) else self.xp.wide(dtype)
        found = self.put(self.full(0, wide), self.xp.astype(updates, wide), ADD)
        return self.xp.astype(found, dtype)

    def emptied(self, table: Array) -> Array:
        """Return an array of the data's shape with zeros wherever an index points."""
        return self.put(table, self.xp.full((), 0, table.dtype, table))

    def moved(self) -> Shape:
        """Return the shape that moves: a gather's result, a scatter's updates."""
        return self.dimensions.choose(self.shape, tuple(self.indices.shape))

    @property
    def dimensions(self) -> Dimensions:
        """The roles of the dimensions of its data and indices."""
        indices = tuple(self.indices.shape)
        return self.operator.dimensions(len(self.shape), indices, self.axis)

    # Where whole slices move together, one number a destination is enough.

    def destinations(self) -> Places:
        """Return the same places without the dimensions that move whole."""
        shape, axis = self.operator.space(self.shape, tuple(self.indices.shape), self.axis)
        return self._replace(shape=shape, attributes=self.attributes._replace(axis=axis))

    def entries_begin(self) -> int:
        """Return the first dimension of what moves along which entries differ."""
        return self.dimensions.addressed.start

    def _with_rank(self, table: Array, rank: int) -> Array:
        if len(table.shape) == rank:
            return table
        before = self.entries_begin()
        behind = rank - before - len(table.shape)
        return self.xp.reshape(table, (1,) * before + tuple(table.shape) + (1,) * behind)

    def over_data(self, table: Array) -> Array:
        """Give a number for each destination the data's rank."""
        return self._with_rank(table, len(self.shape))

    def over_updates(self, table: Array) -> Array:
        """Give a number for each entry the rank of what moves."""
        return self._with_rank(table, len(self.moved()))

    def reversed(self, updates: Array) -> tuple[Places, Array]:
        """Return the same places with the last entry first, and updates in that order."""
        dimensions = self.dimensions  # shared ones stay as they are
        indices = self.xp.flip(self.indices, tuple(dimensions.entries))
        return self._replace(indices=indices), self.xp.flip(
            updates, tuple(dimensions.moved_entries)
        )

    def counts(self) -> Array:
        """Count the updates that arrive in each destination."""
        at = self.destinations()
        dtype = self.xp.counting(prod(self.indices.shape))
        return at.put(at.full(0, dtype), self.xp.full((), 1, dtype, self.indices), ADD)

    def arriving(self) -> Array:
        """Return which entries are not skipped, with the rank of what moves."""
        at = self.destinations()
        return self.over_updates(at.take(at.full(1, self.xp.truth())))

    def staying(self) -> Array:
        """Return which entries are the last of their destination, with the rank of what moves.

        Entries are numbered from 1, and the numbers scattered: the last one stays.
        """
        at = self.destinations()
        entries = at.moved()
        number = self.xp.arange(1, 1 + prod(entries), self.indices)
        number = self.xp.reshape(number, entries)
        last = at.put(at.full(0, number.dtype), number)
        return self.over_updates(at.take(last) == number)
