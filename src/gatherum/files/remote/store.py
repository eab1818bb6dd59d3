"""A Remote makes a few requests at a time, and repeats failed ones for a bounded time."""

from __future__ import annotations

import asyncio
import random
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from concurrent.futures import Future
from types import TracebackType
from typing import Any, TypeVar

from gatherum.files.remote.transport import (
    Changed,
    Failed,
    Refused,
    ServerError,
    Transport,
    Version,
    open_transport,
)
from gatherum.files.remote.urls import UrlAddress
from gatherum.files.resources.stats import Meter

T = TypeVar("T")
AT_ONCE = 16  # requests at the same time
TRIES = 6
FIRST_PAUSE = 0.2  # seconds; each pause is about twice the previous one
LONGEST = 120.0  # the seconds for all tries of a request together


class Remote:
    """A URL and the objects below it. `options` are options of fsspec's filesystem."""

    def __init__(self, address: UrlAddress, meter: Meter, options: Mapping[str, Any]) -> None:
        self.address, self.meter = address, meter
        self._transport: Transport = open_transport(address, options)
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._pending = set[Future[Any]]()
        self._stopped = False

    def start(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """Start a coroutine in the event loop of the transport."""
        if self._stopped:
            coroutine.close()
            raise OSError(f"{self.address}: the run was given up")
        future = asyncio.run_coroutine_threadsafe(coroutine, self._transport.loop)
        self._pending.add(future)
        future.add_done_callback(self._pending.discard)
        return future

    def stop(self) -> None:
        """Cancel all coroutines, and start no more."""
        self._stopped = True
        for future in list(self._pending):
            future.cancel()

    def wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Return the result of a coroutine. An interruption cancels the coroutine."""
        future = self.start(coroutine)
        try:
            return future.result()
        finally:
            future.cancel()

    async def read_beginning(self, buffer: memoryview) -> tuple[Version, int]:
        """Return the version of the object, and the number of bytes read from its beginning."""
        return await self._with_retries(
            self.address, len(buffer), lambda: self._transport.read_beginning(self.address, buffer)
        )

    async def version(self) -> Version:
        """Return the current version of the object."""
        return await self._with_retries(
            self.address, 1, lambda: self._transport.version(self.address)
        )

    async def fill(self, start: int, buffer: memoryview, expected: Version) -> None:
        """Fill `buffer` from byte `start` of the object, and check its version."""

        async def once() -> None:
            version, count = await self._transport.read_part(self.address, start, buffer)
            if version is not None and expected.is_other(version):
                raise Changed("it changed while it was being read")
            if count < len(buffer):
                raise Failed(f"it returned {count} bytes, expected {len(buffer)}")

        await self._with_retries(self.address, len(buffer), once)
        self.meter.read(len(buffer))

    async def read_whole(self, key: str, limit: int) -> bytes | None:
        """Return an object below the URL of at most `limit` bytes, or None if it does not exist."""
        address = self.address.below(key)
        try:
            content = await self._with_retries(
                address, 0, lambda: self._transport.read_whole(address, limit)
            )
        except FileNotFoundError:
            return None
        self.meter.count_requests(0, len(content))
        self.meter.read(len(content))
        return content

    async def _with_retries(
        self, address: UrlAddress, nbytes: int, request: Callable[[], Awaitable[T]]
    ) -> T:
        """Make a request for `nbytes` bytes, and repeat it if that may succeed."""
        until, turn, pause = 0.0, 0, FIRST_PAUSE
        while True:
            turn += 1
            try:
                async with self._slots:
                    until = until or time.monotonic() + LONGEST  # waiting for slots does not count
                    self.meter.count_requests(1, nbytes)
                    async with asyncio.timeout(until - time.monotonic()):
                        return await request()
            except TimeoutError:
                failure: Failed | Refused = Failed(f"there was no answer within {LONGEST:g} s")
            except (Failed, Refused) as error:
                failure = error
            pause = max(pause, getattr(failure, "pause", 0.0))
            given_up = turn == TRIES or time.monotonic() + pause >= until
            if isinstance(failure, Refused) or given_up:
                break
            await asyncio.sleep(pause * random.uniform(0.75, 1.25))  # spread in time
            pause *= 2
        # raised outside of any handler, so that the error has no context, which might show the URL
        raised = failure.raised if isinstance(failure, Refused) else ServerError
        times = "" if turn == 1 else f" ({turn} tries)"
        raise raised(f"{address}: {failure}{times}")


class Pipeline:
    """Coroutines, of which `at_once` run at the same time. Their results are handled in order."""

    def __init__(self, remote: Remote, at_once: int) -> None:
        self._remote, self._at_once = remote, at_once
        self._waiting = deque[tuple[Future[None], Callable[[], object] | None]]()

    def add(
        self,
        make_coroutine: Callable[[], Coroutine[Any, Any, None]],
        when_finished: Callable[[], object] | None = None,
    ) -> None:
        """Start a coroutine when fewer than `at_once` are running; then call `when_finished`."""
        while len(self._waiting) >= self._at_once:
            self._finish()
        self._waiting.append((self._remote.start(make_coroutine()), when_finished))

    def _finish(self) -> None:
        future, when_finished = self._waiting[0]
        future.result()
        self._waiting.popleft()
        if when_finished is not None:
            when_finished()

    def __enter__(self) -> Pipeline:
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        """Finish all coroutines, or cancel them after an error."""
        try:
            while error_type is None and self._waiting:
                self._finish()
        finally:
            for future, _ in self._waiting:
                future.cancel()
