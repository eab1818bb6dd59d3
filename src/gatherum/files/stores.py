"""Where a scatter's changed blocks go: a copy of the table, or a patch to be laid over it.

A patch holds every changed block before the table itself is touched. Until it is complete the
table is as it was; from then on, laying it over the table can be repeated until it is done.
"""

import os
import shutil
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from gatherum.files.build import Build, remove_path
from gatherum.files.disk import DiskFile, FlatArray, sync_directory
from gatherum.files.rows import Block, RowTable
from gatherum.files.stats import Meter
from gatherum.files.zarrays import METADATA, ZarrArray

__all__ = ["FlatCopy", "FlatPatch", "PatchLog", "ZarrStore", "lay_chunks", "lay_patch", "writable"]

PIECE_HEADER = struct.Struct("<QQ")  # where in the table, how many bytes
BUFFERED = 1 << 20
LOG_END = "log"


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
    """A file that takes writes for another one and keeps them, one after another."""

    end = 0

    def __init__(self, path: str, meter: Meter, flags: int) -> None:
        super().__init__(path, meter, flags)
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0

    def write_from(self, offset: int, buffer: memoryview | bytes) -> None:
        """Keep `buffer` as what belongs at position `offset` of the other file."""
        self._waiting += [PIECE_HEADER.pack(offset, len(buffer)), bytes(buffer)]
        self._waiting_bytes += PIECE_HEADER.size + len(buffer)
        if self._waiting_bytes >= BUFFERED:
            self.flush()

    def flush(self) -> None:
        """Hand everything kept so far to the file system."""
        super().write_from(self.end, b"".join(self._waiting))
        self.end += self._waiting_bytes
        self._waiting, self._waiting_bytes = [], 0

    def pieces(self, longest: int) -> Iterator[tuple[int, bytes]]:
        """Return what is kept, in order, in pieces of at most `longest` bytes."""
        with open(self.fd, "rb", closefd=False, buffering=BUFFERED) as stream:
            stream.seek(0)
            while header := stream.read(PIECE_HEADER.size):
                offset, length = PIECE_HEADER.unpack(header)
                while length:
                    piece = stream.read(min(length, longest))
                    if not piece:
                        raise OSError(f"{self.path}: ends inside a piece")
                    yield offset, piece
                    offset, length = offset + len(piece), length - len(piece)


class FlatPatch:
    """The changed blocks of a flat table, in a log."""

    def __init__(self, build: Build, log: PatchLog, rows: RowTable) -> None:
        self.build, self.log, self.rows = build, log, rows

    def prepare(self) -> None:
        """Drop what was written after the last recorded part."""
        ends = [int(record[LOG_END]) for record in self.build.records() if LOG_END in record]
        self.log.end = max(ends, default=0)
        os.ftruncate(self.log.fd, self.log.end)

    def store(self, block: Block) -> None:
        """Log a changed block."""
        self.rows.write(block)

    def finish(self, record: dict[str, Any], nbytes: int) -> None:
        """Note a finished part, and how long the log is with it."""
        self.log.flush()
        self.build.finish({LOG_END: self.log.end}, 0)
        self.build.finish(record, nbytes)


@contextmanager
def writable(table: FlatArray, meter: Meter) -> Iterator[FlatArray]:
    """Open the table's own file for writing."""
    file = DiskFile(table.file.path, meter, os.O_RDWR)
    try:
        yield replace(table, file=file)
    finally:
        file.close()


def lay_patch(log: PatchLog, table: FlatArray, longest: int) -> None:
    """Write everything in the log where it belongs; doing so again changes nothing."""
    for offset, piece in log.pieces(longest):
        inside = table.offset <= offset <= table.offset + table.nbytes - len(piece)
        if not inside:
            raise OSError(f"{log.path}: a piece lies outside of the table")
        table.file.write_from(offset, piece)
    table.file.sync()


class ZarrStore:
    """Changed chunks in the partial directory: beside copies of all others, or alone as a patch."""

    def __init__(
        self, build: Build, table: ZarrArray, rows: Callable[[ZarrArray], RowTable], *, whole: bool
    ) -> None:
        self.build, self.table, self._rows_of, self.whole = build, table, rows, whole

    def prepare(self) -> None:
        """Copy the table's metadata, and its chunks if the result is to be whole."""
        if not self.build.has({"copied": True}):
            remove_path(self.build.partial)
            self._copy(self.table.path, self.build.partial)
            self.build.finish({"copied": True}, 0)
            self.build.checkpoint()
        copy = ZarrArray(self.build.partial, self.build.meter, writable=True)
        self._rows: RowTable = self._rows_of(copy)

    def _copy(self, source: str, target: str) -> None:
        os.mkdir(target)
        with os.scandir(source) as entries:
            for entry in entries:
                if ".partial" in entry.name:
                    continue
                into = os.path.join(target, entry.name)
                if entry.is_dir():
                    if self.whole:
                        self._copy(entry.path, into)
                elif self.whole or entry.name in (*METADATA, ".zattrs"):
                    shutil.copyfile(entry.path, into)
                    self.build.meter.read(os.path.getsize(into))
                    self.build.meter.wrote(os.path.getsize(into))

    def store(self, block: Block) -> None:
        """Write changed chunks."""
        self._rows.write(block)

    def finish(self, record: dict[str, Any], nbytes: int) -> None:
        """Note a finished part."""
        self.build.finish(record, nbytes)


def lay_chunks(patch: str, table: str) -> None:
    """Move the chunk files of a patch over those of the table; doing so again goes on with it."""
    for folder, _, names in os.walk(patch):
        into = os.path.normpath(os.path.join(table, os.path.relpath(folder, patch)))
        os.makedirs(into, exist_ok=True)
        for name in names:
            if name not in (*METADATA, ".zattrs"):
                os.replace(os.path.join(folder, name), os.path.join(into, name))
        sync_directory(into)
