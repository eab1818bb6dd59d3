"""Zarr arrays of formats 2 and 3 in a directory, read and written in complete chunks or shards."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatherum._model import errors
from gatherum._model.errors.audience import hint
from gatherum._model.shape_limits import MAX_RANK
from gatherum._system.regular_files import check_regular, naming, read_regular
from gatherum.files.formats.attributes import attributes_of_zarr
from gatherum.files.formats.dtypes import cannot_hold, is_added, keeps_values
from gatherum.files.formats.format import first_line
from gatherum.files.formats.zarr.nodes import (
    LONGEST_METADATA,
    METADATA,
    metadata_name,
    parsed,
    zarr_group_given,
)
from gatherum.files.resources.disk import check_within
from gatherum.files.resources.resources import Budget
from gatherum.files.resources.stats import Meter
from gatherum.files.row_access.dimension_names import names_in
from gatherum.files.row_access.grid import BoxArray
from gatherum.files.row_access.table import largest_box

CHUNK = 4 << 20  # maximum bytes of a new array's chunks
INNER_BYTES = 512  # approximate bytes to handle a chunk of a shard


class ZarrArray(BoxArray):
    """An array in a Zarr directory, opened by the `zarr` package after checking its metadata.

    Its elements and chunks must fit in `budget`. `watched` is True if `state` and `check_unchanged`
    will be called later; both check every file. Raise ValueError if the directory contains no
    array, or an array that cannot be trusted.
    """

    def __init__(
        self, path: str, meter: Meter, budget: Budget | None = None, *, writable: bool = False,
        watched: bool = True,
    ) -> None:  # fmt: skip
        bounds = import_bounded()
        self.path, self.meter = path, meter
        self._root = _store_root(path)
        self._identity = self.tree() if watched and os.path.isdir(path) else ""
        item = check_metadata(path)
        store = bounds.RegularStore.at(path, self._root, read_only=not writable)
        self._open(store, item, budget, writable=writable)

    def _open(self, store: Any, item: int, budget: Budget | None, *, writable: bool) -> None:
        """Open the array in a store. `item` is the minimum size of an element in bytes."""
        bounds, path = import_bounded(), self.path
        if budget is not None:
            budget.check_item(path, item)  # before zarr allocates an element
        # also write chunks of fill values: a missing chunk could be a lost one
        with _plain_errors(path), bounds.zarr.config.set({"array.write_empty_chunks": True}):
            array = bounds.zarr.open_array(store, mode="r+" if writable else "r")
            self.dtype = np.dtype(array.dtype)
            self.shape = tuple(array.shape)
            chunks = tuple(array.shards or array.chunks)
            inner_count = bounds.inner_chunks(array.metadata)
        if self.dtype.hasobject or self.dtype.kind == "T":
            raise ValueError(f"{path}: holds Python objects, which are never loaded")
        self.chunks = tuple(c if n else max(c, 1) for c, n in zip(chunks, self.shape, strict=True))
        with _plain_errors(path), bounds.zarr.config.set({"array.write_empty_chunks": True}):
            self._array, between = bounds.bounded(array, store)
        self.names, self.attributes = names_in(array), attributes_of_zarr(array)
        if budget is not None:
            nbytes = math.prod(self.chunks) * self.dtype.itemsize
            budget.check_chunk(path, max(nbytes + INNER_BYTES * inner_count, between))

    def tree(self) -> str:
        """Return a digest of the name, size and time of every file."""
        return tree_state(self.path, self._root)

    def state(self) -> list[str]:
        """Return the array's version for the journal."""
        return [self._identity]

    def check_unchanged(self) -> None:
        """Raise OSError if a file of the array changed since it was opened."""
        if not os.path.isdir(self.path):
            raise FileNotFoundError(f"{self.path}: vanished while it was being read")
        if self.tree() != self._identity:
            raise OSError(f"{self.path}: changed while it was being read")

    def is_intact(self) -> bool:
        """Return False: chunks are files that are opened when they are read."""
        return False

    def read_box(self, box: tuple[slice, ...]) -> NDArray[Any]:
        """Return a box of the array, which covers whole chunks."""
        try:
            with _plain_errors(self.path):
                # zarr returns a scalar in native byte order
                values = np.asarray(self._array[box], self.dtype)
        except ValueError as error:
            raise self._naming_chunk(box, error) from error
        self.meter.read(values.nbytes)
        return values

    def _naming_chunk(self, box: tuple[slice, ...], error: ValueError) -> ValueError:
        """Return an error that names the first chunk of a box that cannot be read."""
        if not str(error).startswith(f"{self.path}: "):
            return error  # the error already names a file
        for coordinates in self._chunk_coordinates(box):
            corner = tuple(
                slice(p * c, (p + 1) * c) for p, c in zip(coordinates, self.chunks, strict=True)
            )
            try:
                with _plain_errors(self.path):
                    self._array[corner]
            except ValueError as why:
                chunk = f"{self.path}/{self._key(coordinates)}"
                return ValueError(f"{chunk}: cannot be read: {str(why)[len(self.path) + 2 :]}")
        return error

    def _chunk_coordinates(self, box: tuple[slice, ...]) -> Iterator[tuple[int, ...]]:
        """Return the positions of the chunks of a box in the grid."""
        return itertools.product(
            *(
                range(part.start // chunk, -(-part.stop // chunk))
                for part, chunk in zip(box, self.chunks, strict=True)
            )
        )

    def _key(self, coordinates: tuple[int, ...]) -> str:
        """Return the name of a chunk."""
        return str(self._array.metadata.encode_chunk_key(coordinates))

    def write_box(self, box: tuple[slice, ...], values: NDArray[Any]) -> None:
        """Replace a box of the array, which covers whole chunks."""
        # zarr stores whole chunks of records with their byte order and padding
        values = values.astype(self.dtype, copy=False)
        with _plain_errors(self.path):
            self._array[box] = values
        self.meter.count_written(values.nbytes)


def create_like(
    path: str, like: str, shape: tuple[int, ...], dtype: np.dtype[Any], most_bytes: int = CHUNK
) -> tuple[int, ...]:
    """Create an empty array with chunks of at most `most_bytes` and zarr's default compression.

    It has the format of `like` if that is a Zarr array. Return its chunks.
    """
    version = 2 if metadata_name(like) == ".zarray" else 3
    chunks = largest_box(shape, dtype.itemsize, most_bytes)
    with _plain_errors(path):
        import_bounded().zarr.create_array(
            path, shape=shape, chunks=chunks, dtype=dtype, zarr_format=version, overwrite=True
        )
    return chunks


def check_dtype(dtype: np.dtype[Any]) -> None:
    """Raise ValueError for elements that a new array of Zarr 3 would not preserve.

    A test in memory detects such elements: Zarr has no type for them, or loses more than their byte
    order and padding.
    """
    zarr = import_bounded().zarr
    if is_added(dtype):
        raise cannot_hold("a Zarr array", dtype)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            store = zarr.storage.MemoryStore()
            zarr.create_array(store, shape=(1,), dtype=dtype)
            keeps_dtype = keeps_values(dtype, np.dtype(zarr.open_array(store, mode="r").dtype))
    except (MemoryError, ImportError):
        raise
    except Exception:  # zarr's types may raise any exception for an unknown type
        keeps_dtype = False
    if not keeps_dtype:
        raise cannot_hold("a Zarr array", dtype)


def import_bounded() -> Any:
    """Return the module that wraps the `zarr` package with limits."""
    try:
        import zarr  # noqa: F401
    except ImportError:
        raise ImportError("Zarr arrays need zarr: pip install zarr") from None
    from gatherum.files.formats.zarr import private

    private.check_names()
    from gatherum.files.formats.zarr import bounded

    return bounded


@contextmanager
def _plain_errors(path: str) -> Iterator[None]:
    """Convert exceptions of codecs and the metadata parser to one-line errors."""
    try:
        with naming(path), warnings.catch_warnings():
            # ignore the warning about dtypes without a specification
            warnings.simplefilter("ignore")
            yield
    except (OSError, MemoryError, ImportError):
        raise
    except Exception as error:
        line = first_line(error)
        if isinstance(error, KeyError):
            line = f"{line} is missing"
        raise ValueError(line if line.startswith(path) else f"{path}: {line}") from error


def _store_root(path: str) -> str:
    """Return the outermost directory that Zarr metadata include in the array's store."""
    root = os.path.realpath(path)
    names = (*METADATA, ".zgroup")
    while (above := os.path.dirname(root)) != root and any(
        os.path.lexists(os.path.join(above, name)) for name in names
    ):
        root = above
    return root


def is_array(path: str) -> bool:
    """Return True if a directory contains a Zarr array."""
    try:
        check_metadata(path)
    except (ValueError, OSError):
        return False
    return True


def check_metadata(path: str) -> int:
    """Check metadata and return the element size in bytes. Raise ValueError if they are invalid."""
    if not os.path.isdir(path):
        raise FileNotFoundError(f"{path}: there is no such Zarr directory")
    name = metadata_name(path)
    if name is None:
        raise zarr_group_given(path) or ValueError(
            f"{path}: not a Zarr array (neither zarr.json nor .zarray is there)"
        )
    file = os.path.join(path, name)
    return check_document(path, file, read_regular(file, LONGEST_METADATA))


def check_document(path: str, file: str, content: bytes) -> int:
    """Check metadata, and return the bytes of an element. Raise ValueError if they are invalid."""
    metadata = parsed(file, content)
    if not isinstance(metadata, dict) or metadata.get("node_type", "array") != "array":
        raise zarr_group_given(path, metadata) or ValueError(f"{path}: not a Zarr array")
    if re.search(r'"[^"]*pickle[^"]*"', json.dumps(metadata.get("codecs", [])), re.IGNORECASE) or (
        "pickle" in json.dumps([metadata.get("filters"), metadata.get("compressor")]).lower()
    ):
        raise ValueError(f"{path}: uses a pickle codec, which is never loaded")
    shape = metadata.get("shape")
    if not isinstance(shape, list) or not all(type(n) is int and n >= 0 for n in shape):
        raise ValueError(f"{path}: the shape {shape!r} is not a list of sizes")
    if len(shape) > MAX_RANK:
        raise errors.too_many_dimensions(path, "the shape", MAX_RANK, len(shape))
    _check_grid(path, metadata.get("chunk_grid"))
    for chunks in _chunk_shapes(metadata):
        if len(chunks) == len(shape) and any(
            type(c) is int and c < 1 <= n for c, n in zip(chunks, shape, strict=True)
        ):
            # newer versions of zarr would accept them
            raise ValueError(f"{path}: chunks of {tuple(chunks)}, expected positive extents")
    return _announced_item(json.dumps([metadata.get("dtype"), metadata.get("data_type")]))


def _check_grid(path: str, grid: Any) -> None:
    """Raise ValueError for chunks or shards of different sizes, which zarr 3.2 supports."""
    name = grid.get("name", "regular") if isinstance(grid, dict) else "regular"
    if name != "regular":
        advice = hint("zarr 3.2 reads it: pass an open array, as zarr.open_array(path)")
        raise ValueError(
            f"{path}: its chunk grid is {name!r}, whose chunks or shards differ in size; expected "
            f"'regular'{advice}"
        )


def _chunk_shapes(metadata: dict[str, Any]) -> Iterator[list[Any]]:
    """Yield the chunk shapes in metadata of either format."""
    grid = metadata.get("chunk_grid")
    configuration = grid.get("configuration") if isinstance(grid, dict) else None
    shape = configuration.get("chunk_shape") if isinstance(configuration, dict) else None
    yield from (chunks for chunks in (shape, metadata.get("chunks")) if isinstance(chunks, list))


def _announced_item(dtype: str) -> int:
    """Add up the lengths of strings and raw bytes in a dtype's JSON. Other items are small."""
    lengths = re.findall(r'([SVUr]|length_bytes": )(\d+)', dtype)
    return sum(int(length) * (4 if letter == "U" else 1) for letter, length in lengths)


def tree_state(path: str, root: str) -> str:
    """Return a digest of the directory's files.

    Raise ValueError for a link that leads out of `root`, and OSError for a special file.
    """
    digest = hashlib.sha256()
    folders = [path]
    while folders:
        folder = folders.pop()
        with os.scandir(folder) as entries:
            ordered = sorted(entries, key=lambda child: child.name)
        for child in ordered:
            if ".partial" in child.name:
                continue
            if child.is_symlink():
                check_within(child.path, root)
            if child.is_dir(follow_symlinks=False):
                folders.append(child.path)
                continue
            status = child.stat()
            check_regular(child.path, status)  # also raises for a link to a folder
            text = f"{os.path.relpath(child.path, path)}\0{status.st_size}\0{status.st_mtime_ns}\n"
            digest.update(text.encode("utf-8", "surrogateescape"))
    return digest.hexdigest()
