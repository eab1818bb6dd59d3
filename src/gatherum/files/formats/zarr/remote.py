"""Zarr arrays at URLs. Several chunks are requested together and then decoded.

Import this module only if `zarr` is installed.
"""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from typing import Any, Never

from numpy.typing import NDArray
from zarr.abc.store import Store

from gatherum.files.formats.zarr.arrays import ZarrArray, check_document
from gatherum.files.formats.zarr.bounded import METADATA_KEYS, span
from gatherum.files.formats.zarr.nodes import ATTRIBUTES, LONGEST_METADATA, METADATA
from gatherum.files.formats.zarr.private import default_buffer_prototype
from gatherum.files.remote import Remote
from gatherum.files.remote.store import AT_ONCE
from gatherum.files.resources.resources import Budget


class RemoteZarrArray(ZarrArray):
    """An array at a URL. Shards are read as a whole."""

    def __init__(self, remote: Remote, budget: Budget) -> None:
        self.path, self.meter, self._remote = str(remote.address), remote.meter, remote
        name, content = self._metadata()
        self._identity = self._digest(content)
        metadata = {name: content}
        if name == ".zarray":  # format 2 stores attributes separately
            attributes = remote.wait(remote.read_whole(ATTRIBUTES, LONGEST_METADATA))
            metadata |= {} if attributes is None else {ATTRIBUTES: attributes}
        self._store = RemoteStore(remote, metadata)
        self._announced: Iterator[tuple[slice, ...]] = iter(())
        item = check_document(self.path, f"{self.path}/{name}", content)
        self._open(self._store, item, budget, writable=False)
        self._most_kept = max(1, min(AT_ONCE, budget.window // self._store.limit))

    def _metadata(self) -> tuple[str, bytes]:
        for name in METADATA:
            content = self._remote.wait(self._remote.read_whole(name, LONGEST_METADATA))
            if content is not None:
                return name, content
        raise FileNotFoundError(
            f"{self.path}: there is no Zarr array (neither zarr.json nor .zarray is there)"
        )

    @staticmethod
    def _digest(content: bytes) -> str:
        return hashlib.sha256(content).hexdigest()

    def tree(self) -> str:
        """Return a digest of the current metadata. Chunks are not checked."""
        return self._digest(self._metadata()[1])

    def check_unchanged(self) -> None:
        """Raise OSError if the metadata changed since they were read."""
        if self.tree() != self._identity:
            raise OSError(f"{self.path}: changed while it was being read")

    def announce(self, boxes: Iterator[tuple[slice, ...]]) -> None:
        """Prepare to read these boxes next. The first ones are requested immediately."""
        self._store.release_all()
        self._announced = boxes
        self._fetch_ahead()

    def _fetch_ahead(self) -> None:
        while self._store.kept_count < self._most_kept and (box := next(self._announced, None)):
            self._store.fetch(map(self._key, self._chunk_coordinates(box)))

    def read_box(self, box: tuple[slice, ...]) -> NDArray[Any]:
        """Return a box of the array, which covers whole chunks."""
        keys = list(map(self._key, self._chunk_coordinates(box)))
        self._store.fetch(keys)
        try:
            return super().read_box(box)
        finally:
            self._store.release(keys)
            self._fetch_ahead()

    def stop(self) -> None:
        """Cancel pending requests, because a server may be slow."""
        self._announced = iter(())
        self._remote.stop()


class RemoteStore(Store):  # type: ignore[misc]  # zarr is not typed here
    """A store for `zarr` with the checked metadata, and with chunks that are being fetched."""

    limit = 0  # the size limit of a chunk; unknown until the metadata are read
    supports_writes = supports_deletes = supports_partial_writes = supports_listing = False

    def __init__(self, remote: Remote, metadata: dict[str, bytes]) -> None:
        super().__init__(read_only=True)
        self._remote, self._known = remote, metadata
        self._futures: dict[str, Future[bytes | None]] = {}
        self._lock = threading.Lock()

    def __str__(self) -> str:
        return str(self._remote.address)

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__

    def with_read_only(self, read_only: bool = False) -> RemoteStore:
        """Return the store itself, which is always read-only."""
        return self

    # ------------------------------------------------------------- chunks ahead

    @property
    def kept_count(self) -> int:
        """The number of chunks that are kept."""
        return len(self._futures)

    def fetch(self, keys: Iterable[str]) -> None:
        """Fetch chunks and keep them."""
        for key in keys:
            self._future(key)

    def release(self, keys: Iterable[str]) -> None:
        """Release chunks."""
        for key in keys:
            with self._lock:
                future = self._futures.pop(key, None)
            if future is not None:
                future.cancel()

    def release_all(self) -> None:
        """Release all chunks."""
        self.release(list(self._futures))

    def _future(self, key: str) -> Future[bytes | None]:
        with self._lock:
            if key not in self._futures:
                self._futures[key] = self._remote.start(self._remote.read_whole(key, self.limit))
            return self._futures[key]

    # -------------------------------------------------------- zarr's interface

    async def get(self, key: str, prototype: Any = None, byte_range: Any = None) -> Any:
        """Return the value of `key`, or a part of it."""
        if key in METADATA_KEYS:
            content = self._known.get(key)
        else:
            content = await asyncio.wrap_future(self._future(key))
        if content is None:
            return None
        start, stop = span(byte_range, len(content))
        selected = content if stop - start == len(content) else content[start:stop]
        return (prototype or default_buffer_prototype()).buffer.from_bytes(selected)

    async def get_partial_values(self, prototype: Any, key_ranges: Iterable[Any]) -> Sequence[Any]:
        """Return parts of the values of several keys."""
        return [await self.get(key, prototype, byte_request) for key, byte_request in key_ranges]

    async def exists(self, key: str) -> bool:
        """Return True if the store contains `key`."""
        return await self.get(key) is not None

    def _refuse(self, *_: Any) -> Never:
        raise NotImplementedError(f"{self}: is only read")

    set = set_partial_values = delete = list = list_prefix = list_dir = _refuse
