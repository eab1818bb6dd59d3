"""A Table stays open for lookups, from any thread."""

import asyncio
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future
from contextlib import closing
from time import perf_counter_ns
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from gatherum._model.modes import ModeName
from gatherum.files.arguments.operands import Held, Operand, find_operand
from gatherum.files.stream import rows_of

from .counts import TableStats
from .lifetime import Handle
from .state import FEW

__all__ = ["Table"]

Rows = NDArray[Any]
T = TypeVar("T")


class Table(Handle):
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
                where = find_operand("indices", indices)
                indices = where.array if isinstance(where, Held) else where
            if type(indices) is np.ndarray:
                with state:
                    found = state.rows(indices, mode, negative, fill_value, out)
        if found is None:
            attributes = {"axis": axis, "mode": mode, "negative": negative}
            return self._gather_by("gather", indices, attributes, fill_value, out)
        return self._finish(found, indices.size, begun, out)

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
        with state:
            found, rows = state.lookups.gather(op, indices, attributes, fill_value, out)
        return self._finish(found, rows, begun, out)

    def _finish(self, found: Rows, rows: int, begun: int, out: Any) -> Any:
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
        source, memory = state.source(attributes, fill_value), state.lookups.opening.budget.total
        # other calls may read the same table: none of its reads is cancelled
        return self._until_closed(rows_of(source, batches, memory, stop=lambda: None))

    def _until_closed(self, rows: Generator[Rows, None, None]) -> Generator[Rows, None, None]:
        """Yield rows until the table is closed."""
        with closing(rows):
            for found in rows:
                if self._closing:
                    raise self._closed("rows")
                yield found

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
        return self._submit("submit", indices, axis, options)

    def _submit(
        self, name: str, indices: Operand, axis: int, options: dict[str, Any]
    ) -> "Future[Any]":
        state, where = self._opened(name), find_operand("indices", indices)
        taken: Any = where
        if isinstance(where, Held):
            taken = np.array(where.array)
            with state:
                resident = state.are_resident(taken, axis)
            if resident:
                return _done(self.gather, taken, axis, **options)
        return self._start(self.gather, taken, axis, called=name, **options)

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
        TypeError, IndexError, OSError
            As `gather`.
        """
        state = self._opened("prefetch")
        with state:
            for part, numbers in state.parts(state.numbers(indices)):
                if numbers.size <= FEW:
                    part.expect(numbers)
                else:  # which takes its time
                    self._start(part.expect, numbers, called="prefetch")
                if part.cache is not None:
                    self._start(part.fill, numbers, called="prefetch")


def _done(call: Callable[..., T], *arguments: Any, **options: Any) -> "Future[T]":
    """Run a call, and return its outcome as a future."""
    future = Future[T]()
    try:
        future.set_result(call(*arguments, **options))
    except Exception as error:
        future.set_exception(error)
    return future
