"""Inputs by address: whatever the format, an array that lies flat in a file or in Zarr chunks."""

import os
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gatherum.files import npy, npz, safetensors
from gatherum.files.boxes import FlatBoxes, copy_boxes, filled_first
from gatherum.files.budget import Budget
from gatherum.files.disk import DiskFile, FlatArray
from gatherum.files.location import Location
from gatherum.files.rows import BoxArray
from gatherum.files.stats import Meter
from gatherum.files.zarrays import ZarrArray

__all__ = ["Source", "open_source"]


@dataclass(frozen=True)
class Source:
    """An input array.

    Attributes
    ----------
    location : Location
        Where it is.
    shape, dtype
        What it is.
    content : FlatArray or ZarrArray
        Its elements; a flat array in Fortran order has the reversed shape.
    fortran : bool
        Whether a flat array is in Fortran order.
    opened : DiskFile or ZarrArray
        What must not change while it is read.
    """

    location: Location
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    content: FlatArray | ZarrArray
    fortran: bool
    opened: DiskFile | ZarrArray

    @property
    def nbytes(self) -> int:
        """The bytes of all elements."""
        return int(np.prod(self.shape, dtype=object)) * self.dtype.itemsize

    def state(self) -> dict[str, Any]:
        """Return what the journal keeps of an input."""
        return {
            "path": os.path.abspath(self.location.file),
            "member": self.location.member,
            "shape": list(self.shape),
            "dtype": repr(self.dtype.descr if self.dtype.names else self.dtype),
            "fortran": self.fortran,
            "file": self.opened.state(),
        }

    def check_unchanged(self) -> None:
        """Raise OSError when the input changed since it was opened."""
        self.opened.check_unchanged()

    def close(self) -> None:
        """Close the input."""
        self.opened.close()
        if isinstance(self.content, FlatArray):
            self.content.file.close()

    def flat(self, spill_dir: str, limit: int) -> "Source":
        """Return the same array in C order in a file, laid out in a scratch file if need be."""
        if isinstance(self.content, FlatArray) and not self.fortran:
            return self
        scratch = DiskFile.scratch(spill_dir, self.opened.meter)
        laid = FlatArray(scratch, 0, self.shape, self.dtype)
        item = self.dtype.itemsize
        if isinstance(self.content, FlatArray):
            across = filled_first(self.shape[::-1], item, 64 * item)[::-1]
            chunks = filled_first(self.shape, item, limit, unit=across)
            boxes: BoxArray = FlatBoxes(self.content, True, chunks)
        else:
            boxes = self.content
            chunks = filled_first(self.shape, item, limit, unit=boxes.chunks)
        try:
            for _ in copy_boxes(boxes, FlatBoxes(laid, False, chunks), chunks):
                pass
        except BaseException:
            scratch.close()
            raise
        return replace(self, content=laid, fortran=False)


def open_source(location: Location, meter: Meter, spill_dir: str, budget: Budget) -> Source:
    """Open an input and check all that its header claims.

    Parameters
    ----------
    location : Location
        Where it is.
    meter : Meter
        Counts what is read of it.
    spill_dir : str
        Where a compressed `.npz` member is laid out.
    budget : Budget
        What a Zarr array's elements and chunks must fit in.

    Returns
    -------
    Source
        The array, none of whose elements has been read.

    Raises
    ------
    ValueError
        The file is not what it claims to be.
    OSError
        The file cannot be read.
    """
    if location.kind == "zarr":
        array = ZarrArray(location.file, meter, budget)
        return Source(location, array.shape, array.dtype, array, False, array)
    file = DiskFile(location.file, meter)
    try:
        if location.kind == "safetensors":
            return _tensor(location, file)
        return _numpy(location, file, spill_dir)
    except BaseException:
        file.close()
        raise


def _numpy(location: Location, file: DiskFile, spill_dir: str) -> Source:
    holder, start = file, 0
    if location.kind == "npz":
        header, holder, start = npz.open_member(location.text, file, location.member, spill_dir)
    else:
        end = npy.header_end(location.text, file.read_bytes(0, npy.PREFIX_BYTES))
        header = npy.parse_header(location.text, file.read_bytes(0, end), file.size)
    fortran = header.fortran and len(header.shape) > 1
    shape = header.shape[::-1] if fortran else header.shape
    content = FlatArray(holder, start + header.data_offset, shape, header.dtype)
    return Source(location, header.shape, header.dtype, content, fortran, file)


def _tensor(location: Location, file: DiskFile) -> Source:
    tensor = find_tensor(location, file)
    dtype = tensor.dtype(location.text)
    content = FlatArray(file, tensor.offset, tensor.shape, dtype)
    return Source(location, tensor.shape, dtype, content, False, file)


def find_tensor(location: Location, file: DiskFile) -> safetensors.Tensor:
    """Return the tensor that a location names, or the only one."""
    length = safetensors.header_length(location.file, file.size, file.read_bytes(0, 8))
    start = file.read_bytes(0, 8 + length)
    tensors = safetensors.parse_header(location.file, file.size, start)
    if location.member is None and len(tensors) == 1:
        return next(iter(tensors.values()))
    if location.member in tensors:
        return tensors[location.member]
    listed = ", ".join(map(repr, list(tensors)[:8])) + (", …" if len(tensors) > 8 else "")
    if location.member is None:
        raise ValueError(
            f"{location}: name one of its {len(tensors)} tensors after a colon: {listed}"
        )
    raise ValueError(f"{location}: the file has no such tensor; it holds {listed or 'none'}")
