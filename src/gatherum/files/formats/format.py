"""The interface of file formats, with default implementations of shared behaviour."""

from __future__ import annotations

import os
import re
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from gatherum._system.regular_files import check_regular
from gatherum.files.durable.build import CREATE, Build
from gatherum.files.durable.sinks import CopySink, FileSink, ScatterSink
from gatherum.files.formats.storage import Source
from gatherum.files.remote import RemoteFile, UrlAddress
from gatherum.files.resources.disk import DiskFile
from gatherum.files.resources.resources import Resources
from gatherum.files.resources.stats import Meter
from gatherum.files.row_access.flat import FlatArray


@dataclass(frozen=True)
class Location:
    """The address of an operand: `file` on disk, its format, and the `member` inside it, if any.

    If the file is at a URL, `remote` is the URL, and `file` and `text` are its displayed form.
    """

    text: str
    file: str
    format: Format
    member: str | None = None
    remote: UrlAddress | None = None

    @cached_property
    def resolved(self) -> str:
        """The file's absolute path without symbolic links, resolved on first access."""
        return self.file if self.remote else os.path.realpath(self.file)

    @property
    def path(self) -> str:
        """The file's absolute path."""
        return self.file if self.remote else os.path.abspath(self.file)

    def require(self) -> None:
        """Raise ImportError if a package that the file needs is missing."""
        self.format.require()
        if self.remote:
            self.remote.require()

    def open(self, resources: Resources) -> DiskFile:
        """Open the file until the call ends."""
        file: DiskFile
        if self.remote is None:
            file = DiskFile(self.file, resources.meter)
        else:
            file = RemoteFile(self.remote, resources.meter, resources.storage_options)
        resources.at_end(file.close)
        return file

    def __str__(self) -> str:
        return self.text


class KeyColumn(Protocol):
    """A column of a table whose values may be keys of groups."""

    @property
    def name(self) -> str:
        """The name of the column."""

    @property
    def length(self) -> int:
        """The number of rows."""

    @property
    def is_key(self) -> bool:
        """Whether the values are keys, which are numbered, rather than group numbers."""

    def batches(self) -> Iterator[Any]:
        """Yield the keys of consecutive rows as Arrow arrays. All columns are divided alike."""

    def joined_batches(self) -> Iterator[Any]:
        """Yield the same keys as `batches`, in arrays of more rows if this is faster."""


class Format(Protocol):
    """A file format for arrays.

    A format that is only read has a name, `example`, `suffixes`, `read_only` and `open`. A format
    that is also written has `header`, which returns all bytes before the elements of its only
    array, and checks that run before a file is replaced. The other methods work for all
    formats.
    """

    name: str  # a short name, such as "npy"
    example: str  # an example path of this format, for error messages
    suffixes: tuple[str, ...] = ()  # suffixes of file names, without the dot
    has_members: bool = True  # whether a file contains several arrays, named after a colon
    # Whether an array is a directory, not a file. Such a format overrides `recognize`.
    stores_directories: bool = False
    stores_packed: bool = False  # whether arrays may have attributes of packed numbers
    read_only: str | None = None  # the reason why such files are not written
    any_order: bool = False  # whether an array may be written in Fortran order
    reads_urls: bool = False  # whether the format is also read from URLs
    writes_in_parallel: bool = False  # whether several processes may write parts of the same array
    # The suffix of a temporary file that supports all dtypes of the format, and the member in it.
    temporary: str = "npy"

    def recognize(self, text: str) -> tuple[str, str | None] | None:
        """Return the file and the member in a path of this format, or None for other paths."""
        return find_named(text, *self.suffixes, members=self.has_members)

    def is_start(self, head: bytes) -> bool:
        """Return True if a file of this format can start with these bytes.

        This is called if the name of a file does not determine the format.
        """
        return False

    def require(self) -> None:  # most formats need no package
        """Raise ImportError if a package that the format needs is missing."""
        return

    @abstractmethod
    def open(self, location: Location, resources: Resources) -> Source:
        """Open an input, and check its header without reading an element.

        Raise ValueError if the file is not in this format, and OSError if it cannot be read.
        """

    def decodes_from_start(self, location: Location) -> bool:
        """Return True if a read of any part of an array decodes the array from its start."""
        return False

    def named_columns(self, location: Location, resources: Resources) -> list[str]:
        """Return the names of the columns of a table that a location names.

        Return no names if the format does not store tables.
        """
        return []

    def open_keys(self, location: Location, resources: Resources) -> list[KeyColumn]:
        """Open the columns that a location names. They may be keys of groups."""
        return []

    # ------------------------------------------------------------------ written

    def check_target(self, op: str, out: Location, meter: Meter) -> None:
        """Raise if replacing the output would destroy other data.

        Raise ValueError if it contains more than the one array to replace, and OSError if it is a
        device or another special file.
        """
        if os.path.isdir(out.resolved):
            raise ValueError(f"{op}: the output {out} is a directory")
        if os.path.lexists(out.resolved):
            check_regular(out.resolved, os.stat(out.resolved))

    def is_staged(self, table: Source | None) -> bool:
        """Return True if rows are first written to a flat file, from which the output is made.

        `table` is the table to copy, if the output is a copy.
        """
        return False

    def header(
        self, out: Location, shape: tuple[int, ...], dtype: np.dtype[Any], *, fortran: bool
    ) -> bytes:
        """Return the bytes before the elements of a new file.

        Raise ValueError if the format does not support such elements.
        """
        return b""

    def checked_header(
        self, out: Location, shape: tuple[int, ...], dtype: np.dtype[Any], *, fortran: bool = False
    ) -> bytes:
        """Return the bytes before the elements of a new file. Errors name the output."""
        if dtype.itemsize == 0:
            raise ValueError(f"{out}: elements of dtype {dtype} have no bytes to write")
        try:
            return self.header(out, shape, dtype, fortran=fortran)
        except ValueError as error:
            raise ValueError(f"{out}: {error}") from error

    def create(
        self, out: Location, shape: tuple[int, ...], dtype: np.dtype[Any], build: Build,
        *, fortran: bool = False,
    ) -> FlatArray:  # fmt: skip
        """Open the partial file, write its header, and return its array."""
        header = self.checked_header(out, shape, dtype, fortran=fortran)
        file = DiskFile(build.working, build.meter, CREATE)
        array = FlatArray(file, len(header), shape[::-1] if fortran else shape, dtype)
        build.write_to(file, len(header) + array.nbytes)
        file.write_from(0, header)
        return array

    def replace_target(self, array: FlatArray, like: Source, build: Build, limit: int) -> None:
        """Replace the target with the complete output.

        The output is like the table `like`, and the call may use `limit` bytes of memory.
        """
        build.replace()

    def new(
        self, out: Location, shape: tuple[int, ...], table: Source, resources: Resources,
        build: Build,
    ) -> FileSink:  # fmt: skip
        """Return an output of the given shape, with the dtype of the table."""
        return FileSink(
            resources,
            build,
            lambda: self.create(out, shape, table.dtype, build),
            lambda array: self.replace_target(array, table, build, resources.budget.piece),
        )

    def copy(
        self, out: Location, table: Source, resources: Resources, build: Build, depth: int
    ) -> ScatterSink:
        """Return an output that begins as a copy of a table whose `depth` dimensions are keyed."""
        self.checked_header(out, table.shape, table.dtype)  # before the table is copied to a file
        laid = table.storage.flat(resources, any_order=self.any_order)
        copy = self.create(out, table.shape, table.dtype, build, fortran=laid.fortran)
        layout, limit = laid.layout(depth, resources.budget), resources.budget.piece
        return CopySink(
            resources,
            build,
            layout,
            laid.array,
            copy,
            lambda: self.replace_target(copy, table, build, limit),
        )


def split_member(text: str, suffix: str) -> tuple[str, str] | None:
    """Split ``x.suffix:member``. Return None for other names, and for existing files."""
    if ":" not in text:
        return None  # most paths, without compiling a pattern
    match = re.fullmatch(rf"(.+?\.{suffix}):(.+)", text, re.DOTALL | re.IGNORECASE)
    return None if match is None or os.path.lexists(text) else (match[1], match[2])


def find_named(text: str, *suffixes: str, members: bool = True) -> tuple[str, str | None] | None:
    """Return the file and the member that a path names by a suffix, or None for other suffixes."""
    for suffix in suffixes:
        if members and (parts := split_member(text, suffix)):
            return parts
        if text.lower().endswith(f".{suffix}"):
            return text, None
    return None


def first_line(error: BaseException) -> str:
    """Return the first line of an error message from another package."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]
