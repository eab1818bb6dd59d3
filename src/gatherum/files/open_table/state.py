"""The state of an open table: its file, and the reader of its rows."""

from __future__ import annotations

import sys
import time
import weakref
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from copy import copy
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from gatherum._arguments import array_likes, conversion
from gatherum._arguments.indices import first_invalid, resolve
from gatherum._frameworks import registry
from gatherum._model import errors
from gatherum._model.modes import FILLING, MODES
from gatherum._plans.plans import plan
from gatherum._system import native
from gatherum.files.arguments.operands import ArrayOperand, Operand, find_operand, open_all
from gatherum.files.arguments.receivers import Receiver
from gatherum.files.formats.format import Location
from gatherum.files.formats.storage import check_unchanged
from gatherum.files.lookups import Lookups
from gatherum.files.remote import ServerError
from gatherum.files.resources.resources import Resources
from gatherum.files.stream import RowSource

from .kept_chunks import keeping_chunks
from .row_reads import CALL, OtherReads, cache_of, reads_of
from .writes import WriteLock, write_rows

Ints = NDArray[np.int64]
T = TypeVar("T")
FEW = 4096  # maximum rows of a call that are read directly to the result; larger calls are planned
SOON, SOON_BYTES = 256, 256 << 10  # maximum rows in memory to read without a thread
FILLED = 8 << 20  # bytes of rows that are added to the cache together
NEAR, FAR = 0.01, 1.0  # seconds between two checks that the table is unchanged: local, at a URL
INT64 = np.dtype(np.int64)
RELOAD = "Table.reload opens it again"


def _is_plain(mode: object, negative: object, fill_value: object) -> bool:
    """Return True if the attributes are valid, and the fill value is 0 if the mode uses it."""
    if mode != "raise":
        if type(mode) is not str or mode not in MODES:
            return False
        if mode in FILLING and (type(fill_value) is not int or fill_value != 0):
            return False
    return negative is True or negative is False


def _row_numbers_of(indices: NDArray[Any]) -> Ints | None:
    """Return indices as a flat, contiguous array of int64, or None if the dtype does not fit."""
    dtype = indices.dtype
    if dtype is not INT64:
        if dtype.kind not in "iu" or (dtype.kind == "u" and dtype.itemsize == INT64.itemsize):
            return None
        indices = indices.astype(INT64)
    if indices.ndim != 1:
        indices = indices.reshape(-1)
    return indices if indices.flags.c_contiguous else indices.copy()


class Settings(NamedTuple):
    """The settings of a table: the checked arguments of `open`."""

    cache: int
    readers: int
    direct: bool
    storage_options: Mapping[str, Any]
    decode: bool = True
    follow: bool = False


class State:
    """An opened table, which is closed when it has no more users."""

    def __init__(self, where: Location | ArrayOperand, settings: Settings) -> None:
        with ExitStack() as stack:
            options, decode = settings.storage_options, settings.decode
            resources = Resources.of("open", stack, storage_options=options, decode=decode)
            table = open_all({"table": where}, resources)["table"]
            self.table = keeping_chunks(table, resources.budget.window)
            self.shape, self.dtype = self.table.shape, self.table.dtype
            self.lookups, self.meter = Lookups(self.table, resources), resources.meter
            self.reads = reads_of(self.table, self.lookups, settings.readers, settings.direct)
            # a running call keeps its files open
            self._files = stack.pop_all()
        weakref.finalize(self, self._files.close).atexit = False
        self.cache: native.RowCache | None = None
        rows = self.table.shape[0] if self.reads is not None else 1
        self._item = self.table.nbytes // rows
        in_memory = isinstance(where, ArrayOperand) and array_likes.is_plain(where.array)
        if settings.cache and self.reads is not None and not in_memory:
            self.cache = cache_of(settings.cache, rows, self._item)
        array = where.array if isinstance(where, ArrayOperand) and in_memory else None
        self.memory = self._memory_table(array)
        kept = self.cache is not None or not isinstance(self.reads, OtherReads)
        self._quick = kept and self.reads is not None
        self._row_shape = self.table.shape[1:]
        self._most = sys.maxsize if settings.direct else FEW
        remote = isinstance(where, Location) and where.remote is not None
        self._pause, self._due = FAR if remote else NEAR, 0.0
        self._follows = settings.follow
        self._writes = WriteLock(self.memory)
        self.is_replaced = False  # whether the path has another file, which is to be followed

    def _memory_table(self, array: NDArray[Any] | None) -> native.MemoryTable | None:
        """Return the rows for the core, if all of them fit in memory."""
        if array is not None:
            array = array.view(np.ndarray)
        elif self.cache is None or not self.cache.holds_table:
            return None
        return native.make_memory_table(array, self.cache, self.dtype, self.shape[1:])

    def __enter__(self) -> None:
        """Begin a call on the table."""

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        """Raise OSError, even in place of another error, if the table has changed.

        The bytes of a changing table may be damaged. As in `unchanged` of formats/storage.py, an
        IndexError does not depend on them.
        """
        if error is None or isinstance(error, IndexError):
            self.check()
        elif isinstance(error, Exception) and not isinstance(error, ServerError):
            self.check(now=True)

    def check(self, now: bool = False) -> None:
        """Raise OSError if the table was replaced, removed or written since it was opened.

        Without `now`, skip the check if the last one was shortly before.
        """
        time_now = time.monotonic()
        if time_now < self._due and not now:
            return
        try:
            self._check_parts()
        except ServerError:
            raise
        except OSError:
            with self._writes.lock:  # otherwise `write` may be changing the file
                self._check_changed()
        self._set_due(time_now + self._pause)

    def _set_due(self, due: float) -> None:
        """Set the time of the next check. Until then, the core runs calls without Python."""
        self._due = due
        if self.memory is not None and not self.is_replaced:
            self.memory.allow(due - time.monotonic())

    def _check_parts(self) -> None:
        check_unchanged([part.table for part in self.opened_parts])

    def _check_changed(self) -> None:
        try:
            self._check_parts()
        except OSError as error:
            self._set_due(0.0)
            if not (self._follows and all(p.table.opened.is_intact() for p in self.opened_parts)):
                error.add_note(RELOAD)
                raise
            self.is_replaced = True

    @property
    def opened_parts(self) -> tuple[State, ...]:
        """The arrays that lookups read, the table first."""
        return (self,)

    def source(self, attributes: dict[str, Any], fill_value: object) -> RowSource:
        """Return the source of rows for consecutive batches."""
        gather, check = self.gatherer(attributes, fill_value), partial(self.check, now=True)
        return RowSource(gather, self.shape, self.dtype, attributes["axis"], check)

    def gatherer(
        self, attributes: dict[str, Any], fill_value: object
    ) -> Callable[[NDArray[Any]], NDArray[Any]]:
        """Return a function that gathers with these arguments in every call, for one thread."""
        lookups = copy(self.lookups)

        def gather(indices: NDArray[Any]) -> NDArray[Any]:
            return self.read(lookups.gather, "gather", indices, attributes, fill_value)[0]

        return gather

    def read(self, call: Callable[..., T], *arguments: Any) -> T:
        """Return the result of a call that reads all its rows either before or after each `write`.

        Raise OSError if the table has changed.
        """
        with self:
            return self._writes.read(call, *arguments)

    def write(self, indices: Operand, rows: Operand) -> None:
        """Write rows. Raise OSError, before anything is written, if the table has changed."""
        self.check(now=True)
        if self.is_replaced:
            raise OSError(f"{self.table.location}: was replaced, and the new file is not open yet")
        write_rows(self.table, self.lookups.resources, self._writes, indices, rows, self._forget)

    def _forget(self, row_numbers: Ints) -> None:
        if self.cache is not None:
            self.cache.forget(row_numbers)

    def version(self) -> Any:
        """Return the versions of the open arrays, to compare them."""
        return [part.table.state() for part in self.opened_parts]

    def result_shape(self, indices: Operand, attributes: dict[str, Any]) -> tuple[int, ...] | None:
        """Return the shape of a gather's result, or None if the indices are not in memory."""
        where = find_operand("indices", indices)
        if not isinstance(where, ArrayOperand) or not array_likes.is_plain(where.array):
            return None
        values = conversion.as_indices("gather", where.array)
        return plan("gather", (self.shape, self.table.dtype), values, **attributes).shape

    def taken(self, row_numbers: Ints, axis: int) -> NDArray[Any]:
        """Return the slices at some valid indices."""
        slices = self.rows(row_numbers, "raise", False, 0, None) if axis == 0 else None
        if slices is None:
            slices, _ = self.lookups.gather("gather", row_numbers, {**CALL, "axis": axis}, 0)
        return slices

    def cached(self) -> tuple[int, int, int]:
        """Return the hits and misses of the row cache, and the size of its rows in bytes."""
        cache = self.cache
        if cache is None:
            return 0, 0, 0
        return cache.hits, cache.misses, cache.cached_rows * self._item

    def row_numbers(self, indices: Operand) -> Ints:
        """Return the rows of indices, sorted and distinct. Raise the same errors as a gather."""
        values = conversion.as_indices("gather", registry.spec("gather", "indices", indices))
        plan("gather", (self.shape, self.table.dtype), values)
        size = self.shape[0]
        invalid = first_invalid(values, (size,), "raise", True, False)
        if invalid is not None:
            raise errors.index_out_of_bounds(
                "gather", invalid.value, 0, size, invalid.where, "raise"
            )
        return np.unique(resolve(values.reshape(-1), size, "raise", True)[0])

    def are_resident(self, indices: NDArray[Any], axis: object) -> bool:
        """Return True if a gather of these rows is probably served from memory."""
        reads, plain = self.reads, type(axis) is int and axis == 0
        if reads is None or not plain or indices.dtype.kind not in "iu":
            return False
        if indices.size > SOON or indices.size * self._item > SOON_BYTES:
            return False
        row_numbers = indices.reshape(-1).astype(INT64)
        inside = (row_numbers >= 0) & (row_numbers < self.table.shape[0])
        return reads.are_resident(row_numbers[inside])

    def parts(self, row_numbers: Ints) -> list[tuple[State, Ints]]:
        """Return the arrays from which rows are read, each with its row numbers."""
        return [(self, row_numbers)]

    def expect(self, row_numbers: Ints) -> None:
        """Let the system begin to read rows."""
        if self.reads is not None:
            self.reads.expect(row_numbers)

    def fill(self, row_numbers: Ints) -> None:
        """Read rows into the row cache."""
        step = max(1, min(FEW, FILLED // self._item))
        flat = np.empty(step * self._item, np.uint8)
        for start in range(0, row_numbers.size, step):
            self._read(row_numbers[start : start + step], None, flat)

    def rows(
        self, indices: NDArray[Any], mode: str, negative: bool, fill_value: object, out: Any
    ) -> NDArray[Any] | None:
        """Return the rows at a few indices, or None if the call needs all checks."""
        if not self._quick or indices.size > self._most:
            return None
        row_numbers = _row_numbers_of(indices) if _is_plain(mode, negative, fill_value) else None
        result = None if row_numbers is None else self._target(out, indices)
        if row_numbers is None or result is None:
            return None
        flat: NDArray[np.uint8] = result.reshape(-1).view(np.uint8)
        if self._read(row_numbers, None, flat) or self._read_resolved(
            row_numbers, mode, negative, flat
        ):
            return result
        return None

    def _target(self, out: Any, indices: NDArray[Any]) -> NDArray[Any] | None:
        """Return the memory to read rows into, or None if `out` cannot be used directly."""
        shape, dtype = indices.shape + self._row_shape, self.table.dtype
        if out is None:
            return np.empty(shape, dtype)
        array = out if type(out) is np.ndarray else Receiver("gather", out, shape, dtype).array
        fits = array.shape == shape and array.dtype == dtype and array.flags.carray
        return array if fits and not np.may_share_memory(array, indices) else None

    def _read_resolved(
        self, row_numbers: Ints, mode: str, negative: bool, flat: NDArray[np.uint8]
    ) -> bool:
        """Read rows if some indices are negative or invalid. Return False for an index error."""
        row_numbers, invalid = resolve(row_numbers, self.table.shape[0], mode, negative)
        if invalid is None:
            return self._read(row_numbers, None, flat)
        if mode not in FILLING:
            return False
        positions = np.flatnonzero(~invalid)
        flat.reshape(row_numbers.size, -1)[invalid] = 0
        return self._read(row_numbers[positions], positions, flat)

    def _read(self, row_numbers: Ints, positions: Ints | None, flat: NDArray[np.uint8]) -> bool:
        """Read rows by number, from the cache if possible. Return False for invalid numbers."""
        reads, cache = self.reads, self.cache
        assert reads is not None
        if cache is None:
            return reads.read(row_numbers, positions, flat)
        return reads.read_kept(cache, row_numbers, positions, flat)
