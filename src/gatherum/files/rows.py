"""Tables as numbered rows: which neighbouring rows to read at once, and how.

A row is what one request moves. Rows are numbered so that rows that are stored together have
numbers close together: sorting requests by number puts them in the order of the storage.
"""

import math
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gatherum.files.disk import FlatArray, byte_view
from gatherum.plan import apply

__all__ = ["Block", "FlatRows", "GridRows", "Panel", "RowTable", "blocks", "taken"]

Ints = NDArray[np.int64]
PAGE = 4096
WASTE = 1.15  # bytes read over the bytes of the pages that hold wanted rows
GAPS = tuple(PAGE << step for step in range(9))


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


class RowTable(Protocol):
    """Rows by number, of one panel."""

    dtype: np.dtype[Any]
    width: int
    extent: int
    quantum: int  # rows that are always read and written together

    def number(self, coordinates: Sequence[Ints | None], length: int) -> Ints:
        """Return the numbers of the rows at the given keyed coordinates."""

    def runs(self, numbers: Ints, most: int) -> tuple[Ints, Ints]:
        """Return the runs to read (first, count) for sorted distinct `numbers`."""

    def read(self, first: Ints, count: Ints) -> Block:
        """Read runs of rows; a block may be used until the next but one is read."""

    def write(self, block: Block) -> None:
        """Write runs of rows."""


class FlatRows:
    """Rows of a flat file: a panel of columns of rows that lie one after another.

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

    def __init__(
        self, array: FlatArray, strides: tuple[int, ...], row_length: int, panel: Panel
    ) -> None:
        self.array, self.strides = array, strides
        self.dtype, self.row_length = array.dtype, row_length
        self.panel, self.width, self.quantum = panel, panel.width, 1
        self.extent = array.size // row_length if row_length else 0
        self._buffers = [np.empty((0, self.width), self.dtype) for _ in range(2)]
        self._capacity = 0

    def number(self, coordinates: Sequence[Ints | None], length: int) -> Ints:
        """Return the numbers of the rows at the given keyed coordinates."""
        numbers: Ints | None = None
        for coordinate, stride in zip(coordinates, self.strides, strict=True):
            if coordinate is not None:
                part = coordinate if stride == 1 else coordinate * np.int64(stride)
                numbers = part if numbers is None else numbers + part
        return np.zeros(length, np.int64) if numbers is None else numbers

    def runs(self, numbers: Ints, most: int) -> tuple[Ints, Ints]:
        """Return the runs to read for sorted distinct `numbers`, none longer than `most`."""
        gap = self._bridge(numbers)
        cuts = np.flatnonzero(np.diff(numbers) > gap // max(1, self._row_bytes) + 1) + 1
        first = numbers[np.r_[0, cuts]]
        count = numbers[np.r_[cuts, numbers.size] - 1] - first + 1
        if int(count.max()) <= most:
            return first, count
        pieces = -(-count // most)
        index = np.repeat(np.arange(count.size), pieces)
        step = (np.arange(index.size) - np.repeat(np.cumsum(pieces) - pieces, pieces)) * most
        return first[index] + step, np.minimum(count[index] - step, most)

    def _bridge(self, numbers: Ints) -> int:
        """Choose the largest gap, in bytes, that is cheaper to read than to leave out."""
        size = self._row_bytes
        starts = numbers * size
        pages = (starts + (size - 1)) // PAGE
        starts //= PAGE
        touched = int((pages - starts).sum()) + numbers.size
        touched -= int(np.count_nonzero(starts[1:] == pages[:-1]))
        allowed = WASTE * PAGE * touched - size * numbers.size
        gaps = (np.diff(numbers) - 1) * size
        for gap in reversed(GAPS):
            if int(gaps[gaps <= gap].sum()) <= allowed:
                return gap
        return PAGE // 8

    @property
    def _row_bytes(self) -> int:
        return self.row_length * self.dtype.itemsize

    def read(self, first: Ints, count: Ints) -> Block:
        """Read runs of rows."""
        space = self._buffer(int(count.sum()))
        rows = space[: int(count.sum())]
        spans = [(int(f), int(n)) for f, n in zip(first, count, strict=True)]
        self.array.file.read_spans(self._pieces(spans), byte_view(rows))
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
        base, item, size = self.array.offset, self.dtype.itemsize, self._row_bytes
        if self.width == self.row_length:
            return [(base + first * size, count * size) for first, count in spans]
        return [
            (base + row * size + start * item, (stop - start) * item)
            for first, count in spans
            for row in range(first, first + count)
            for start, stop in self.panel.ranges
        ]


class BoxArray(Protocol):
    """An array that is read and written in boxes, best in whole `chunks`."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The array's shape."""

    @property
    def chunks(self) -> tuple[int, ...]:
        """The extents of a chunk."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The array's dtype."""

    def read_box(self, box: tuple[slice, ...]) -> NDArray[Any]:
        """Return a box of the array."""

    def write_box(self, box: tuple[slice, ...], values: NDArray[Any]) -> None:
        """Replace a box of the array."""


class GridRows:
    """Rows of a chunked array, numbered chunk by chunk; a run is always one whole chunk."""

    def __init__(self, array: BoxArray, depth: int, panel: Panel) -> None:
        self.array, self.depth, self.panel = array, depth, panel
        self.dtype, self.width = array.dtype, panel.width
        self.chunk = array.chunks[:depth]
        self.chunk_rows = self.quantum = math.prod(self.chunk)
        self.grid = tuple(-(-n // c) for n, c in zip(array.shape, self.chunk, strict=False))
        self.extent = math.prod(self.grid) * self.chunk_rows

    def number(self, coordinates: Sequence[Ints | None], length: int) -> Ints:
        """Return the numbers of the rows at the given keyed coordinates."""
        outer, inner = np.zeros(length, np.int64), np.zeros(length, np.int64)
        for coordinate, grid, chunk in zip(coordinates, self.grid, self.chunk, strict=True):
            outer *= grid
            inner *= chunk
            if coordinate is not None:
                which, where = np.divmod(coordinate, chunk)
                outer += which
                inner += where
        return outer * self.chunk_rows + inner

    def runs(self, numbers: Ints, most: int) -> tuple[Ints, Ints]:
        """Return the chunks that hold sorted distinct `numbers`."""
        chunks = distinct(numbers // self.chunk_rows)
        return chunks * self.chunk_rows, np.full(chunks.size, self.chunk_rows, np.int64)

    def read(self, first: Ints, count: Ints) -> Block:
        """Read whole chunks; rows outside of the array, in chunks at its edge, are zero bytes."""
        rows = np.empty((first.size * self.chunk_rows, self.width), self.dtype)
        for chunk, values in zip(first, self._by_chunk(rows), strict=True):
            box = self._box(int(chunk))
            inside = tuple(slice(0, part.stop - part.start) for part in box)
            if any(i.stop != n for i, n in zip(inside, values.shape, strict=True)):
                byte_view(values)[:] = bytes(values.nbytes)
            values[inside] = self.array.read_box(box)
        return Block(first, count, rows, rows)

    def write(self, block: Block) -> None:
        """Write whole chunks."""
        for chunk, values in zip(block.first, self._by_chunk(block.rows), strict=True):
            box = self._box(int(chunk))
            inside = tuple(slice(0, part.stop - part.start) for part in box)
            self.array.write_box(box, values[inside])

    def _by_chunk(self, rows: NDArray[Any]) -> Iterator[NDArray[Any]]:
        """Yield each chunk of rows in its own dimensions, which may be all that NumPy has."""
        shape = (*self.chunk, *(stop - start for start, stop in self.panel.box))
        for start in range(0, len(rows), self.chunk_rows):
            yield rows[start : start + self.chunk_rows].reshape(shape)

    def _box(self, first: int) -> tuple[slice, ...]:
        corner = np.unravel_index(first // self.chunk_rows, self.grid) if self.grid else ()
        keyed = (
            slice(int(at) * c, min((int(at) + 1) * c, n))
            for at, c, n in zip(corner, self.chunk, self.array.shape, strict=False)
        )
        return (*keyed, *(slice(*part) for part in self.panel.box))


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

    Yields
    ------
    tuple
        `start` and `stop`, the part of `ordered` that the block serves, and the block.
    """
    if ordered.size == 0:
        return
    most = max(1, limit // max(1, table.width * table.dtype.itemsize))
    first, count = table.runs(distinct(ordered), most)
    batches = list(_batches(ordered, first, count, most))
    if len(batches) == 1:
        start, stop, runs = batches[0]
        yield start, stop, table.read(first[runs], count[runs])
        return
    # the next block is read while the last one is used
    with ThreadPoolExecutor(1) as reader:
        ahead = deque[tuple[int, int, Future[Block]]]()
        for start, stop, runs in batches:
            ahead.append((start, stop, reader.submit(table.read, first[runs], count[runs])))
            if len(ahead) > 1:
                yield _arrived(*ahead.popleft())
        while ahead:
            yield _arrived(*ahead.popleft())


def _arrived(start: int, stop: int, block: "Future[Block]") -> tuple[int, int, Block]:
    return start, stop, block.result()


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
