"""Rows of a table for consecutive batches of indices. The next batch is prefetched."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from itertools import accumulate
from typing import Any, NamedTuple, Never, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gatherum._arguments.plain_values import as_boolean
from gatherum._model.defaults import MEMORY
from gatherum._model.errors import unknown_argument
from gatherum._model.modes import ModeName
from gatherum.files.arguments.operands import ArrayOperand, Operand, Path, find_operand, open_all
from gatherum.files.batches import Batches, batch_note
from gatherum.files.formats.format import Location
from gatherum.files.formats.storage import unchanged
from gatherum.files.lookups import Lookups
from gatherum.files.resources.disk import PAGE
from gatherum.files.resources.resources import Resources
from gatherum.files.row_access.table import as_items, stopped_early

PAUSE = 1.0  # seconds between two checks that the table is unchanged
SHARE = 32  # the share of the memory for the rows of small batches in one call
CACHED = 2 << 20  # the bytes of a piece of rows of a page or more, because such rows share no page
Piece: TypeAlias = list[NDArray[Any]]


class PieceRows(NamedTuple):
    """The rows of a piece, which is several batches, and the error after them, if any."""

    rows: list[NDArray[Any]]
    error: Exception | None = None


def rows(
    table: Operand,
    batches: Iterable[Any],
    axis: int = 0,
    *,
    memory: str | int = MEMORY,
    mode: ModeName = "raise",
    negative: bool = True,
    fill_value: Any = 0,
    spill_dir: Path | None = None,
    decode: bool = True,
    storage_options: Mapping[str, Any] | None = None,
    **unknown: Never,
) -> Generator[NDArray[Any], None, None]:
    """Yield the slices of a table for each batch of indices, while the next batch is read.

    ``yield gather(table, batch, axis)`` for each `batch`, with the table opened once

    Parameters
    ----------
    table : path or array
        As in `gather_file`.
    batches : iterable
        Index arrays, each of any shape. A dedicated thread iterates over the batches. It is up to
        two batches ahead of the yielded rows, or up to 3072 if batches are small, because small
        batches are read together. A batch must not depend on rows of earlier ones, unless the
        iterator waits until it receives them. For one batch, pass ``[indices]``.
    axis, memory, mode, negative, fill_value, spill_dir, decode, storage_options
        As in `gather_file`.

    Yields
    ------
    ndarray
        The rows of one batch, in separate memory.

    Raises
    ------
    TypeError, ValueError, IndexError
        As in `gatherum.gather`, after the rows of all earlier batches have been yielded. A note
        contains the number of the batch.
    OSError
        If the table cannot be read, or has changed during the run.

    Notes
    -----
    The generator needs ``memory``, the rows of two batches (or an eighth of ``memory``, if they are
    smaller), and the indices of the waiting batches. It is closed, with the table, when it is
    deleted or by its method ``close``. The iterator may then have produced batches that are not
    yielded.

    Examples
    --------
    >>> import numpy as np
    >>> table = np.arange(8.0).reshape(4, 2)
    >>> for batch in rows(table, [[3, 0], [1]]):
    ...     print(batch.tolist())
    [[6.0, 7.0], [0.0, 1.0]]
    [[2.0, 3.0]]
    """
    if unknown:
        raise unknown_argument("rows", unknown)
    stack = ExitStack()
    decode = as_boolean("rows", "decode", decode)
    resources = Resources.of("rows", stack, memory, spill_dir, storage_options, decode=decode)
    attributes = {"axis": axis, "mode": mode, "negative": negative}
    location = find_operand("table", table, "rows")
    if isinstance(location, Location):
        location.require()
    return _opened(stack, resources, location, batches, attributes, fill_value)


def _opened(
    stack: ExitStack,
    resources: Resources,
    location: Location | ArrayOperand,
    batches: Iterable[Any],
    attributes: dict[str, Any],
    fill_value: object,
) -> Generator[NDArray[Any], None, None]:
    """Open the table, and yield the rows of each batch."""
    with stack:
        table = open_all({"table": location}, resources)["table"]
        lookups = WatchedLookups(Lookups(table, resources), attributes, fill_value)
        opened, axis = table.opened, attributes["axis"]
        source = RowSource(lookups.gather, table.shape, table.dtype, axis, opened.check_unchanged)
        yield from rows_of(source, batches, resources.budget.total, opened.stop)


class RowSource(NamedTuple):
    """Gathers the rows of a batch from an opened table.

    `shape` and `dtype` are the shape and dtype of the table for the results. `check` raises OSError
    if the table has changed.
    """

    gather: Callable[[NDArray[Any]], NDArray[Any]]
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    axis: Any
    check: Callable[[], object]


def rows_of(
    source: RowSource, batches: Iterable[Any], memory: int, stop: Callable[[], object]
) -> Generator[NDArray[Any], None, None]:
    """Yield the rows of each batch. `stop` cancels pending reads if the generator ends early."""
    row_bytes, most_bytes = _bytes_of_a_row(source), memory // SHARE
    if row_bytes >= PAGE:
        most_bytes = min(most_bytes, CACHED)
    with Batches(iter(batches), row_bytes, most_bytes) as fetched:
        yield from _read_ahead(fetched, Reader(source).read, stop)
    source.check()


def _read_ahead(
    batches: Batches, read_piece: Callable[[Piece], PieceRows], stop: Callable[[], object]
) -> Iterator[NDArray[Any]]:
    """Yield rows. The next batches are read while these are used."""
    with ThreadPoolExecutor(1) as thread, stopped_early(stop):
        reading: Future[PieceRows] | None = None
        while reading is not None or (piece := batches.next_piece()):
            piece_rows = (reading or thread.submit(read_piece, piece)).result()
            reading = None
            for rows_of_one in piece_rows.rows:
                if reading is None and (piece := batches.next_piece(wait=False)):
                    reading = thread.submit(read_piece, piece)
                yield rows_of_one
            if piece_rows.error is not None:
                raise piece_rows.error


class Reader:
    """Gathers groups of batches from one table."""

    def __init__(self, source: RowSource) -> None:
        self.source, self.batches_read = source, 0

    def read(self, piece: Piece) -> PieceRows:
        """Gather all batches of a piece together, or one by one if that raises an error."""
        first, self.batches_read = self.batches_read, self.batches_read + len(piece)
        gather = self.source.gather
        if len(piece) > 1:
            try:
                rows = gather(np.concatenate([indices.reshape(-1) for indices in piece]))
                return PieceRows(_split_by_batch(rows, piece, range(rows.ndim)[self.source.axis]))
            except Exception:  # the batch with the error raises it in its turn
                pass
        piece_rows = PieceRows([])
        for indices in piece:
            try:
                piece_rows.rows.append(gather(indices))
            except Exception as error:
                error.add_note(batch_note(first + len(piece_rows.rows)))
                return piece_rows._replace(error=error)
        return piece_rows


class WatchedLookups:
    """The lookups of a call that opens its table itself, and checks that the table is unchanged."""

    def __init__(self, lookups: Lookups, attributes: dict[str, Any], fill_value: object) -> None:
        self.lookups, self.attributes, self.fill_value = lookups, attributes, fill_value
        self.checked = time.monotonic()

    def gather(self, indices: NDArray[Any]) -> NDArray[Any]:
        """Gather the rows of one array of indices."""
        if time.monotonic() - self.checked > PAUSE:
            self.lookups.table.opened.check_unchanged()
            self.checked = time.monotonic()
        with unchanged([self.lookups.table]):
            return self.lookups.gather("gather", indices, self.attributes, self.fill_value)[0]


def _bytes_of_a_row(source: RowSource) -> int:
    """Return the size of one index's row in bytes. The call itself raises for an invalid axis."""
    shape = list(source.shape)
    with suppress(IndexError, TypeError):
        del shape[source.axis]
    return math.prod(shape) * source.dtype.itemsize


def _split_by_batch(rows: NDArray[Any], piece: Piece, axis: int) -> list[NDArray[Any]]:
    """Return the rows of each batch, in separate memory."""
    before, after = rows.shape[:axis], rows.shape[axis + 1 :]
    ends = list(accumulate(indices.size for indices in piece))
    rows_by_batch = np.split(as_items(rows), ends[:-1], axis)
    return [
        np.array(batch_rows, order="C").view(rows.dtype).reshape(before + indices.shape + after)
        for batch_rows, indices in zip(rows_by_batch, piece, strict=True)
    ]
