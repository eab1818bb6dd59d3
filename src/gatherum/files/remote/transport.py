"""Make one request through fsspec, and check the answer.

Text from a server, aiohttp or a filesystem is not passed on, because it may contain the URL.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any, NamedTuple

from gatherum._system.text_numbers import integer_of
from gatherum.files.remote import private
from gatherum.files.remote.urls import UrlAddress

IDLE = 30.0  # seconds without a byte after which a request fails
MOST_REDIRECTS = 10
AGAIN = (408, 425, 429)  # statuses below 500 that may change in another try
LONGEST_PAUSE = 30.0  # maximum seconds of a server's Retry-After
WHEN = ("ETag", "etag", "e_tag", "LastModified", "last_modified", "mtime", "updated", "created",
        "generation", "version_id")  # names of the version in filesystems  # fmt: skip
PERMANENT = (PermissionError, IsADirectoryError, NotADirectoryError)
_PART = re.compile(r"bytes ([0-9]{1,18})-([0-9]{1,18})/([0-9]{1,18})")
UNREACHED = "the server cannot be reached"


class ServerError(OSError):
    """A server did not answer a request correctly."""


class Failed(Exception):
    """A request failed, and another try may succeed."""

    def __init__(self, why: str, pause: float = 0.0) -> None:
        super().__init__(why)
        self.pause = pause  # seconds that the server requests to wait


class Refused(Exception):
    """A request failed, and further tries cannot succeed."""

    raised: type[Exception] = ServerError  # type of the caller's exception


class Missing(Refused):
    """The object does not exist."""

    raised = FileNotFoundError


class Changed(Refused):
    """The object differs from the one that was opened."""

    raised = OSError


class Unfit(Refused):
    """The filesystem does not accept the options."""

    raised = ValueError

    def __init__(self, address: UrlAddress, error: Exception) -> None:
        super().__init__(
            f"fsspec's filesystem for {address.protocol}:// does not take these storage_options "
            f"({type(error).__name__})"
        )


class Version(NamedTuple):
    """The version of an object, which differs after a change."""

    size: int
    tag: str | None = None
    modified: str | None = None

    def is_other(self, later: Version) -> bool:
        """Return True if a later answer describes another object. Missing fields compare equal."""
        return self.size != later.size or any(
            None not in pair and pair[0] != pair[1]
            for pair in zip(self[1:], later[1:], strict=True)
        )


def open_transport(address: UrlAddress, options: Mapping[str, Any]) -> Transport:
    """Return a transport for objects at `address` and below, with the filesystem's `options`.

    Raise ValueError if the filesystem does not accept them. Raise OSError if the filesystem
    connects to its server immediately, as for FTP, and cannot reach it.
    """
    filesystem_class = address.require()
    try:
        # some filesystems have options for the user and the host in the URL
        filesystem = filesystem_class(
            **{**private.options_in(filesystem_class, address.reveal()), **options}
        )
        transport = (
            Http(filesystem) if address.protocol in ("http", "https") else Filesystem(filesystem)
        )
        if isinstance(transport.loop, asyncio.AbstractEventLoop):
            return transport
        failure: Exception = TypeError()
    except Exception as error:
        failure = error
    file_missing = isinstance(failure, (*PERMANENT, FileNotFoundError))  # a file in the options
    if isinstance(failure, OSError) and not file_missing:
        raise OSError(f"{address}: {UNREACHED} ({type(failure).__name__})")
    raise ValueError(f"{address}: {Unfit(address, failure)}")


class Http:
    """HTTP, through the session of fsspec's filesystem. Every header and length is checked.

    Each call is one request, which runs in `loop`, and raises Failed or Refused.
    """

    def __init__(self, filesystem: Any) -> None:
        self._filesystem, self.loop = filesystem, filesystem.loop

    async def read_beginning(self, address: UrlAddress, buffer: memoryview) -> tuple[Version, int]:
        """Fill `buffer` from the beginning. Return the version and the number of bytes received."""
        return await self.read_part(address, 0, buffer)

    async def version(self, address: UrlAddress) -> Version:
        """Return the object's current version."""
        version, _ = await self.read_part(address, 0, memoryview(bytearray(1)))
        return version

    async def read_part(
        self, address: UrlAddress, start: int, buffer: memoryview
    ) -> tuple[Version, int]:
        """Fill `buffer` from byte `start`. Return the version, and the number of bytes received."""
        last = start + len(buffer) - 1
        async with self._answer(address, {"Range": f"bytes={start}-{last}"}) as answer:
            content_range = answer.headers.get("Content-Range", "")
            if answer.status == 416 and (
                shorter := re.fullmatch(r"bytes \*/([0-9]{1,18})", content_range)
            ):
                return _version(answer, int(shorter[1])), 0
            _check_status(answer.status, answer.headers)
            if answer.status != 206:
                raise Refused(
                    "the server does not give parts of files "
                    f"(status {answer.status} in place of 206)"
                )
            match = _PART.fullmatch(content_range)
            if match is None:
                raise Refused("the server does not say how large the file is (Content-Range)")
            first, end, size = (int(digits) for digits in match.groups())
            if first != start or not first <= end <= last or end >= size:
                raise Failed(
                    f"the server gave bytes {first} to {end} of {size} for {start} to {last}"
                )
            await _fill(answer, buffer[: end + 1 - start])
            return _version(answer, size), end + 1 - start

    async def read_whole(self, address: UrlAddress, limit: int) -> bytes:
        """Return an object of at most `limit` bytes."""
        async with self._answer(address, {}) as answer:
            _check_status(answer.status, answer.headers)
            if answer.status != 200:
                raise Refused(f"the server gives a part (status {answer.status} in place of 200)")
            announced = integer_of(answer.headers.get("Content-Length", ""))
            if announced is not None and announced > limit:
                raise Refused(f"it has {announced} bytes, at most {limit} are read")
            content = bytearray()
            async for piece in answer.content.iter_any():
                content += piece
                if len(content) > limit:
                    raise Refused(f"it has more than the {limit} bytes that are read")
            if announced is not None and len(content) != announced:
                raise Failed(f"the answer ended after {len(content)} of {announced} bytes")
            return bytes(content)

    @asynccontextmanager
    async def _answer(self, address: UrlAddress, headers: Mapping[str, str]) -> AsyncIterator[Any]:
        """Send a request, and yield the answer before its body is read."""
        import aiohttp

        timeout = aiohttp.ClientTimeout(total=None, sock_connect=IDLE, sock_read=IDLE)
        options = {"timeout": timeout, "auto_decompress": False, **self._filesystem.kwargs}
        options["max_redirects"] = MOST_REDIRECTS
        url = _encoded(self._filesystem, address)
        answer = failure = None
        try:
            sent_headers = {**headers, "Accept-Encoding": "identity"}
            options["headers"] = {**options.get("headers", {}), **sent_headers}
            session = await self._filesystem.set_session()
            async with session.get(url, **options) as answer:
                if address.protocol == "https" and answer.url.scheme != "https":
                    raise Refused("the server redirects from https to http")
                if answer.headers.get("Content-Encoding", "identity") != "identity":
                    raise Refused("the server compresses what it was asked for as it is")
                yield answer
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            failure = _understood(error)
        except Exception as error:
            if answer is not None:
                raise
            failure = Unfit(address, error)
        if failure:  # outside the handler, whose error shows the URL
            raise failure


def _encoded(filesystem: Any, address: UrlAddress) -> Any:
    """Return a URL for aiohttp. An encoded URL is unchanged, to keep its signature valid."""
    import yarl

    url = address.reveal()
    try:
        return yarl.URL(url, encoded=True) if "%" in url else filesystem.encode_url(url)
    except ValueError:
        pass  # raise outside the handler: yarl's error shows the URL
    raise Refused("the URL is not understood")


def _check_status(status: int, headers: Mapping[str, str]) -> None:
    if 200 <= status < 300:
        return
    phrases = {item.value: f" ({item.phrase})" for item in HTTPStatus}
    words = f"the server answered {status}{phrases.get(status, '')}"
    if status in (404, 410):
        raise Missing(words)
    if status >= 500 or status in AGAIN:
        seconds = integer_of(headers.get("Retry-After", "")) or 0
        raise Failed(words, min(max(seconds, 0), LONGEST_PAUSE))
    raise Refused(words)


def _version(answer: Any, size: int) -> Version:
    return Version(size, answer.headers.get("ETag"), answer.headers.get("Last-Modified"))


async def _fill(answer: Any, buffer: memoryview) -> None:
    """Read exactly the number of bytes in `buffer`."""
    received = 0
    async for piece in answer.content.iter_any():
        if received + len(piece) > len(buffer):
            raise Failed(f"the server gave more than the {len(buffer)} bytes that it announced")
        buffer[received : received + len(piece)] = piece
        received += len(piece)
    if received < len(buffer):
        raise Failed(f"the answer ended after {received} of {len(buffer)} bytes")


def _understood(error: Exception) -> Exception:
    """Return the cause of an error, without a URL in its message."""
    import aiohttp

    if isinstance(error, TimeoutError):
        return Failed(f"nothing came for {IDLE:g} s")
    permanent: list[tuple[type[Exception], str]] = [
        (aiohttp.TooManyRedirects, f"the server redirects more than {MOST_REDIRECTS} times"),
        (aiohttp.NonHttpUrlClientError, "the server redirects to what is not HTTP"),
        (aiohttp.InvalidURL, "the URL, or one that it redirects to, is not understood"),
        (aiohttp.ClientConnectorCertificateError, "the server's certificate is not trusted"),
        (aiohttp.ClientSSLError, "there is no secure connection"),
    ]
    for error_type, words in permanent:
        if isinstance(error, error_type):
            return Refused(words)
    passing: list[tuple[type[Exception], str]] = [
        (aiohttp.ClientConnectorError, UNREACHED),
        (aiohttp.ClientPayloadError, "the answer was cut off"),
        (aiohttp.ClientResponseError, "the answer is not HTTP"),
    ]
    messages = (words for error_type, words in passing if isinstance(error, error_type))
    return Failed(next(messages, "the connection was lost"))


class Filesystem:
    """Any other fsspec filesystem. The filesystem itself must limit the memory for an answer."""

    def __init__(self, filesystem: Any) -> None:
        from fsspec.asyn import get_loop

        self._filesystem = filesystem
        self.loop = filesystem.loop if filesystem.async_impl else get_loop()

    async def read_beginning(self, address: UrlAddress, buffer: memoryview) -> tuple[Version, int]:
        """Fill `buffer` from the object's beginning."""
        version = await self.version(address)
        wanted = buffer[: min(len(buffer), version.size)]
        _, count = await self.read_part(address, 0, wanted) if len(wanted) else (None, 0)
        return version, count

    async def read_part(
        self, address: UrlAddress, start: int, buffer: memoryview
    ) -> tuple[None, int]:
        """Fill `buffer` from byte `start`."""
        content = await self._call("cat_file", address, start=start, end=start + len(buffer))
        if len(content) > len(buffer):
            raise Failed(f"returned {len(content)} bytes, expected {len(buffer)}")
        buffer[: len(content)] = content
        return None, len(content)

    async def version(self, address: UrlAddress) -> Version:
        """Return the object's size and the other fields of its version."""
        self._filesystem.invalidate_cache()
        about = await self._call("info", address)
        if about.get("type") == "directory" or not isinstance(about.get("size"), int):
            raise Refused("it is a folder, or does not say how large it is")
        version_fields = [str(about[key]) for key in WHEN if about.get(key) is not None]
        return Version(about["size"], " ".join(version_fields) or None)

    async def read_whole(self, address: UrlAddress, limit: int) -> bytes:
        """Return an object of at most `limit` bytes."""
        content: bytes = await self._call("cat_file", address, start=0, end=limit + 1)
        if len(content) > limit:
            raise Refused(f"it has more than the {limit} bytes that are read")
        return content

    async def _call(self, name: str, address: UrlAddress, **options: Any) -> Any:
        """Call a method of the filesystem."""
        failure: Exception | None = None
        try:
            path = private.path_in(self._filesystem, address.reveal())
            return await private.call(self._filesystem, name, path, **options)
        except FileNotFoundError:
            failure = Missing("there is no such object")
        except PERMANENT as error:
            failure = Refused(f"it cannot be read ({type(error).__name__})")
        except OSError as error:
            failure = Failed(f"it cannot be read ({type(error).__name__})")
        except Exception as error:
            failure = Refused(f"it cannot be read ({type(error).__name__})")
        raise failure


Transport = Http | Filesystem
