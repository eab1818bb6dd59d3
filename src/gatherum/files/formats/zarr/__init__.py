"""Zarr arrays in a directory, formats 2 and 3: read and written by whole chunks or shards."""

import os
from dataclasses import dataclass
from pathlib import Path

from gatherum.files.durable.build import Build, remove_path
from gatherum.files.durable.context import Context
from gatherum.files.durable.stores import PatchTarget, Target
from gatherum.files.formats.format import Format, Location, Opening
from gatherum.files.formats.storage import BoxStorage, Source
from gatherum.files.formats.zarr.arrays import (
    ZarrArray,
    check_metadata,
    create_array,
    import_bounded,
    is_array,
    metadata_name,
)
from gatherum.files.formats.zarr.stores import ZarrCopyTarget, ZarrPatchTarget
from gatherum.files.stats import Meter
from gatherum.files.tables.boxes import FlatBoxes, chunk_boxes, filled_first
from gatherum.files.tables.flat import FlatArray

__all__ = ["Zarr"]

CHUNK = 4 << 20


class Zarr(Format):
    """An array in a directory, whose chunks are files."""

    name, form = "zarr", "a Zarr directory such as 'x.zarr'"

    def recognise(self, text: str) -> tuple[str, str | None] | None:
        """Return the directory that a path names: one that is there, or has a part ``x.zarr``."""
        in_zarr = any(part.endswith(".zarr") for part in text.lower().split("/"))
        return (text.rstrip("/"), None) if in_zarr or os.path.isdir(text) else None

    def require(self) -> None:
        """Raise ImportError where the `zarr` package is missing."""
        import_bounded()

    def open(self, location: Location, opening: Opening) -> Source:
        """Open an input, once its metadata are checked."""
        array = ZarrArray(location.file, opening.meter, opening.budget)
        storage = ZarrStorage(array, opening.meter)
        return Source(location, array.shape, array.dtype, storage, array)

    def check_target(self, op: str, out: Location, meter: Meter) -> None:
        """Refuse a directory with something else in it, and one inside another array."""
        target = out.resolved
        for above in Path(target).parents:
            if is_array(str(above)):
                raise ValueError(f"{op}: the output {out} lies inside the Zarr array {above}")
        if not os.path.lexists(target):
            return
        if not os.path.isdir(target):
            raise ValueError(f"{op}: the output {out} is a file, not a Zarr directory")
        if os.listdir(target) or not target.lower().endswith(".zarr"):
            try:
                check_metadata(target)
            except ValueError as error:
                raise ValueError(f"{op}: the output would replace a directory: {error}") from None

    def staged(self, table: Source | None) -> bool:
        """Whether rows are laid out flat first: all but copies of Zarr tables."""
        return table is None or not table.storage.duplicates

    def put(self, array: FlatArray, like: Source, build: Build, limit: int) -> None:
        """Make the array from the flat file, in the table's format if that is Zarr's, too."""
        version = 2 if metadata_name(like.location.path) == ".zarray" else 3
        remove_path(build.partial)
        chunks = filled_first(array.shape, array.dtype.itemsize, min(CHUNK, limit))
        create_array(build.partial, array.shape, chunks, array.dtype, version)
        target = ZarrArray(build.partial, build.meter, writable=True)
        flat = FlatBoxes(array, False, chunks)
        build.meter.expect(array.nbytes)
        for box in chunk_boxes(array.shape, chunks):
            values = flat.read_box(box)
            target.write_box(box, values)
            build.meter.advance(values.nbytes)
        build.replace()

    def copy(self, out: Location, table: Source, context: Context) -> Target:
        """Return an output that begins as a copy of the table, with its chunks if it has any."""
        return table.storage.duplicate(context) or super().copy(out, table, context)


@dataclass(frozen=True)
class ZarrStorage(BoxStorage):
    """The chunks of a Zarr array."""

    array: ZarrArray
    cannot_change: str | None = None
    duplicates: bool = True

    def patch(self, context: Context) -> PatchTarget:
        """Return what takes changed chunks, until they are complete."""
        return ZarrPatchTarget(context, self.array)

    def duplicate(self, context: Context) -> Target | None:
        """Return a copy with the same chunks."""
        return ZarrCopyTarget(context, self.array)
