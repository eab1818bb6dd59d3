"""`open` returns a Table, which stays open for lookups, from any thread."""

import asyncio
import os
import threading
import weakref
from collections.abc import Callable, Generator, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from copy import copy
from time import perf_counter_ns
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from gatherum.conversion import as_boolean, as_integer
from gatherum.files.budget import size_of
from gatherum.files.formats.format import Location
from gatherum.files.handle.counts import Counts, TableStats
from gatherum.files.handle.state import FEW, RELOAD, Settings, State
from gatherum.files.operands import Held, Operand, find
from gatherum.files.remote import checked_options
from gatherum.files.stream import rows_of
from gatherum.names import ModeName

__all__ = ["Table", "open"]

Rows = NDArray[Any]
T = TypeVar("T")
READERS = 16
MOST_READERS = 1024


def open(
    table: Operand,
    *,
    cache: str | int = "0",
    readers: int | None = None,
    direct: bool = False,
    scales: Operand | None = None,
    zero_points: Operand | None = None,
    quantize_axis: int = -1,
    block_size: int | None = None,
    bits: int | None = None,
    dtype: Any = "float32",
    storage_options: Mapping[str, Any] | None = None,
) -> "Table":
    """Open a table for many lookups.

    Parameters
    ----------
    table : path or array
        As in `gather_file`.
    cache : str or int
        Bytes of memory for the rows that are asked for most, such as ``"256MiB"``.
    readers : int, optional
        How many threads serve `Table.submit`, `Table.gather_async` and `Table.prefetch`; 16 by
        default. They are started when they are needed. With `direct`, as many reads of a call are
        in flight.
    direct : bool
        Whether rows go past the system's page cache (``O_DIRECT``), for a table much larger than
        memory with a row cache of its own. Only files on this machine whose rows lie in one piece
        can be read so, and only by `Table.gather` along the first axis.
    scales : path or array, optional
        The scales of a quantized table, whose rows `Table.gather` then dequantizes as
        `gatherum.gather_quantized` does. Its `shape` is that of the values, its `dtype` that of the
        results, and it has neither `Table.gather_nd` nor `Table.gather_elements`.
    zero_points : path or array, optional
        As in `gatherum.gather_quantized`; so are the following.
    quantize_axis : int, default -1
        The axis whose blocks share a scale.
    block_size : int, optional
        How many values share a scale. It may be left out where the number of scales divides that
        of the values.
    bits : {2, 4, 8}, optional
        How many bits a value has.
    dtype : {"float32", "float16", "bfloat16"}, default "float32"
        The dtype of the results.
    storage_options : mapping, optional
        As in `gather_file`.

    Returns
    -------
    Table
        A context manager; its method ``close`` closes the table, too.

    Raises
    ------
    TypeError, ValueError, OSError
        As `gather_file` for its table; ValueError also for a cache that holds no row.

    Examples
    --------
    >>> import numpy as np
    >>> with open(np.arange(8.0).reshape(4, 2)) as table:
    ...     print(table.gather([3, 0]).tolist())
    [[6.0, 7.0], [0.0, 1.0]]
    """
    if scales is None:
        if zero_points is not None:
            raise ValueError("open: `zero_points` must be None without `scales`")
        return Table(table, cache, readers, direct, storage_options)
    from gatherum.files.handle.quantized import QuantizedTable

    how = {"quantize_axis": quantize_axis, "block_size": block_size, "bits": bits, "dtype": dtype}
    plain = table, cache, readers, direct, storage_options
    return QuantizedTable(*plain, scales, zero_points, how)


class Table:
    """A table that stays open; `open` returns it. Threads may share it.

    It pickles by its path, is usable after a fork, and never maps its file into memory. Every call
    after the table was replaced, removed or written raises OSError, until `reload` opens it again;
    a change is noticed within 10 ms, at a URL within a second.

    Attributes
    ----------
    shape : tuple of int
        The table's shape.
    dtype : numpy.dtype
        The dtype of its elements.
    nbytes : int
        The bytes of all elements.
    path : str
        The file's absolute path, or its URL without credentials; "" for an array.
    """

    def __init__(
        self,
        table: Operand,
        cache: str | int,
        readers: int | None,
        direct: bool,
        storage_options: Mapping[str, Any] | None,
    ) -> None:
        self._where: Location | Held = find("table", table, "open")
        if isinstance(self._where, Location):
            self._where.require()
        self._given = table if isinstance(self._where, Held) else os.fspath(table)
        if isinstance(self._where, Location) and self._where.remote is None:
            self._given = self._where.path + self._where.text[len(self._where.file) :]
        options, nbytes = checked_options(storage_options), size_of("cache", cache)
        count = READERS if readers is None else as_integer("open", "readers", readers)
        if not 1 <= count <= MOST_READERS:
            raise ValueError(f"open: `readers` must be from 1 to {MOST_READERS}, got {count}")
        self._settings = Settings(nbytes, count, as_boolean("open", "direct", direct), options)
        self._counts, self._lock = Counts(), threading.Lock()
        self._pool: ThreadPoolExecutor | None = None
        self._closing = False
        self._before: dict[str, Any] | None = None  # in a child, what the parent had opened
        self._state: State | None = self._new_state()
        TABLES.add(self)

    def _new_state(self) -> State:
        return State(self._where, self._settings)

    # ------------------------------------------------------------ what it is

    @property
    def shape(self) -> tuple[int, ...]:
        """The table's shape."""
        return self._opened("shape").table.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of its elements."""
        return self._opened("dtype").table.dtype

    @property
    def nbytes(self) -> int:
        """The bytes of all elements."""
        return self._opened("nbytes").table.nbytes

    @property
    def path(self) -> str:
        """The file's absolute path."""
        return self._where.path

    def __repr__(self) -> str:
        state = self._state
        if state is None:
            return f"<closed Table {self._where}>"
        return f"<Table {self._where}: {state.table.dtype} {state.table.shape}>"

    def stats(self) -> TableStats:
        """Return what the table was asked for since it was opened, and how long calls took.

        Returns
        -------
        TableStats
            Requests, rows, bytes, hits and misses of the row cache, and percentiles.
        """
        state = self._opened("stats")
        return self._counts.stats(state.meter.bytes_read, *state.cached())

    # --------------------------------------------------------------- lookups

    def gather(
        self,
        indices: Operand,
        axis: int = 0,
        *,
        mode: ModeName = "raise",
        negative: bool = True,
        fill_value: Any = 0,
        out: Any = None,
    ) -> Any:
        """Take slices along `axis`, as `gatherum.gather` does.

        Parameters
        ----------
        indices : path or array
            As in `gather_file`.
        axis, mode, negative, fill_value
            As in `gatherum.gather`.
        out : ndarray or tensor, optional
            Where the result goes: an array, or a tensor of PyTorch in this processor's memory, of
            its shape and dtype. It is not changed where an index is refused; after an OSError its
            content is unspecified.

        Returns
        -------
        ndarray
            The result, or `out`.

        Raises
        ------
        TypeError, ValueError, IndexError
            As `gatherum.gather`; ValueError also for a closed table.
        OSError
            The table cannot be read, or changed since it was opened.
        """
        begun = perf_counter_ns()
        state = self._opened("gather")
        found: Rows | None = None
        if type(axis) is int and axis == 0:
            if type(indices) is not np.ndarray:
                where = find("indices", indices)
                indices = where.array if isinstance(where, Held) else where
            if type(indices) is np.ndarray:
                found = state.rows(indices, mode, negative, fill_value, out)
        if found is None:
            attributes = {"axis": axis, "mode": mode, "negative": negative}
            return self._gather_by("gather", indices, attributes, fill_value, out)
        return self._finish(state, found, indices.size, begun, out)

    def gather_nd(
        self,
        indices: Operand,
        batch_dims: int = 0,
        *,
        mode: ModeName = "raise",
        negative: bool = True,
        fill_value: Any = 0,
        out: Any = None,
    ) -> Any:
        """Take the sub-array that each index tuple names, as `gatherum.gather_nd` does.

        Parameters
        ----------
        indices, out
            As in `gather`.
        batch_dims, mode, negative, fill_value
            As in `gatherum.gather_nd`.

        Returns
        -------
        ndarray
            The result, or `out`.
        """
        attributes = {"batch_dims": batch_dims, "mode": mode, "negative": negative}
        return self._gather_by("gather_nd", indices, attributes, fill_value, out)

    def gather_elements(
        self,
        indices: Operand,
        axis: int = 0,
        *,
        mode: ModeName = "raise",
        negative: bool = True,
        fill_value: Any = 0,
        out: Any = None,
    ) -> Any:
        """Take one element for each element of `indices`, as `gatherum.gather_elements` does.

        Parameters
        ----------
        indices, out
            As in `gather`.
        axis, mode, negative, fill_value
            As in `gatherum.gather_elements`.

        Returns
        -------
        ndarray
            The result, or `out`.
        """
        attributes = {"axis": axis, "mode": mode, "negative": negative}
        return self._gather_by("gather_elements", indices, attributes, fill_value, out)

    def _gather_by(
        self, op: str, indices: Operand, attributes: dict[str, Any], fill_value: object, out: Any
    ) -> Any:
        begun, state = perf_counter_ns(), self._opened(op)
        found, rows = state.lookups.gather(op, indices, attributes, fill_value, out)
        return self._finish(state, found, rows, begun, out)

    def _finish(self, state: State, found: Rows, rows: int, begun: int, out: Any) -> Any:
        state.check()
        self._counts.add(rows, found.nbytes, perf_counter_ns() - begun)
        return found if out is None else out

    def rows(
        self,
        batches: Iterable[Any],
        axis: int = 0,
        *,
        mode: ModeName = "raise",
        negative: bool = True,
        fill_value: Any = 0,
    ) -> Generator[Rows, None, None]:
        """Yield the slices that each batch of indices names, as `gatherum.files.rows` does.

        Parameters
        ----------
        batches : iterable
            Index arrays; it is iterated in a thread of its own, ahead of what has been yielded.
        axis, mode, negative, fill_value
            As in `gather`.

        Yields
        ------
        ndarray
            The rows of one batch, in memory of its own.
        """
        attributes = {"axis": axis, "mode": mode, "negative": negative}
        state = self._opened("rows")
        return _kept_open(state, rows_of(copy(state.lookups), batches, attributes, fill_value))

    # ----------------------------------------------------------- in the background

    def submit(self, indices: Operand, axis: int = 0, **options: Any) -> "Future[Any]":
        """Begin a gather, and return at once.

        Rows that are in the page cache are read before it returns, without a thread.

        Parameters
        ----------
        indices, axis
            As in `gather`. Arrays are copied.
        **options
            `mode`, `negative`, `fill_value` and `out` of `gather`.

        Returns
        -------
        concurrent.futures.Future
            Its result, or its error, is that of `gather`.
        """
        state, where = self._opened("submit"), find("indices", indices)
        taken: Any = where
        if isinstance(where, Held):
            taken = np.array(where.array)
            if state.are_resident(taken, axis):
                return _done(self.gather, taken, axis, **options)
        return self._start(self.gather, taken, axis, **options)

    async def gather_async(self, indices: Operand, axis: int = 0, **options: Any) -> Any:
        """Gather without keeping the event loop waiting.

        Parameters
        ----------
        indices, axis, **options
            As in `submit`.

        Returns
        -------
        ndarray
            The result of `gather`.
        """
        return await asyncio.wrap_future(self.submit(indices, axis, **options))

    def prefetch(self, indices: Operand) -> None:
        """Begin to read rows that will be asked for, and return at once.

        They go to the row cache, and those of a file on this machine to the system's page cache.
        Of a table without either, as one at a URL without a row cache, nothing is kept.

        Parameters
        ----------
        indices : array_like of int
            Numbers of rows, as in `gather` with its defaults.

        Raises
        ------
        TypeError, IndexError
            As `gather`.
        """
        state = self._opened("prefetch")
        numbers = state.numbers(indices)
        if numbers.size <= FEW:
            state.expect(numbers)
        else:  # which takes its time
            self._start(state.expect, numbers)
        if state.cache is not None:
            self._start(state.fill, numbers)

    def _start(self, call: Callable[..., T], *arguments: Any, **options: Any) -> "Future[T]":
        with self._lock:
            if self._closing:
                raise self._closed("submit")
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self._settings.readers, "gatherum-reader")
            return self._pool.submit(call, *arguments, **options)

    # ------------------------------------------------------------ opened and closed

    def _opened(self, name: str) -> State:
        if (state := self._state) is None:
            state = self._opened_again(name)
        return state

    def _closed(self, name: str) -> ValueError:
        return ValueError(f"{name}: the table {self._where} is closed")

    def _opened_again(self, name: str) -> State:
        """Open in a child what its parent has opened; raise ValueError for a closed table."""
        if self._before is None:
            raise self._closed(name)
        state = self._new_state()
        if state.table.state() != self._before:
            error = OSError(f"{self._where}: changed since the parent process opened it")
            error.add_note(RELOAD)
            raise error
        self._state, self._before = state, None
        return state

    def reload(self) -> None:
        """Open the table again, as it is now; the row cache is emptied.

        Calls in other threads that have begun end with the old one, or with its error.

        Raises
        ------
        TypeError, ValueError, OSError
            As `open`; the table then stays as it is.
        """
        if self._before is None:
            self._opened("reload")
        state = self._new_state()
        with self._lock:
            self._state, self._before = state, None

    def close(self) -> None:
        """Wait for submitted calls, and close the table; further calls do nothing."""
        with self._lock:
            self._closing = True
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown()
        self._state = self._before = None

    def __enter__(self) -> "Table":
        self._opened("with")
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Callable[..., "Table"], tuple[Any, ...]]:
        """Pickle how to open it again; `storage_options` and the password of a URL are in it."""
        self._opened("pickle")
        return Table, (self._given, *self._settings)

    def _after_fork(self) -> None:
        """Leave to the parent what a child has not: threads, and locks that they hold."""
        self._lock, self._pool = threading.Lock(), None
        self._counts = Counts()
        if self._state is not None:
            self._before, self._state = self._state.table.state(), None


def _kept_open(state: State, rows: Generator[Rows, None, None]) -> Generator[Rows, None, None]:
    """Yield rows; the generator holds what they are read from."""
    try:
        yield from rows
    finally:
        del state


def _done(call: Callable[..., T], *arguments: Any, **options: Any) -> "Future[T]":
    """Run a call, and return its outcome as a future."""
    future = Future[T]()
    try:
        future.set_result(call(*arguments, **options))
    except Exception as error:
        future.set_exception(error)
    return future


TABLES = weakref.WeakSet[Table]()


def _after_fork() -> None:
    for table in list(TABLES):
        table._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
