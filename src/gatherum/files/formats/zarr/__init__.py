"""The Zarr format. Chunks or shards of arrays in a directory are read and written completely."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from gatherum.files.durable.build import Build, remove_path
from gatherum.files.durable.sinks import PatchSink, ScatterSink
from gatherum.files.formats.format import Format, Location
from gatherum.files.formats.storage import BoxStorage, Source
from gatherum.files.formats.zarr.arrays import (
    CHUNK,
    ZarrArray,
    check_dtype,
    check_metadata,
    create_like,
    import_bounded,
    is_array,
)
from gatherum.files.formats.zarr.stores import ZarrCopySink, ZarrPatchSink
from gatherum.files.remote import Remote, UrlAddress
from gatherum.files.resources.resources import Resources
from gatherum.files.resources.stats import Meter
from gatherum.files.row_access.boxes import FlatBoxes, copy_boxes
from gatherum.files.row_access.flat import FlatArray

__all__ = ["CHUNK", "Zarr", "create_like"]


class Zarr(Format):
    """An array stored as a directory, with one file for each chunk."""

    name, example, has_members = "zarr", "a Zarr directory such as 'x.zarr'", False
    stores_directories = stores_packed = reads_urls = writes_in_parallel = True

    def recognize(self, text: str) -> tuple[str, str | None] | None:
        """Return any directory, and any path inside a directory whose name ends with ``.zarr``."""
        parts = PurePath(text.lower()).parts
        named = any(part.endswith(".zarr") for part in parts) or os.path.isdir(text)
        return (text.rstrip(f"/{os.sep}"), None) if named else None

    def require(self) -> None:
        """Raise ImportError if the `zarr` package is missing."""
        import_bounded()

    def open(self, location: Location, resources: Resources) -> Source:
        """Open an input after checking its metadata."""
        if location.remote is not None:
            return self._open_remote(location, location.remote, resources)
        watched = resources.watched
        array = ZarrArray(location.file, resources.meter, resources.budget, watched=watched)
        storage = ZarrStorage(array)
        return _source(location, array, storage)

    def _open_remote(self, location: Location, address: UrlAddress, resources: Resources) -> Source:
        """Open an input at a URL."""
        from gatherum.files.formats.zarr.remote import RemoteZarrArray

        store = Remote(address, resources.meter, resources.storage_options)
        array = RemoteZarrArray(store, resources.budget)
        resources.at_end(array.stop)
        boxes = BoxStorage(array, "it lies at a URL")
        return _source(location, array, boxes)

    def check_target(self, op: str, out: Location, meter: Meter) -> None:
        """Raise ValueError if the directory has different contents or lies inside another array."""
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
                raise ValueError(
                    f"{op}: the output {out} would replace a directory: {error}; name a new file "
                    "or directory, such as 'x.npy' or 'x.zarr'"
                ) from None

    def header(
        self, out: Location, shape: tuple[int, ...], dtype: np.dtype[Any], *, fortran: bool
    ) -> bytes:
        """Return no bytes, after checking that Zarr supports the dtype.

        The elements are first written to a flat file.
        """
        check_dtype(dtype)
        return b""

    def is_staged(self, table: Source | None) -> bool:
        """Return True, except for copies of Zarr tables: rows are first written to a flat file."""
        return table is None or not isinstance(table.storage, ZarrStorage)

    def replace_target(self, array: FlatArray, like: Source, build: Build, limit: int) -> None:
        """Create the array from the flat file, in the table's version of Zarr if it has one."""
        remove_path(build.partial)
        path, most_bytes = like.location.path, min(CHUNK, limit)
        chunks = create_like(build.partial, path, array.shape, array.dtype, most_bytes)
        target = ZarrArray(build.partial, build.meter, writable=True)
        flat = FlatBoxes(array, False, chunks)
        build.meter.expect(array.nbytes)
        for nbytes in copy_boxes(flat, target, chunks):
            build.meter.advance(nbytes)
        build.replace()

    def copy(
        self, out: Location, table: Source, resources: Resources, build: Build, depth: int
    ) -> ScatterSink:
        """Return an output that begins as a copy of the table, with its chunks if any."""
        if isinstance(table.storage, ZarrStorage):
            return ZarrCopySink(resources, build, table.storage.array, depth)
        return super().copy(out, table, resources, build, depth)


def _source(location: Location, array: ZarrArray, storage: BoxStorage) -> Source:
    """Return an array as an input."""
    source = Source(location, array.shape, array.dtype, storage, array)
    return replace(source, names=array.names, attributes=array.attributes)


@dataclass(frozen=True)
class ZarrStorage(BoxStorage):
    """The chunks of a Zarr array."""

    array: ZarrArray
    cannot_change: str | None = None

    def patch(self, resources: Resources, build: Build, depth: int) -> PatchSink:
        """Return the sink that collects changed chunks until they are complete."""
        return ZarrPatchSink(resources, build, self.array, depth)
