"""A RowCache keeps the rows of a table that are asked for most, in bounded memory."""

import threading
from typing import Literal

import numpy as np
from numpy.typing import NDArray

__all__ = ["RowCache"]

Ints = NDArray[np.int64]
UNSIGNED = np.dtype(np.uint64)
NOTED = 9  # bytes that are kept of a row besides its own
MOST = 15  # how often a row must be asked for less than others before it gives its place, at most


class RowCache:
    """Rows by their numbers; threads share it.

    Each row has one place, which it shares with the rows whose numbers are the same modulo the
    number of places. The row that is there stays until others were asked for more often than it:
    so rows that are asked for once do not drive out those that are asked for again and again.

    Parameters
    ----------
    nbytes : int
        The memory that it may take.
    extent : int
        How many rows the table has.
    item : int
        The bytes of a row.
    """

    def __init__(self, nbytes: int, extent: int, item: int) -> None:
        places = min(extent, nbytes // (item + NOTED))
        if places < 1:
            raise ValueError(
                f"cache must hold at least one row, {item + NOTED} bytes, got {nbytes} bytes"
            )
        self._extent, self._item = extent, item
        self._lock = threading.Lock()
        self._rows = np.empty((places, item), np.uint8)
        self._numbers = np.full(places, -1, np.int64)
        self._uses = np.zeros(places, np.uint8)
        self.hits = self.misses = 0

    @property
    def nbytes(self) -> int:
        """The bytes of the rows that it holds."""
        return int(np.count_nonzero(self._numbers >= 0)) * self._item

    def lookup(
        self, numbers: Ints, places: Ints | None, flat: NDArray[np.uint8]
    ) -> Ints | Literal[False] | None:
        """Copy the rows that are here; return which of `numbers` are not, None for none.

        Row `numbers[i]` goes to place `places[i]` (None: `i`). Returns False, and copies nothing,
        where a number is no row's.
        """
        if numbers.size == 0:
            return None
        if numbers.view(UNSIGNED).max() >= self._extent:
            return False
        into = flat.reshape(-1, self._item)
        at = numbers % len(self._numbers)
        with self._lock:
            here = self._numbers.take(at) == numbers
            missing = np.flatnonzero(~here)
            self.hits += numbers.size - missing.size
            self.misses += missing.size
            if missing.size == numbers.size:
                return missing
            if missing.size == 0 and places is None:
                self._rows.take(at, 0, into[: numbers.size], "clip")
                return None
            found = np.flatnonzero(here)
            at = at[found]
            into[found if places is None else places[found]] = self._rows.take(at, 0)
            self._uses[at] = np.minimum(self._uses[at] + 1, MOST)
        return missing if missing.size else None

    def insert(self, numbers: Ints, places: Ints, flat: NDArray[np.uint8]) -> None:
        """Keep rows that were read to their places, where they are worth it."""
        at = numbers % len(self._numbers)
        with self._lock:
            free = self._uses[at] == 0
            self._uses[at[~free]] -= 1
            at = at[free]
            self._rows[at] = flat.reshape(-1, self._item)[places[free]]
            self._numbers[at] = numbers[free]
