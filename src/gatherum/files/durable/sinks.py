"""Sinks are the outputs to which strategies write rows.

A scatter writes the changed rows of its table to a copy, or to a patch of the table itself. A patch
contains every changed row before the table itself is changed. Until the patch is complete, the
table is unchanged. Afterwards, the patch can be applied repeatedly until it succeeds.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatherum._system.regular_files import naming
from gatherum.files.durable.build import CREATE, Build
from gatherum.files.durable.interrupt import uninterrupted
from gatherum.files.durable.journal import Record
from gatherum.files.durable.marker import mark
from gatherum.files.resources.disk import DiskFile
from gatherum.files.resources.resources import Resources
from gatherum.files.resources.stats import Meter
from gatherum.files.row_access.boxes import FortranLayout
from gatherum.files.row_access.flat import FlatArray, FlatLayout
from gatherum.files.row_access.table import (
    Panel,
    RowRuns,
    RowTable,
    TableLayout,
    as_items,
    changed_rows,
    gathered_rows,
    runs_of_numbers,
)

PIECE_HEADER = struct.Struct("<QQ")  # the offset in the table, and the number of bytes
BUFFERED = 1 << 20
LOG_END = "log"
WHOLE: Record = {"in_memory": True}  # the part that `write_whole` finishes


class Sink:
    """The output of a job. Strategies write rows to a sink, and `commit` turns it into the result.

    A part that `finish` has recorded is not written again when a killed run is resumed. Results in
    memory have no `build`, and record nothing.
    """

    takes_whole_result = True  # whether a scatter in memory writes its result with `write_whole`

    def __init__(self, resources: Resources, build: Build | None = None) -> None:
        self.resources, self.meter, self.build = resources, resources.meter, build

    @property
    def is_complete(self) -> bool:
        """Whether an earlier run has written everything, so that only `commit` remains."""
        return False

    def has_finished(self, record: Record) -> bool:
        """Return True if this run or an earlier one has finished the part of `record`."""
        return self.build is not None and self.build.has_finished(record)

    def records(self) -> list[Record]:
        """Return the records of the finished parts."""
        return [] if self.build is None else self.build.records()

    def finish(self, record: Record, nbytes: int) -> None:
        """Record a finished part of `nbytes` in the journal."""
        if self.build is not None:
            self.build.finish(record, nbytes)

    def checkpoint(self) -> None:
        """Force all parts to the disk, and record them."""
        if self.build is not None:
            self.build.checkpoint()

    def prepare(self) -> None:
        """Prepare to write rows. Further calls do nothing."""

    def write_whole(self, table: NDArray[Any], result: NDArray[Any]) -> None:
        """Write the result of a scatter into `table`, both in memory."""
        raise NotImplementedError

    def commit(self) -> NDArray[Any] | None:
        """Make the output visible. Return a result in memory, or None."""
        raise NotImplementedError

    def close(self) -> None:
        """Close the open files."""


class CompleteSink(Sink):
    """An output that an earlier run has written. It has a `build` if it is not yet visible."""

    @property
    def is_complete(self) -> bool:
        """True."""
        return True

    def commit(self) -> None:
        """Replace the output, unless the earlier run has done so."""
        if self.build is not None:
            self.build.replace()


class ArraySink(Sink):
    """A result in memory.

    `out` has the shape and dtype of the result. It is not changed if an index raises an error.
    """

    def __init__(
        self,
        resources: Resources,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        out: NDArray[Any] | None = None,
    ) -> None:
        super().__init__(resources)
        self._shape, self._dtype, self._out = shape, dtype, out
        self.direct = out is not None and out.flags.c_contiguous

    @cached_property
    def array(self) -> NDArray[Any]:
        """The memory for the result, in C order: `out` if it has this order."""
        if self._out is not None and self.direct:
            return self._out
        return np.empty(self._shape, self._dtype)

    def write_whole(self, table: NDArray[Any], result: NDArray[Any]) -> None:
        """Keep the result of a scatter."""
        self.meter.chunks_touched += 1
        self.array = result

    def commit(self) -> NDArray[Any]:
        """Return the result, or `out`."""
        if self._out is None or self.direct:
            return self.array
        as_items(self._out)[...] = as_items(self.array)
        return self._out


class FileSink(Sink):
    """A new file. `create` opens its array. `replace_target` replaces the output with the file."""

    def __init__(
        self,
        resources: Resources,
        build: Build,
        create: Callable[[], FlatArray],
        replace_target: Callable[[FlatArray], None],
    ) -> None:
        super().__init__(resources, build)
        self._create, self._replace_target = create, replace_target

    @cached_property
    def array(self) -> FlatArray:
        """The elements of the partial file. The file is created on first access."""
        return self._create()

    def write_whole(self, table: NDArray[Any], result: NDArray[Any]) -> None:
        """Write the result of a scatter."""
        self.meter.chunks_touched += 1
        self.array.write(0, result)

    def commit(self) -> None:
        """Replace the output with the complete file."""
        self._replace_target(self.array)


class ScatterSink(Sink):
    """Receives the changed rows of a table. `layout` is the layout of the table."""

    takes_whole_result = False

    def __init__(self, resources: Resources, build: Build | None, layout: TableLayout) -> None:
        super().__init__(resources, build)
        self.layout, self._prepared = layout, False

    def rows(self, panel: Panel) -> RowTable:
        """Return the rows to which a panel's changes are written. Copy all other rows first."""
        self.prepare()
        return self.rows_of(panel)

    def prepare(self) -> None:
        """Copy all rows that no update changes. Further calls do nothing."""
        if not self._prepared:
            self.copy_unchanged()
            self._prepared = True

    def copy_unchanged(self) -> None:
        """Copy everything that no update changes."""
        raise NotImplementedError

    def rows_of(self, panel: Panel) -> RowTable:
        """Return the rows to which a panel's changes are written."""
        raise NotImplementedError


class PatchSink(ScatterSink):
    """Receives the changed rows of a table for a patch of the table itself."""

    build: Build

    @property
    def is_complete(self) -> bool:
        """Whether an earlier run has completed the patch."""
        return self.build.replacing

    def write_whole(self, table: NDArray[Any], result: NDArray[Any]) -> None:
        """Write the rows whose bytes a scatter in memory has changed."""
        rows = self.rows(next(self.layout.panels()))
        stored, most = 0, max(1, self.resources.budget.piece // (rows.width * rows.dtype.itemsize))
        rows_before, rows_after = (
            array.reshape(rows.extent, rows.width) for array in (table, result)
        )
        for start in range(0, rows.extent, most):
            changed = changed_rows(
                rows_before[start : start + most], rows_after[start : start + most]
            )
            if changed.size:
                rows_of = gathered_rows(rows_after[start : start + most], changed)
                runs = RowRuns(*runs_of_numbers(start + changed), rows_of, rows_of)
                rows.write(runs)
                stored += runs.rows.nbytes
                self.meter.chunks_touched += runs.first.size
        self.finish(WHOLE, stored)

    def commit(self) -> None:
        """Apply the complete patch to the table, and note that the run has completed."""
        self.build.seal()
        with uninterrupted():
            self.apply()
            mark(self.build.target, self.build.fingerprint, self.state())
            self.build.remove_files()

    def apply(self) -> None:
        """Apply the complete patch to the table. Applying it again changes nothing."""
        raise NotImplementedError

    def state(self) -> list[Any]:
        """Return the table's current version."""
        raise NotImplementedError


class CopySink(ScatterSink):
    """A copy of the flat table `source` in `copy`. `replace_target` replaces the output with it."""

    def __init__(
        self,
        resources: Resources,
        build: Build | None,
        layout: FlatLayout | FortranLayout,
        source: FlatArray,
        copy: FlatArray,
        replace_target: Callable[[], NDArray[Any] | None],
    ) -> None:
        super().__init__(resources, build, layout)
        self.source, self.copy, self._replace_target = source, copy, replace_target
        self._rows_of = layout.rows_of

    def copy_unchanged(self) -> None:
        """Copy the whole table."""
        size, piece = self.source.nbytes, max(1, self.resources.budget.piece)
        self.meter.expect(size)
        self.meter.phase("copying the table")
        buffer = memoryview(bytearray(min(piece, size)))
        for start in range(0, size, piece):
            record = {"copied": start}
            view = buffer[: min(piece, size - start)]
            if not self.has_finished(record):
                self.source.file.read_into(self.source.offset + start, view)
                self.copy.file.write_from(self.copy.offset + start, view)
                self.finish(record, len(view))
            self.meter.advance(len(view))

    def rows_of(self, panel: Panel) -> RowTable:
        """Return the rows of the copy."""
        return self._rows_of(self.copy, panel)

    def commit(self) -> NDArray[Any] | None:
        """Replace the output with the copy, or return the copy."""
        return self._replace_target()


class PatchLog(DiskFile):
    """A log of the writes to another file, in their order."""

    end = 0

    def __init__(self, path: str, meter: Meter, flags: int) -> None:
        super().__init__(path, meter, flags)
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0

    def write_from(self, offset: int, buffer: memoryview | bytes) -> None:
        """Log a write of `buffer` at position `offset` of the other file."""
        self._waiting += [PIECE_HEADER.pack(offset, len(buffer)), bytes(buffer)]
        self._waiting_bytes += PIECE_HEADER.size + len(buffer)
        if self._waiting_bytes >= BUFFERED:
            self.flush()

    def flush(self) -> None:
        """Write all buffered writes to the log file."""
        super().write_from(self.end, b"".join(self._waiting))
        self.end += self._waiting_bytes
        self._waiting, self._waiting_bytes = [], 0

    def pieces(self, longest: int) -> Iterator[tuple[int, bytes]]:
        """Yield the logged writes, in their order, in pieces of at most `longest` bytes."""
        raw = open(self.fd, "rb", closefd=False, buffering=BUFFERED)  # noqa: SIM115
        with raw as stream, naming(self.path):
            stream.seek(0)
            while header := stream.read(PIECE_HEADER.size):
                offset, length = PIECE_HEADER.unpack(header)
                while length:
                    piece = stream.read(min(length, longest))
                    if not piece:
                        raise OSError(f"{self.path}: ends inside a piece")
                    yield offset, piece
                    offset, length = offset + len(piece), length - len(piece)


class FlatPatchSink(PatchSink):
    """The changes of a flat table, logged in a file next to it until they are complete."""

    def __init__(
        self,
        resources: Resources,
        build: Build,
        layout: FlatLayout | FortranLayout,
        table: FlatArray,
    ) -> None:
        super().__init__(resources, build, layout)
        self.table, self._rows_of = table, layout.rows_of
        self._file = DiskFile(table.file.path, self.meter, os.O_RDWR)
        self._log = PatchLog(build.partial, self.meter, CREATE)
        build.write_to(self._log, 0)

    def copy_unchanged(self) -> None:
        """Truncate the log after the last recorded part."""
        ends = [int(record[LOG_END]) for record in self.records() if LOG_END in record]
        self._log.end = max(ends, default=0)
        self._log.resize(self._log.end)

    def rows_of(self, panel: Panel) -> RowTable:
        """Return rows whose writes are logged."""
        return self._rows_of(replace(self.table, file=self._log), panel)

    def finish(self, record: Record, nbytes: int) -> None:
        """Record a finished part, and the length of the log up to it."""
        self._log.flush()
        super().finish({LOG_END: self._log.end}, 0)
        super().finish(record, nbytes)

    def apply(self) -> None:
        """Write everything in the log to its position in the table."""
        table, log = self.table, self._log
        for offset, piece in log.pieces(self.resources.budget.piece):
            if not table.offset <= offset <= table.offset + table.nbytes - len(piece):
                raise OSError(f"{log.path}: a piece lies outside of the table")
            self._file.write_from(offset, piece)
        self._file.sync()

    def state(self) -> list[Any]:
        """Return the table's current version."""
        return self._file.fresh_state()

    def close(self) -> None:
        """Close the file of the table."""
        self._file.close()
