"""Functions over groups that are folded batch by batch, with one accumulator for each function."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatherum._arguments.casting import has_nan
from gatherum._functions.accumulator import Accumulator, extended_accumulator, new_accumulator
from gatherum._functions.fold_properties import element_bytes
from gatherum._model import shape_limits
from gatherum._model.call import Attributes, FoldRule
from gatherum.groups import errors as group_errors
from gatherum.groups import namespace
from gatherum.groups.dates import as_dates, as_integers, is_date
from gatherum.groups.evaluation import check_nonempty, initial_result
from gatherum.groups.functions import FUNCTIONS
from gatherum.groups.grouping import Grouping
from gatherum.groups.rows import FunctionRow, Method

from .batches import TooLargeError


def is_folded(name: str) -> bool:
    """Return True if a function is computed by one fold over batches of values."""
    return FUNCTIONS[name].reduction is not None


@dataclass(frozen=True, slots=True)
class Fold:
    """The fold of one function.

    `initial` is the result of an empty group, or None if an empty group is an error.
    """

    name: str
    row: FunctionRow
    dtype: np.dtype[Any]  # of the result
    initial: NDArray[Any] | None

    @classmethod
    def of(cls, op: str, name: str, dtype: np.dtype[Any], fill_value: object) -> Fold:
        """Return the fold of a function of values of a dtype."""
        row = FUNCTIONS[name]
        result: Any = row.result(dtype)
        one_group = Grouping.of(op, "groups", np.zeros(1, np.int64), (1,), 0)
        initial = initial_result(row, result, one_group, np.zeros((), result), fill_value)
        return cls(name, row, np.dtype(result), initial)

    @property
    def reduction(self) -> str:
        """The reduction of the accumulator."""
        return str(self.row.reduction)

    @property
    def attributes(self) -> Attributes:
        """The attributes of the accumulator."""
        return Attributes("scatter_slices", mode="drop", negative=False).with_fold(
            FoldRule.afresh(self.reduction)
        )

    @property
    def orders_dates(self) -> bool:
        """Whether dates are compared, as integers."""
        return self.row.compares and is_date(self.dtype)

    @property
    def stored(self) -> np.dtype[Any]:
        """The dtype of the updates."""
        return np.dtype(np.int64) if self.orders_dates else self.dtype

    def begin(self, shape: tuple[int, ...]) -> NDArray[Any]:
        """Return the data of an accumulator. An element without updates has the initial value."""
        initial = np.zeros((), self.dtype) if self.initial is None else self.initial
        initial = as_integers(initial, self.row.name) if self.orders_dates else initial
        return np.broadcast_to(initial, shape)

    def updates(self, values: NDArray[Any] | None) -> NDArray[Any]:
        """Return the updates of an accumulator for a batch of values."""
        if values is None or self.row.method is Method.COUNT:
            return np.ones((), np.int64)
        if self.row.method is Method.TRUTH:
            truth: NDArray[Any] = namespace.nonzero(values)
            return truth
        return as_integers(values, self.row.name) if self.orders_dates else values

    def result(self, accumulator: Accumulator) -> NDArray[Any]:
        """Return the results of an accumulator."""
        result = accumulator.finish()
        return as_dates(result, self.row.name, self.dtype) if self.orders_dates else result


class Folds:
    """The folds of several functions over batches of values along axis 0.

    `shape` is the shape of a result. Its first number is the number of groups, or None if the
    largest entry determines it. The accumulators may use up to `limit` bytes.
    """

    def __init__(
        self, op: str, names: Sequence[str], dtype: np.dtype[Any],
        shape: tuple[Any, ...], attributes: Attributes, fill_value: object, limit: int,
    ) -> None:  # fmt: skip
        self._op, self._dtype, self._row_shape, self._limit = op, dtype, shape[1:], limit
        self._folds = [Fold.of(op, name, dtype, fill_value) for name in names]
        self._skips_nan = has_nan(dtype) and any(fold.row.skips_nan for fold in self._folds)
        self._attributes, self._grows = attributes, shape[0] is None
        self.group_count = shape[0] or 0
        self._elements = False  # whether each value has a separate entry
        self._accumulators: dict[str, Accumulator] = {}
        self._capacity = -1
        self._extend(self.group_count)

    def add(self, entries: NDArray[Any], values: NDArray[Any] | None) -> None:
        """Fold a batch of values. Raise TooLargeError if the groups do not fit in memory.

        Raise IndexError for an invalid entry. The error does not name the entry.
        """
        if not entries.size:
            return
        resolved = self._resolved(entries)
        left_out = None
        if values is not None and self._skips_nan:
            mask = namespace.isnan(values)
            left_out = mask if mask.any() else None
        self._elements |= resolved.ndim > 1 or left_out is not None
        chosen = resolved
        if left_out is not None:
            behind = (1,) * (left_out.ndim - resolved.ndim)
            wide = resolved.astype(np.int64, copy=False).reshape(*resolved.shape, *behind)
            chosen = np.where(left_out, -1, wide)
        for fold in self._folds:
            if (accumulator := self._accumulators.get(fold.name)) is not None:
                entries_of = chosen if fold.row.skips_nan else resolved
                each = values is not None and entries_of.ndim > 1
                put = accumulator.scatter_elements if each else accumulator.scatter_slices
                put(entries_of, fold.updates(values))

    def _resolved(self, entries: NDArray[Any]) -> NDArray[Any]:
        """Return the group of each entry of a batch, or -1 for a dropped entry."""
        low, high = int(entries.min()), int(entries.max())
        if self._grows and high >= self.group_count:
            self.group_count = high + 1
            if self.group_count > self._capacity:
                self._extend(self.group_count)
        if low >= 0 and high < self.group_count:
            return entries
        if self._grows and self._attributes.mode == "raise":
            raise group_errors.InvalidGroupError
        resolved: NDArray[Any] = namespace.resolve(self._attributes, entries, self.group_count)
        return resolved

    def _extend(self, count: int) -> None:
        """Extend the accumulators to at least the given number of groups."""
        if not self._fits(count):
            raise TooLargeError
        if self._capacity > 0 and self._fits(2 * self._capacity):
            count = max(count, 2 * self._capacity)
        for fold in self._folds:
            if fold is not self._counter(fold):
                continue
            data = fold.begin((count, *self._row_shape))
            if (old := self._accumulators.get(fold.name)) is None:
                accumulator = new_accumulator(data, fold.attributes)
            else:
                accumulator = extended_accumulator(old, data)
            self._accumulators[fold.name] = accumulator
        self._capacity = count

    def _fits(self, count: int) -> bool:
        each = sum(
            element_bytes(fold.stored, fold.reduction) + fold.dtype.itemsize for fold in self._folds
        )
        return bool(count * math.prod(self._row_shape) * each <= self._limit)

    def _counter(self, fold: Fold) -> Fold:
        """Return the fold that counts the values of each group for a fold."""
        if fold.row.method is not Method.COUNT:
            return fold
        others = (other for other in self._folds if other.row.method is not Method.COUNT)
        return next((other for other in others if other.row.skips_nan == fold.row.skips_nan), fold)

    def results(self) -> dict[str, NDArray[Any]]:
        """Return the result of each function. Raise ValueError if an empty group has none."""
        return {fold.name: self._result(fold) for fold in self._folds}

    def _result(self, fold: Fold) -> NDArray[Any]:
        counter = self._counter(fold)
        accumulator = self._accumulators[counter.name]
        if counter is not fold:
            counts = accumulator.counts()[: self.group_count]
            return np.where(counts == 0, np.asarray(fold.initial), counts)
        shape_limits.check_result(self._op, (self.group_count, *self._row_shape), fold.dtype)
        if fold.initial is None:
            counts = accumulator.counts()[: self.group_count]
            name, dtype = fold.name, fold.dtype
            check_nonempty(self._op, name, dtype, counts != 0, per_value=self._elements)
        result = fold.result(accumulator)
        return result if self._capacity == self.group_count else result[: self.group_count].copy()
