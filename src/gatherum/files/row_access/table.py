"""Tables give access to rows by number, for all storages.

A row is the unit that one request moves. Rows that are stored together have similar numbers, so
that sorting requests by number puts them in the order of the storage.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from gatherum._plans.plans import apply
from gatherum.files.resources.disk import PAGE

Ints = NDArray[np.int64]
T = TypeVar("T")
CACHED_SHARE = 0.95  # from this share on, rows are treated as cached
ALWAYS_SORTED_ROWS = (
    4096  # up to this number of rows, sorting is faster than checking the page cache
)


@dataclass(frozen=True)
class Panel:
    """The columns of every row that are processed together: all columns unless rows are huge.

    `box` is the part of each trailing dimension. `ranges` are the same columns as ranges of the
    flattened row.
    """

    box: tuple[tuple[int, int], ...]
    ranges: tuple[tuple[int, int], ...]

    @property
    def width(self) -> int:
        """The number of elements of each row."""
        return sum(stop - start for start, stop in self.ranges)

    def columns(self) -> Iterator[tuple[int, int, slice]]:
        """Yield the ranges, each with the position of its columns in the panel."""
        position = 0
        for start, stop in self.ranges:
            yield start, stop, slice(position, position + stop - start)
            position += stop - start

    @classmethod
    def of(cls, row_shape: tuple[int, ...], box: tuple[tuple[int, int], ...]) -> Panel:
        """Return the panel for one part of each trailing dimension."""
        outer_dims = len(row_shape)
        length = 1  # of a range: the whole dimensions at the end, and the part before them
        while outer_dims and length == math.prod(row_shape[outer_dims:]):
            outer_dims -= 1
            length *= box[outer_dims][1] - box[outer_dims][0]
        steps = [math.prod(row_shape[dim + 1 :]) for dim in range(len(row_shape))]
        first = sum(
            dim_range[0] * step
            for dim_range, step in zip(box[outer_dims:], steps[outer_dims:], strict=True)
        )
        starts = (
            first + sum(i * step for i, step in zip(corner, steps, strict=False))
            for corner in product(*(range(*dim_range) for dim_range in box[:outer_dims]))
        )
        return cls(box, tuple((start, start + length) for start in starts) if length else ())


@dataclass(frozen=True)
class RowRuns:
    """Runs of neighbouring rows in memory. The row numbers of run `i` start at `first[i]`.

    `space` begins with `rows`. Gathers may use `space` instead: it has the same shape in all
    reads, so that they share a plan.
    """

    first: Ints
    count: Ints
    rows: NDArray[Any]
    space: NDArray[Any]

    def locate(self, row_numbers: Ints) -> Ints:
        """Return the positions in `rows` of the rows with these numbers."""
        if self.first.size == 1:
            single: Ints = row_numbers - self.first[0]
            return single
        run = np.searchsorted(self.first, row_numbers, side="right") - 1
        starts = np.cumsum(self.count) - self.count
        located: Ints = row_numbers - (self.first - starts)[run]
        return located


def changed_rows(old: NDArray[Any], new: NDArray[Any]) -> Ints:
    """Return the numbers of the rows whose bytes differ. Both arrays are C-contiguous."""
    word = f"u{math.gcd(old.shape[1] * old.dtype.itemsize, 8)}"
    words_before, words_after = (
        rows.reshape(-1).view(word).reshape(len(rows), -1) for rows in (old, new)
    )
    return np.flatnonzero((words_before != words_after).any(axis=1))


def runs_of_numbers(row_numbers: Ints) -> tuple[Ints, Ints]:
    """Return the first number and the length of each run of consecutive sorted numbers."""
    starts = np.flatnonzero(np.diff(row_numbers, prepend=row_numbers[:1] - 2) != 1)
    return row_numbers[starts], np.diff(starts, append=row_numbers.size)


@dataclass(frozen=True)
class RowsToRead:
    """Rows to read, in this order."""

    row_numbers: Ints
    positions: Ints | None  # the position of each row; None if consecutive
    # Whether neighbours can be read together: the rows ascend, or lie in nearly all pages.
    joins_neighbours: bool

    @classmethod
    def sorted(cls, row_numbers: Ints, positions: Ints | None = None) -> RowsToRead:
        """Sort rows into the order of the storage."""
        order = np.argsort(row_numbers)
        return cls(row_numbers[order], order if positions is None else positions[order], True)

    @classmethod
    def in_request_order(cls, row_numbers: Ints, positions: Ints | None = None) -> RowsToRead:
        """Keep the order of the requests, which is best for long rows in the page cache."""
        return cls(row_numbers, positions, False)


class RowTable(Protocol):
    """The rows of one panel, by number."""

    dtype: np.dtype[Any]
    width: int
    extent: int
    quantum: int  # rows that are always read and written together
    is_chunked: bool  # whether a piece may use half of the budget, because chunks have a fixed size

    def row_numbers_at(self, coordinates: Sequence[Ints | None], length: int) -> Ints:
        """Return the row numbers at the given keyed coordinates."""

    def fetch(self, wanted: RowsToRead, into: NDArray[Any], *, limit: int, once: bool) -> int:
        """Read rows to their positions in `into`, with at most `limit` bytes for a piece of rows.

        `once`: the rows will not be read again. Return the number of pieces that were read.
        """

    def in_storage_order(self, row_numbers: Ints, positions: Ints | None) -> RowsToRead:
        """Sort requests into the order of the storage, which is cheapest to read."""
        return RowsToRead.sorted(row_numbers, positions)

    def cached_share(self, row_numbers: Ints) -> float:
        """Estimate the share of rows that are in the page cache. Return 0 if it is unknown."""
        return 0.0

    def is_far_apart(self, count: int) -> bool:
        """Return True if `count` rows are so far apart that sorting makes no rows adjacent."""
        return False

    def runs(self, row_numbers: Ints, most_rows: int) -> tuple[Ints, Ints]:
        """Return the runs to read, as first rows and counts, for sorted distinct `row_numbers`."""

    def stop(self) -> None:
        """Cancel pending work that may take long, because the call is over."""

    def read(self, first: Ints, count: Ints) -> RowRuns:
        """Read runs of rows. They stay valid during the next read, but not longer."""

    def write(self, runs: RowRuns) -> None:
        """Write runs of rows."""


class TableLayout(Protocol):
    """The rows of a table in its storage, for a call that keys its leading dimensions."""

    row_shape: tuple[int, ...]

    def panels(self) -> Iterator[Panel]:
        """Divide the rows into as few panels as memory allows."""

    def rows(self, panel: Panel) -> RowTable:
        """Return the table's rows in one panel."""


@contextmanager
def stopped_early(stop: Callable[[], object]) -> Iterator[None]:
    """Call `stop` if the block ends early, before its thread is joined."""
    try:
        yield
    except BaseException:
        stop()
        raise


def computed_ahead(
    items: Iterator[T], stop: Callable[[], object] = lambda: None
) -> Generator[T, None, None]:
    """Yield items. Each is computed while the previous one is used.

    `stop` is called if the caller does not use all items.
    """
    with ThreadPoolExecutor(1) as thread, stopped_early(stop):
        upcoming = thread.submit(next, items, None)
        while (item := upcoming.result()) is not None:
            upcoming = thread.submit(next, items, None)
            yield item


def gathered_rows(rows: NDArray[Any], positions: Ints) -> NDArray[Any]:
    """Return the rows at `positions`, in memory that is freed as soon as the result is deleted."""
    return apply(
        "gather", rows, positions, out=np.empty((len(positions), rows.shape[1]), rows.dtype)
    )


def as_items(array: NDArray[Any]) -> NDArray[Any]:
    """View records as bytes. NumPy would copy them field by field, without their padding."""
    return array.view(np.dtype((np.void, array.itemsize))) if array.dtype.names else array


def without_duplicates(ordered: Ints) -> Ints:
    """Return sorted numbers without duplicates."""
    is_first = np.empty(ordered.size, bool)
    is_first[:1] = True
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    return ordered[is_first]


def read_runs(table: RowTable, ordered: Ints, limit: int) -> Iterator[tuple[int, int, RowRuns]]:
    """Read the rows with sorted numbers, in pieces of at most `limit` bytes.

    Yield `start` and `stop`, the part of `ordered` that a piece covers, and its rows.
    """
    if ordered.size == 0:
        return
    most_rows = max(1, limit // max(1, table.width * table.dtype.itemsize))
    first, count = table.runs(without_duplicates(ordered), most_rows)
    batches = list(_batches(ordered, first, count, most_rows))
    pieces = ((start, stop, table.read(first[runs], count[runs])) for start, stop, runs in batches)
    yield from pieces if len(batches) == 1 else computed_ahead(pieces, table.stop)


def _batches(
    ordered: Ints, first: Ints, count: Ints, most_rows: int
) -> Iterator[tuple[int, int, slice]]:
    """Divide runs into batches of about `most_rows` rows, without batches that have no requests."""
    rows_up_to_run = np.cumsum(count)
    run = 0
    while run < first.size:
        before = int(rows_up_to_run[run - 1]) if run else 0
        after = max(run + 1, int(np.searchsorted(rows_up_to_run, before + most_rows, side="right")))
        start = int(np.searchsorted(ordered, first[run]))
        stop = int(np.searchsorted(ordered, first[after - 1] + count[after - 1]))
        if stop > start:
            yield start, stop, slice(run, after)
        run = after


def panels(row_shape: tuple[int, ...], chunk: tuple[int, ...]) -> Iterator[Panel]:
    """Divide rows of shape `row_shape` into panels of `chunk` elements per dimension."""
    steps = (
        [(start, min(start + step, n)) for start in range(0, n, max(1, step))] or [(0, 0)]
        for n, step in zip(row_shape, chunk, strict=True)
    )
    for box in product(*steps):
        yield Panel.of(row_shape, box)


def largest_box(
    shape: tuple[int, ...],
    itemsize: int,
    limit: int,
    *,
    least_extents: tuple[int, ...] | None = None,
) -> tuple[int, ...]:
    """Return the largest box of at most `limit` bytes, extended along the last dimensions first.

    With `least_extents`, each extent is a multiple of its least extent, or the whole dimension.
    """
    least_extents = least_extents or (1,) * len(shape)
    extents = [
        min(least_extent, dim_size) if dim_size else 1
        for least_extent, dim_size in zip(least_extents, shape, strict=True)
    ]
    for dim in reversed(range(len(shape))):
        other_bytes = max(1, math.prod(extents) // extents[dim] * itemsize)
        most_positions = max(1, limit // other_bytes)
        if most_positions >= shape[dim]:
            extents[dim] = max(1, shape[dim])
            continue
        extents[dim] = max(extents[dim], most_positions // least_extents[dim] * least_extents[dim])
        break
    return tuple(extents)


def best_order(table: RowTable, row_numbers: Ints, positions: Ints | None) -> RowsToRead:
    """Sort rows into the order that is cheapest to read."""
    keeps_request_order = (
        row_numbers.size > ALWAYS_SORTED_ROWS
        and is_long(table)
        and table.is_far_apart(row_numbers.size)
    )
    if keeps_request_order and table.cached_share(row_numbers) >= CACHED_SHARE:
        return RowsToRead.in_request_order(row_numbers, positions)
    return table.in_storage_order(row_numbers, positions)


def is_long(table: RowTable) -> bool:
    """Return True if a row is at least as long as a page, so that sorting rows saves no reads."""
    return table.width * table.dtype.itemsize >= PAGE
