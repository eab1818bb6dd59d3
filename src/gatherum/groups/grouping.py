"""The operators as groups need them: values into groups, and results back to the values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from gatherum._arguments.indices import first_invalid
from gatherum._derivatives.array_ops import Array, Places
from gatherum._model.call import Attributes, FoldRule
from gatherum._model.callers import Caller, no_group
from gatherum._model.errors import Shape
from gatherum._model.shape_limits import place_of
from gatherum._plans.extremes import positions_of_extremes

from . import errors, namespace
from .protocol import Arrays


@lru_cache(maxsize=64)
def _caller(op: str, operand: str) -> str:
    return Caller(op, operand, "the result", "values", "group").text


@dataclass(frozen=True, slots=True)
class Grouping:
    """Which group each value belongs to."""

    op: str  # the function that was called, for messages
    operand: str  # its argument that has the groups, for messages
    given: Array  # the groups as the caller gave them, for messages; None for the operators' own
    places: Places  # of a scatter of the values to their groups
    axis: int  # of the values; the groups take its place, counted from the front

    @classmethod
    def of(
        cls,
        op: str,
        operand: str,
        groups: Array,
        shape: Shape,
        axis: int,
        mode: str = "raise",
        negative: bool = False,
        xp: Arrays = namespace,
    ) -> Grouping:
        """Return the grouping by one entry for each position along `axis`, or for each value.

        `shape` is that of a result: the number of groups stands in the place of the values along
        `axis`.
        """
        name = "scatter_elements" if len(groups.shape) > 1 else "scatter_slices"
        places: Any = Places
        how = Attributes(name, axis, mode, negative, caller=_caller(op, operand))
        where = places(xp, how, groups, tuple(shape))
        return cls(op, operand, groups, where, axis)

    @property
    def xp(self) -> Arrays:
        """The functions of the framework."""
        found: Arrays = self.places.xp  # type: ignore[assignment]  # see `of`
        return found

    @property
    def shape(self) -> Shape:
        """The shape of a result."""
        return self.places.shape

    @property
    def elements(self) -> bool:
        """Whether each value has a group of its own; otherwise slices across `axis` have one."""
        return self.places.operator.addressing.shares_back

    def zero(self, values: Array) -> Array:
        """Return 0 as an item of the values' dtype."""
        return self.xp.full((), 0, values.dtype, values)

    def scatter(self, values: Array, reduction: str, start: Array) -> Array:
        """Fold the values of each group, or keep its last one. Empty groups are `start`, an item.

        The fold begins at the first value of a group; `start` takes no part.
        """
        return self._put(self.places, values, reduction, start)

    def gather(self, results: Array, fill_value: object = 0) -> Array:
        """Return to each value the result of its group; a value without any takes `fill_value`."""
        try:
            return self.places.take(results, fill_value)
        except IndexError as error:
            raise self._invalid(error) from None

    def fused(self, name: str, values: Array) -> Array | None:
        """Return what a transform gives by one call of the framework, None where it has none."""
        run = getattr(self.xp, "fused", None)
        try:
            return None if run is None else run(name, values, self.places)
        except IndexError as error:
            raise self._invalid(error) from None

    def count(self, start: Array | None = None) -> Array:
        """Return the number of values in each group, `start` or 0 for an empty one.

        The shape broadcasts to that of a result.
        """
        one = self.xp.full((), 1, self.xp.dtype(np.dtype(np.int64)), self.places.indices)
        return self._along(one, "add", self.zero(one) if start is None else start)

    def filled(self) -> Array:
        """Return whether each group has values, of a shape that broadcasts to that of a result."""
        one = self.xp.full((), 1, self.xp.dtype(np.dtype(np.bool_)), self.places.indices)
        return self._along(one, "none", self.zero(one))

    def first_empty(self, filled: Array) -> Shape | None:
        """Return where a result first has no value: in a group without values."""
        known = self.xp.to_numpy(filled)
        if known is None:
            raise errors.unknown_groups(self.op)
        if known.all() or 0 in self.shape:
            return None
        return place_of(int(known.argmin()), known.shape)

    def first(self, values: Array, start: Array) -> Array:
        """Return the first value of each group, `start` for an empty one."""
        places = self._checked() if self._traces() else self.places
        backward, moved = places.reversed(values)
        return self._put(backward, moved, "none", start)

    def without(self, left_out: Array) -> Grouping:
        """Return the grouping in which these values belong to no group."""
        groups = self.xp.where(left_out, -1, self.places.over_updates(self._resolved()))
        how = Attributes("scatter_elements", self.axis, "drop", False)
        return replace(self, places=self.places._replace(attributes=how, indices=groups))

    def _traces(self) -> bool:
        """Whether the entries have values only when a graph runs."""
        return self.xp.to_numpy(self.places.indices[:0]) is None

    def _checked(self) -> Places:
        """Return the places of entries that are checked first to last."""
        if self.places.skips:
            return self.places
        how = self.places.attributes._replace(mode="drop", negative=False)
        return self.places._replace(attributes=how, indices=self._resolved())

    def _resolved(self) -> Array:
        """Return the number of the group of each entry, -1 for none."""
        try:
            return self.xp.resolve(self.places.attributes, *self._entries())
        except IndexError as error:
            raise self._invalid(error) from None

    def position(self, extreme: str, values: Array, start: Array) -> Array:
        """Return the position along `axis` of the first value of an array of NumPy that attains the
        maximum or minimum of its group, `start` for an empty group.
        """
        how = self.places.attributes.with_fold(FoldRule.afresh(extreme))
        data = np.broadcast_to(np.zeros((), values.dtype), self.shape)
        try:
            return positions_of_extremes(how, data, self.places.indices, values, int(start))
        except IndexError as error:
            raise self._invalid(error) from None

    def first_position(self, chosen: Array, start: Array) -> Array:
        """Return the position along `axis` of the first chosen value of each group, `start` for an
        empty group. Each other group has one.
        """
        n = chosen.shape[self.axis]
        behind = (1,) * (len(chosen.shape) - self.axis - 1)
        position = self.xp.reshape(self.xp.arange(0, n, chosen), (n, *behind))
        found = self.xp.astype(self.xp.where(chosen, position, n), start.dtype)
        return self.scatter(found, "min", start)

    def _entries(self) -> tuple[Array, int]:
        """Return the entries and the number of groups."""
        indices = self.places.indices
        tuples = self.places.operator.tuples
        return (indices[..., 0] if tuples else indices), self.shape[self.axis]

    def _along(self, one: Array, reduction: str, start: Array) -> Array:
        """Scatter one item for each entry; the shape broadcasts to that of a result."""
        at = self.places.destinations()
        return self.places.over_data(self._put(at, one, reduction, start))

    def _put(self, places: Places, values: Array, reduction: str, start: Array) -> Array:
        try:
            table = self.xp.broadcast_to(start, places.shape)
            return places.put(table, values, FoldRule.afresh(reduction))
        except IndexError as error:
            raise self._invalid(error) from None

    def _invalid(self, error: IndexError) -> IndexError:
        """Return what to raise for the first entry that is no group, as the caller gave them."""
        given = None if self.given is None else self.xp.to_numpy(self.given)
        if given is None:
            return error
        attributes, size = self.places.attributes, self.shape[self.axis]
        mode, negative = attributes.mode, attributes.negative
        found = first_invalid(given, (size,), mode, negative, False)
        where, value = (None, 0) if found is None else (found.where, found.value)
        valid = -size if negative else 0, size
        return no_group(self.op, value, valid, where, mode, self.operand)
