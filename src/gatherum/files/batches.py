"""Batches of indices, asked for ahead of time, and taken as many together as have come."""

from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Condition
from typing import Any

from numpy.typing import NDArray

from gatherum.arguments import as_indices

__all__ = ["Batches"]

TOGETHER = 1024  # batches of a group


class Batches:
    """What is asked for in a thread of its own, and was not taken yet.

    The thread asks as long as there is room, and ends its task then, so that neither a program's
    end nor the garbage collector ever finds it waiting for somebody who takes.

    Parameters
    ----------
    batches : iterator
        Index arrays. They are copied: whoever makes them may write the next one into the same
        memory.
    nbytes : int
        The bytes of a row, which one index takes from the table.
    most : int
        The bytes of a group's indices and rows; at least 1.
    """

    def __init__(self, batches: Iterator[Any], nbytes: int, most: int) -> None:
        self._batches, self._nbytes, self._most = batches, nbytes, most
        self._thread = ThreadPoolExecutor(1)
        self._changed = Condition()
        self._come: deque[NDArray[Any]] = deque()
        self._held = 0  # bytes of what has come
        self._asking = self._ended = False
        self._error: BaseException | None = None

    def __enter__(self) -> "Batches":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._thread.shutdown()

    def groups(self) -> Iterator[list[NDArray[Any]]]:
        """Yield what has come since the last group; wait for one batch at least.

        A group has batches of one dtype, and at most `most` bytes, or one batch.
        """
        while group := self._take():
            yield group
        if self._error is not None:
            raise self._error

    def stop(self) -> None:
        """Ask for no more batches, and wait for none."""
        with self._changed:
            self._ended = True
            self._changed.notify()

    def _take(self) -> list[NDArray[Any]]:
        with self._changed:
            self._ask_on()
            self._changed.wait_for(lambda: self._come or self._ended)
            group: list[NDArray[Any]] = []
            size = 0
            while self._come:
                indices = self._come[0]
                size += self._size(indices)
                if group and (size > self._most or indices.dtype != group[0].dtype):
                    break
                self._held -= self._size(indices)
                group.append(self._come.popleft())
            self._ask_on()
            return group

    def _ask_on(self) -> None:
        """Let the thread ask for more, unless it does so already."""
        if not self._asking and self._has_room():
            self._asking = True
            self._thread.submit(self._ask)

    def _ask(self) -> None:
        """Ask for batch after batch, as long as there is room."""
        try:
            for batch in self._batches:
                indices = as_indices("gather", batch).copy()
                with self._changed:
                    self._come.append(indices)
                    self._held += self._size(indices)
                    self._changed.notify()
                    self._asking = self._has_room()
                    if not self._asking:
                        return
        except BaseException as error:  # raised when all that came before it was taken
            self._error = error
        with self._changed:
            self._ended = True
            self._changed.notify()

    def _has_room(self) -> bool:
        return not self._ended and self._held < self._most and len(self._come) < TOGETHER

    def _size(self, indices: NDArray[Any]) -> int:
        return indices.size * self._nbytes + indices.nbytes
