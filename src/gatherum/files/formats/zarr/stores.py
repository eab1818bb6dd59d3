"""Sinks for a scatter's changed chunks: a copy of the array, or a patch of only these chunks."""

from __future__ import annotations

import os
import shutil
from typing import Any

from gatherum.files.durable.build import Build, remove_path
from gatherum.files.durable.sinks import PatchSink, ScatterSink
from gatherum.files.formats.zarr.arrays import ZarrArray
from gatherum.files.formats.zarr.nodes import METADATA
from gatherum.files.resources.os_calls import sync_directory
from gatherum.files.resources.resources import Resources
from gatherum.files.resources.stats import Meter
from gatherum.files.row_access.grid import BoxLayout, GridRows
from gatherum.files.row_access.table import Panel, RowTable


class _ChunkSink(ScatterSink):
    """Changed chunks in the partial directory."""

    all_chunks: bool  # whether unchanged chunks are copied, too

    build: Build

    def __init__(self, resources: Resources, build: Build, table: ZarrArray, depth: int) -> None:
        super().__init__(resources, build, BoxLayout(table, depth, resources.budget))
        self.table, self.depth = table, depth

    def copy_unchanged(self) -> None:
        """Copy the table's metadata, and its chunks if the result is a complete array."""
        build, copied = self.build, {"copied": True}
        if not build.has_finished(copied):
            remove_path(build.partial)
            copy_array(self.table.path, build.partial, build.meter, whole=self.all_chunks)
            build.finish(copied, 0)
            build.checkpoint()
        self._copy = ZarrArray(build.partial, build.meter, writable=True)

    def rows_of(self, panel: Panel) -> RowTable:
        """Return the rows of the copy."""
        return GridRows(self._copy, self.depth, panel)


class ZarrCopySink(_ChunkSink):
    """A copy of a Zarr table, chunk by chunk, which becomes the output."""

    all_chunks = True

    def commit(self) -> None:
        """Replace the output with the copy."""
        self.build.replace()


class ZarrPatchSink(_ChunkSink, PatchSink):
    """The changed chunks of a Zarr table, stored next to it until they are complete."""

    all_chunks = False

    def apply(self) -> None:
        """Move the changed chunks into the table."""
        lay_chunks(self.build.partial, self.table.path)

    def state(self) -> list[Any]:
        """Return the table's current version."""
        return [self.table.tree()]


def copy_array(source: str, target: str, meter: Meter, *, whole: bool) -> None:
    """Copy an array's metadata to a new directory, and its chunks if `whole`."""
    os.makedirs(target)
    with os.scandir(source) as entries:
        for child in entries:
            if ".partial" in child.name:
                continue
            into = os.path.join(target, child.name)
            if child.is_dir():
                if whole:
                    copy_array(child.path, into, meter, whole=whole)
            elif whole or child.name in (*METADATA, ".zattrs"):
                shutil.copyfile(child.path, into)
                meter.read(os.path.getsize(into))
                meter.count_written(os.path.getsize(into))


def lay_chunks(patch: str, table: str) -> None:
    """Move the chunk files of a patch into the table. A repeated call resumes the move."""
    for folder, _, names in os.walk(patch):
        into = os.path.normpath(os.path.join(table, os.path.relpath(folder, patch)))
        os.makedirs(into, exist_ok=True)
        for name in names:
            if name not in (*METADATA, ".zattrs"):
                os.replace(os.path.join(folder, name), os.path.join(into, name))
        sync_directory(into)
