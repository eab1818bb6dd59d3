"""Rows brought from a table to their places in memory."""

from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from gatherum import native
from gatherum.files.disk import StoredRows
from gatherum.files.rows import FlatRows, RowTable, blocks
from gatherum.files.stats import Meter
from gatherum.plan import apply

__all__ = ["Fetcher", "Wanted", "ahead"]

Ints = NDArray[np.int64]
T = TypeVar("T")
WASTE = 1.1  # bytes read over the bytes of the pages that hold wanted rows
TAKEN_BYTES = 256 << 10  # rows between two places, small enough to stay in the cache
SAMPLES = 256
CACHED_SHARE = 0.95  # from here on, rows are taken for cached
FAR_APART = 8192  # bytes of the table for each wanted row: sorting brings no two rows together


class Fetcher:
    """Reads rows of a table by number.

    Parameters
    ----------
    table : RowTable
        The table.
    limit : int
        Bytes for a block of rows.
    meter : Meter
        Counts the blocks.
    """

    def __init__(self, table: RowTable, limit: int, meter: Meter) -> None:
        self.table, self.limit, self.meter = table, limit, meter
        self._stored = _stored_rows(table)

    def cached_share(self, numbers: Ints) -> float:
        """Return about which share of some rows waits in memory, of a flat table."""
        if self._stored is None or not isinstance(self.table, FlatRows):
            return 0.0
        sample = numbers[:: max(1, numbers.size // SAMPLES)]
        offsets = self._stored.base + sample * np.int64(self._stored.stride)
        return self.table.array.file.cached_share(offsets)

    def is_far_apart(self, count: int) -> bool:
        """Whether so many rows lie too far apart for sorting to bring any of them together."""
        stored = self._stored
        return stored is not None and stored.extent * stored.stride >= FAR_APART * count

    def fetch(self, wanted: "Wanted", into: NDArray[Any], *, once: bool = False) -> None:
        """Read rows into their places in `into`; `once` where none of them is wanted again."""
        if self._stored is None or not isinstance(self.table, FlatRows):
            self._fetch_blocks(wanted, into)
            return
        self.meter.chunks_touched += self.table.array.file.read_rows(
            self._stored,
            wanted.numbers,
            wanted.places,
            into,
            waste=WASTE if wanted.ordered else 1.0,
            once=once,
            scratch=self.limit,
        )

    def _fetch_blocks(self, wanted: "Wanted", into: NDArray[Any]) -> None:
        if not wanted.ordered:
            wanted = Wanted.sorted(wanted.numbers, wanted.places)
        numbers, places = wanted.numbers, wanted.places
        width, item = self.table.width, self.table.dtype.itemsize
        step = max(1, TAKEN_BYTES // max(1, width * item))
        taken = np.empty((min(step, len(numbers)), width), self.table.dtype)
        for start, stop, block in blocks(self.table, numbers, self.limit):
            self.meter.chunks_touched += block.first.size
            for at in range(start, stop, step):
                end = min(stop, at + step)
                local = block.locate(numbers[at:end])
                rows = apply("gather", block.space, local, out=taken[: end - at])
                where = np.arange(at, end) if places is None else places[at:end]
                apply("scatter_nd", into, where[:, None], rows, out=into)


@dataclass(frozen=True)
class Wanted:
    """Rows that are wanted, in the order in which they are to be read.

    Attributes
    ----------
    numbers : ndarray of int64
        Their numbers.
    places : ndarray of int64 or None
        Where each goes; None: one after another.
    ordered : bool
        Whether the numbers ascend, so that neighbours can be read at once.
    """

    numbers: Ints
    places: Ints | None
    ordered: bool

    @classmethod
    def sorted(cls, numbers: Ints, places: Ints | None = None) -> "Wanted":
        """Put rows in the order of the storage."""
        order = np.argsort(numbers)
        return cls(numbers[order], order if places is None else places[order], True)

    @classmethod
    def as_asked(cls, numbers: Ints, places: Ints | None = None) -> "Wanted":
        """Leave rows in the order of the requests: best where they wait in memory, far apart."""
        return cls(numbers, places, False)


def ahead(items: Iterator[T]) -> Generator[T, None, None]:
    """Return items, each of which is made while the one before it is used."""
    with ThreadPoolExecutor(1) as thread:
        upcoming = thread.submit(next, items, None)
        while (item := upcoming.result()) is not None:
            upcoming = thread.submit(next, items, None)
            yield item


def _stored_rows(table: RowTable) -> StoredRows | None:
    """Where a table's rows lie, if each lies in one piece of a file that the core can read."""
    if not native.reads_at_positions() or not isinstance(table, FlatRows):
        return None
    if len(table.panel.ranges) != 1:
        return None
    ((start, stop),) = table.panel.ranges
    item = table.dtype.itemsize
    return StoredRows(
        table.array.offset + start * item,
        table.row_length * item,
        (stop - start) * item,
        table.extent,
    )
