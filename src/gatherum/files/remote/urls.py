"""URLs are shown without parts that may be credentials.

A password precedes the ``@`` of the host, and a signature is in the query. Messages, journals and
representations contain neither. Only `UrlAddress.require` imports fsspec.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field, replace
from typing import Any

PROTOCOL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
CHAINED = re.compile(r"[^/]*::[^/]*://")
ONE_SLASH = re.compile(r"(https?|s3|s3a|gs|gcs|az|abfss?|hf):/[^/]")  # URLs as pathlib changes them
LOCAL = ("file", "local")


@dataclass(frozen=True)
class UrlAddress:
    """A URL, whose credentials are not shown."""

    protocol: str  # the text before ``://``, in lower case
    shown: str  # without user, password and query, for messages, journals and formats
    member: str | None  # the array in the file, if the URL names one after a ``#``
    _host: str = field(repr=False)  # as in requests, with user and password
    _path: str = field(repr=False)  # the text after the host
    _query: str = field(repr=False)

    def __str__(self) -> str:
        return self.shown

    def named(self, file: str) -> UrlAddress:
        """Return the address of a file whose `shown` form is `file`, a prefix of this one."""
        cut = len(self.shown) - len(file)
        return replace(self, shown=file, member=None, _path=self._path[: len(self._path) - cut])

    def below(self, key: str) -> UrlAddress:
        """Return the address of an object below this one."""
        return replace(self, shown=f"{self.shown}/{key}", _path=f"{self._path}/{key}")

    def require(self) -> Any:
        """Return fsspec's filesystem class for the protocol.

        Raise ImportError if a package is missing, and ValueError if fsspec does not support the
        protocol.
        """
        try:
            import fsspec
        except ImportError:
            raise ImportError("URLs need fsspec and aiohttp: pip install fsspec aiohttp") from None
        try:
            return fsspec.get_filesystem_class(self.protocol)
        except ImportError as error:  # fsspec's message for a protocol, the same for all its URLs
            raise ImportError(f"{self}: {error}") from None
        except ValueError:
            raise ValueError(f"{self}: fsspec knows no protocol {self.protocol!r}") from None

    def digest(self) -> str:
        """Return a digest of the URL without user and password."""
        return hashlib.sha256(f"{self.shown}{self._query}".encode()).hexdigest()

    def reveal(self) -> str:
        """Return the URL for requests, which must not be shown."""
        return f"{self.protocol}://{self._host}{self._path}{self._query}"


def address_of(text: str) -> UrlAddress | None:
    """Parse a URL. In HTTP, a ``#`` begins the name of an array. Return None for other strings.

    Raise ValueError if the string is a chain of URLs, names a local file, or does not show where
    the host ends. The error shows only the protocol.
    """
    if CHAINED.match(text):
        raise ValueError("chained URLs, with '::' between them, are not read")
    if slash := ONE_SLASH.match(text):
        raise ValueError(
            f"a URL must be given as text: a path object has made '{slash[1]}:/' of '{slash[1]}://'"
        )
    match = PROTOCOL.match(text)
    if match is None:
        return None
    protocol, location = match[1].lower(), text[match.end() :]
    if protocol in LOCAL:
        raise ValueError(f"a file on this machine is named by its path, not by {protocol}://")
    if not text.isprintable() or " " in text:
        raise ValueError(f"a URL of {protocol}:// has blanks or control characters: encode them")
    host = re.split(r"[/?#]", location, maxsplit=1)[0]
    if ":" in host and "@" in location[len(host) :]:  # maybe a password that contains a slash
        raise ValueError(
            f"a URL of {protocol}:// does not say where its host ends: '@' must be written as %40 "
            "everywhere but before the host"
        )
    member = None
    if protocol in ("http", "https"):
        location, _, fragment = location.partition("#")
        member = fragment or None
    path, mark, query = location[len(host) :].partition("?")
    bare = host.rpartition("@")[2]
    return UrlAddress(protocol, f"{protocol}://{bare}{path}", member, host, path, mark + query)


def is_url(text: str) -> bool:
    """Return True if a string is a URL, or intended as one."""
    return any(pattern.match(text) for pattern in (PROTOCOL, CHAINED, ONE_SLASH))


def refuse_url(text: str, why: str) -> None:
    """Raise ValueError for a URL if only a local file is supported."""
    if is_url(text):
        raise ValueError(f"{address_of(text)}: {why}")
