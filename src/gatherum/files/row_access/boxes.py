"""Read flat files in boxes, for Fortran order and for copies to and from Zarr."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatherum.files.resources.resources import Budget
from gatherum.files.resources.stats import Meter

from .flat import FlatArray, FlatRows
from .grid import Box, BoxArray, BoxLayout, GridRows
from .table import Panel, RowRuns, RowTable, largest_box

FIRST, ONE = np.zeros(1, np.int64), np.ones(1, np.int64)


class FlatBoxes(BoxArray):
    """A flat file as an array of boxes, with `chunks` as the preferred boxes.

    In Fortran order, the array has the dimensions of the storage in reverse order.
    """

    def __init__(self, array: FlatArray, fortran: bool, chunks: tuple[int, ...]) -> None:
        self.array, self.fortran, self.chunks = array, fortran, chunks
        self.shape = array.shape[::-1] if fortran else array.shape
        self.dtype = array.dtype

    def read_box(self, box: Box) -> NDArray[Any]:
        """Return a box of the array."""
        stored = self._stored(box)
        values = self._as_row(stored).read(FIRST, ONE).rows
        values = values.reshape([dim_range.stop - dim_range.start for dim_range in stored])
        return values.T if self.fortran else values

    def write_box(self, box: Box, values: NDArray[Any]) -> None:
        """Replace a box of the array."""
        stored = np.ascontiguousarray(values.T if self.fortran else values, self.dtype)
        row = stored.reshape(1, -1)
        self._as_row(self._stored(box)).write(RowRuns(FIRST, ONE, row, row))

    def _stored(self, box: Box) -> Box:
        return box[::-1] if self.fortran else box

    def _as_row(self, box: Box) -> FlatRows:
        """Return a box of the storage as the only row of the file."""
        panel = Panel.of(
            self.array.shape, tuple((dim_range.start, dim_range.stop) for dim_range in box)
        )
        return FlatRows(self.array, (), self.array.size, panel)


class FortranLayout(BoxLayout):
    """The scattered rows of a file in Fortran order, as a grid of boxes that fit in memory."""

    def __init__(self, array: FlatArray, depth: int, budget: Budget) -> None:
        shape, item, limit = array.shape[::-1], array.dtype.itemsize, budget.piece
        across = max(1, limit // max(1, math.prod(shape[depth:]) * item))
        keyed = largest_box(shape[:depth][::-1], 1, across)[::-1]
        chunks = (*keyed, *largest_box(shape[depth:], item, limit))
        super().__init__(FlatBoxes(array, True, chunks), depth, budget)

    def rows_of(self, other: FlatArray, panel: Panel) -> RowTable:
        """Return the rows of another array with the same layout."""
        return GridRows(FlatBoxes(other, True, self.array.chunks), self.depth, panel)


def chunk_boxes(shape: tuple[int, ...], chunks: tuple[int, ...]) -> Iterator[Box]:
    """Divide an array into its chunks, in row-major order."""
    steps = (
        [slice(start, min(start + step, n)) for start in range(0, n, step)]
        for n, step in zip(shape, chunks, strict=True)
    )
    yield from product(*steps)


def copy_boxes(source: BoxArray, target: BoxArray, chunks: tuple[int, ...]) -> Iterator[int]:
    """Copy an array box by box. Yield the size of each box in bytes."""
    for box in chunk_boxes(source.shape, chunks):
        values = source.read_box(box)
        target.write_box(box, values)
        yield values.nbytes


def dataset_type(name: object, dataset: Any) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Return the shape and dtype of the array that a dataset is read as.

    HDF5's array types add dimensions. Raise ValueError if the dataset has no shape, such as an
    empty HDF5 dataset.
    """
    if dataset.shape is None:
        raise ValueError(f"{name}: an empty dataset of HDF5 has no shape and no elements")
    shape, dtype = tuple(dataset.shape), np.dtype(dataset.dtype)
    while dtype.subdtype is not None:
        dtype, inner_shape = dtype.subdtype
        shape += inner_shape
    if dtype.kind == "S":  # h5py's metadata contain the encoding, which other formats do not keep
        dtype = np.dtype(dtype.str)
    return shape, dtype


def _chunk_sizes(array: Any) -> tuple[int, ...] | None:
    """Return the extents of shards or chunks; for a rectilinear grid, the largest extents."""
    try:
        return getattr(array, "shards", None) or getattr(array, "chunks", None)
    except NotImplementedError:  # zarr 3.2 raises this
        return tuple(max(sizes, default=1) for sizes in array.write_chunk_sizes)


class SlicedArray(BoxArray):
    """An array object that returns boxes by slicing.

    An array without chunks is read in pieces of `piece` bytes.
    """

    def __init__(self, name: str, array: Any, meter: Meter, piece: int) -> None:
        self._name, self._array, self._meter = name, array, meter
        self.shape, self.dtype = dataset_type(name, array)
        self._rank = len(array.shape)
        chunks = _chunk_sizes(array)
        chunks = chunks or largest_box(self.shape, max(1, self.dtype.itemsize), piece)
        chunks = (*chunks, *self.shape[len(chunks) :])
        self.chunks = tuple(max(1, int(n)) for n in chunks)

    def read_box(self, box: Box) -> NDArray[Any]:
        """Return a box of the array."""
        rank = self._rank
        values = np.asarray(self._array[box[:rank]], self.dtype)
        if box[rank:]:
            values = values[(slice(None),) * rank + box[rank:]]
        expected = tuple(dim_range.stop - dim_range.start for dim_range in box)
        if values.shape != expected:
            raise OSError(f"{self._name}: returned shape {values.shape}, expected {expected}")
        self._meter.read(values.nbytes)
        return values
