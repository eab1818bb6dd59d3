"""URLs are shown without anything that may be a credential.

A password stands before the ``@`` of the host, a signature in the query. Neither is in what
messages, journals and representations show. Nothing here imports fsspec.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

__all__ = ["UrlAddress", "address_of", "checked_options", "is_url", "refuse_url"]

PROTOCOL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
CHAINED = re.compile(r"[^/]*::[^/]*://")
ONE_SLASH = re.compile(r"(https?|s3|s3a|gs|gcs|az|abfss?|hf):/[^/]")  # what pathlib makes of a URL
LOCAL = ("file", "local")


@dataclass(frozen=True)
class UrlAddress:
    """A URL, whose credentials are not shown."""

    protocol: str  # the text before ``://``, in small letters
    shown: str  # without user, password and query, for messages, journals and formats
    member: str | None  # the array in the file, where the URL names one after a ``#``
    _host: str = field(repr=False)  # as it is asked for, with user and password
    _rest: str = field(repr=False)  # what follows the host
    _query: str = field(repr=False)

    def __str__(self) -> str:
        return self.shown

    def named(self, file: str) -> "UrlAddress":
        """Return the address of the file whose name as `shown` is `file`, a beginning of it."""
        cut = len(self.shown) - len(file)
        return replace(self, shown=file, member=None, _rest=self._rest[: len(self._rest) - cut])

    def below(self, key: str) -> "UrlAddress":
        """Return the address of what lies below this one."""
        return replace(self, shown=f"{self.shown}/{key}", _rest=f"{self._rest}/{key}")

    def require(self) -> None:
        """Raise ImportError where a package is missing that the protocol needs."""
        from gatherum.files.remote.transport import require

        require(self)

    def digest(self) -> str:
        """Return a digest of the URL without user and password."""
        return hashlib.sha256(f"{self.shown}{self._query}".encode()).hexdigest()

    def reveal(self) -> str:
        """Return the URL as it is asked for; it must not be shown."""
        return f"{self.protocol}://{self._host}{self._rest}{self._query}"


def address_of(text: str) -> UrlAddress | None:
    """Read a URL, in which a ``#`` begins the name of an array if it is of HTTP; None for no URL.

    ValueError where it is a chain of URLs, names a local file, or hides where its host ends. The
    error shows nothing of it but its protocol.
    """
    if CHAINED.match(text):
        raise ValueError("chained URLs, with '::' between them, are not read")
    if found := ONE_SLASH.match(text):
        raise ValueError(
            f"a URL must be given as text: a path object has made '{found[1]}:/' of '{found[1]}://'"
        )
    match = PROTOCOL.match(text)
    if match is None:
        return None
    protocol, rest = match[1].lower(), text[match.end() :]
    if protocol in LOCAL:
        raise ValueError(f"a file on this machine is named by its path, not by {protocol}://")
    if not text.isprintable() or " " in text:
        raise ValueError(f"a URL of {protocol}:// has blanks or control characters: encode them")
    host = re.split(r"[/?#]", rest, maxsplit=1)[0]
    if ":" in host and "@" in rest[len(host) :]:  # perhaps a password with a slash in it
        raise ValueError(
            f"a URL of {protocol}:// does not say where its host ends: '@' must be written as %40 "
            "everywhere but before the host"
        )
    member = None
    if protocol in ("http", "https"):
        rest, _, fragment = rest.partition("#")
        member = fragment or None
    path, mark, query = rest[len(host) :].partition("?")
    bare = host.rpartition("@")[2]
    return UrlAddress(protocol, f"{protocol}://{bare}{path}", member, host, path, mark + query)


def is_url(text: str) -> bool:
    """Whether a text is a URL, or meant to be one."""
    return any(form.match(text) for form in (PROTOCOL, CHAINED, ONE_SLASH))


def refuse_url(text: str, why: str) -> None:
    """Raise ValueError for a URL where only a file on this machine will do."""
    if is_url(text):
        raise ValueError(f"{address_of(text)}: {why}")


def checked_options(given: object) -> dict[str, Any]:
    """Return the `storage_options` of a call.

    TypeError where they are no mapping whose keys are texts; it shows nothing of them but a type.
    """
    if given is None:
        return {}
    found = type(given).__name__
    if isinstance(given, Mapping):
        others = [type(key).__name__ for key in given if not isinstance(key, str)]
        if not others:
            return dict(given)
        found = f"a key of type {others[0]}"
    raise TypeError(f"storage_options must be a dict whose keys are of type str, got {found}")
