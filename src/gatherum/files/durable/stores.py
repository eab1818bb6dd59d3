"""Targets of a scatter's changed blocks: a copy of the table, or a patch that is applied later.

A patch contains every changed block before the table itself is changed. Until the patch is
complete, the table is unchanged. Afterwards, applying it can be repeated until it succeeds.
"""

import os
import struct
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from gatherum._system.regular_files import naming
from gatherum.files.durable.build import CREATE
from gatherum.files.durable.context import Context
from gatherum.files.durable.journal import Record
from gatherum.files.resources.disk import DiskFile
from gatherum.files.resources.stats import Meter
from gatherum.files.row_access.flat import FlatArray
from gatherum.files.row_access.layouts import FlatLayout, FortranLayout
from gatherum.files.row_access.table import Panel, RowTable, TableLayout

__all__ = ["FlatPatchTarget", "FlatTarget", "PatchTarget", "ScatterTarget"]

PIECE_HEADER = struct.Struct("<QQ")  # offset in the table, number of bytes
BUFFERED = 1 << 20
LOG_END = "log"


class ScatterTarget:
    """Receives the changed blocks of a table for a copy. `layout` is the layout of the table."""

    def __init__(self, context: Context, layout: TableLayout) -> None:
        self.context, self.build, self.layout = context, context.build, layout
        self._prepared = False

    def rows(self, panel: Panel) -> RowTable:
        """Return the rows to write a panel's changed blocks to. Copy everything else first."""
        if not self._prepared:
            self.prepare()
            self._prepared = True
        return self.rows_of(panel)

    def prepare(self) -> None:
        """Copy everything that no update changes."""
        raise NotImplementedError

    def rows_of(self, panel: Panel) -> RowTable:
        """Return the rows to write a panel's changed blocks to."""
        raise NotImplementedError

    def finish_part(self, record: Record, nbytes: int) -> None:
        """Record a finished part in the journal."""
        self.build.finish(record, nbytes)

    def complete(self) -> None:
        """Replace the output with the copy."""
        self.build.replace()


class PatchTarget(ScatterTarget):
    """Receives the changed blocks of a table for a patch of the table itself."""

    def complete(self) -> None:
        """Record that the patch is complete."""
        self.build.seal()

    def apply(self) -> None:
        """Apply the complete patch to the table. Applying it again changes nothing."""
        raise NotImplementedError

    def state(self) -> list[Any]:
        """Return the table's current version."""
        raise NotImplementedError

    def close(self) -> None:
        """Close the open files."""


class FlatTarget(ScatterTarget):
    """A copy of the flat table `source` in `copy`. `put` replaces the output with it."""

    def __init__(
        self,
        context: Context,
        layout: FlatLayout | FortranLayout,
        source: FlatArray,
        copy: FlatArray,
        put: Callable[[], None],
    ) -> None:
        super().__init__(context, layout)
        self.source, self.copy, self._put = source, copy, put
        self._rows_of = layout.rows_of

    def prepare(self) -> None:
        """Copy the whole table."""
        size, piece = self.source.nbytes, max(1, self.context.budget.block)
        self.build.meter.expect(size)
        buffer = memoryview(bytearray(min(piece, size)))
        for start in range(0, size, piece):
            part = {"copied": start}
            view = buffer[: min(piece, size - start)]
            if not self.build.has(part):
                self.source.file.read_into(self.source.offset + start, view)
                self.copy.file.write_from(self.copy.offset + start, view)
                self.build.finish(part, len(view))
            self.build.meter.advance(len(view))

    def rows_of(self, panel: Panel) -> RowTable:
        """Return the rows of the copy."""
        return self._rows_of(self.copy, panel)

    def complete(self) -> None:
        """Replace the output with the copy."""
        self._put()


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


class FlatPatchTarget(PatchTarget):
    """The changes of a flat table, logged in a file next to it until they are complete."""

    def __init__(
        self, context: Context, layout: FlatLayout | FortranLayout, table: FlatArray
    ) -> None:
        super().__init__(context, layout)
        self.table, self._rows_of = table, layout.rows_of
        self._file = DiskFile(table.file.path, context.meter, os.O_RDWR)
        self._log = PatchLog(self.build.partial, context.meter, CREATE)
        self.build.use(self._log, 0)

    def prepare(self) -> None:
        """Truncate the log after the last recorded part."""
        ends = [int(record[LOG_END]) for record in self.build.records() if LOG_END in record]
        self._log.end = max(ends, default=0)
        self._log.resize(self._log.end)

    def rows_of(self, panel: Panel) -> RowTable:
        """Return rows whose writes are logged."""
        return self._rows_of(replace(self.table, file=self._log), panel)

    def finish_part(self, record: Record, nbytes: int) -> None:
        """Record a finished part, and the length of the log up to it."""
        self._log.flush()
        self.build.finish({LOG_END: self._log.end}, 0)
        self.build.finish(record, nbytes)

    def apply(self) -> None:
        """Write everything in the log to its position in the table."""
        table, log = self.table, self._log
        for offset, piece in log.pieces(self.context.budget.block):
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
