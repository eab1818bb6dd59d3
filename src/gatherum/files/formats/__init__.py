"""The formats of files that are read and written, one class each: a new one is a row here."""

import os

from gatherum.files.formats.arrow import Arrow
from gatherum.files.formats.format import Format, Location
from gatherum.files.formats.hdf5 import Hdf5
from gatherum.files.formats.npy import Npy
from gatherum.files.formats.npz import Npz
from gatherum.files.formats.safetensors import Safetensors
from gatherum.files.formats.zarr import Zarr
from gatherum.files.remote import Address, address_of

__all__ = ["FORMATS", "locate"]

FORMATS: list[Format] = [Npy(), Npz(), Safetensors(), Hdf5(), Arrow(), Zarr()]


def locate(path: str | os.PathLike[str]) -> Location:
    """Read a path or a URL such as ``model.safetensors:tensor``; nothing is opened.

    Parameters
    ----------
    path : str or path-like
        The operand as a user writes it.

    Returns
    -------
    Location
        The parts of `path`.

    Raises
    ------
    TypeError
        `path` is not a path.
    ValueError
        `path` has none of the known forms.

    Examples
    --------
    >>> locate("model.safetensors:wte").member
    'wte'
    """
    text = os.fspath(path)
    if not isinstance(text, str):
        raise TypeError(f"a file must be named by a str or a path of str, got {path!r}")
    if "\0" in text:
        raise ValueError(f"{text!r} is not a path: it has a null character")
    remote = address_of(text)
    text = text if remote is None else remote.shown  # from here on nothing shows a credential
    found = [
        Location(text, parts[0], form, parts[1])
        for form in FORMATS
        if (parts := form.recognise(text))
    ]
    if not found:
        *most, last = (form.form for form in FORMATS)
        raise ValueError(
            f"{text!r} is not a known kind of file: expected {', '.join(most)} or {last}"
        )
    first = min(found, key=lambda location: len(location.file))  # the first colon counts
    return first if remote is None else _at_url(first, remote)


def _at_url(found: Location, remote: Address) -> Location:
    """Return what a URL names, as `found` by what is shown of it."""
    if not found.format.remote:
        raise ValueError(f"{found}: {found.format.name} files are not read from URLs; download it")
    member = found.member
    if remote.member is not None:
        if member is not None:
            raise ValueError(
                f"{found.file}: the array is named twice, {member!r} and {remote.member!r}"
            )
        member = remote.member
        if found.format.recognise(f"{found.file}:{member}") != (found.file, member):
            raise ValueError(
                f"{found.file}: expected {found.format.form} alone, got {f'#{member}'!r} behind it"
            )
    text = found.file if member is None else f"{found.file}:{member}"
    return Location(text, found.file, found.format, member, remote.named(found.file))
