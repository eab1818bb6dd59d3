"""File formats. Each format is a class, and an entry of the table in this module."""

import os
from collections.abc import Iterable, Iterator

from gatherum._system.regular_files import open_regular
from gatherum.files.formats.arrow import Arrow
from gatherum.files.formats.format import Format, Location
from gatherum.files.formats.hdf5 import Hdf5
from gatherum.files.formats.npy import Npy
from gatherum.files.formats.npz import Npz
from gatherum.files.formats.safetensors import Safetensors
from gatherum.files.formats.zarr import Zarr
from gatherum.files.remote import UrlAddress, address_of

__all__ = ["FORMATS", "UnknownKind", "locate", "locate_output"]


def checked(formats: list[Format]) -> list[Format]:
    """Return the formats. Raise TypeError for one that lacks a part or repeats a name."""
    names: set[str] = set()
    for form in formats:
        kind = type(form)
        missing = [part for part in ("name", "form") if not hasattr(form, part)]
        if not form.read_only and kind.header is Format.header:
            missing.append("header` or `read_only")
        if not form.suffixes and not form.directories and kind.begins is Format.begins:
            missing.append("suffixes` or `begins")
        if missing:
            raise TypeError(f"the format {kind.__name__} has no `{'`, no `'.join(missing)}`")
        own = {form.name, *form.suffixes}
        if repeated := sorted(names & own):
            raise TypeError(f"the format {kind.__name__} repeats {', '.join(repeated)}")
        names |= own
    return formats


FORMATS = checked([Npy(), Npz(), Safetensors(), Hdf5(), Arrow(), Zarr()])
START = 64 << 10  # bytes of a file that determine its format
UNREAD = {
    b"CDF": "a file of netCDF 3, which is not read; nccopy -k nc4 makes one of netCDF 4 of it",
    b"\x0e\x03\x13\x01": "a file of HDF4, which is not read; h4toh5 makes one of HDF5 of it",
}


class UnknownKind(ValueError):
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
    forms = FORMATS if name is None else [form for form in FORMATS if form.name == name]
    locations = [
        Location(text, parts[0], form, parts[1])
        for form in forms
        if (parts := form.recognize(text))
    ]
    if locations:
        first = min(locations, key=lambda location: len(location.file))  # the first colon counts
    elif name is not None:
        first = _given(text, forms[0], local=remote is None)
    elif remote is None:
        first = _by_content(text)
    else:
        raise UnknownKind(f"{text!r} is not a known kind of file: expected {_forms()}")
    return first if remote is None else _at_url(first, remote)


def locate_output(path: str | os.PathLike[str] | Location, tables: Iterable[str] = ()) -> Location:
    """Parse an output path like `locate`. UnknownKind lists the formats that can be written, and
    `tables`, the suffixes of tables that the caller can write.
    """
    if isinstance(path, Location):
        return path
    try:
        return locate(path)
    except UnknownKind:
        arrays = [form.form for form in FORMATS if not form.read_only]
        kinds = _listed([*arrays, *(f"'x.{suffix}'" for suffix in tables)])
        text = f"{os.fspath(path)!r} names no kind of output: expected {kinds}"
        raise UnknownKind(text) from None


def _forms() -> str:
    return _listed([form.form for form in FORMATS])


def _listed(forms: list[str]) -> str:
    return f"{', '.join(forms[:-1])} or {forms[-1]}"


def _splits(text: str) -> Iterator[tuple[str, str | None]]:
    """Yield the files and members that a path may name, beginning with the whole path."""
    yield text, None
    for position, letter in enumerate(text):
        if letter == ":" and 0 < position < len(text) - 1:
            yield text[:position], text[position + 1 :]


def _given(text: str, form: Format, *, local: bool) -> Location:
    """Return the location of a path whose format is given."""
    for file, member in _splits(text) if form.members and local else ():
        if os.path.lexists(file):
            return Location(text, file, form, member)
    return Location(text, text if local else text.rstrip("/"), form)


def _by_content(text: str) -> Location:
    """Return the location of a path whose format is determined by the file's first bytes."""
    for file, member in _splits(text):
        if not os.path.lexists(file) or os.path.isdir(file):
            continue
        with open(open_regular(file), "rb") as opened:
            start = opened.read(START)
        for form in FORMATS:
            if form.begins(start):
                _check_alone(form, file, None if member is None else f":{member}")
                return Location(text, file, form, member)
        why = next((why for begin, why in UNREAD.items() if start.startswith(begin)), None)
        if why is not None:
            raise ValueError(f"{file}: is {why}")
        raise UnknownKind(
            f"{file!r} is not a known kind of file, by its name or its first bytes: expected "
            f"{_forms()}"
        )
    raise UnknownKind(f"{text!r} is not there, nor a known kind of file: expected {_forms()}")


def _check_alone(form: Format, file: str, rest_of_name: str | None) -> None:
    """Raise ValueError if a member is named in a file of a single array."""
    if rest_of_name is not None and not form.members:
        raise ValueError(f"{file}: expected {form.form} alone, got {rest_of_name!r} behind it")


def _at_url(shown: Location, remote: UrlAddress) -> Location:
    """Return the location of a URL from the location of its displayed form."""
    if not shown.format.remote:
        raise ValueError(f"{shown}: {shown.format.name} files are not read from URLs; download it")
    member = shown.member
    if remote.member is not None:
        if member is not None:
            raise ValueError(
                f"{shown.file}: the array is named twice, {member!r} and {remote.member!r}"
            )
        member = remote.member
        _check_alone(shown.format, shown.file, f"#{member}")
    text = shown.file if member is None else f"{shown.file}:{member}"
    return Location(text, shown.file, shown.format, member, remote.named(shown.file))
