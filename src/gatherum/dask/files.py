"""Convert arrays in files to Dask arrays, whose tasks read only the parts that they need."""

from __future__ import annotations

import copy
import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import dask.array as da
import numpy as np
from dask.base import tokenize

from gatherum._arguments.plain_values import as_boolean
from gatherum._model.arrays import NumpyArray
from gatherum._model.errors import Shape
from gatherum.files.durable.journal import check_readable
from gatherum.files.formats import locate
from gatherum.files.formats.decoding import decoded
from gatherum.files.formats.storage import BoxStorage, FlatStorage, Source
from gatherum.files.resources.resources import Budget, Resources
from gatherum.files.resources.stats import Meter
from gatherum.files.row_access.boxes import FlatBoxes

from . import errors as dask_errors

# A chunk of a Zarr array may use half of this number of bytes.
BUDGET = Budget(64 << 30)


class FileArray:
    """An array in a file. Every read opens the file, and only the path is sent to workers.

    `version` identifies the contents of a Zarr array in the names of tasks. `packing` describes how
    packed numbers are decoded; it is None for other arrays.
    """

    def __init__(
        self, path: str | os.PathLike[str], role: str = "table", *, decode: bool = True
    ) -> None:
        location, self.role, self.decode = locate(path), role, decode
        if location.remote:
            raise ValueError(f"{location}: URLs are not read as arrays of Dask; download it")
        self.path = os.path.abspath(location.file)
        if location.member is not None:
            self.path = f"{self.path}:{location.member}"
        if location.format.decodes_from_start(location):
            raise dask_errors.compressed_member(location)
        with _opened(self.path, watched=True) as stored:
            source = self._decoded(stored)
            self.shape, self.dtype, self.state = source.shape, source.dtype, _state(stored)
            self.version: list[Any] = stored.opened.state()
            self.packing, storage = source.packing, stored.storage
            self.chunks = storage.array.chunks if isinstance(storage, BoxStorage) else None

    def _decoded(self, stored: Source) -> Source:
        """Return the opened array, decoded if `decode` is set."""
        return decoded(stored, BUDGET, self.role) if self.decode else stored

    def any_version(self) -> FileArray:
        """Return the same array, with a task name that does not depend on the contents."""
        unversioned = copy.copy(self)
        unversioned.version = []
        return unversioned

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    def __getitem__(self, index: Any) -> NumpyArray:
        indices = index if isinstance(index, tuple) else (index,)
        indices = (*indices, *[slice(None)] * (self.ndim - len(indices)))
        ranges_and_indices = [
            _range_and_index(index_of_dim, n)
            for index_of_dim, n in zip(indices, self.shape, strict=True)
        ]
        box = tuple(pair[0] for pair in ranges_and_indices)
        within = tuple(pair[1] for pair in ranges_and_indices)
        selected: NumpyArray = self.read(box)[within]
        return selected

    def read(self, box: tuple[slice, ...]) -> NumpyArray:
        """Return a box of the array. Raise OSError if the file has been replaced."""
        shape: Shape = tuple(dim_range.stop - dim_range.start for dim_range in box)
        if 0 in shape:
            return np.empty(shape, self.dtype)
        with ExitStack() as stack:
            try:
                stored = stack.enter_context(_opened(self.path))
            except ValueError as error:  # the constructor could open it
                raise OSError(f"{self.path}: changed since it was opened") from error
            source = self._decoded(stored)
            if (source.shape, source.dtype, _state(stored)) != (self.shape, self.dtype, self.state):
                raise OSError(f"{self.path}: changed since it was opened")
            storage = source.storage
            if isinstance(storage, BoxStorage):
                return storage.array.read_box(box)
            assert isinstance(storage, FlatStorage)
            return FlatBoxes(storage.array, storage.fortran, ()).read_box(box)

    def __dask_tokenize__(self) -> object:
        packing = "decoded" if self.packing else "stored"
        return self.path, self.shape, str(self.dtype), self.version, packing


def _range_and_index(index: Any, size: int) -> tuple[slice, Any]:
    """Return the range of positions to read in a dimension, and the index into that range."""
    if not isinstance(index, slice):
        return slice(int(index), int(index) + 1), 0
    selected = range(*index.indices(size))
    if not selected:
        return slice(0, 0), slice(None)
    low, high = min(selected[0], selected[-1]), max(selected[0], selected[-1])
    return slice(low, high + 1), slice(None, None, selected.step)


@contextmanager
def _opened(path: str, *, watched: bool = False) -> Iterator[Source]:
    location = locate(path)
    location.format.require()
    with ExitStack() as stack:
        spill_dir = tempfile.gettempdir()
        resources = Resources(Meter(), BUDGET, spill_dir, stack.callback, watched=watched)
        yield location.format.open(location, resources)


def _state(source: Source) -> list[Any]:
    """Return the size and time of a flat file, which show on any machine whether it has changed."""
    return source.opened.state()[-2:] if isinstance(source.storage, FlatStorage) else []


def from_file(path: str | os.PathLike[str], chunks: Any = "auto", *, decode: bool = True) -> Any:
    """Return an array in a file as a Dask array. Only the header is read.

    Parameters
    ----------
    path : path
        ``x.npy``, ``x.npz:name`` (not compressed), ``model.safetensors:tensor``, or a Zarr
        directory. Workers must find the file under the same path.
    chunks : int, tuple or str, default "auto"
        As for `dask.array.from_array`; ``"auto"`` uses multiples of the chunks, or shards, of a
        Zarr array.
    decode : bool, default True
        As for `gatherum.files.gather_file`: whether to decode packed numbers of netCDF and Zarr.

    Returns
    -------
    dask.array.Array
        The array. A task raises OSError if the file has changed; for a Zarr array, only the shape
        and dtype are checked.

    Raises
    ------
    ValueError
        The file is malformed, or is a compressed member of an ``.npz``.
    OSError
        The file cannot be read, or a run that changes it in place has not finished.
    """
    return lazy_file(finished_file(path, decode=as_boolean("from_file", "decode", decode)), chunks)


def finished_file(
    path: str | os.PathLike[str], role: str = "table", *, decode: bool = True
) -> FileArray:
    """Return an array in a file. Raise OSError if an unfinished run is changing it in place."""
    check_readable(locate(path).resolved)
    return FileArray(path, role, decode=decode)


def check_unpacked(op: str, array: FileArray) -> None:
    """Raise ValueError if a scatter would write decoded numbers to a packed array."""
    if array.packing is not None:
        raise ValueError(f"{op}: {array.path} cannot be written, {array.packing.why_not_changed}")


def lazy_file(array: FileArray, chunks: Any) -> Any:
    """Return an array in a file as a Dask array."""
    sizes = da.core.normalize_chunks(
        chunks, array.shape, dtype=array.dtype, previous_chunks=array.chunks
    )
    meta = np.empty((0,) * array.ndim, array.dtype)
    name = f"from-file-{tokenize(array, sizes)}"
    return da.from_array(array, chunks=sizes, name=name, meta=meta, asarray=False, fancy=False)
