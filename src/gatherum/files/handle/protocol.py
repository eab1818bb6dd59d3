"""What reads the rows of an open table, whatever stores them."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from gatherum import native

__all__ = ["RowReads"]

Ints = NDArray[np.int64]


class RowReads(Protocol):
    """Reads rows by number into a flat array of bytes."""

    def read(self, numbers: Ints, places: Ints | None, flat: NDArray[np.uint8]) -> bool:
        """Read row `numbers[i]` to place `places[i]` (None: `i`).

        Returns False, and writes nothing, where a number is no row's.
        """

    def read_kept(
        self, cache: native.RowCache, numbers: Ints, places: Ints | None, flat: NDArray[np.uint8]
    ) -> bool:
        """Read rows as `read` does: those that the cache has not, and they are kept."""
        missing = cache.lookup(numbers, places, flat)
        if missing is None or missing is False:
            return missing is None
        wanted = numbers[missing]
        fresh = np.empty(wanted.size * cache.item, np.uint8)  # nobody else writes there
        if not self.read(wanted, None, fresh):
            return False
        cache.insert(wanted, None, fresh)
        to = missing if places is None else places[missing]
        flat.reshape(-1, cache.item)[to] = fresh.reshape(-1, cache.item)
        return True

    def are_resident(self, numbers: Ints) -> bool:
        """Whether the rows are most likely in memory, so that reading them waits for nothing."""

    def expect(self, numbers: Ints) -> bool:
        """Let the system begin to read rows; False where it keeps none of them."""
