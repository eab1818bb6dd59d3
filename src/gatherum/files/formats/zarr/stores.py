"""A scatter's changed chunks go beside copies of all others, or alone into a patch."""

import os
import shutil
from typing import Any

from gatherum.files.durable.build import Build, remove_path
from gatherum.files.durable.context import Context
from gatherum.files.durable.stores import BlockStore
from gatherum.files.formats.zarr.arrays import METADATA, ZarrArray
from gatherum.files.os_calls import sync_directory
from gatherum.files.stats import Meter
from gatherum.files.tables.layouts import BoxLayout
from gatherum.files.tables.table import Block, Panel, RowTable

__all__ = ["ZarrCopyTarget", "ZarrPatchTarget", "copy_array", "lay_chunks"]


class ZarrCopyTarget:
    """A copy of a Zarr table, chunk by chunk, which becomes the output."""

    whole = True

    def __init__(self, context: Context, table: ZarrArray) -> None:
        self.context, self.table = context, table
        self.layout = BoxLayout(table, context.requests.depth, context.budget)

    def store(self, panel: Panel) -> BlockStore:
        """Return what takes the changed chunks of a panel."""
        return ZarrStore(self.context.build, self.table, self.layout, panel, whole=self.whole)

    def finish(self) -> None:
        """Put the copy in the place of the output."""
        self.context.build.replace()


class ZarrPatchTarget(ZarrCopyTarget):
    """The changed chunks of a Zarr table, beside it until they are complete."""

    whole = False

    def finish(self) -> None:
        """Record that the patch is complete."""
        self.context.build.seal()

    def lay(self) -> None:
        """Move the changed chunks into the table."""
        lay_chunks(self.context.build.partial, self.table.path)

    def state(self) -> list[Any]:
        """Return the table's current version."""
        return [self.table.tree()]

    def close(self) -> None:
        """Nothing is open."""


class ZarrStore:
    """Changed chunks of a panel, in the partial directory."""

    def __init__(
        self, build: Build, table: ZarrArray, layout: BoxLayout, panel: Panel, *, whole: bool
    ) -> None:
        self.build, self.table, self.whole = build, table, whole
        self.layout, self.panel = layout, panel

    def prepare(self) -> None:
        """Copy the table's metadata, and its chunks if the result is to be whole."""
        start_copy(self.build, self.table, whole=self.whole)
        copy = ZarrArray(self.build.partial, self.build.meter, writable=True)
        self._rows: RowTable = self.layout.rows_of(copy, self.panel)

    def store(self, block: Block) -> None:
        """Write changed chunks."""
        self._rows.write(block)

    def finish(self, record: dict[str, Any], nbytes: int) -> None:
        """Note a finished part."""
        self.build.finish(record, nbytes)


def start_copy(build: Build, table: ZarrArray, *, whole: bool) -> None:
    """Copy a table's metadata to the partial directory, and its chunks if that is to be whole."""
    if not build.has({"copied": True}):
        remove_path(build.partial)
        copy_array(table.path, build.partial, build.meter, whole=whole)
        build.finish({"copied": True}, 0)
        build.checkpoint()


def copy_array(source: str, target: str, meter: Meter, *, whole: bool) -> None:
    """Copy an array's metadata to a new directory, and its chunks if that is to be whole."""
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
    """Move the chunk files of a patch over those of the table; doing so again goes on with it."""
    for folder, _, names in os.walk(patch):
        into = os.path.normpath(os.path.join(table, os.path.relpath(folder, patch)))
        os.makedirs(into, exist_ok=True)
        for name in names:
            if name not in (*METADATA, ".zattrs"):
                os.replace(os.path.join(folder, name), os.path.join(into, name))
        sync_directory(into)
