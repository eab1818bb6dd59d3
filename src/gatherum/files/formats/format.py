"""A file format has this interface for the engine, with defaults for what formats share."""

import os
import re
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePath
from typing import Any, Protocol

import numpy as np

from gatherum._system.regular_files import check_regular
from gatherum.files.durable.build import CREATE, Build
from gatherum.files.durable.context import Context, Means
from gatherum.files.durable.stores import FlatTarget, ScatterTarget
from gatherum.files.formats.storage import Source
from gatherum.files.remote import RemoteFile, UrlAddress, checked_options
from gatherum.files.resources.budget import Budget
from gatherum.files.resources.disk import DiskFile
from gatherum.files.resources.stats import Meter, Progress
from gatherum.files.row_access.flat import FlatArray

__all__ = [
    "MOST_LISTED", "Format", "Location", "Opening", "choose_member", "find_named", "first_line",
    "in_zarr", "is_group",
]  # fmt: skip

MOST_LISTED = 1000  # members of a file or a group that are looked for
# Of a sparse matrix of anndata: the lines that indptr divides, and the lines in indices.
SPARSE = {"csr_matrix": ("row", "columns"), "csc_matrix": ("column", "rows")}


@dataclass(frozen=True)
class Opening(Means):
    """The settings that an input is opened with.

    `watched`: somebody will ask whether it changed meanwhile. `storage_options` is what fsspec's
    filesystems take for URLs, and is never shown. `decode`: whether packed numbers are decoded.
    """

    watched: bool = True
    storage_options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    decode: bool = True

    @classmethod
    def of(
        cls,
        stack: ExitStack,
        memory: str | int = "1GiB",
        spill_dir: str | os.PathLike[str] | None = None,
        storage_options: Mapping[str, Any] | None = None,
        progress: Progress | None = None,
        decode: bool = True,
    ) -> "Opening":
        """Return the settings that a caller gives, checked; `stack` closes what is opened."""
        budget, options = Budget.parse(memory), checked_options(storage_options)
        if not (spill_dir is None or isinstance(spill_dir, (str, os.PathLike))):
            raise TypeError(f"spill_dir must be one path, got {type(spill_dir).__name__}")
        folder = os.fspath(spill_dir or tempfile.gettempdir())
        if not os.path.isdir(folder):
            raise FileNotFoundError(f"{folder}: there is no such directory")
        means = Meter(progress), budget, folder, stack.callback
        return cls(*means, storage_options=options, decode=decode)

    def file(self, location: "Location") -> DiskFile:
        """Open a file that is closed when the call ends."""
        file: DiskFile
        if location.remote is None:
            file = DiskFile(location.file, self.meter)
        else:
            file = RemoteFile(location.remote, self.meter, self.storage_options)
        self.at_end(file.close)
        return file


@dataclass(frozen=True)
class Location:
    """One operand's address: `file` on disk, its format, and the `member` inside it, if any.

    Where the file is at a URL, `remote` is that, and `file` and `text` are how it is shown.
    """

    text: str
    file: str
    format: "Format"
    member: str | None = None
    remote: UrlAddress | None = None

    @cached_property
    def resolved(self) -> str:
        """The file's absolute path without symbolic links, as they are when it is first asked."""
        return self.file if self.remote else os.path.realpath(self.file)

    @property
    def path(self) -> str:
        """The file's absolute path."""
        return self.file if self.remote else os.path.abspath(self.file)

    def require(self) -> None:
        """Raise ImportError where a package is missing that the file needs."""
        self.format.require()
        if self.remote:
            self.remote.require()

    def __str__(self) -> str:
        return self.text


class Format(Protocol):
    """A file format for arrays.

    A format that is only read has a name, `form`, `suffixes`, `read_only` and `open`. One that is
    written also has `header`, all bytes before the elements of its only array, and the checks
    before it replaces a file. The other methods suit both.
    """

    name: str  # a short one, such as "npy"
    form: str  # how an error writes a path of this format
    suffixes: tuple[str, ...] = ()  # how the names of such files end, without the dot
    members: bool = True  # whether a file holds several arrays, one of them named after a colon
    read_only: str | None = None  # why nothing is written to such files
    any_order: bool = False  # whether an array may be written in Fortran order
    remote: bool = False  # whether it is read from URLs, too

    def recognise(self, text: str) -> tuple[str, str | None] | None:
        """Return the file and the member that a path of this format names; None for others."""
        return find_named(text, *self.suffixes, members=self.members)

    def begins(self, start: bytes) -> bool:
        """Whether a file of this format begins so; asked where the name of a file says nothing."""
        return False

    def require(self) -> None:  # most formats need nothing
        """Raise ImportError where a package is missing that the format needs."""
        return

    def open(self, location: Location, opening: Opening) -> Source:
        """Open an input, and check all that its header claims; no element is read.

        ValueError where the file is not what it claims to be, OSError where it cannot be read.
        """

    # ------------------------------------------------------------------ written

    def check_target(self, op: str, out: Location, meter: Meter) -> None:
        """Refuse an output whose replacement would destroy something else.

        ValueError where it holds more than the one array that is to be replaced, OSError where it
        is a device or another special file.
        """
        if os.path.isdir(out.resolved):
            raise ValueError(f"{op}: the output {out} is a directory")
        if os.path.lexists(out.resolved):
            check_regular(out.resolved, os.stat(out.resolved))

    def staged(self, table: Source | None) -> bool:
        """Whether rows are laid out in a flat file first, from which the output is made.

        `table` is that of which the output is to be a copy, if it is to be one.
        """
        return False

    def header(
        self, out: Location, shape: tuple[int, ...], dtype: np.dtype[Any], *, fortran: bool
    ) -> bytes:
        """Return the bytes before the elements of a new file.

        ValueError where the format cannot hold such elements.
        """
        return b""

    def checked_header(
        self, out: Location, shape: tuple[int, ...], dtype: np.dtype[Any], *, fortran: bool = False
    ) -> bytes:
        """Return the bytes before the elements of a new file; an error of them names the output."""
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
        build.use(file, len(header) + array.nbytes)
        file.write_from(0, header)
        return array

    def put(self, array: FlatArray, like: Source, build: Build, limit: int) -> None:
        """Put the complete output in its place; `like` is the table, `limit` bytes of memory."""
        build.replace()

    def copy(self, out: Location, table: Source, context: Context) -> ScatterTarget:
        """Return an output that begins as a copy of the table."""
        self.checked_header(out, table.shape, table.dtype)  # before the table is laid out
        laid = table.storage.flat(context, any_order=self.any_order)
        build, limit = context.build, context.budget.block
        copy = self.create(out, table.shape, table.dtype, build, fortran=laid.fortran)
        layout = laid.layout(context.requests.depth, context.budget)
        return FlatTarget(
            context, layout, laid.array, copy, lambda: self.put(copy, table, build, limit)
        )


def split_member(text: str, suffix: str) -> tuple[str, str] | None:
    """Return the two parts of ``x.suffix:member``, unless there is a file of the whole name."""
    if ":" not in text:
        return None  # most paths, for which no pattern need be compiled
    match = re.fullmatch(rf"(.+?\.{suffix}):(.+)", text, re.DOTALL | re.IGNORECASE)
    return None if match is None or os.path.lexists(text) else (match[1], match[2])


def find_named(text: str, *suffixes: str, members: bool = True) -> tuple[str, str | None] | None:
    """Return the file and the member that a path names by its suffix; None where it has another.

    A directory, and any path in a Zarr directory, is Zarr's.
    """
    for suffix in suffixes:
        if members and (parts := split_member(text, suffix)):
            return parts
        if text.lower().endswith(f".{suffix}") and not (os.path.isdir(text) or in_zarr(text)):
            return text, None
    return None


def in_zarr(text: str) -> bool:
    """Whether a part of a path has the suffix of a Zarr directory."""
    return any(part.endswith(".zarr") for part in PurePath(text.lower()).parts)


def choose_member(name: object, what: str, member: str | None, names: list[str]) -> str:
    """Return the member that a location names, or the only one, or raise ValueError.

    `what` is what the file calls its members: arrays, tensors, datasets, columns.
    """
    if member is None and len(names) == 1:
        return names[0]
    if member is not None and member in names:
        return member
    if not names:
        raise ValueError(f"{name}: the file holds no {what}s")
    if member is None:
        raise ValueError(
            f"{name}: name one of its {len(names)} {what}s after a colon: {_listed(names)}"
        )
    raise ValueError(f"{name}: the file has no such {what}; it holds {_listed(names)}")


def is_group(name: object, what: str, names: list[str], encoding: object) -> ValueError:
    """Return the error of a group in the place of one of its arrays.

    `what` is the file's word for an array, and `names` are the arrays in the group. `encoding` is
    the attribute by which anndata marks a sparse matrix.
    """
    held = f"that holds {_listed(names)}" if names else f"without {what}s"
    advice = ""
    if isinstance(encoding, str) and (parts := SPARSE.get(encoding)):
        line, others = parts
        part = "[indptr[i]:indptr[i + 1]]"
        advice = (
            f"; it is a sparse matrix ({encoding}), whose {line} i has the values data{part} in "
            f"the {others} indices{part}"
        )
    article = "an" if what[0] in "aeiou" else "a"
    return ValueError(f"{name}: expected {article} {what}, got a group {held}{advice}")


def _listed(names: list[str]) -> str:
    """Return some names, the first ones of many."""
    return ", ".join(map(repr, names[:8])) + (", …" if len(names) > 8 else "")


def first_line(error: BaseException) -> str:
    """Return what another package says of an error, in one line."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]
