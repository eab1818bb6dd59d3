"""Write rows of an open table's file while other threads read rows."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, nullcontext
from dataclasses import replace
from typing import Any, TypeVar

from gatherum._arguments.indices import resolve
from gatherum._model import errors
from gatherum._model.callers import Caller, naming
from gatherum._system import native
from gatherum.files.arguments.operands import ArrayOperand, Operand, find_operand, open_all
from gatherum.files.arguments.outputs import check_changeable
from gatherum.files.arguments.tensors import is_tensor
from gatherum.files.durable.interrupt import uninterrupted
from gatherum.files.durable.journal import check_readable
from gatherum.files.durable.sinks import ScatterSink
from gatherum.files.file_call import run_strategies
from gatherum.files.formats.dtypes import name_of
from gatherum.files.formats.format import Location
from gatherum.files.formats.storage import FlatStorage, Source
from gatherum.files.job import Job
from gatherum.files.resources.disk import DiskFile
from gatherum.files.resources.resources import Resources
from gatherum.files.row_access.table import Panel, RowTable

T = TypeVar("T")
OP, NAME = "scatter_slices", "write"
CALLER = Caller(NAME, "indices", "table", "rows").text
ATTRIBUTES: dict[str, Any] = {
    "axis": 0, "reduction": "none", "include_self": True, "mode": "raise", "negative": True,
}  # fmt: skip


class WriteLock:
    """Lets one thread write rows, and repeats the reads that overlap the write.

    A read waits for the lock only if rows are written at the same time.
    """

    def __init__(self, memory: native.MemoryTable | None) -> None:
        self.lock = threading.RLock()
        self._changes = 0  # odd while rows are written
        self._memory = memory

    def read(self, call: Callable[..., T], *arguments: Any) -> T:
        """Return the result of a call that reads all its rows either before or after each write."""
        before = self._changes
        if before % 2 == 0:
            result = call(*arguments)
            if self._changes == before:
                return result
        with self.lock:
            return call(*arguments)

    def begin(self) -> None:
        """Begin to write. The lock is locked until `end`."""
        self.lock.acquire()
        self._count()

    def end(self) -> None:
        """End a write."""
        self._count()
        self.lock.release()

    def _count(self) -> None:
        self._changes += 1
        if self._memory is not None:
            self._memory.changes = self._changes


class InPlaceSink(ScatterSink):
    """The rows of an open table, which are written to its file without a log."""

    def __init__(self, resources: Resources, job: Job, file: DiskFile, lock: WriteLock) -> None:
        storage = _flat(job.table)
        layout = storage.layout(job.requests.depth, job.budget)
        super().__init__(resources, None, layout)
        self._array, self._rows_of = replace(storage.array, file=file), layout.rows_of
        self._lock, self._has_begun = lock, False
        self._extent = job.table.shape[0]

    def copy_unchanged(self) -> None:
        """Begin to write. Every index has been checked."""
        self._lock.begin()
        self._has_begun = True

    def rows_of(self, panel: Panel) -> RowTable:
        """Return rows that are written to the file."""
        return self._rows_of(self._array, panel)

    def end(self, opened: DiskFile, row_numbers: Any, changed: Callable[[Any], object]) -> None:
        """End the write of the rows with these numbers, if it has begun."""
        if not self._has_begun:
            return
        try:
            opened.accept_changes()
            changed(resolve(row_numbers, self._extent, "raise", True)[0])
        finally:
            self._lock.end()


def write_rows(
    table: Source,
    resources: Resources,
    lock: WriteLock,
    indices: Operand,
    rows: Operand,
    changed: Callable[[Any], object],
) -> None:
    """Write rows of a table in place.

    `changed` is called after the write, before `lock` is unlocked, with the written row numbers.
    """
    tensors = any(is_tensor(operand) for operand in (indices, rows))
    messages = _messages_for_tensors(table) if tensors else nullcontext()
    with ExitStack() as stack, messages, naming(CALLER):
        own = replace(resources, at_end=stack.callback)
        where = {
            "indices": find_operand("indices", indices, OP),
            "updates": find_operand("updates", rows, OP),
        }
        _check_writable(table, where)
        job = Job(OP, open_all(where, own, table=table), ATTRIBUTES, 0, own)
        _write(job, own, lock, changed)


def _write(
    job: Job, resources: Resources, lock: WriteLock, changed: Callable[[Any], object]
) -> None:
    row_numbers = job.read_whole("indices").reshape(-1)
    opened = _flat(job.table).array.file
    with closing(DiskFile(opened.path, resources.meter, os.O_RDWR)) as file:
        if not os.path.sameopenfile(file.fd, opened.fd):
            raise OSError(f"{opened.path}: was replaced since it was opened")
        sink = InPlaceSink(resources, job, file, lock)
        with uninterrupted():
            try:
                run_strategies(job, sink)
            finally:
                sink.end(opened, row_numbers, changed)


def _check_writable(table: Source, operands: dict[str, Location | ArrayOperand]) -> None:
    """Raise ValueError for a table whose rows cannot be written in place."""
    where = table.location
    if not isinstance(where, Location):
        raise ValueError(f"{NAME}: only a table in a file can be written, got an array")
    if where.remote is not None:
        raise ValueError(f"{NAME}: {where} cannot be written, it is at a URL")
    operands = {"indices": operands["indices"], "rows": operands["updates"]}
    check_changeable(NAME, where, table, operands)
    if not isinstance(table.storage, FlatStorage):
        raise ValueError(f"{NAME}: {where} cannot be written, it is stored in chunks")
    check_readable(where.resolved)


def _flat(table: Source) -> FlatStorage:
    assert isinstance(table.storage, FlatStorage)
    return table.storage


@contextmanager
def _messages_for_tensors(table: Source) -> Iterator[None]:
    """Let messages give advice for PyTorch, whose dtypes are not those of a table."""
    with errors.for_tensors():
        try:
            yield
        except TypeError as error:
            dtype = f"torch.{name_of(table.dtype)}"
            raise TypeError(str(error).replace("table.dtype", dtype)) from None
