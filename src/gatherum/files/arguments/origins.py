"""The files that store an array object, such as a memory map, a Zarr array or an h5py dataset."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any


def files_of(array: Any) -> list[str]:
    """Return the absolute paths, without symbolic links, of the files from which an array is read.

    The list is empty for an array in memory, in a remote store or in a closed file.
    """
    return [os.path.realpath(os.fsdecode(path)) for path in _paths(array)]


def _paths(array: Any) -> Iterator[str | bytes | os.PathLike[str]]:
    if hasattr(array, "store") and type(array).__module__.startswith("zarr."):
        yield from _zarr_paths(array)
    elif hasattr(array, "virtual_sources"):
        yield from _hdf5_paths(array)
    while array is not None:  # a view of a memory map may be a plain array
        if isinstance(path := getattr(array, "filename", None), (str, bytes, os.PathLike)):
            yield path
        array = array.obj if isinstance(array, memoryview) else getattr(array, "base", None)


def _zarr_paths(array: Any) -> Iterator[str]:
    """Yield the directory or archive of a Zarr array whose store is on this machine."""
    from gatherum.files.formats.zarr.private import wrapped_store

    store = array.store
    while (wrapped := wrapped_store(store)) is not None:
        store = wrapped
    protocols = getattr(getattr(store, "fs", None), "protocol", "file")
    if "file" not in ((protocols,) if isinstance(protocols, str) else protocols):
        return  # a path at a URL
    if isinstance(root := getattr(store, "root", None), (str, os.PathLike)):
        yield os.path.join(root, array.path)
    elif isinstance(root := getattr(store, "path", None), os.PathLike):
        yield os.fspath(root)  # a ZIP archive
    elif isinstance(root, str):
        yield os.path.join(root, array.path)


def _hdf5_paths(dataset: Any) -> Iterator[str]:
    """Yield the file that contains an HDF5 dataset, and the other files that store its elements."""
    if not dataset:
        return  # the dataset is closed
    yield (file := dataset.file.filename)
    other_files = [name for name, *_ in dataset.external or ()]
    if dataset.is_virtual:
        other_files += [source.file_name for source in dataset.virtual_sources()]
    yield from (os.path.join(os.path.dirname(file), name) for name in other_files if name != ".")
