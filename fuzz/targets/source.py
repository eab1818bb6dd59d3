"""Bytes as a source of choices: the same bytes always make the same choices."""

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Source:
    """Reads choices from a string of bytes, first to last, followed by zeros.

    A zero selects the first and plainest option, so a shorter input is a simpler one.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, count: int) -> bytes:
        """Return the next bytes, padded with zeros."""
        taken = self._data[self._at : self._at + count]
        self._at += count
        return taken + bytes(count - len(taken))

    def rest(self) -> bytes:
        """Return all remaining bytes."""
        taken = self._data[self._at :]
        self._at = len(self._data)
        return taken

    def below(self, limit: int) -> int:
        """Return a number from 0 up to a limit of at most 65536."""
        width = 1 if limit <= 256 else 2
        return int.from_bytes(self.take(width), "little") % max(limit, 1)

    def once_in(self, limit: int) -> bool:
        """Return True for one byte value in `limit`, never for zero."""
        return self.below(limit) == limit - 1

    def choice(self, options: Sequence[T]) -> T:
        """Return one of a few options."""
        return options[self.below(len(options))]

    def integer(self) -> int:
        """Return a signed integer of 64 bits."""
        return int.from_bytes(self.take(8), "little", signed=True)
