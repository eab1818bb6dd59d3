"""The operators as groups need them: values into groups, and results back to the values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatherum.call import Array
from gatherum.errors import Shape
from gatherum.indices import first_invalid, resolve
from gatherum.plans import apply

from . import errors


@dataclass(frozen=True, slots=True)
class Grouping:
    """Which group each value belongs to.

    Attributes
    ----------
    op : str
        The function that was called, for messages.
    operand : str
        Its argument that has the groups, for messages.
    given : numpy.ndarray of int
        The groups as the caller gave them, for messages.
    groups : numpy.ndarray of int
        One group for each position along `axis`, or one for each value.
    shape : tuple of int
        The shape of a result: the number of groups stands in the place of the values along `axis`.
    axis : int
        The axis of the values that the groups take the place of, counted from the front.
    mode, negative
        What to do with entries that are no group, as of the operators.
    """

    op: str
    operand: str
    given: Array
    groups: Array
    shape: Shape
    axis: int
    mode: str
    negative: bool

    @property
    def size(self) -> int:
        """The number of groups."""
        return self.shape[self.axis]

    @property
    def elements(self) -> bool:
        """Whether each value has a group of its own; otherwise slices across `axis` have one."""
        return self.groups.ndim > 1

    @property
    def drops(self) -> bool:
        """Whether values may belong to no group."""
        return self.mode in ("fill", "drop")

    def scatter(self, values: Array, reduction: str, start: Array) -> Array:
        """Fold the values of each group, or keep its last one. Empty groups are `start`, an item.

        The fold begins at the first value of a group; `start` takes no part.
        """
        how = {"reduction": reduction, "include_self": False}
        return self._run("scatter", np.broadcast_to(start, self.shape), values, **how)

    def gather(self, results: Array, fill_value: object = 0) -> Array:
        """Return to each value the result of its group; a value without any takes `fill_value`."""
        return self._run("gather", results, fill_value=fill_value)

    def count(self, start: Array) -> NDArray[np.int64]:
        """Return the number of values in each group, `start` for an empty one.

        The shape broadcasts to that of a result.
        """
        return self._along(np.ones((), np.int64), "add", start)

    def first_empty(self) -> Shape | None:
        """Return where a result first has no value: in a group without values."""
        touched = self._along(np.ones((), np.bool_), "none", np.zeros((), np.bool_))
        if touched.all() or 0 in self.shape:
            return None
        place = np.unravel_index(int(touched.argmin()), touched.shape)
        return tuple(int(n) for n in place)

    def backward(self) -> Grouping:
        """Return the grouping of the values in the opposite order along `axis`."""
        return replace(self, groups=np.flip(self.groups, self.axis if self.elements else 0))

    def without(self, left_out: NDArray[np.bool_]) -> Grouping:
        """Return the grouping in which these values belong to no group."""
        numbers = self._numbers(self.groups)
        if not self.elements:
            numbers = np.expand_dims(numbers, [d for d in range(left_out.ndim) if d != self.axis])
        groups = np.where(left_out, -1, numbers)
        return replace(self, groups=groups, mode="drop", negative=False)

    def first_position(self, chosen: NDArray[np.bool_], start: Array) -> NDArray[np.int64]:
        """Return the position along `axis` of the first chosen value of each group, `start` for a
        group without one.
        """
        places = [*np.nonzero(chosen)]
        positions = places[self.axis]
        groups = self.groups[chosen if self.elements else positions]
        places[self.axis] = self._numbers(groups)
        return apply(
            "scatter_nd",
            np.broadcast_to(start, self.shape),
            np.stack(places, axis=-1),
            positions,
            reduction="min",
            include_self=False,
            mode="drop",
            negative=False,
        )

    def _along(self, item: Array, reduction: str, start: Array) -> Array:
        """Scatter one item for each entry; the shape broadcasts to that of a result."""
        if self.elements:
            return self.scatter(item, reduction, start)
        found = replace(self, shape=(self.size,), axis=0).scatter(item, reduction, start)
        return np.expand_dims(found, [d for d in range(len(self.shape)) if d != self.axis])

    def _numbers(self, entries: Array) -> NDArray[np.int64]:
        """Return the number of each entry's group, -1 for none, or raise IndexError."""
        numbers, invalid = resolve(entries, self.size, self.mode, self.negative)
        if invalid is None:
            return numbers
        if not self.drops:
            raise self._invalid()
        return np.where(invalid, -1, numbers)

    def _run(self, family: str, *operands: Array, **more: Any) -> Array:
        data, *updates = operands
        how = {"mode": self.mode, "negative": self.negative, "axis": self.axis, **more}
        name = "elements" if self.elements else {"gather": "", "scatter": "slices"}[family]
        try:
            return apply(f"{family}_{name}".rstrip("_"), data, self.groups, *updates, **how)
        except IndexError:
            raise self._invalid() from None

    def _invalid(self) -> IndexError:
        """Return what to raise for the first entry that is no group, as the caller gave them."""
        found = first_invalid(self.given, (self.size,), self.mode, self.negative, False)
        where, value = (None, 0) if found is None else (found.where, found.value)
        valid = -self.size if self.negative else 0, self.size
        return errors.no_group(self.op, value, valid, where, self.mode, self.operand)
