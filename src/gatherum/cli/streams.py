"""``-`` stands for standard input and standard output: a stream of .npy, or text."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import IO, TYPE_CHECKING, Literal

import click
import numpy as np

from .. import errors
from ..call import Array
from ..operators import Operator
from ..regular_files import naming, open_regular
from .group import OUTPUT
from .indices import LARGEST, from_text

if TYPE_CHECKING:
    from ..files.formats.format import Location

DASH = "-"
INPUT = "standard input"


@contextmanager
def scratch(spill_dir: str | None) -> Iterator[str]:
    """Yield a folder for streams, which is removed at the end."""
    with tempfile.TemporaryDirectory(prefix="gatherum-", dir=spill_dir) as folder:
        yield folder


def received(folder: str, operator: Operator, role: str, components: int = 1) -> Location | Array:
    """Return the array that standard input has: a .npy file of it, or the numbers of a text."""
    if sys.stdin is None:
        raise click.UsageError(f"{role} is {DASH}, but standard input is closed.")
    stream: IO[bytes] = sys.stdin.buffer
    with naming(INPUT):
        start = stream.read(6)
        if role not in ("INDICES", "GROUPS") or start == b"\x93NUMPY":
            found = named(folder, INPUT)
            with open(found.file, "wb") as file:
                file.write(start)
                shutil.copyfileobj(stream, file, 1 << 20)
            return found
        content = start + stream.read(LARGEST + 1 - len(start))
    if len(content) > LARGEST:
        raise errors.file_too_big(INPUT, LARGEST)
    return from_text(operator, INPUT, content, components=components)


def mapped(path: str, name: str | None = None) -> Array:
    """Map the array of a .npy file, which messages give another name where there is one."""
    from ..files.formats import npy

    with open(path, "rb", opener=open_regular) as file:  # NumPy's messages do not name the file
        name = name or path
        end = npy.header_end(name, file.read(npy.PREFIX_BYTES))
        file.seek(0)
        header = npy.parse_header(name, file.read(end), os.fstat(file.fileno()).st_size)
        order: Literal["F", "C"] = "F" if header.fortran else "C"
        return np.memmap(file, header.dtype, "r", header.data_offset, header.shape, order)


def named(folder: str, stream: str) -> Location:
    """Return a .npy file in a folder that messages name as a stream."""
    from ..files.formats import locate

    path = os.path.join(folder, stream.rpartition(" ")[2] + ".npy")
    return replace(locate(path), text=stream)


def send(path: str) -> None:
    """Write a file to standard output."""
    with open(path, "rb") as file, naming(OUTPUT):
        shutil.copyfileobj(file, sys.stdout.buffer, 1 << 20)
