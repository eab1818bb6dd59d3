"""Read `.npy` headers strictly, and write them as NumPy does.

NumPy's reader is less strict: it accepts booleans as sizes, checks no size against the file, and
has no public function for format 3.
"""

from __future__ import annotations

import ast
import math
import re
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from gatherum._model import errors
from gatherum._model.shape_limits import MAX_RANK
from gatherum.files.formats.dtypes import as_bytes, cannot_hold, is_added
from gatherum.files.formats.format import Format, Location
from gatherum.files.formats.storage import FlatStorage, Source
from gatherum.files.resources.disk import DiskFile
from gatherum.files.resources.resources import Resources

MAGIC = b"\x93NUMPY"
PREFIX_BYTES = 12
LONGEST_HEADER = 1 << 20
ALIGNMENT = 64
# Tokens that a header may contain. For other tokens, Python's parser writes warnings to standard
# error.
_ESCAPE = r"\\(?:[\\'\"abfnrtv]|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})"
_LITERALS = re.compile(
    rf"""(?:[\s()\[\]{{}},:]|-?\d++(?:\.\d++|L)?(?![\w.])|(?:True|False|None)(?!\w)
    |u?'(?:[^'\\\n]|{_ESCAPE})*+'|u?"(?:[^"\\\n]|{_ESCAPE})*+")*+""",
    re.VERBOSE,
)
# Python 2 wrote long integers as 10L. Strings that end with such letters are unchanged.
_LONG = re.compile(r"""('(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+"|\d++)L?""")
# A type as NumPy writes it: byte order, name, length, unit. NumPy parses parts of other types as
# Python code, and warns about 'a', an old name of 'S'.
_TYPE = re.compile(r"[<>|=]?(?:[A-Zb-z]\w*(?:\[\w+\])?|\?)", re.ASCII)


class Npy(Format):
    """An array in a separate file, in C or Fortran order."""

    name, example = "npy", "'x.npy'"
    suffixes, has_members = ("npy",), False
    any_order = reads_urls = True

    def is_start(self, head: bytes) -> bool:
        """Return True if a file of this format can begin with these bytes."""
        return head.startswith(MAGIC)

    def open(self, location: Location, resources: Resources) -> Source:
        """Open an input, and check its header."""
        file = location.open(resources)
        return read_header(location.text, file, 0, file.size).source(location, file, 0, file)

    def header(
        self, out: Location, shape: tuple[int, ...], dtype: np.dtype[Any], *, fortran: bool
    ) -> bytes:
        """Return the bytes before the elements of a new file."""
        return write_header(shape, dtype, fortran)


@dataclass(frozen=True)
class ArrayHeader:
    """A parsed header: shape, dtype, storage order and the offset of the data."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    fortran: bool
    data_offset: int

    @property
    def nbytes(self) -> int:
        """The size of the data in bytes, as an exact integer without an upper limit."""
        return math.prod(self.shape) * self.dtype.itemsize

    def source(self, location: Location, holder: DiskFile, start: int, opened: DiskFile) -> Source:
        """Return the array of a file that begins at `start` of another file, `holder`."""
        offset, shape, dtype = start + self.data_offset, self.shape, self.dtype
        storage = FlatStorage.of(holder, offset, shape, dtype, self.fortran)
        return Source(location, shape, dtype, storage, opened)


def parse_header(name: str, head: bytes, size: int) -> ArrayHeader:
    """Parse the header of a `.npy` file and check it against the file's size.

    `head` contains the first bytes, up to `header_end` or to the file's end. Raise ValueError if
    the file does not match its name or its header.
    """
    length, length_bytes, encoding = _version(name, head)
    offset = 8 + length_bytes + length
    if offset > size or offset > len(head):
        raise ValueError(
            f"{name}: the header of {length} bytes reaches past the end of the file ({size} bytes)"
        )
    fields = _fields(name, head[8 + length_bytes : offset], encoding)
    header = ArrayHeader(
        _shape(name, fields["shape"]),
        _dtype(name, fields["descr"]),
        _flag(name, fields["fortran_order"]),
        offset,
    )
    if header.nbytes > size - offset:
        raise ValueError(
            f"{name}: shape {header.shape} of {header.dtype} needs {header.nbytes} bytes of data, "
            f"the file has {size - offset}"
        )
    return header


def read_header(name: str, file: DiskFile, start: int, size: int) -> ArrayHeader:
    """Read the header of a `.npy` file of `size` bytes that begins at `start` of another file."""
    end = header_end(name, file.read_bytes(start, min(size, PREFIX_BYTES)))
    return parse_header(name, file.read_bytes(start, min(size, end)), size)


def header_end(name: str, head: bytes) -> int:
    """Return the position after the header, from the first `PREFIX_BYTES` bytes."""
    length, length_bytes, _ = _version(name, head)
    return 8 + length_bytes + length


def write_header(shape: tuple[int, ...], dtype: np.dtype[Any], fortran: bool = False) -> bytes:
    """Return the header of a `.npy` file as `numpy.save` writes it.

    The data begin at a multiple of 64.
    """
    try:
        descr = _descr(dtype)
    except (TypeError, ValueError):  # fields overlap, or are out of order
        raise cannot_hold("a .npy file", dtype) from None
    text = f"{{'descr': {descr!r}, 'fortran_order': {fortran}, 'shape': {tuple(shape)!r}, }}"
    for version, length_bytes, encoding in ((1, 2, "latin1"), (2, 4, "latin1"), (3, 4, "utf8")):
        try:
            text_bytes = text.encode(encoding)
        except UnicodeEncodeError:
            continue
        # NumPy leaves space for the first extent to grow to 21 digits
        text_bytes += b" " * max(0, 21 - len(repr(shape[-1 if fortran else 0]))) if shape else b""
        padding = -(8 + length_bytes + len(text_bytes) + 1) % ALIGNMENT
        text_bytes += b" " * padding + b"\n"
        if len(text_bytes) < 1 << (8 * length_bytes):
            return (
                MAGIC
                + bytes([version, 0])
                + len(text_bytes).to_bytes(length_bytes, "little")
                + text_bytes
            )
    raise ValueError(f"a header for shape {shape} of {dtype} does not fit in a .npy file")


def _descr(dtype: np.dtype[Any]) -> Any:
    """Return a dtype's name in a header, in the form that `numpy.save` writes and can read back."""
    plain = as_bytes(dtype)
    return f"<V{dtype.itemsize}" if is_added(dtype) else np.lib.format.dtype_to_descr(plain)


def _version(name: str, head: bytes) -> tuple[int, int, str]:
    if head and len(head) < PREFIX_BYTES and MAGIC.startswith(head[:6]):
        raise ValueError(f"{name}: the file ends in its .npy header, after {len(head)} bytes")
    if head[:6] != MAGIC:
        raise ValueError(f"{name}: not a .npy file (no \\x93NUMPY at its beginning)")
    major, minor = head[6], head[7]
    if minor != 0 or major not in (1, 2, 3):
        raise ValueError(f"{name}: .npy format {major}.{minor} is not known (1.0, 2.0 and 3.0 are)")
    length_bytes = 2 if major == 1 else 4
    length = int.from_bytes(head[8 : 8 + length_bytes], "little")
    if length > LONGEST_HEADER:
        raise ValueError(f"{name}: a header of {length} bytes is not believable (limit 1 MiB)")
    return length, length_bytes, "utf8" if major == 3 else "latin1"


def _fields(name: str, raw: bytes, encoding: str) -> dict[str, Any]:
    try:
        text = raw.decode(encoding).strip()
        if not _LITERALS.fullmatch(text):
            raise ValueError
        if encoding == "latin1":  # formats 1 and 2, which Python 2 could write
            text = _LONG.sub(r"\1", text)
        fields = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        raise ValueError(f"{name}: the .npy header is not a Python literal") from None
    if not isinstance(fields, dict) or set(fields) != {"descr", "fortran_order", "shape"}:
        raise ValueError(
            f"{name}: the .npy header must hold exactly 'descr', 'fortran_order' and 'shape'"
        )
    return fields


def _shape(name: str, shape: Any) -> tuple[int, ...]:
    if not isinstance(shape, tuple) or not all(type(extent) is int for extent in shape):
        raise ValueError(f"{name}: the header's shape must be a tuple of integers, got {shape!r}")
    return checked_shape(name, shape)


def checked_shape(name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return `shape` if an array can have it, or raise ValueError."""
    if any(extent < 0 for extent in shape):
        raise ValueError(f"{name}: the header's shape {shape} has a negative extent")
    if len(shape) > MAX_RANK:
        raise errors.too_many_dimensions(name, "the header's shape", MAX_RANK, len(shape))
    if math.prod(extent for extent in shape if extent) > sys.maxsize:
        raise ValueError(f"{name}: the header's shape {shape} overflows the address type")
    return shape


def _dtype(name: str, descr: Any) -> np.dtype[Any]:
    try:
        if not _is_plain(descr):
            raise ValueError
        dtype = np.lib.format.descr_to_dtype(descr)
    except (TypeError, ValueError, IndexError, KeyError, AttributeError):
        raise ValueError(f"{name}: the header's dtype {descr!r} is not understood") from None
    if dtype.hasobject:
        raise ValueError(f"{name}: holds Python objects, which are never loaded")
    if dtype.subdtype is not None:  # an array of this type would include the subarray in its shape
        raise ValueError(f"{name}: the header's dtype {descr!r} is not that of an array")
    if dtype.itemsize == 0:
        raise ValueError(f"{name}: the header's dtype {descr!r} has no bytes")
    return dtype


def _is_plain(descr: Any) -> bool:
    """Return True if NumPy could have written every type in the description."""
    if isinstance(descr, list):
        return all(_is_plain(field[1:]) for field in descr)  # after its name
    if isinstance(descr, tuple):
        return _is_plain(descr[0])  # before its shape
    return isinstance(descr, str) and _TYPE.fullmatch(descr) is not None


def _flag(name: str, flag: Any) -> bool:
    if not isinstance(flag, bool):
        raise ValueError(f"{name}: the header's fortran_order must be True or False, got {flag!r}")
    return flag
