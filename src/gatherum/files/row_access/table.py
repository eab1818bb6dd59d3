"""Tables give numbered rows to the engine, whatever stores them.

A row is what one request moves. Rows are numbered so that rows that are stored together have
numbers close together: sorting requests by number puts them in the order of the storage.
"""

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

__all__ = [
    "Block",
    "Panel",
    "RowTable",
    "TableLayout",
    "Wanted",
    "ahead",
    "blocks",
    "panels",
    "taken",
]

Ints = NDArray[np.int64]
T = TypeVar("T")


@dataclass(frozen=True)
class Panel:
    """The columns of every row that are handled together: all of them unless rows are huge.

    `box` is the part of each trailing dimension; `ranges` are the same columns as ranges of the
    flattened row.
    """

    box: tuple[tuple[int, int], ...]
    ranges: tuple[tuple[int, int], ...]

    @property
    def width(self) -> int:
        """How many elements of each row it holds."""
        return sum(stop - start for start, stop in self.ranges)

    def columns(self) -> Iterator[tuple[int, int, slice]]:
        """Yield the ranges, each with the place of its columns among those of the panel."""
        done = 0
        for start, stop in self.ranges:
            yield start, stop, slice(done, done + stop - start)
            done += stop - start

    @classmethod
    def of(cls, row_shape: tuple[int, ...], box: tuple[tuple[int, int], ...]) -> "Panel":
        """Return the panel for one part of each trailing dimension."""
        outer = len(row_shape)
        length = 1  # of a range: the whole dimensions at the end, and the part before them
        while outer and length == math.prod(row_shape[outer:]):
            outer -= 1
            length *= box[outer][1] - box[outer][0]
        steps = [math.prod(row_shape[dim + 1 :]) for dim in range(len(row_shape))]
        first = sum(part[0] * step for part, step in zip(box[outer:], steps[outer:], strict=True))
        starts = (
            first + sum(at * step for at, step in zip(corner, steps, strict=False))
            for corner in product(*(range(*part) for part in box[:outer]))
        )
        return cls(box, tuple((start, start + length) for start in starts) if length else ())


@dataclass(frozen=True)
class Block:
    """Runs of neighbouring rows in memory: run `i` holds the numbers from `first[i]` on.

    `space` begins with `rows`. Where rows are only taken out it serves as well, and with one shape
    for all blocks they share a plan.
    """

    first: Ints
    count: Ints
    rows: NDArray[Any]
    space: NDArray[Any]

    def locate(self, numbers: Ints) -> Ints:
        """Return where the rows with these numbers are in `rows`."""
        if self.first.size == 1:
            single: Ints = numbers - self.first[0]
            return single
        run = np.searchsorted(self.first, numbers, side="right") - 1
        starts = np.cumsum(self.count) - self.count
        located: Ints = numbers - (self.first - starts)[run]
        return located


def changed_rows(old: NDArray[Any], new: NDArray[Any]) -> Ints:
    """Return the numbers of the rows that differ in a byte; both are C-contiguous."""
    word = f"u{math.gcd(old.shape[1] * old.dtype.itemsize, 8)}"
    before, after = (rows.reshape(-1).view(word).reshape(len(rows), -1) for rows in (old, new))
    return np.flatnonzero((before != after).any(axis=1))


def stretches(numbers: Ints) -> tuple[Ints, Ints]:
    """Return the first number and the length of each run of neighbours, of sorted numbers."""
    starts = np.flatnonzero(np.diff(numbers, prepend=numbers[:1] - 2) != 1)
    return numbers[starts], np.diff(starts, append=numbers.size)


@dataclass(frozen=True)
class Wanted:
    """Rows that are wanted, in the order in which they are to be read."""

    numbers: Ints
    places: Ints | None  # where each goes; None: one after another
    ordered: bool  # whether neighbours can be read at once: they ascend, or are of nearly all pages

    @classmethod
    def sorted(cls, numbers: Ints, places: Ints | None = None) -> "Wanted":
        """Put rows in the order of the storage."""
        order = np.argsort(numbers)
        return cls(numbers[order], order if places is None else places[order], True)

    @classmethod
    def as_asked(cls, numbers: Ints, places: Ints | None = None) -> "Wanted":
        """Leave rows in the order of the requests: best for long rows in the page cache."""
        return cls(numbers, places, False)


class RowTable(Protocol):
    """Rows by number, of one panel."""

    dtype: np.dtype[Any]
    width: int
    extent: int
    quantum: int  # rows that are always read and written together
    chunked: bool  # whether a block may take half of the budget, as chunks are as large as they are

    def number(self, coordinates: Sequence[Ints | None], length: int) -> Ints:
        """Return the numbers of the rows at the given keyed coordinates."""

    def fetch(self, wanted: Wanted, into: NDArray[Any], *, limit: int, once: bool) -> int:
        """Read rows into their places in `into`, with at most `limit` bytes for a block of rows.

        `once` where none of them is wanted again. Returns how many blocks were read.
        """

    def ordered(self, numbers: Ints, places: Ints | None) -> Wanted:
        """Put requests in the order that is cheapest to read them in: that of the storage."""
        return Wanted.sorted(numbers, places)

    def cached_share(self, numbers: Ints) -> float:
        """Return about which share of some rows is in the page cache; 0 if unknown."""
        return 0.0

    def is_far_apart(self, count: int) -> bool:
        """Whether so many rows lie too far apart for sorting to bring any of them together."""
        return False

    def runs(self, numbers: Ints, most: int) -> tuple[Ints, Ints]:
        """Return the runs to read (first, count) for sorted distinct `numbers`."""

    def stop(self) -> None:
        """Cancel pending work that may take long, as the call is over."""

    def read(self, first: Ints, count: Ints) -> Block:
        """Read runs of rows; a block may be used until the next but one is read."""

    def write(self, block: Block) -> None:
        """Write runs of rows."""


class TableLayout(Protocol):
    """The rows of a table as its storage has them, for a call that keys its leading dimensions."""

    row_shape: tuple[int, ...]

    def panels(self) -> Iterator[Panel]:
        """Cut the rows into as few panels as memory allows."""

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


def ahead(
    items: Iterator[T], stop: Callable[[], object] = lambda: None
) -> Generator[T, None, None]:
    """Return items, each of which is made while the one before it is used.

    `stop` is called when not all of them are wanted.
    """
    with ThreadPoolExecutor(1) as thread, stopped_early(stop):
        upcoming = thread.submit(next, items, None)
        while (item := upcoming.result()) is not None:
            upcoming = thread.submit(next, items, None)
            yield item


def taken(rows: NDArray[Any], places: Ints) -> NDArray[Any]:
    """Return the rows at `places`, in memory that is given back at once when it is dropped."""
    return apply("gather", rows, places, out=np.empty((len(places), rows.shape[1]), rows.dtype))


def distinct(ordered: Ints) -> Ints:
    """Return sorted numbers without their repetitions."""
    keep = np.empty(ordered.size, bool)
    keep[:1] = True
    np.not_equal(ordered[1:], ordered[:-1], out=keep[1:])
    return ordered[keep]


def blocks(table: RowTable, ordered: Ints, limit: int) -> Iterator[tuple[int, int, Block]]:
    """Read the rows that sorted numbers name, a block of at most `limit` bytes at a time.

    Yields `start` and `stop`, the part of `ordered` that the block serves, and the block.
    """
    if ordered.size == 0:
        return
    most = max(1, limit // max(1, table.width * table.dtype.itemsize))
    first, count = table.runs(distinct(ordered), most)
    batches = list(_batches(ordered, first, count, most))
    found = ((start, stop, table.read(first[runs], count[runs])) for start, stop, runs in batches)
    yield from found if len(batches) == 1 else ahead(found, table.stop)


def _batches(
    ordered: Ints, first: Ints, count: Ints, most: int
) -> Iterator[tuple[int, int, slice]]:
    """Cut runs into batches of about `most` rows, leaving out those that nothing asks for."""
    total = np.cumsum(count)
    run = 0
    while run < first.size:
        before = int(total[run - 1]) if run else 0
        after = max(run + 1, int(np.searchsorted(total, before + most, side="right")))
        start = int(np.searchsorted(ordered, first[run]))
        stop = int(np.searchsorted(ordered, first[after - 1] + count[after - 1]))
        if stop > start:
            yield start, stop, slice(run, after)
        run = after


def panels(row_shape: tuple[int, ...], chunk: tuple[int, ...]) -> Iterator[Panel]:
    """Cut rows of shape `row_shape` into panels of `chunk` elements a dimension."""
    steps = (
        [(start, min(start + step, n)) for start in range(0, n, max(1, step))] or [(0, 0)]
        for n, step in zip(row_shape, chunk, strict=True)
    )
    for box in product(*steps):
        yield Panel.of(row_shape, box)
