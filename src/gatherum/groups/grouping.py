"""Scatters of values into groups, and gathers of results back to the values."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from gatherum._arguments.indices import first_invalid
from gatherum._derivatives.array_ops import Destinations
from gatherum._model.arrays import AnyArray
from gatherum._model.call import Attributes, FoldRule
from gatherum._model.callers import Caller
from gatherum._model.dtypes import is_real_float
from gatherum._model.errors import Shape, group_out_of_bounds

from . import errors, namespace
from .protocol import Arrays

_P = ParamSpec("_P")
_T = TypeVar("_T")


@lru_cache(maxsize=64)
def _caller(op: str, operand: str) -> str:
    return Caller(op, operand, "the result", "values", "group").text


def operator_of_groups(rank: int) -> str:
    """Return the scatter for groups of this rank.

    One-dimensional groups have an entry for each slice of the values, other groups for each value.
    """
    return "scatter_elements" if rank > 1 else "scatter_slices"


@dataclass(frozen=True, slots=True)
class Grouping:
    """The group of each value."""

    op: str  # the called function, for messages
    operand: str  # the argument that contains the groups, for messages
    # The groups as passed, for messages, or None if errors keep the operator's message.
    original_groups: AnyArray
    destinations: Destinations  # of the scatter of the values to their groups
    axis: int  # the nonnegative axis of the values that the groups replace

    @classmethod
    def of(
        cls,
        op: str,
        operand: str,
        groups: AnyArray,
        shape: Shape,
        axis: int,
        mode: str = "raise",
        negative: bool = False,
        xp: Arrays = namespace,
    ) -> Grouping:
        """Return the grouping by one entry for each position along `axis`, or for each value.

        `shape` is the shape of a result: the values' shape with the number of groups on `axis`.
        """
        make_destinations: Any = Destinations
        name, caller = operator_of_groups(len(groups.shape)), _caller(op, operand)
        attributes = Attributes(name, axis, mode=mode, negative=negative, caller=caller)
        destinations = make_destinations(xp, attributes, groups, tuple(shape))
        return cls(op, operand, groups, destinations, axis)

    @property
    def xp(self) -> Arrays:
        """The functions of the framework."""
        functions: Arrays = self.destinations.xp  # type: ignore[assignment]  # see `of`
        return functions

    @property
    def shape(self) -> Shape:
        """The shape of a result."""
        return self.destinations.shape

    @property
    def has_entry_per_value(self) -> bool:
        """Whether each value has a separate entry, rather than each slice across `axis`."""
        return self.destinations.operator.addressing.shares_back

    def zero(self, values: AnyArray) -> AnyArray:
        """Return 0 as an item of the values' dtype."""
        return self.xp.full((), 0, values.dtype, values)

    def scatter(self, values: AnyArray, reduction: str, initial: AnyArray) -> AnyArray:
        """Reduce the values of each group, or keep its last value. Empty groups become `initial`.

        The left fold begins at the first value of a group; `initial`, an item, is not part of it.
        """
        return self._scatter(self.destinations, values, reduction, initial)

    def gather(self, results: AnyArray, fill_value: object = 0) -> AnyArray:
        """Return the result of each value's group, or `fill_value` for a value without a group."""
        return self._run(self.destinations.gather, results, fill_value)

    def fused_transform(self, name: str, values: AnyArray) -> AnyArray | None:
        """Run a transform in one call to the framework. Return None if it has no such call."""
        return self._run(self.xp.fused_transform, name, values, self.destinations)

    def float_mode(self) -> AbstractContextManager[None]:
        """Return the context in which a composition runs."""
        return self.xp.float_mode()

    def sharing_calls(self) -> AbstractContextManager[Any]:
        """Return a context in which calls share the results of checks and sorts of the groups."""
        return self.xp.sharing_calls()

    def squares_and_counts(
        self, values: AnyArray, skips_nan: bool = False
    ) -> tuple[AnyArray, AnyArray] | None:
        """Return, for each group, the sum of the squared distances and the number of values.

        If `skips_nan`, NaN values are neither folded nor counted. The distances are from the exact
        mean, and the sum is in float64. The framework computes both in one call. Return None if the
        framework does not support this.
        """
        if not is_real_float(self.xp.plan_dtype(values)):
            return None
        return self._run(self.xp.squares_and_counts, values, self.destinations, skips_nan)

    def count_skipping_nan(self, values: AnyArray) -> AnyArray | None:
        """Return the number of real floats of each group that are not NaN, in one call to the
        framework. Return None if the framework does not support this.
        """
        return self._run(self.xp.count_skipping_nan, values, self.destinations)

    def fold_skipping_nan(
        self, values: AnyArray, reduction: str, initial: AnyArray, *, reverses: bool = False
    ) -> AnyArray | None:
        """Reduce the real floats of each group that are not NaN, in one call to the framework.

        A group without such values becomes `initial`. Return None if the framework does not support
        this.

        If `reverses`, the values are reduced in the opposite order.
        """
        destinations = self.destinations
        if reverses:
            destinations, values = destinations.reversed(values)
        return self._run(self.xp.fold_skipping_nan, values, reduction, destinations, initial)

    def count(self, initial: AnyArray | None = None) -> AnyArray:
        """Return the number of values in each group. For an empty group, return `initial` or 0.

        The counts broadcast to the shape of a result.
        """
        item = self.xp.full((), 1, self.xp.dtype(np.dtype(np.int64)), self.destinations.indices)
        return self._scatter_item(item, "add", self.zero(item) if initial is None else initial)

    def nonempty(self) -> AnyArray:
        """Return a mask of the groups with values. It broadcasts to the shape of a result."""
        item = self.xp.full((), 1, self.xp.dtype(np.dtype(np.bool_)), self.destinations.indices)
        return self._scatter_item(item, "none", self.zero(item))

    def as_known_mask(self, nonempty: AnyArray) -> NDArray[np.bool_]:
        """Return a mask of groups as a NumPy array. Raise RuntimeError if a graph is traced."""
        mask: NDArray[np.bool_] | None = self.xp.to_numpy(nonempty)
        if mask is None:
            raise errors.unknown_groups(self.op)
        return mask

    def first_values(self, values: AnyArray, initial: AnyArray) -> AnyArray:
        """Return the first value of each group, or `initial` for an empty group."""
        destinations = self._resolved_destinations() if self._is_traced() else self.destinations
        backward, reversed_values = destinations.reversed(values)
        return self._scatter(backward, reversed_values, "none", initial)

    def group_numbers(self) -> AnyArray:
        """Return each entry's group, or -1 for a dropped entry, with the rank of the values."""
        return self.destinations.with_moved_rank(self._resolved_entries())

    def without_values(self, is_left_out: AnyArray) -> Grouping:
        """Return the grouping without the masked values."""
        groups = self.xp.narrowed(self.group_numbers(), self.shape[self.axis])
        groups = self.xp.where(is_left_out, -1, groups)
        attributes = Attributes("scatter_elements", self.axis, mode="drop", negative=False)
        return replace(
            self, destinations=self.destinations._replace(attributes=attributes, indices=groups)
        )

    def _is_traced(self) -> bool:
        """Whether a graph is traced, so that the entries have no values yet."""
        return self.xp.to_numpy(self.destinations.indices[:0]) is None

    def _resolved_destinations(self) -> Destinations:
        """Check the entries in forward order. Return the destinations of the resolved entries."""
        if self.destinations.skips:
            return self.destinations
        attributes = self.destinations.attributes._replace(mode="raise", negative=False)
        return self.destinations._replace(attributes=attributes, indices=self._resolved_entries())

    def _resolved_entries(self) -> AnyArray:
        """Return the group of each entry, or -1 for a dropped entry."""
        return self._run(self.xp.resolve, self.destinations.attributes, *self._entries())

    def positions_of_extremes(
        self, extreme: str, values: AnyArray, initial: AnyArray | int, *, skips_nan: bool = False
    ) -> AnyArray | None:
        """Return the argmax or argmin of each group, in one call to the framework.

        It is the position along `axis` of the first largest or smallest value, or `initial` for an
        empty group. Return None if the framework does not support this.
        """
        return self._run(
            self.xp.positions_of_extremes, values, extreme, self.destinations, initial, skips_nan
        )

    def first_positions(self, is_chosen: AnyArray, initial: AnyArray) -> AnyArray:
        """Return the position along `axis` of each group's first chosen value.

        The position is `initial` for an empty group. Each nonempty group must have a chosen value.
        """
        size = is_chosen.shape[self.axis]
        trailing = (1,) * (len(is_chosen.shape) - self.axis - 1)
        position = self.xp.reshape(self.xp.arange(0, size, is_chosen), (size, *trailing))
        positions = self.xp.astype(self.xp.where(is_chosen, position, size), initial.dtype)
        return self.scatter(positions, "min", initial)

    def _entries(self) -> tuple[AnyArray, int]:
        """Return the entries and the number of groups."""
        indices = self.destinations.indices
        tuples = self.destinations.operator.takes_tuples
        return (indices[..., 0] if tuples else indices), self.shape[self.axis]

    def _scatter_item(self, item: AnyArray, reduction: str, initial: AnyArray) -> AnyArray:
        """Scatter one item for each entry, to an array that broadcasts to the shape of a result."""
        addressed = self.destinations.addressed()
        return self.destinations.with_data_rank(self._scatter(addressed, item, reduction, initial))

    def _scatter(
        self, destinations: Destinations, values: AnyArray, reduction: str, initial: AnyArray
    ) -> AnyArray:
        table = self.xp.broadcast_to(initial, destinations.shape)
        return self._run(destinations.scatter, table, values, FoldRule.afresh(reduction))

    def _run(self, call: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Return the result of a call. Raise its IndexError with the message about the groups."""
        try:
            return call(*args, **kwargs)
        except IndexError as error:
            raise self._invalid_group(error) from None

    def _invalid_group(self, error: IndexError) -> IndexError:
        """Return the error for the first invalid entry of the groups that the caller passed."""
        groups = None if self.original_groups is None else self.xp.to_numpy(self.original_groups)
        if groups is None:
            return error
        attributes, size = self.destinations.attributes, self.shape[self.axis]
        mode, negative = attributes.mode, attributes.negative
        first = first_invalid(groups, (size,), mode, negative, False)
        position, value = (None, 0) if first is None else (first.where, first.value)
        return group_out_of_bounds(
            self.op, value, size, position, mode, self.operand, negative=negative
        )
