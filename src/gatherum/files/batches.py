"""Batches of indices, asked for ahead of time, and taken as many together as have come."""

from collections import deque
from collections.abc import Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from threading import Condition
from typing import Any

from numpy.typing import NDArray

from gatherum.arguments import as_indices

__all__ = ["grouped"]

TOGETHER = 1024  # batches of a group


def grouped(
    batches: Iterable[Any], nbytes: int, most: int
) -> Generator[list[NDArray[Any]], None, None]:
    """Yield the batches that have come since the last ones were taken; wait for one at least.

    A group has batches of one dtype, and rows of at most `most` bytes, or one batch. They are
    copies: whoever makes them may write the next one into the same memory.

    Parameters
    ----------
    batches : iterable
        Asked in a thread of its own, until the rows of what waits have `most` bytes.
    nbytes : int
        The bytes that one index takes from the table.
    most : int
        The bytes of a group's rows; at least 1.
    """
    waiting = Waiting(nbytes, most)
    with ThreadPoolExecutor(1) as thread:
        asked = thread.submit(waiting.ask, batches)
        try:
            while group := waiting.take():
                yield group
            asked.result()  # what ended the batches, if it was an error
        finally:
            waiting.stop()


class Waiting:
    """What has come and was not taken yet. One thread asks, another one takes."""

    def __init__(self, nbytes: int, most: int) -> None:
        self._nbytes, self._most = nbytes, most
        self._changed = Condition()
        self._come: deque[NDArray[Any]] = deque()
        self._held = 0  # bytes of their rows
        self._ended = self._stopped = False

    def ask(self, batches: Iterable[Any]) -> None:
        """Ask for batch after batch, as long as there is room."""
        try:
            for batch in batches:
                indices = as_indices("gather", batch).copy()
                with self._changed:
                    self._come.append(indices)
                    self._held += indices.size * self._nbytes
                    self._changed.notify()
                    self._changed.wait_for(self._has_room)
                    if self._stopped:
                        return
        finally:
            with self._changed:
                self._ended = True
                self._changed.notify()

    def _has_room(self) -> bool:
        return self._stopped or (self._held < self._most and len(self._come) < TOGETHER)

    def take(self) -> list[NDArray[Any]]:
        """Return a group, when there is one; nothing after the last."""
        with self._changed:
            self._changed.wait_for(lambda: self._come or self._ended)
            group: list[NDArray[Any]] = []
            size = 0
            while self._come:
                indices = self._come[0]
                size += indices.size * self._nbytes
                if group and (size > self._most or indices.dtype != group[0].dtype):
                    break
                self._held -= indices.size * self._nbytes
                group.append(self._come.popleft())
            self._changed.notify()
            return group

    def stop(self) -> None:
        """Let the other thread come to its end."""
        with self._changed:
            self._stopped = True
            self._changed.notify()
