"""Where an operand lives: the file, its format, and the member inside it."""

import os
import re
from dataclasses import dataclass

__all__ = ["Location"]

FORMS = "'x.npy', 'x.npz:name', 'model.safetensors:tensor' or a Zarr directory such as 'x.zarr'"
_MEMBER = re.compile(r"(.+?\.(npz|safetensors)):(.+)", re.DOTALL | re.IGNORECASE)


@dataclass(frozen=True)
class Location:
    """One operand's address: `file` on disk, its `kind`, and the `member` inside it, if any."""

    text: str
    file: str
    kind: str
    member: str | None = None

    @classmethod
    def parse(cls, path: str | os.PathLike[str]) -> "Location":
        """Read a path such as ``model.safetensors:tensor``.

        Parameters
        ----------
        path : str or path-like
            The operand as a user writes it.

        Returns
        -------
        Location
            The parts of `path`; nothing is opened.

        Raises
        ------
        TypeError
            `path` is not a path.
        ValueError
            `path` has none of the known forms.

        Examples
        --------
        >>> Location.parse("model.safetensors:wte").member
        'wte'
        """
        text = os.fspath(path)
        if not isinstance(text, str):
            raise TypeError(f"a file must be named by a str or a path of str, got {path!r}")
        if "\0" in text:
            raise ValueError(f"{text!r} is not a path: it has a null character")
        match = _MEMBER.fullmatch(text)
        if match and not os.path.lexists(text):
            return cls(text, match[1], match[2].lower(), match[3])
        kind = _kind_by_name(text)
        if kind is None:
            raise ValueError(f"{text!r} is not a known kind of file: expected {FORMS}")
        return cls(text, text.rstrip("/") if kind == "zarr" else text, kind)

    @property
    def resolved(self) -> str:
        """The file's absolute path without symbolic links."""
        return os.path.realpath(self.file)

    def __str__(self) -> str:
        return self.text


def _kind_by_name(text: str) -> str | None:
    lowered = text.lower()
    if os.path.isdir(text) or any(part.endswith(".zarr") for part in lowered.split("/")):
        return "zarr"
    for kind in ("npy", "npz", "safetensors"):
        if lowered.endswith("." + kind):
            return kind
    return None
