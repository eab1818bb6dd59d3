"""Outputs by address: the header a new file begins with, and what may not be written to."""

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from gatherum.files import npy, safetensors
from gatherum.files.boxes import FlatBoxes, chunk_boxes, filled_first
from gatherum.files.build import Build, remove_path
from gatherum.files.disk import DiskFile, FlatArray
from gatherum.files.location import Location
from gatherum.files.stats import Meter
from gatherum.files.zarrays import ZarrArray, check_metadata, create_array, is_array
from gatherum.operators import OPERATORS
from gatherum.regular import check_regular

__all__ = ["FlatOutput", "check_target"]

CREATE = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
ZARR_CHUNK = 4 << 20


def check_target(op: str, out: Location, inputs: dict[str, Location], meter: Meter) -> None:
    """Refuse an output that cannot be written, or whose replacement would destroy something.

    Raises
    ------
    ValueError
        The output is an input, or holds more than the one array that is to be replaced.
    FileNotFoundError
        Its directory does not exist.
    OSError
        It is a device or another special file.
    """
    target = out.resolved
    for role, location in inputs.items():
        path = location.resolved
        if target == path or target.startswith(path + os.sep) or path.startswith(target + os.sep):
            hint = "; to change the table itself, ask for it in place" if role == "table" else ""
            hint = hint if OPERATORS[op].scatters else ""
            raise ValueError(f"{op}: the output {out} is the same file as the {role}{hint}")
    if out.kind == "npz":
        raise ValueError(f"{op}: {out} cannot be written, .npz files are read only")
    if not os.path.isdir(os.path.dirname(target)):
        raise FileNotFoundError(f"{out}: the directory {os.path.dirname(target)} does not exist")
    if out.kind == "zarr":
        _check_directory(op, out)
    elif os.path.isdir(target):
        raise ValueError(f"{op}: the output {out} is a directory")
    elif os.path.lexists(target):
        check_regular(target, os.stat(target))
    if out.kind == "safetensors":
        _check_tensors(op, out, meter)


def _check_directory(op: str, out: Location) -> None:
    target = out.resolved
    above = os.path.dirname(target)
    if is_array(above):
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


def _check_tensors(op: str, out: Location, meter: Meter) -> None:
    if out.member is None:
        raise ValueError(f"{op}: name the tensor to write after a colon: {out}:name")
    if not os.path.exists(out.resolved):
        return
    file = DiskFile(out.resolved, meter)
    try:
        length = safetensors.header_length(out.file, file.size, file.read_bytes(0, 8))
        tensors = safetensors.parse_header(out.file, file.size, file.read_bytes(0, 8 + length))
    finally:
        file.close()
    others = [name for name in tensors if name != out.member]
    if others:
        raise ValueError(
            f"{op}: {out.file} holds other tensors ({', '.join(map(repr, others[:4]))}), which a "
            "new file would lose; choose a new file"
        )


@dataclass(frozen=True)
class FlatOutput:
    """An output whose rows are written to a flat file: the file itself, or what becomes a Zarr.

    Attributes
    ----------
    location : Location
        Where the output goes.
    shape, dtype, fortran
        What it is.
    version : int
        The Zarr format to write.
    """

    location: Location
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    fortran: bool = False
    version: int = 3

    @property
    def staged(self) -> bool:
        """Whether the flat file is only a stage on the way."""
        return self.location.kind == "zarr"

    def header(self) -> bytes:
        """Return the bytes before the data."""
        if self.location.kind == "npy":
            return npy.write_header(self.shape, self.dtype, self.fortran)
        if self.location.kind == "safetensors":
            return safetensors.write_header(self.location.member or "", self.shape, self.dtype)
        return b""

    def begin(self, build: Build) -> FlatArray:
        """Open the partial file, write its header, and return its array."""
        header = self.header()
        file = DiskFile(build.working, build.meter, CREATE)
        shape = self.shape[::-1] if self.fortran else self.shape
        array = FlatArray(file, len(header), shape, self.dtype)
        build.use(file, len(header) + array.nbytes)
        file.write_from(0, header)
        return array

    def end(self, build: Build, array: FlatArray, limit: int) -> None:
        """Put the finished output in place."""
        if self.staged:
            self._make_zarr(build, array, limit)
        build.replace()

    def _make_zarr(self, build: Build, array: FlatArray, limit: int) -> None:
        remove_path(build.partial)
        item = self.dtype.itemsize
        chunks = filled_first(self.shape, item, min(ZARR_CHUNK, limit))
        create_array(build.partial, self.shape, chunks, self.dtype, self.version)
        target, source = ZarrArray(build.partial, build.meter, writable=True), array
        flat = FlatBoxes(source, False, chunks)
        build.meter.expect(array.nbytes)
        for box in chunk_boxes(self.shape, chunks):
            values = flat.read_box(box)
            target.write_box(box, values)
            build.meter.advance(values.nbytes)
