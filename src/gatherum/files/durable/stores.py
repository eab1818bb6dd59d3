"""A scatter's changed blocks go to a copy of the table, or to a patch laid over it later.

A patch holds every changed block before the table itself is touched. Until it is complete the
table is as it was; from then on, laying it over the table can be repeated until it is done.
"""

import os
import struct
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Protocol

from gatherum.files.disk import DiskFile
from gatherum.files.durable.build import CREATE, Build
from gatherum.files.durable.context import Context
from gatherum.files.stats import Meter
from gatherum.files.tables.flat import FlatArray
from gatherum.files.tables.layouts import FlatLayout, FortranLayout
from gatherum.files.tables.table import Block, Panel, RowTable, TableLayout
from gatherum.regular_files import naming

__all__ = [
    "BlockStore",
    "FlatPatchTarget",
    "FlatTarget",
    "PatchTarget",
    "ScatterTarget",
    "lay_patch",
]

PIECE_HEADER = struct.Struct("<QQ")  # where in the table, how many bytes
BUFFERED = 1 << 20
LOG_END = "log"


class BlockStore(Protocol):
    """Takes the changed blocks of one panel."""

    def prepare(self) -> None:
        """Copy everything that no update touches."""

    def store(self, block: Block) -> None:
        """Take one changed block of rows."""

    def finish(self, record: dict[str, Any], nbytes: int) -> None:
        """Note a finished part in the journal."""


class ScatterTarget(Protocol):
    """The target of a scatter's changes: a copy of its table."""

    @property
    def layout(self) -> TableLayout:
        """The table's rows."""

    def store(self, panel: Panel) -> BlockStore:
        """Return what takes the changed blocks of a panel."""

    def finish(self) -> None:
        """Put the copy in its place, or make the patch complete."""


class PatchTarget(ScatterTarget, Protocol):
    """A patch for the table itself."""

    def lay(self) -> None:
        """Lay the complete patch over the table; doing so again changes nothing."""

    def state(self) -> list[Any]:
        """Return the table's current version."""

    def close(self) -> None:
        """Close the open files."""


class FlatTarget:
    """A copy of a flat table in the output's partial file.

    Parameters
    ----------
    context : Context
        The call.
    layout : FlatLayout or FortranLayout
        The table's rows.
    source, copy : FlatArray
        The table, and what becomes its copy.
    put : callable
        Puts the complete copy in the place of the output.
    """

    def __init__(
        self,
        context: Context,
        layout: FlatLayout | FortranLayout,
        source: FlatArray,
        copy: FlatArray,
        put: Callable[[], None],
    ) -> None:
        self.context, self.layout = context, layout
        self.source, self.copy, self.finish = source, copy, put

    def store(self, panel: Panel) -> BlockStore:
        """Return what takes the changed blocks of a panel."""
        rows = self.layout.rows_of(self.copy, panel)
        piece = self.context.budget.block
        return FlatCopy(self.context.build, self.source, self.copy, rows, piece)


class FlatCopy:
    """A copy of a flat table in the output's partial file."""

    def __init__(
        self, build: Build, source: FlatArray, target: FlatArray, rows: RowTable, piece: int
    ) -> None:
        self.build, self.source, self.target, self.rows = build, source, target, rows
        self.piece = max(1, piece)

    def prepare(self) -> None:
        """Copy the whole table."""
        size = self.source.nbytes
        self.build.meter.expect(size)
        buffer = memoryview(bytearray(min(self.piece, size)))
        for start in range(0, size, self.piece):
            part = {"copied": start}
            view = buffer[: min(self.piece, size - start)]
            if not self.build.has(part):
                self.source.file.read_into(self.source.offset + start, view)
                self.target.file.write_from(self.target.offset + start, view)
                self.build.finish(part, len(view))
            self.build.meter.advance(len(view))

    def store(self, block: Block) -> None:
        """Put a changed block in its place."""
        self.rows.write(block)

    def finish(self, record: dict[str, Any], nbytes: int) -> None:
        """Note a finished part."""
        self.build.finish(record, nbytes)


class PatchLog(DiskFile):
    """A log of the writes to another file, one after another."""

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
        """Write everything kept so far to the file system."""
        super().write_from(self.end, b"".join(self._waiting))
        self.end += self._waiting_bytes
        self._waiting, self._waiting_bytes = [], 0

    def pieces(self, longest: int) -> Iterator[tuple[int, bytes]]:
        """Return the kept writes, in order, in pieces of at most `longest` bytes."""
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


class FlatPatchTarget:
    """The changes of a flat table, logged beside it until they are complete."""

    def __init__(
        self, context: Context, layout: FlatLayout | FortranLayout, table: FlatArray
    ) -> None:
        self.context, self.layout, self.table = context, layout, table
        self._file = DiskFile(table.file.path, context.meter, os.O_RDWR)
        self._log = PatchLog(context.build.partial, context.meter, CREATE)
        context.build.use(self._log, 0)

    def store(self, panel: Panel) -> BlockStore:
        """Return what takes the changed blocks of a panel."""
        rows = self.layout.rows_of(replace(self.table, file=self._log), panel)
        return FlatPatch(self.context.build, self._log, rows)

    def finish(self) -> None:
        """Record that the patch is complete."""
        self.context.build.seal()

    def lay(self) -> None:
        """Lay the patch over the table."""
        lay_patch(self._log, replace(self.table, file=self._file), self.context.budget.block)

    def state(self) -> list[Any]:
        """Return the table's current version."""
        return self._file.fresh_state()

    def close(self) -> None:
        """Close the table's own file."""
        self._file.close()


class FlatPatch:
    """The changed blocks of a flat table, in a log."""

    def __init__(self, build: Build, log: PatchLog, rows: RowTable) -> None:
        self.build, self.log, self.rows = build, log, rows

    def prepare(self) -> None:
        """Drop everything after the last recorded part."""
        ends = [int(record[LOG_END]) for record in self.build.records() if LOG_END in record]
        self.log.end = max(ends, default=0)
        self.log.resize(self.log.end)

    def store(self, block: Block) -> None:
        """Log a changed block."""
        self.rows.write(block)

    def finish(self, record: dict[str, Any], nbytes: int) -> None:
        """Note a finished part, and how long the log is with it."""
        self.log.flush()
        self.build.finish({LOG_END: self.log.end}, 0)
        self.build.finish(record, nbytes)


def lay_patch(log: PatchLog, table: FlatArray, longest: int) -> None:
    """Write everything in the log where it belongs; doing so again changes nothing."""
    for offset, piece in log.pieces(longest):
        inside = table.offset <= offset <= table.offset + table.nbytes - len(piece)
        if not inside:
            raise OSError(f"{log.path}: a piece lies outside of the table")
        table.file.write_from(offset, piece)
    table.file.sync()
