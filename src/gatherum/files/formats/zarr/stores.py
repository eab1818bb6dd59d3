"""Targets of a scatter's changed chunks: a copy of the array, or a patch of changed chunks only."""

import os
import shutil
from typing import Any

from gatherum.files.durable.build import remove_path
from gatherum.files.durable.context import Context
from gatherum.files.durable.stores import PatchTarget, ScatterTarget
from gatherum.files.formats.zarr.arrays import ZarrArray
from gatherum.files.formats.zarr.nodes import METADATA
from gatherum.files.resources.os_calls import sync_directory
from gatherum.files.resources.stats import Meter
from gatherum.files.row_access.grid import GridRows
from gatherum.files.row_access.layouts import BoxLayout
from gatherum.files.row_access.table import Panel, RowTable

__all__ = ["ZarrCopyTarget", "ZarrPatchTarget", "copy_array", "lay_chunks"]


class _ChunkTarget(ScatterTarget):
    """Changed chunks in the partial directory."""

    whole: bool  # whether unchanged chunks are copied, too

    def __init__(self, context: Context, table: ZarrArray) -> None:
        super().__init__(context, BoxLayout(table, context.requests.depth, context.budget))
        self.table = table

    def prepare(self) -> None:
        """Copy the table's metadata, and its chunks if the result is a complete array."""
        build, copied = self.build, {"copied": True}
        if not build.has(copied):
            remove_path(build.partial)
            copy_array(self.table.path, build.partial, build.meter, whole=self.whole)
            build.finish(copied, 0)
            build.checkpoint()
        self._copy = ZarrArray(build.partial, build.meter, writable=True)

    def rows_of(self, panel: Panel) -> RowTable:
        """Return the rows of the copy."""
        return GridRows(self._copy, self.context.requests.depth, panel)


class ZarrCopyTarget(_ChunkTarget):
    """A copy of a Zarr table, chunk by chunk, which becomes the output."""

    whole = True


class ZarrPatchTarget(_ChunkTarget, PatchTarget):
    """The changed chunks of a Zarr table, stored next to it until they are complete."""

    whole = False

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
        for entry in entries:
            if ".partial" in entry.name:
                continue
            into = os.path.join(target, entry.name)
            if entry.is_dir():
                if whole:
                    copy_array(entry.path, into, meter, whole=whole)
            elif whole or entry.name in (*METADATA, ".zattrs"):
                shutil.copyfile(entry.path, into)
                meter.read(os.path.getsize(into))
                meter.wrote(os.path.getsize(into))


def lay_chunks(patch: str, table: str) -> None:
    """Move the chunk files of a patch into the table. A repeated call resumes the move."""
    for folder, _, names in os.walk(patch):
        into = os.path.normpath(os.path.join(table, os.path.relpath(folder, patch)))
        os.makedirs(into, exist_ok=True)
        for name in names:
            if name not in (*METADATA, ".zattrs"):
                os.replace(os.path.join(folder, name), os.path.join(into, name))
        sync_directory(into)
