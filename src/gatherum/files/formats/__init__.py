"""File formats. Each format is a class, and an entry of the table in this module."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from gatherum._system.regular_files import open_regular
from gatherum.files import errors
from gatherum.files.formats.arrow import Arrow
from gatherum.files.formats.format import Format, Location
from gatherum.files.formats.hdf5 import Hdf5
from gatherum.files.formats.npy import Npy
from gatherum.files.formats.npz import Npz
from gatherum.files.formats.safetensors import Safetensors
from gatherum.files.formats.zarr import Zarr
from gatherum.files.remote import UrlAddress, address_of

__all__ = ["FORMATS", "UnknownFormat", "locate", "locate_output"]


def checked(formats: list[Format]) -> list[Format]:
    """Return the formats. Raise TypeError for one that lacks a part or repeats a name."""
    names: set[str] = set()
    for file_format in formats:
        format_class = type(file_format)
        missing = [part for part in ("name", "example") if not hasattr(file_format, part)]
        if not file_format.read_only and format_class.header is Format.header:
            missing.append("header` or `read_only")
        if (
            not file_format.suffixes
            and not file_format.stores_directories
            and format_class.is_start is Format.is_start
        ):
            missing.append("suffixes` or `is_start")
        if missing:
            raise TypeError(
                f"the format {format_class.__name__} has no `{'`, no `'.join(missing)}`"
            )
        spellings = {file_format.name, *file_format.suffixes}
        if repeated := sorted(names & spellings):
            raise TypeError(f"the format {format_class.__name__} repeats {', '.join(repeated)}")
        names |= spellings
    return formats


FORMATS = checked([Npy(), Npz(), Safetensors(), Hdf5(), Arrow(), Zarr()])
START = 64 << 10  # bytes of a file that determine its format
# The first bytes of old formats, their names, the formats that replace them, and a command that
# converts a file.
OLD_FORMATS = {
    b"CDF": ("netCDF 3", "netCDF 4", "nccopy -k nc4"),
    b"\x0e\x03\x13\x01": ("HDF4", "HDF5", "h4toh5"),
}


class UnknownFormat(ValueError):
    """The format of a file is known neither from its name nor from its first bytes."""


def locate(path: str | os.PathLike[str] | Location, name: str | None = None) -> Location:
    """Parse a path or a URL such as ``model.safetensors:tensor``. Return a Location unchanged.

    If the suffix determines the format, the file is not opened. Otherwise, the first bytes
    determine the format. `name` is the name of the format; it overrides the suffix and the first
    bytes.

    Raise TypeError if the argument is not a path, ValueError if no format is known for it, and
    OSError if the file is not a regular file or cannot be read.
    """
    if isinstance(path, Location):
        return path
    text = os.fspath(path) if isinstance(path, (str, os.PathLike)) else None
    if not isinstance(text, str):
        raise TypeError(f"a file must be named by one str or path, got {type(path).__name__}")
    if "\0" in text:
        raise ValueError(f"{text!r} is not a path: it has a null character")
    remote = address_of(text) if ":/" in text else None  # as in all URLs, few paths have it
    text = text if remote is None else remote.shown  # without credentials from here on
    candidates = (
        FORMATS
        if name is None
        else [file_format for file_format in FORMATS if file_format.name == name]
    )
    locations = [
        Location(text, parts[0], file_format, parts[1])
        for file_format in candidates
        if (parts := file_format.recognize(text))
    ]
    if locations:
        first = min(locations, key=_precedence)
    elif name is not None:
        first = _given(text, candidates[0], local=remote is None)
    elif remote is None:
        first = _by_content(text)
    else:
        raise UnknownFormat(f"{text!r} is not a known kind of file: expected {_examples()}")
    return first if remote is None else _at_url(first, remote)


def _precedence(location: Location) -> tuple[int, bool]:
    """Return a sort key that prefers earlier colons, then formats that store directories."""
    return len(location.file), not location.format.stores_directories


def locate_output(path: str | os.PathLike[str] | Location, tables: Iterable[str] = ()) -> Location:
    """Parse an output path like `locate`.

    The message of UnknownFormat lists the formats that can be written, and `tables`: the suffixes
    of the tables that the caller can write.
    """
    if isinstance(path, Location):
        return path
    try:
        return locate(path)
    except UnknownFormat:
        arrays = [file_format.example for file_format in FORMATS if not file_format.read_only]
        examples = _listed([*arrays, *(f"'x.{suffix}'" for suffix in tables)])
        text = f"{os.fspath(path)!r} names no kind of output: expected {examples}"
        raise UnknownFormat(text) from None


def _examples() -> str:
    return _listed([file_format.example for file_format in FORMATS])


def _listed(examples: list[str]) -> str:
    return f"{', '.join(examples[:-1])} or {examples[-1]}"


def _splits(text: str) -> Iterator[tuple[str, str | None]]:
    """Yield the files and members that a path may name, beginning with the whole path."""
    yield text, None
    for position, letter in enumerate(text):
        if letter == ":" and 0 < position < len(text) - 1:
            yield text[:position], text[position + 1 :]


def _given(text: str, file_format: Format, *, local: bool) -> Location:
    """Return the location of a path whose format is given."""
    for file, member in _splits(text) if file_format.has_members and local else ():
        if os.path.lexists(file):
            return Location(text, file, file_format, member)
    return Location(text, text if local else text.rstrip("/"), file_format)


def _by_content(text: str) -> Location:
    """Return the location of a path whose format is determined by the file's first bytes."""
    for file, member in _splits(text):
        if not os.path.lexists(file) or os.path.isdir(file):
            continue
        with open(open_regular(file), "rb") as opened:
            head = opened.read(START)
        for file_format in FORMATS:
            if file_format.is_start(head):
                _check_no_member(file_format, file, None if member is None else f":{member}")
                return Location(text, file, file_format, member)
        for begin, (found, expected, command) in OLD_FORMATS.items():
            if head.startswith(begin):
                raise errors.old_format(file, expected, found, command)
        raise UnknownFormat(
            f"{file!r} is not a known kind of file, by its name or its first bytes: expected "
            f"{_examples()}"
        )
    raise UnknownFormat(f"{text!r} is not there, nor a known kind of file: expected {_examples()}")


def _check_no_member(file_format: Format, file: str, rest_of_name: str | None) -> None:
    """Raise ValueError if a member is named in a file of a single array."""
    if rest_of_name is not None and not file_format.has_members:
        raise ValueError(
            f"{file}: expected {file_format.example} alone, got {rest_of_name!r} behind it"
        )


def _at_url(shown: Location, remote: UrlAddress) -> Location:
    """Return the location of a URL from the location of its displayed form."""
    if not shown.format.reads_urls:
        raise ValueError(f"{shown}: {shown.format.name} files are not read from URLs; download it")
    member = shown.member
    if remote.member is not None:
        if member is not None:
            raise ValueError(
                f"{shown.file}: the array is named twice, {member!r} and {remote.member!r}"
            )
        member = remote.member
        _check_no_member(shown.format, shown.file, f"#{member}")
    text = shown.file if member is None else f"{shown.file}:{member}"
    return Location(text, shown.file, shown.format, member, remote.named(shown.file))
