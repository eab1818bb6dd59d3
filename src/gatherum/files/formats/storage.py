"""Storages give access to the elements of an opened array, for all formats."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from gatherum.files.durable.build import Build
from gatherum.files.durable.sinks import FlatPatchSink, PatchSink
from gatherum.files.formats.packing import Attributes, Packing
from gatherum.files.resources.disk import PAGE, DiskFile
from gatherum.files.resources.resources import Budget, Resources
from gatherum.files.row_access.boxes import FlatBoxes, FortranLayout, copy_boxes
from gatherum.files.row_access.dimension_names import Names
from gatherum.files.row_access.flat import FlatArray, FlatLayout
from gatherum.files.row_access.grid import BoxArray, BoxLayout
from gatherum.files.row_access.table import TableLayout, largest_box


class Storage:
    """The elements of an opened array."""

    cannot_change: str | None = None  # the reason why the array cannot be changed in place, if any
    fortran: bool = False  # whether the elements are in Fortran order

    def layout(self, depth: int, budget: Budget) -> TableLayout:
        """Return the rows of the array for a call that addresses its leading `depth` dimensions."""
        raise NotImplementedError

    def flat(self, resources: Resources, *, any_order: bool = False) -> FlatStorage:
        """Return the same array in C order in a file, copied to a scratch file if necessary.

        If `any_order`, Fortran order is also accepted.
        """
        raise NotImplementedError

    def patch(self, resources: Resources, build: Build, depth: int) -> PatchSink:
        """Return the sink that collects changes to the array itself until they are complete."""
        raise NotImplementedError(self.cannot_change)


class Opened(Protocol):
    """An opened input, which must not change while it is read."""

    def state(self) -> list[Any]:
        """Return the identity and version of the input for the journal."""
        return []

    def check_unchanged(self) -> None:
        """Raise OSError if the input changed since it was opened."""
        return

    def is_intact(self) -> bool:
        """Return True if the opened input is unchanged, even if its name now refers to another."""
        return True

    def stop(self) -> None:
        """Cancel pending work that may take long, because the call has ended."""
        return


class Address(Protocol):
    """The address of an operand. Its text is the name of the operand in messages."""

    @property
    def path(self) -> str:
        """The file's absolute path."""

    @property
    def member(self) -> str | None:
        """The array inside the file, if it has a name."""


@dataclass(frozen=True)
class Source:
    """An input array."""

    location: Address
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    storage: Storage
    opened: Opened  # must not change while it is read
    names: Names = tuple  # returns the names of the dimensions, or ()
    order: tuple[int, ...] | None = None  # the order of the file's dimensions in the array
    attributes: Attributes | None = None  # returns the attributes of packed numbers, if any
    packing: Packing | None = None  # the rules to decode its numbers, if packed

    @property
    def nbytes(self) -> int:
        """The size of all elements in bytes."""
        return math.prod(self.shape) * self.dtype.itemsize

    def state(self) -> dict[str, Any]:
        """Return the journal's description of an input, in the file's order of dimensions."""
        order = self.order or range(len(self.shape))
        decoded = {} if self.packing is None else {"decoded": True}
        return decoded | {
            "path": self.location.path,
            "member": self.location.member,
            "shape": [self.shape[order.index(axis)] for axis in range(len(order))],
            "dtype": repr(self.dtype),
            "fortran": self.storage.fortran,
            "file": self.opened.state(),
        }


def check_unchanged(sources: Collection[Source]) -> None:
    """Raise OSError if an input changed since it was opened."""
    for source in sources:
        source.opened.check_unchanged()


@contextmanager
def unchanged(sources: Collection[Source]) -> Iterator[None]:
    """Raise OSError instead of TypeError or ValueError if an input changed since it was opened.

    A decoder may raise either error for the bytes of a changing file. An IndexError is not
    replaced. If no error is raised, the inputs are not checked: call `check_unchanged` when the
    result is complete.
    """
    try:
        yield
    except (TypeError, ValueError):
        check_unchanged(sources)
        raise


@dataclass(frozen=True)
class FlatStorage(Storage):
    """Contiguous elements in a file. In Fortran order `array` has the reversed shape."""

    array: FlatArray
    fortran: bool = False

    @classmethod
    def of(
        cls, file: DiskFile, offset: int, shape: tuple[int, ...], dtype: np.dtype[Any],
        fortran: bool = False,
    ) -> FlatStorage:  # fmt: skip
        """Return the elements at `offset` in a file. `shape` is the shape of the array."""
        fortran = fortran and len(shape) > 1
        return cls(FlatArray(file, offset, shape[::-1] if fortran else shape, dtype), fortran)

    def layout(self, depth: int, budget: Budget) -> FlatLayout | FortranLayout:
        """Return the array's rows."""
        row_length = math.prod(self.array.shape[::-1][depth:]) if self.fortran else 1
        if self.fortran and row_length > 1:
            return FortranLayout(self.array, depth, budget)
        return FlatLayout(self.array, self.fortran, depth, budget)

    def flat(self, resources: Resources, *, any_order: bool = False) -> FlatStorage:
        """Return the same array in C order in a file."""
        if any_order or not self.fortran:
            return self if self.array.file.local else self._fetched(resources)
        shape = self.array.shape[::-1]
        item = self.array.dtype.itemsize
        limit = resources.budget.window
        across = largest_box(shape[::-1], item, 64 * item)[::-1]
        chunks = largest_box(shape, item, limit, least_extents=across)
        boxes = FlatBoxes(self.array, True, chunks)
        return _copied_in_c_order(boxes, chunks, resources)

    def _fetched(self, resources: Resources) -> FlatStorage:
        """Copy the array to a scratch file, so that a remote file is read once."""
        file, nbytes, scratch = self.array.file, self.array.nbytes, resources.scratch()
        buffer = memoryview(bytearray(min(resources.budget.window, nbytes)))
        for start in range(0, nbytes, max(1, len(buffer))):
            view = buffer[: min(len(buffer), nbytes - start)]
            file.read_into(self.array.offset + start, view)
            scratch.write_from(start, view)
        return replace(self, array=replace(self.array, file=scratch, offset=0))

    def patch(self, resources: Resources, build: Build, depth: int) -> PatchSink:
        """Return the sink that collects changes of the array itself until they are complete."""
        layout = self.layout(depth, resources.budget)
        return FlatPatchSink(resources, build, layout, self.array)


@dataclass(frozen=True)
class BoxStorage(Storage):
    """Elements that are read in boxes, preferably in whole chunks."""

    array: BoxArray
    cannot_change: str | None = "it is stored in chunks"

    def layout(self, depth: int, budget: Budget) -> BoxLayout:
        """Return the array's rows."""
        return BoxLayout(self.array, depth, budget)

    def flat(self, resources: Resources, *, any_order: bool = False) -> FlatStorage:
        """Return the same array in C order in a scratch file."""
        array, limit = self.array, resources.budget.window
        chunks = largest_box(array.shape, array.dtype.itemsize, limit, least_extents=array.chunks)
        return _copied_in_c_order(array, chunks, resources)


def _copied_in_c_order(
    boxes: BoxArray, chunks: tuple[int, ...], resources: Resources
) -> FlatStorage:
    """Copy an array in C order to a scratch file."""
    copy = FlatArray(resources.scratch(), 0, boxes.shape, boxes.dtype)
    for _ in copy_boxes(boxes, FlatBoxes(copy, False, chunks), chunks):
        pass
    return FlatStorage(copy)


def boxes_of(storage: Storage) -> BoxArray:
    """Return an array that is read in boxes. Each box of a flat file covers about one page."""
    if isinstance(storage, BoxStorage):
        return storage.array
    assert isinstance(storage, FlatStorage)
    array = storage.array
    chunks = largest_box(array.shape, max(1, array.dtype.itemsize), PAGE)
    return FlatBoxes(array, storage.fortran, chunks[::-1] if storage.fortran else chunks)
