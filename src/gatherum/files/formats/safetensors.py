"""`.safetensors` files. Headers are checked completely, and no other package is needed.

A file contains the header's length in 8 bytes, a JSON header, and the bytes of the tensors. The
tensors must follow one another without gaps or overlaps to the file's end.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np

from gatherum._model.dtype_rows import ROWS, DTypeRow, spellings
from gatherum.files.formats.dtypes import cannot_hold, name_of, number_type
from gatherum.files.formats.format import Format, Location
from gatherum.files.formats.members import choose_member
from gatherum.files.formats.npy import checked_shape
from gatherum.files.formats.storage import FlatStorage, Source
from gatherum.files.resources.disk import DiskFile
from gatherum.files.resources.resources import Resources
from gatherum.files.resources.stats import Meter

LONGEST_HEADER = 100_000_000
SPELLING = {
    "bool": "BOOL", "bfloat16": "BF16", "float8_e5m2": "F8_E5M2", "float8_e4m3fn": "F8_E4M3",
    "float8_e8m0fnu": "F8_E8M0", "float8_e4m3fnuz": "F8_E4M3FNUZ",
    "float8_e5m2fnuz": "F8_E5M2FNUZ",
}  # fmt: skip
ABSENT = frozenset((
    "complex32", "complex128", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "longdouble",
    "clongdouble",
))  # fmt: skip
PACKED = {"F4": 4, "F6_E2M3": 6, "F6_E3M2": 6}  # bits of types that are not whole bytes


def _letter_and_bits(row: DTypeRow) -> str | None:
    """Return a code such as "F32". The codes of types from other packages are irregular."""
    return f"{row.kind.upper()}{row.bits}" if row.is_of_numpy else None


CODES = spellings("safetensors", SPELLING, ABSENT, _letter_and_bits)
ROW_OF = {code: ROWS[name] for name, code in CODES.items()}
_BITS = PACKED | {code: row.bits for code, row in ROW_OF.items()}


class Safetensors(Format):
    """A tensor in a file that may contain several tensors. A written file contains only one."""

    name, example, suffixes = "safetensors", "'model.safetensors:tensor'", ("safetensors",)
    reads_urls = True
    temporary = "safetensors:copied"

    def is_start(self, head: bytes) -> bool:
        """Return True if a file of this format can begin with these bytes."""
        return head[8:9] == b"{" and int.from_bytes(head[:8], "little") <= LONGEST_HEADER

    def open(self, location: Location, resources: Resources) -> Source:
        """Open an input, and check the file's header."""
        file = location.open(resources)
        tensors = read_header(location.file, file)
        tensor = tensors[choose_member(location, "tensor", location.member, list(tensors))]
        dtype = tensor.dtype(location.text)
        storage = FlatStorage.of(file, tensor.offset, tensor.shape, dtype)
        return Source(location, tensor.shape, dtype, storage, file)

    def check_target(self, op: str, out: Location, meter: Meter) -> None:
        """Raise ValueError if the file contains other tensors, which a new file would lack."""
        super().check_target(op, out, meter)
        if out.member is None:
            raise ValueError(f"{op}: name the tensor to write after a colon: {out}:name")
        if not os.path.exists(out.resolved):
            return
        with closing(DiskFile(out.resolved, meter)) as file:
            other_names = [name for name in read_header(out.file, file) if name != out.member]
        if other_names:
            raise ValueError(
                f"{op}: {out.file} holds other tensors ({', '.join(map(repr, other_names[:4]))}), "
                "which a new file would lose; choose a new file"
            )

    def header(
        self, out: Location, shape: tuple[int, ...], dtype: np.dtype[Any], *, fortran: bool
    ) -> bytes:
        """Return the bytes before the elements of a new file."""
        return write_header(out.member or "", shape, dtype)


@dataclass(frozen=True)
class Tensor:
    """One tensor of a file. `offset` counts from the beginning of the file."""

    name: str
    code: str
    shape: tuple[int, ...]
    offset: int
    nbytes: int

    def dtype(self, where: str) -> np.dtype[Any]:
        """Return the NumPy dtype. Raise ValueError for elements smaller than a byte."""
        if self.code in PACKED:
            raise ValueError(f"{where}: elements of type {self.code} are not whole bytes")
        row = ROW_OF[self.code]
        return np.dtype(row.name).newbyteorder("<") if row.is_of_numpy else number_type(row.name)


def read_header(name: str, file: DiskFile) -> dict[str, Tensor]:
    """Return the tensors of a file by name. Raise ValueError if its header is not valid."""
    size = file.size
    length = _header_length(name, size, file.read_bytes(0, 8))
    try:
        text = file.read_bytes(8, length).decode("utf-8")
        header = json.loads(text, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{name}: the safetensors header is not valid JSON: {error}") from None
    if not isinstance(header, dict):
        raise ValueError(f"{name}: the safetensors header is not a JSON object")
    metadata = header.pop("__metadata__", None)
    metadata = {} if metadata is None else metadata
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise ValueError(f"{name}: __metadata__ must map strings to strings")
    data = 8 + length
    tensors = [_tensor(name, key, fields, data, size) for key, fields in header.items()]
    end = data
    for tensor in sorted(tensors, key=lambda tensor: (tensor.offset, tensor.nbytes)):
        if tensor.offset != end:
            problem = "overlaps" if tensor.offset < end else "leaves a gap after"
            raise ValueError(f"{name}: tensor {tensor.name!r} {problem} the one before it")
        end += tensor.nbytes
    if end != size:
        raise ValueError(f"{name}: the tensors end at byte {end}, the file at {size}")
    return {tensor.name: tensor for tensor in tensors}


def _header_length(name: str, size: int, head: bytes) -> int:
    """Return the length of the JSON header, from the first 8 bytes."""
    if len(head) < 8:
        raise ValueError(f"{name}: not a safetensors file ({size} bytes are too few)")
    length = int.from_bytes(head[:8], "little")
    if length > LONGEST_HEADER:
        raise ValueError(f"{name}: a header of {length} bytes is above the format's limit")
    if length > size - 8:
        raise ValueError(f"{name}: the header of {length} bytes reaches past the end of the file")
    return length


def write_header(name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> bytes:
    """Return the bytes before the elements of a file with one tensor.

    Raise ValueError if the format has no type for `dtype`, or the name is reserved.
    """
    if name == "__metadata__":
        raise ValueError("a safetensors tensor cannot be named __metadata__")
    code = CODES.get(name_of(dtype))
    if code is None or dtype.str[0] == ">":
        raise cannot_hold("a safetensors file", dtype)
    nbytes = math.prod(shape) * dtype.itemsize
    fields = {"dtype": code, "shape": list(shape), "data_offsets": [0, nbytes]}
    text = json.dumps({name: fields}, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a name occurs twice")
    return members


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _tensor(name: str, key: str, fields: Any, data: int, size: int) -> Tensor:
    where = f"{name}: tensor {key!r}"
    if not isinstance(fields, Mapping) or not {"dtype", "shape", "data_offsets"} <= set(fields):
        raise ValueError(f"{where} must have dtype, shape and data_offsets")
    code, shape, offsets = fields["dtype"], fields["shape"], fields["data_offsets"]
    if not isinstance(code, str) or not re.fullmatch(r"\w{1,32}", code) or code not in _BITS:
        raise ValueError(f"{where} has the unknown type {code!r}")
    if not isinstance(shape, list) or not all(map(_is_count, shape)):
        raise ValueError(f"{where} has the shape {shape!r}, not a list of sizes")
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(map(_is_count, offsets)):
        raise ValueError(f"{where} has the data_offsets {offsets!r}, not two positions")
    begin, end = offsets
    bits = math.prod(checked_shape(where, tuple(shape))) * _BITS[code]
    if begin > end or end > size - data:
        raise ValueError(f"{where} lies at bytes {begin} to {end} of {size - data}")
    if bits % 8 or end - begin != bits // 8:
        raise ValueError(f"{where} needs {bits / 8:g} bytes, its data_offsets hold {end - begin}")
    return Tensor(key, code, tuple(shape), data + begin, end - begin)
