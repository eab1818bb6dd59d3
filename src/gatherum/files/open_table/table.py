"""A Table stays open for lookups, from any thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future
from contextlib import closing
from time import perf_counter_ns
from typing import Any, Never, TypeVar

import numpy as np
from numpy.typing import NDArray

from gatherum._model.errors import unknown_argument
from gatherum._model.modes import ModeName
from gatherum._system.native import gather_in_memory
from gatherum.files.arguments.operands import ArrayOperand, Operand, find_operand
from gatherum.files.stream import rows_of

from .counts import TableStats, stats_of
from .lifetime import Handle
from .state import FEW, State
from .tensors import TensorTarget

Rows = NDArray[Any]
T = TypeVar("T")


class Table(Handle):
    """A table that stays open between gathers, as `open` returns it. Threads may share a table.

    A pickled table contains no rows. It contains the arguments of `open`: the path,
    `storage_options`, and the password of a URL. A table can be used after a fork, and its file is
    never mapped into memory. After the file has been replaced, removed, or written by means other
    than `write`, every call raises OSError until `reload` opens the file again. A change is
    detected within 10 ms, or within a second at a URL.

    Attributes
    ----------
    shape : tuple of int
        The table's shape.
    dtype : numpy.dtype
        The dtype of its elements.
    nbytes : int
        The size of all elements in bytes.
    version : int
        The number of times that `reload` or `follow` has opened a new file.
    path : str
        The file's absolute path, or its URL without credentials; "" for an array.
    """

    def stats(self) -> TableStats:
        """Return the number of requests since the table was opened, and their times.

        Returns
        -------
        TableStats
            Requests, rows, bytes, hits and misses of the row cache, and percentiles.
        """
        state = self._opened("stats")
        return stats_of(self._counts, state.meter.bytes_read, *state.cached())

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
        device: Any = None,
        **unknown: Never,
    ) -> Any:
        """Take slices along `axis`, as `gatherum.gather` does.

        Parameters
        ----------
        indices : path or array
            As in `gather_file`.
        axis, mode, negative, fill_value
            As in `gatherum.gather`.
        out : ndarray or tensor, optional
            The memory for the result: an array, or a PyTorch tensor in CPU memory, of the result's
            shape and dtype. It is not changed if an index raises an error. After an OSError its
            content is unspecified.
        device : str or torch.device, optional
            Return a PyTorch tensor on this device instead of an array. Rows for a CUDA device are
            read into pinned memory and copied on PyTorch's current stream.

        Returns
        -------
        ndarray or tensor
            The result, or `out`.

        Raises
        ------
        TypeError, ValueError, IndexError
            As in `gatherum.gather`. Also ValueError if the table is closed. Also TypeError if
            PyTorch lacks the dtype.
        ImportError
            If `device` is given and PyTorch is not installed.
        OSError
            If the table cannot be read, or has changed since it was opened.
        """
        state = self._state
        if state is not None and state.memory is not None and device is None and not unknown:
            result = gather_in_memory(
                state.memory, self._counts, indices, axis, mode, negative, fill_value, out
            )
            if result is not None:
                return result
        if unknown:
            raise unknown_argument("gather", unknown)
        begun, state = perf_counter_ns(), self._opened("gather")
        attributes = {"axis": axis, "mode": mode, "negative": negative}
        if device is None:
            return self._gathered(state, begun, indices, attributes, fill_value, out)
        if out is not None:
            raise ValueError("gather: pass either `out` or `device`, not both")
        target = TensorTarget.of("gather", device, state.dtype)
        shape = state.result_shape(indices, attributes) if target.is_cuda else None
        if shape is None:
            rows = self._gathered(state, begun, indices, attributes, fill_value, None)
            return target.tensor(rows)
        memory = target.pinned(shape)
        self._gathered(state, begun, indices, attributes, fill_value, memory)
        return target.sent(memory)

    def _gathered(
        self,
        state: State,
        begun: int,
        indices: Operand,
        attributes: dict[str, Any],
        fill_value: object,
        out: Any,
    ) -> Any:
        """Return the result of a gather that began at `begun`, or `out`."""
        axis, mode, negative = attributes.values()
        result: Rows | None = None
        if type(axis) is int and axis == 0:
            if type(indices) is not np.ndarray:
                where = find_operand("indices", indices)
                indices = where.array if isinstance(where, ArrayOperand) else where
            if type(indices) is np.ndarray:
                result = state.read(state.rows, indices, mode, negative, fill_value, out)
        if result is None:
            return self._looked_up("gather", state, begun, indices, attributes, fill_value, out)
        return self._finish(result, indices.size, begun, out)

    def gather_nd(
        self,
        indices: Operand,
        batch_dims: int = 0,
        *,
        mode: ModeName = "raise",
        negative: bool = True,
        fill_value: Any = 0,
        out: Any = None,
        **unknown: Never,
    ) -> Any:
        """Take the sub-array that each index tuple addresses, as `gatherum.gather_nd` does.

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
        if unknown:
            raise unknown_argument("gather_nd", unknown, has_axis=False)
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
        **unknown: Never,
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
        if unknown:
            raise unknown_argument("gather_elements", unknown)
        attributes = {"axis": axis, "mode": mode, "negative": negative}
        return self._gather_by("gather_elements", indices, attributes, fill_value, out)

    def _gather_by(
        self, op: str, indices: Operand, attributes: dict[str, Any], fill_value: object, out: Any
    ) -> Any:
        begun, state = perf_counter_ns(), self._opened(op)
        return self._looked_up(op, state, begun, indices, attributes, fill_value, out)

    def _looked_up(
        self,
        op: str,
        state: State,
        begun: int,
        indices: Operand,
        attributes: dict[str, Any],
        fill_value: object,
        out: Any,
    ) -> Any:
        gather = state.lookups.gather
        result, rows = state.read(gather, op, indices, attributes, fill_value, out)
        return self._finish(result, rows, begun, out)

    def _finish(self, result: Rows, rows: int, begun: int, out: Any) -> Any:
        self._counts.add(rows, result.nbytes, perf_counter_ns() - begun)
        return result if out is None else out

    def rows(
        self,
        batches: Iterable[Any],
        axis: int = 0,
        *,
        mode: ModeName = "raise",
        negative: bool = True,
        fill_value: Any = 0,
        device: Any = None,
        **unknown: Never,
    ) -> Generator[Any, None, None]:
        """Yield the slices at each batch of indices, as `gatherum.files.rows` does.

        Parameters
        ----------
        batches : iterable
            Index arrays. A separate thread iterates over them, ahead of the yielded rows.
        axis, mode, negative, fill_value, device
            As in `gather`.

        Yields
        ------
        ndarray or tensor
            The rows of one batch, in separate memory.
        """
        if unknown:
            raise unknown_argument("rows", unknown)
        attributes = {"axis": axis, "mode": mode, "negative": negative}
        state = self._opened("rows")
        target = None if device is None else TensorTarget.of("rows", device, state.dtype)
        source, memory = state.source(attributes, fill_value), state.lookups.resources.budget.total
        # other calls may read the same table, so no read is cancelled
        return self._until_closed(rows_of(source, batches, memory, stop=lambda: None), target)

    def _until_closed(
        self, rows: Generator[Rows, None, None], target: TensorTarget | None
    ) -> Generator[Any, None, None]:
        """Yield rows until the table is closed."""
        with closing(rows):
            for batch in rows:
                if self._closing:
                    raise self._closed("rows")
                yield batch if target is None else target.tensor(batch)

    # ----------------------------------------------------------------- writes

    def write(self, indices: Operand, rows: Operand) -> None:
        """Write rows of the table's file in place.

        Calls of this table in other threads return each row as it was before or after the write,
        never a mixture. The index values, the shapes and the dtypes are checked before anything is
        written.

        Parameters
        ----------
        indices : path or array
            The row numbers, as in `gather` with its defaults. If a number occurs more than once,
            the last of its rows is written.
        rows : path or array
            The new rows: an array of the table's dtype and of shape
            ``indices.shape + table.shape[1:]``, or one that broadcasts to it.

        Raises
        ------
        TypeError, ValueError, IndexError
            As in `gatherum.scatter_slices`. Also ValueError if the table is closed or cannot be
            written: rows are written only in local ``.npy``, ``.safetensors`` and contiguous HDF5
            files.
        NotImplementedError
            For a quantized table.
        OSError
            If the table cannot be written, or has changed since it was opened. If the system stops
            the write, some rows may have been written.

        Notes
        -----
        The rows are written to the system's page cache. A process that is killed during a write,
        or a power failure after it, may leave some rows unwritten.
        `gatherum.files.scatter_slices_file` with ``in_place=True`` is safe in both cases.

        For other tables and other processes that have opened the file, the write is a change to the
        file: their calls raise OSError until `reload`.
        """
        with self._writing:
            self._opened("write").write(indices, rows)

    # ----------------------------------------------------------- in the background

    def submit(self, indices: Operand, axis: int = 0, **options: Any) -> Future[Any]:
        """Begin a gather, and return immediately.

        Rows in the page cache are read before the method returns, without a thread.

        Parameters
        ----------
        indices, axis
            As in `gather`. Arrays are copied.
        **options
            `mode`, `negative`, `fill_value`, `out` and `device` of `gather`.

        Returns
        -------
        concurrent.futures.Future
            A future with the result or the error of `gather`.
        """
        return self._submit("submit", indices, axis, options)

    def _submit(
        self, name: str, indices: Operand, axis: int, options: dict[str, Any]
    ) -> Future[Any]:
        state, where = self._opened(name), find_operand("indices", indices)
        taken: Any = where
        if isinstance(where, ArrayOperand):
            taken = np.array(where.array)
            with state:
                resident = state.are_resident(taken, axis)
            if resident:
                return _done(self.gather, taken, axis, **options)
        return self._start(self.gather, taken, axis, called=name, **options)

    async def gather_async(self, indices: Operand, axis: int = 0, **options: Any) -> Any:
        """Gather without blocking the event loop.

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
        """Begin to read rows for later calls, and return immediately.

        The rows are read into the row cache. Rows of a local file are also read into the system's
        page cache. A table at a URL without a row cache keeps no rows.

        Parameters
        ----------
        indices : array_like of int
            Row numbers, as in `gather` with its defaults.

        Raises
        ------
        TypeError, IndexError, OSError
            As in `gather`.
        """
        state = self._opened("prefetch")
        with state:
            for part, row_numbers in state.parts(state.row_numbers(indices)):
                if row_numbers.size <= FEW:
                    part.expect(row_numbers)
                else:  # too slow for this thread
                    self._start(part.expect, row_numbers, called="prefetch")
                if part.cache is not None:
                    self._start(part.fill, row_numbers, called="prefetch")


def _done(call: Callable[..., T], *arguments: Any, **options: Any) -> Future[T]:
    """Run a call, and return its outcome as a future."""
    future = Future[T]()
    try:
        future.set_result(call(*arguments, **options))
    except Exception as error:
        future.set_exception(error)
    return future
