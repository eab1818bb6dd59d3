"""Standard input and output as ``-``: a stream of .npy, a model, or text."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import IO, TYPE_CHECKING, Literal

import click
import numpy as np

from gatherum._model import errors
from gatherum._model.arrays import NumpyArray
from gatherum._model.operators import Operator
from gatherum._system.regular_files import naming, open_regular

from .command_group import OUTPUT
from .indices import LARGEST, from_text

if TYPE_CHECKING:
    from gatherum.files.formats.format import Location

DASH = "-"
INPUT = "standard input"


@contextmanager
def stream_folder(spill_dir: str | None) -> Iterator[str]:
    """Yield a temporary folder for streams."""
    with tempfile.TemporaryDirectory(prefix="gatherum-", dir=spill_dir) as folder:
        yield folder


def read_array(folder: str, operator: Operator, role: str) -> Location | NumpyArray:
    """Read an array from standard input: a .npy file, copied to a folder, or numbers as text."""
    stream = open_input(role)
    with naming(INPUT):
        first_bytes = stream.read(6)
        if role not in ("INDICES", "GROUPS") or first_bytes == b"\x93NUMPY":
            location = named_file(folder, INPUT)
            with open(location.file, "wb") as file:
                file.write(first_bytes)
                shutil.copyfileobj(stream, file, 1 << 20)
            return location
    if not first_bytes:
        raise ValueError(f"{INPUT}: is empty; a header alone is a text without numbers")
    return from_text(operator, INPUT, read_input(role, LARGEST, first_bytes))


def array_input(operator: Operator, role: str) -> NumpyArray:
    """Read standard input into an array in memory."""
    with stream_folder(None) as folder:
        source = read_array(folder, operator, role)
        return source if isinstance(source, np.ndarray) else np.array(map_file(source.file, INPUT))


def open_input(role: str) -> IO[bytes]:
    """Return standard input for an argument that is a dash."""
    # The command replaces a closed stream with devnull.
    if sys.stdin is None or getattr(sys.stdin, "name", "") == os.devnull:
        raise click.UsageError(f"{role} is {DASH}, but standard input is closed.")
    return sys.stdin.buffer


def read_input(role: str, limit: int, head: bytes = b"") -> bytes:
    """Read all of standard input. Raise OSError if there are more than `limit` bytes.

    `head` contains the bytes that have already been read.
    """
    with naming(INPUT):
        content = head + open_input(role).read(limit + 1 - len(head))
    if len(content) > limit:
        raise errors.file_too_big(INPUT, limit)
    return content


def check_one(roles: Sequence[str]) -> None:
    """Raise UsageError if several arguments, listed in `roles`, are standard input."""
    if len(roles) > 1:
        named_roles = f"two {roles[0]}s" if roles[0] == roles[1] else f"{roles[0]} and {roles[1]}"
        raise click.UsageError(f"{named_roles} cannot both be standard input.")


def mapped_input(role: str) -> NumpyArray:
    """Map a copy of the .npy file on standard input. The copy exists as long as the array."""
    with tempfile.TemporaryFile() as file:
        with naming(INPUT):
            shutil.copyfileobj(open_input(role), file, 1 << 20)
        return _mapped(file, INPUT)


def map_file(path: str, name: str | None = None) -> NumpyArray:
    """Map the array of a .npy file. Messages call the file `name`, if given."""
    with open(path, "rb", opener=open_regular) as file:  # NumPy's messages do not name the file
        return _mapped(file, name or path)


def _mapped(file: IO[bytes], name: str) -> NumpyArray:
    from gatherum.files.formats import npy

    file.seek(0)
    end = npy.header_end(name, file.read(npy.PREFIX_BYTES))
    file.seek(0)
    header = npy.parse_header(name, file.read(end), os.fstat(file.fileno()).st_size)
    order: Literal["F", "C"] = "F" if header.fortran else "C"
    return np.memmap(file, header.dtype, "r", header.data_offset, header.shape, order)


def named_file(folder: str, stream: str) -> Location:
    """Return the location of a .npy file in a folder. Messages use the name of the stream."""
    from gatherum.files.formats import locate

    path = os.path.join(folder, stream.rpartition(" ")[2] + ".npy")
    return replace(locate(path), text=stream)


def write_to_output(path: str) -> None:
    """Write a file to standard output."""
    with open(path, "rb") as file, naming(OUTPUT):
        shutil.copyfileobj(file, sys.stdout.buffer, 1 << 20)
