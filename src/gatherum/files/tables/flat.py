"""Rows of a flat file: one reader, the core's, for every shape of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatherum import native
from gatherum.files.disk import PAGE, DiskFile, StoredRows, byte_view, pages_between
from gatherum.files.tables.table import Block, Blocks, Ints, Panel, Wanted
from gatherum.plan import apply

__all__ = ["FlatArray", "FlatRows"]

SAMPLES = 256
FAR_APART = 8192  # bytes of the table for each wanted row: sorting brings no two rows together
DENSE = 2  # rows wanted for each page of the file, from which on nearly all of its pages are
PART_BYTES = 1 << 20
LONGEST_PART = 8 << 20
AHEAD = 8  # parts that the system is told of before they are read
MOST_PARTS = 1 << 16
TAKEN_BYTES = 256 << 10  # rows between two places, small enough to stay in the cache
SCRATCH = 1 << 20  # bytes for rows that are read with their neighbours


@dataclass(frozen=True)
class FlatArray:
    """An array whose elements lie one after another in a file, in C order of `shape`."""

    file: DiskFile
    offset: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def size(self) -> int:
        """How many elements there are."""
        return int(np.prod(self.shape, dtype=object)) if self.shape else 1

    @property
    def nbytes(self) -> int:
        """How many bytes they take."""
        return self.size * self.dtype.itemsize

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """Return the elements `start` to `stop` of the flattened array."""
        elements = np.empty(stop - start, self.dtype)
        self.file.read_into(self.offset + start * self.dtype.itemsize, byte_view(elements))
        return elements

    def write(self, start: int, elements: NDArray[Any]) -> None:
        """Put contiguous `elements` at position `start` of the flattened array."""
        self.file.write_from(self.offset + start * self.dtype.itemsize, byte_view(elements))


class FlatRows:
    """Rows of a flat file: a panel of columns of rows that lie one after another.

    For the core, a row is a number of bytes, and neighbours are equally far apart. So is each range
    of a panel: its beginnings are multiples of one step.

    Parameters
    ----------
    array : FlatArray
        The table; its last `len(row_shape)` dimensions are the row.
    strides : tuple of int
        For each keyed dimension, the distance in rows between neighbours.
    row_length : int
        Elements in a whole row.
    panel : Panel
        Which columns.
    """

    chunked = False
    quantum = 1

    def __init__(
        self, array: FlatArray, strides: tuple[int, ...], row_length: int, panel: Panel
    ) -> None:
        self.array, self.strides = array, strides
        self.dtype, self.row_length = array.dtype, row_length
        self.panel, self.width = panel, panel.width
        self.extent = array.size // row_length if row_length else 0
        self._buffers = [np.empty((0, self.width), self.dtype) for _ in range(2)]
        self._capacity = 0
        self._place_ranges()

    def _place_ranges(self) -> None:
        """Find what the core calls rows: the ranges of the panel, in every row."""
        item, ranges = self.dtype.itemsize, self.panel.ranges or ((0, 1),)
        (first, end), (last, _) = ranges[0], ranges[-1]
        step = ranges[1][0] - first if len(ranges) > 1 else max(1, self.row_length)
        self._per_row = max(1, self.row_length // step)
        self._ranges = np.array([(start - first) // step for start, _ in ranges], np.int64)
        extent = max(0, (self.extent - 1) * self._per_row + (last - first) // step + 1)
        base = self.array.offset + first * item
        self._stored = StoredRows(base, step * item, (end - first) * item, extent)

    def number(self, coordinates: Sequence[Ints | None], length: int) -> Ints:
        """Return the numbers of the rows at the given keyed coordinates."""
        numbers: Ints | None = None
        for coordinate, stride in zip(coordinates, self.strides, strict=True):
            if coordinate is not None:
                part = coordinate if stride == 1 else coordinate * np.int64(stride)
                numbers = part if numbers is None else numbers + part
        return np.zeros(length, np.int64) if numbers is None else numbers

    # -------------------------------------------------- rows to places in memory

    def ordered(self, numbers: Ints, places: Ints | None) -> Wanted:
        """Sort requests; where they are for nearly all pages, no further than by parts of the file.

        Such a part is read as a whole, and small enough to stay in the cache while rows are taken.
        """
        if self.array.file.in_memory:
            return Wanted.as_asked(numbers, places)
        size = max(1, self.row_length * self.dtype.itemsize)
        most = max(PART_BYTES // size, -(-self.extent // MOST_PARTS), 1)
        shift = most.bit_length() - 1  # the rows of a part are a power of two
        while self.extent >> shift >= MOST_PARTS:
            shift += 1
        many = numbers.size * PAGE >= DENSE * self.extent * size
        if not many or self.width != self.row_length or size << shift > LONGEST_PART:
            return Wanted.sorted(numbers, places)
        pages = np.zeros(self.extent * size // PAGE + 1, bool)
        pages[numbers * size >> PAGE.bit_length() - 1] = True
        if self.array.file.waste * np.count_nonzero(pages) < pages.size:
            return Wanted.sorted(numbers, places)
        which = (numbers >> shift).astype(np.uint16)
        order = np.argsort(which, kind="stable")
        cuts = np.r_[0, np.cumsum(np.bincount(which))]
        into = order if places is None else places[order]
        return Wanted(numbers[order], into, False, Blocks(1 << shift, cuts))

    def fetch(self, wanted: Wanted, into: NDArray[Any], *, limit: int, once: bool) -> int:
        """Read rows into their places in `into`; returns how many reads that took."""
        if wanted.blocks is not None and wanted.places is not None:
            return self._fetch_parts(wanted.numbers, wanted.places, wanted.blocks, into)
        waste = self.array.file.waste if wanted.ordered else 1.0
        return self._read_rows(wanted.numbers, wanted.places, into, waste, limit, once)

    def _fetch_parts(self, numbers: Ints, places: Ints, parts: Blocks, into: NDArray[Any]) -> int:
        """Read the file part by part, and take the rows that are wanted of each."""
        row_bytes = self.row_length * self.dtype.itemsize
        step = min(rounded(int(np.diff(parts.cuts).max())), max(1, TAKEN_BYTES // row_bytes))
        room = Room(np.empty((step, self.width), self.dtype), into)
        asked = np.flatnonzero(np.diff(parts.cuts)).tolist()
        nbytes = parts.rows * row_bytes
        for turn, number in enumerate(asked):
            for soon in asked[turn + AHEAD : turn + AHEAD + 1] if turn else asked[: AHEAD + 1]:
                self.array.file.announce(self.array.offset + soon * nbytes, nbytes)
            first = np.array([number * parts.rows])
            space = self.read(first, np.minimum(self.extent - first, parts.rows)).space
            start, stop = parts.cuts[number : number + 2].tolist()
            for at in range(start, stop, step):
                some = slice(at, min(at + step, stop))
                room.take(space, numbers[some] - first, places[some])
        return len(asked)

    def _read_rows(
        self,
        numbers: Ints,
        places: Ints | None,
        into: NDArray[Any],
        waste: float = 1.0,
        scratch: int = SCRATCH,
        once: bool = False,
    ) -> int:
        ranges = self._ranges
        if ranges.size > 1:
            if places is not None:
                places = (places[:, None] * ranges.size + np.arange(ranges.size)).reshape(-1)
            numbers = (numbers[:, None] * self._per_row + ranges).reshape(-1)
        return self.array.file.read_rows(
            self._stored, numbers, places, into, waste=waste, once=once, scratch=scratch
        )

    def stop(self) -> None:
        """Give up what is under way, as the call is over."""
        self.array.file.stop()

    def cached_share(self, numbers: Ints) -> float:
        """Return about which share of some rows waits in memory; 0 where that cannot be said."""
        sample = numbers[:: max(1, numbers.size // SAMPLES)] * np.int64(self._per_row)
        return self.array.file.cached_share(self._stored.base + sample * self._stored.stride)

    def is_far_apart(self, count: int) -> bool:
        """Whether so many rows lie too far apart for sorting to bring any of them together."""
        return self._stored.extent * self._stored.stride >= FAR_APART * count

    # ------------------------------------------------------------ blocks of rows

    def runs(self, numbers: Ints, most: int) -> tuple[Ints, Ints]:
        """Return the runs to read for sorted distinct `numbers`, none longer than `most`."""
        cuts = np.flatnonzero(pages_between(self._whole(), numbers) > self._bridge(numbers)) + 1
        first = numbers[np.r_[0, cuts]]
        count = numbers[np.r_[cuts, numbers.size] - 1] - first + 1
        if int(count.max()) <= most:
            return first, count
        pieces = -(-count // most)
        index = np.repeat(np.arange(count.size), pieces)
        step = (np.arange(index.size) - np.repeat(np.cumsum(pieces) - pieces, pieces)) * most
        return first[index] + step, np.minimum(count[index] - step, most)

    def _whole(self) -> StoredRows:
        """Return where whole rows lie."""
        size = max(1, self.row_length * self.dtype.itemsize)
        return StoredRows(self.array.offset, size, size, self.extent)

    def _bridge(self, numbers: Ints) -> int:
        """Return the most pages between two rows that are cheaper to read than to leave out."""
        waste = self.array.file.waste
        return native.file_rows_bridge(self._whole(), np.ascontiguousarray(numbers), waste)

    def read(self, first: Ints, count: Ints) -> Block:
        """Read runs of rows."""
        total = int(count.sum())
        space = self._buffer(total)
        rows = space[:total]
        if first.size == 1 and self.width == self.row_length:
            start = self.array.offset + int(first[0]) * self.row_length * self.dtype.itemsize
            self.array.file.read_into(start, byte_view(rows))
        else:
            within = np.arange(total) - np.repeat(np.cumsum(count) - count, count)
            self._read_rows(np.repeat(first, count) + within, None, rows)
        return Block(first, count, rows, space)

    def _buffer(self, rows: int) -> NDArray[Any]:
        """Return one of two buffers in turn: fresh memory would cost more than reading into it."""
        self._buffers.reverse()
        self._capacity = max(self._capacity, rows)
        if len(self._buffers[0]) < self._capacity:
            self._buffers[0] = np.empty((self._capacity, self.width), self.dtype)
        return self._buffers[0]

    def write(self, block: Block) -> None:
        """Write runs of rows."""
        spans = [(int(f), int(n)) for f, n in zip(block.first, block.count, strict=True)]
        view, done = byte_view(block.rows), 0
        for offset, length in self._pieces(spans):
            self.array.file.write_from(offset, view[done : done + length])
            done += length

    def _pieces(self, spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """Byte offsets and lengths of runs of rows, in this panel."""
        base, item = self.array.offset, self.dtype.itemsize
        size = self.row_length * item
        if self.width == self.row_length:
            return [(base + first * size, count * size) for first, count in spans]
        return [
            (base + row * size + start * item, (stop - start) * item)
            for first, count in spans
            for row in range(first, first + count)
            for start, stop in self.panel.ranges
        ]


class Room:
    """Memory for rows on their way from a part of a table to their places."""

    def __init__(self, rows: NDArray[Any], into: NDArray[Any]) -> None:
        self.rows, self.into = rows, into
        self.which = np.empty(len(rows), np.int64)
        self.where = np.empty((len(rows), 1), np.int64)

    def take(self, space: NDArray[Any], which: Ints, where: Ints) -> None:
        """Bring rows `which` of `space` to the places `where`.

        The last request is repeated, up to a length that other calls have: they share plans.
        """
        count, length = which.size, min(rounded(which.size), len(self.rows))
        self.which[:count], self.where[:count, 0] = which, where
        self.which[count:length], self.where[count:length] = which[-1], where[-1]
        apply("gather", space, self.which[:length], out=self.rows[:length])
        apply("scatter_nd", self.into, self.where[:length], self.rows[:length], out=self.into)


def rounded(count: int) -> int:
    """Return a number of requests, up to an eighth larger, of which there are few."""
    step = 1 << max(0, count.bit_length() - 4)
    return -(-count // step) * step
