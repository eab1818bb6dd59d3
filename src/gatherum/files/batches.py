"""Batches of indices that a thread prefetches. Several fetched batches are returned together."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from threading import Condition, Thread
from typing import Any

from numpy.typing import NDArray

from gatherum._arguments.conversion import as_indices

MOST_BATCHES = 1024  # of a piece


class Batches:
    """Batches that a dedicated thread has fetched and that have not been returned yet.

    The thread fetches batches while there is space. At other times, the thread has no reference to
    this object, so that the garbage collector can collect it. No method waits until the thread
    ends, because the iterator may block forever. Batches are copied, because the iterator may reuse
    their memory. For each index, `row_bytes` of the table are read. The indices and rows of a
    piece take at most `most_bytes`, which is at least 1.
    """

    def __init__(self, batches: Iterator[Any], row_bytes: int, most_bytes: int) -> None:
        self._batches, self._row_bytes, self._most_bytes = batches, row_bytes, most_bytes
        self._tasks: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        Thread(target=_work, args=[self._tasks], name="gatherum-batches", daemon=True).start()
        self._changed = Condition()
        self._fetched: deque[NDArray[Any]] = deque()
        self._next = 0  # the number of the batch that is fetched next
        self._fetched_bytes = 0  # the bytes of the fetched batches and their rows
        self._is_fetching = self._ended = False
        self._error: BaseException | None = None

    def __enter__(self) -> Batches:
        return self

    def __exit__(self, *_: object) -> None:
        """Fetch no more batches, without waiting for the pending one."""
        if not sys.is_finalizing():  # or the thread could be suspended with the lock
            with self._changed:
                self._ended = True
            self._tasks.put(None)

    def next_piece(self, wait: bool = True) -> list[NDArray[Any]]:
        """Return the batches fetched since the last call. With `wait`, wait for at least one.

        The batches of a piece have the same dtype, and together at most `most_bytes` unless the
        piece is a single batch. After the last batch, raise the error that ended the iteration, if
        any.
        """
        with self._changed:
            self._fetch_on()
            self._changed.wait_for(lambda: self._fetched or self._ended or not wait)
            piece: list[NDArray[Any]] = []
            piece_bytes = 0
            while self._fetched:
                indices = self._fetched[0]
                piece_bytes += self._size(indices)
                if piece and (piece_bytes > self._most_bytes or indices.dtype != piece[0].dtype):
                    break
                self._fetched_bytes -= self._size(indices)
                piece.append(self._fetched.popleft())
            self._fetch_on()
        if wait and not piece and self._error is not None:
            raise self._error
        return piece

    def _fetch_on(self) -> None:
        """Let the thread fetch more batches, unless it is already fetching."""
        if not self._is_fetching and self._has_space():
            self._is_fetching = True
            self._tasks.put(self._fetch)

    def _fetch(self) -> None:
        """Fetch batches while there is space."""
        try:
            for batch in self._batches:
                indices = self._copied(batch)
                with self._changed:
                    self._fetched.append(indices)
                    self._fetched_bytes += self._size(indices)
                    self._changed.notify()
                    self._is_fetching = self._has_space()
                    if not self._is_fetching:
                        return
        except BaseException as error:  # raised after all earlier batches have been returned
            self._error = error
        with self._changed:
            self._ended = True
            self._changed.notify()

    def _copied(self, batch: Any) -> NDArray[Any]:
        """Return a copy of a batch as an array of indices."""
        try:
            indices = as_indices("gather", batch).copy()
        except Exception as error:
            error.add_note(batch_note(self._next))
            raise
        self._next += 1
        return indices

    def _has_space(self) -> bool:
        return (
            not self._ended
            and self._fetched_bytes < self._most_bytes
            and len(self._fetched) < MOST_BATCHES
        )

    def _size(self, indices: NDArray[Any]) -> int:
        return indices.size * self._row_bytes + indices.nbytes


def batch_note(batch: int) -> str:
    """Return the note with the number of the batch that caused an error."""
    return f"in batch {batch} (the first is 0)"


def _work(tasks: SimpleQueue[Callable[[], None] | None]) -> None:
    while (task := tasks.get()) is not None:
        task()
        del task
