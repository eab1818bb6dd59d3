"""Child processes: one per peer, since each peer has a thread pool."""

from __future__ import annotations

import multiprocessing
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from .worker import serve


class Child:
    """A peer's process, started at the first call and restarted after it has died."""

    def __init__(self, family: str) -> None:
        self.family = family
        self._process: BaseProcess | None = None
        self._channel: Connection | None = None

    def ask(self, name: str, *arguments: object) -> Any:
        """Call a method of the child's worker and return its result.

        Raises
        ------
        RuntimeError
            If the worker raised, or its process died.
        """
        try:
            channel = self._channel or self._start()
            channel.send((name, arguments))
            return self._receive(channel)
        except (EOFError, ConnectionError):
            raise RuntimeError(self._bury()) from None

    def stop(self) -> None:
        """End the process if it is running."""
        if self._process is not None:
            self._bury()

    def _start(self) -> Connection:
        context = multiprocessing.get_context("spawn")  # a fork would share thread pools
        ours, theirs = context.Pipe()
        self._process = context.Process(target=serve, args=(theirs, self.family), daemon=True)
        self._process.start()
        theirs.close()
        self._channel = ours
        self._receive(ours)
        return ours

    def _receive(self, channel: Connection) -> Any:
        message_type, answer = channel.recv()
        if message_type == "failed":
            raise RuntimeError(answer)
        return answer

    def _bury(self) -> str:
        """Close the channel, wait for the process, and describe how it ended."""
        if self._channel is not None:
            self._channel.close()
        code: int | None = None
        if self._process is not None:
            self._process.join(timeout=10)
            if self._process.is_alive():
                self._process.kill()
                self._process.join()
            code = self._process.exitcode
        self._process = self._channel = None
        return f"the process ended with status {code}"
