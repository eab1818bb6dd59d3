"""An array in memory with the interface of a file."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatherum._plans.plans import apply

from .disk import Bytes, DiskFile, Ints, Reading, StoredRows, byte_view
from .stats import Meter

__all__ = ["MemoryFile"]

TAKEN_BYTES = 256 << 10  # rows that are copied together, few enough to stay in the cache


class MemoryFile(DiskFile):
    """The bytes of a C-contiguous array, read and written like a file."""

    in_memory = True

    def __init__(self, array: NDArray[Any], meter: Meter) -> None:
        self.path, self.meter, self.fd = "memory", meter, -1
        self._identity = None
        self._bytes = np.frombuffer(byte_view(array), np.uint8) if array.size else np.empty(0, "u1")

    @property
    def size(self) -> int:
        """The number of bytes."""
        return int(self._bytes.size)

    def read_into(self, offset: int, buffer: memoryview) -> None:
        """Fill `buffer` from position `offset`."""
        buffer[:] = self._bytes[offset : offset + len(buffer)].data

    def read_rows(
        self, stored: StoredRows, numbers: Ints, places: Ints | None, into: Bytes, reading: Reading
    ) -> int:
        """Copy row `numbers[i]` into row `places[i]` (None: `i`) of `into`."""
        item = f"V{stored.item}"
        rows = np.ndarray((stored.extent,), item, self._bytes.data, stored.base, (stored.stride,))
        rows_out = into.view(item)
        if places is None:
            apply("gather", rows, numbers, out=rows_out[: numbers.size])
            return 1
        step = max(1, TAKEN_BYTES // stored.item)
        for at in range(0, numbers.size, step):
            part = slice(at, at + step)
            taken = apply("gather", rows, numbers[part])
            apply("scatter_nd", rows_out, places[part, None], taken, out=rows_out)
        return 1

    def cached_share(self, offsets: Ints) -> float:
        """Return 1, because everything is in memory."""
        return 1.0

    def write_from(self, offset: int, buffer: memoryview | bytes) -> None:
        """Write `buffer` at position `offset`."""
        self._bytes[offset : offset + len(buffer)] = np.frombuffer(buffer, np.uint8)

    def sync(self) -> None:
        """Do nothing."""
