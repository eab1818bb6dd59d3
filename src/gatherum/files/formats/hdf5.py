"""HDF5 datasets. Contiguous datasets are read in place, all other datasets chunk by chunk.

A contiguous dataset is a flat file: its rows are read without h5py, and changed in place. A new
file contains one contiguous dataset. Chunks are decompressed within their own size, like the chunks
of Zarr. Filters with an unbounded output are not supported. Links are not followed, because they
may lead to any file.
"""

from __future__ import annotations

import math
import tempfile
from contextlib import suppress
from typing import Any

import numpy as np

from gatherum._model.errors.audience import hint
from gatherum._system.regular_files import open_regular
from gatherum.files.formats.attributes import attributes_of_hdf5
from gatherum.files.formats.dtypes import as_bytes, cannot_hold
from gatherum.files.formats.format import Format, Location, first_line
from gatherum.files.formats.hdf5_chunks import ChunkedDataset
from gatherum.files.formats.members import MOST_LISTED, choose_member, group_given
from gatherum.files.formats.npy import checked_shape
from gatherum.files.formats.storage import BoxStorage, FlatStorage, Source
from gatherum.files.resources.disk import DiskFile
from gatherum.files.resources.resources import Resources
from gatherum.files.resources.stats import Meter
from gatherum.files.row_access.boxes import dataset_type
from gatherum.files.row_access.dimension_names import DAMAGED, is_hard, names_in

SIGNATURE = b"\x89HDF\r\n\x1a\n"
USERBLOCKS = tuple(512 << n for n in range(7))  # other possible offsets of the signature
DIMENSION_ALONE = b"This is a netCDF dimension but not a netCDF variable"


class Hdf5(Format):
    """A dataset in an HDF5 file."""

    name, example, suffixes = "hdf5", "'x.h5:dataset'", ("h5", "hdf5")
    stores_packed = True

    def is_start(self, head: bytes) -> bool:
        """Return True if a file of this format can begin with these bytes."""
        return any(head[offset : offset + 8] == SIGNATURE for offset in (0, *USERBLOCKS))

    def require(self) -> None:
        """Raise ImportError if h5py is missing."""
        try:
            import h5py  # noqa: F401
        except ImportError:
            raise ImportError("HDF5 files need h5py: pip install h5py") from None

    def open(self, location: Location, resources: Resources) -> Source:
        """Open a dataset. A contiguous dataset is opened as a flat file."""
        file = location.open(resources)
        dataset = _dataset(location, file, resources)
        try:
            shape, dtype = dataset_type(location, dataset)
        except TypeError as error:
            raise ValueError(f"{location}: NumPy has no such type: {first_line(error)}") from None
        checked_shape(location.text, shape)
        if dtype.hasobject:
            raise ValueError(f"{location}: contains strings or objects of variable length")
        settings = dataset.id.get_create_plist()
        if dataset.is_virtual or settings.get_external_count():
            raise ValueError(
                f"{location}: its elements are stored in external files, which are not read"
            )
        names, attributes = names_in(dataset), attributes_of_hdf5(location, dataset)
        if (offset := _offset(location, file, dataset)) is not None:
            flat = FlatStorage.of(file, offset, shape, dtype)
            return Source(location, shape, dtype, flat, file, names=names, attributes=attributes)
        chunked = ChunkedDataset(location.text, dataset, settings, resources.meter)
        nbytes = math.prod(chunked.chunks) * dtype.itemsize if math.prod(shape) else 0
        resources.budget.check_chunk(location, nbytes * (2 if chunked.filters else 1))
        boxes = BoxStorage(chunked, _why_not_changed(dataset))
        return Source(location, shape, dtype, boxes, file, names=names, attributes=attributes)

    def check_target(self, op: str, out: Location, meter: Meter) -> None:
        """Raise ValueError if the file contains other datasets, which a new file would lack."""
        super().check_target(op, out, meter)
        name = _plain_name(out, op)
        import h5py

        try:
            descriptor = open_regular(out.resolved)
        except FileNotFoundError:
            return
        try:
            with open(descriptor, "rb") as raw, h5py.File(raw, "r") as opened:
                other_keys = [key for key in opened if key != name.split("/")[0]]
        except OSError as error:
            raise ValueError(
                f"{op}: the output {out} is no HDF5 file: {first_line(error)}"
            ) from None
        if other_keys or "/" in name:
            raise ValueError(
                f"{op}: {out.file} holds other datasets, which a new file would lose; choose a new "
                "file"
            )

    def header(
        self, out: Location, shape: tuple[int, ...], dtype: np.dtype[Any], *, fortran: bool
    ) -> bytes:
        """Return all bytes that HDF5 writes before the elements of a contiguous dataset."""
        import h5py

        settings = _timeless(h5py.h5p.DATASET_CREATE)  # the same bytes when the run is resumed
        settings.set_layout(h5py.h5d.CONTIGUOUS)
        settings.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        settings.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
        nbytes = math.prod(shape) * dtype.itemsize
        # a temporary file with a hole instead of the elements
        with tempfile.TemporaryFile() as raw:
            with _new_file(raw, nbytes) as file:
                stored_type = _stored_type(dtype)
                space = h5py.h5s.create_simple(shape) if shape else h5py.h5s.create(h5py.h5s.SCALAR)
                *folders, name = _plain_name(out, "create").encode().split(b"/")
                group = file.id
                for folder in folders:
                    group = h5py.h5g.create(group, folder, gcpl=_timeless(h5py.h5p.GROUP_CREATE))
                dataset = h5py.h5d.create(group, name, stored_type, space, settings)
                offset = dataset.get_offset() if nbytes else None
            size = raw.seek(0, 2)
            raw.seek(0)
            header = raw.read(size if offset is None else offset)
        if offset is not None and size != offset + nbytes:
            raise OSError(f"{out}: HDF5 writes data after the elements")
        return header


def _new_file(raw: Any, nbytes: int) -> Any:
    """Create an HDF5 file whose header does not depend on the time.

    h5py.File uses HDF5's default, and older versions of HDF5 write the time.
    """
    import h5py

    access = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
    access.set_fileobj_driver(h5py.h5fd.fileobj_driver, raw)
    access.set_fclose_degree(h5py.h5f.CLOSE_STRONG)
    access.set_libver_bounds(h5py.h5f.LIBVER_LATEST, h5py.h5f.LIBVER_LATEST)
    access.set_alignment(max(1, nbytes), 64)
    creation = _timeless(h5py.h5p.FILE_CREATE)
    return h5py.File(h5py.h5f.create(b"in memory", h5py.h5f.ACC_TRUNC, creation, access))


def _timeless(property_class: Any) -> Any:
    """Return the creation properties of an HDF5 class, without time stamps."""
    import h5py

    properties = h5py.h5p.create(property_class)
    properties.set_obj_track_times(False)
    return properties


def _stored_type(dtype: np.dtype[Any]) -> Any:
    """Return the HDF5 type whose elements have the same bytes in a file as the dtype in memory."""
    import h5py

    try:
        plain = as_bytes(dtype)
        stored_type = h5py.h5t.py_create(plain, logical=True)
        keeps_values = stored_type.dtype == plain and stored_type.get_size() == plain.itemsize
    except (TypeError, ValueError, RuntimeError):
        keeps_values = False
    if not keeps_values:
        raise cannot_hold("HDF5", dtype)
    return stored_type


def _plain_name(out: Location, op: str) -> str:
    if out.member is None:
        raise ValueError(f"{op}: name the dataset to write after a colon: {out}:name")
    name = out.member.strip("/")
    if not name or any(part in ("", ".", "..") for part in name.split("/")):
        raise ValueError(f"{op}: {out.member!r} is not the name of a dataset")
    return name


def _dataset(location: Location, file: DiskFile, resources: Resources) -> Any:
    """Return the dataset that a location names, or the only one in the file."""
    import h5py

    raw = open(file.fd, "rb", closefd=False)  # noqa: SIM115  # closed when the call ends
    resources.at_end(raw.close)
    try:
        opened = h5py.File(raw, "r")
        resources.at_end(opened.close)
        if location.member is None:
            names: list[str] = []
            _list_datasets(opened, "", names, 0)
            return opened[choose_member(location, "dataset", None, names)]
        return _variable(_follow(location, opened, location.member.strip("/").split("/")))
    except (OSError, RuntimeError, KeyError, TypeError) as error:
        raise ValueError(f"{location}: cannot be read as HDF5: {first_line(error)}") from None


def _list_datasets(group: Any, prefix: str, names: list[str], depth: int) -> None:
    """Collect the datasets of a group and its subgroups, a few levels deep, without links."""
    import h5py

    for key in group:
        if len(names) >= MOST_LISTED or not is_hard(group, key):
            continue
        member = group[key]
        if isinstance(member, h5py.Dataset):
            names.append(prefix + key)
        elif isinstance(member, h5py.Group) and depth < 8:
            _list_datasets(member, f"{prefix}{key}/", names, depth + 1)


def _follow(location: Location, group: Any, parts: list[str]) -> Any:
    """Follow only hard links to a dataset."""
    import h5py

    for part in parts:
        link = group.get(part, getlink=True) if isinstance(group, h5py.Group) else None
        if link is None:
            names: list[str] = []
            _list_datasets(group.file, "", names, 0)
            choose_member(location, "dataset", "/".join(parts), names)
        if not isinstance(link, h5py.HardLink):
            raise ValueError(f"{location}: a link to {part!r} is not followed")
        group = group[part]
    if not isinstance(group, h5py.Dataset):
        raise _is_group(location, group)
    return group


def _is_group(location: Location, group: Any) -> ValueError:
    """Return the error for a group where a dataset is expected."""
    names: list[str] = []
    prefix = group.name.strip("/")
    _list_datasets(group, f"{prefix}/" if prefix else "", names, 0)
    encoding = None
    with suppress(*DAMAGED):
        encoding = group.attrs.get("encoding-type")
    return group_given(location, "dataset", names, encoding)


def _variable(dataset: Any) -> Any:
    """Return the netCDF variable if a dataset is only the dimension of the same name.

    A variable lon(lat, lon) is stored separately from the dimension lon, because lon is not its
    first dimension.
    """
    with suppress(*DAMAGED):
        group, name = dataset.parent, dataset.attrs.get("NAME")
        sibling = "_nc4_non_coord_" + dataset.name.rpartition("/")[2]
        if isinstance(name, bytes) and name.startswith(DIMENSION_ALONE) and is_hard(group, sibling):
            variable = group[sibling]
            return variable if isinstance(variable, type(dataset)) else dataset
    return dataset


def _why_not_changed(dataset: Any) -> str:
    """Return the reason why a dataset that is not contiguous cannot be changed."""
    import h5py

    if dataset.chunks is not None:
        return "it is stored in chunks"
    if dataset.id.get_space_status() != h5py.h5d.SPACE_STATUS_ALLOCATED:
        advice = hint("write it once with h5py, as by dataset[...] = dataset[...]")
        return f"it has no storage yet, as nothing was written to it{advice}"
    return "it is not stored in one piece"


def _offset(location: Location, file: DiskFile, dataset: Any) -> int | None:
    """Return the offset of elements that are contiguous and stored as in NumPy, or None for others.

    Small elements may be part of the header. Elements that were never written have no offset: HDF5
    then returns the size of the userblock added to an undefined address.
    """
    import h5py

    stored = dataset.id
    as_stored = h5py.h5t.py_create(dataset.dtype, logical=True) == stored.get_type()
    allocated = stored.get_space_status() == h5py.h5d.SPACE_STATUS_ALLOCATED
    if dataset.chunks is not None or not as_stored or not allocated:
        return None
    try:
        offset = stored.get_offset()
    except RuntimeError:
        offset = 0  # HDF5 itself raises for this address
    if offset is None:
        return None
    nbytes, size = math.prod(dataset.shape) * dataset.dtype.itemsize, stored.get_storage_size()
    if size != nbytes:
        raise ValueError(f"{location}: HDF5 stores {size} bytes of its {nbytes}")
    if offset <= dataset.file.userblock_size:
        raise ValueError(f"{location}: its {nbytes} bytes begin at {offset}, in HDF5's signature")
    if offset + nbytes > file.size:
        raise ValueError(f"{location}: its {nbytes} bytes reach past the end of the file")
    return int(offset)
