"""Sparse files of many GiB, mapped as arrays: a few of their pages exist.

What a call has written is read back from those pages: every byte of the file is accounted for,
wherever an offset may have gone.
"""

import os

import numpy as np
import pytest

__all__ = ["NEEDS_HOLES", "PLACES", "Space"]

NEEDS_HOLES = pytest.mark.skipif(
    not hasattr(os, "SEEK_DATA"),
    reason="asks files for their holes: run on a system with SEEK_DATA",
)
# What a cut or a sign lost in 31 or 32 bits would confuse with one another.
PLACES = np.array([0, 7, 2**31 - 1, 2**31, 2**31 + 7, 2**32 - 1, 2**32, 2**32 + 7])


class Space:
    """A sparse file, mapped."""

    def __init__(self, path, nbytes):
        self.path = path
        with open(path, "wb") as file:
            file.truncate(nbytes)
        if os.stat(path).st_blocks * 512 > 1 << 20:
            pytest.skip("files here have no holes: give --basetemp a folder where they do")
        self.bytes = np.memmap(path, np.uint8, "r+")

    def array(self, dtype, shape=(-1,), strides=None):
        """View the whole file, or its start, as an array."""
        if strides is None:
            return np.asarray(self.bytes).view(dtype).reshape(shape)
        return np.ndarray(shape, dtype, buffer=self.bytes, strides=strides)

    def written(self):
        """Give the offset and value of every byte that is not zero."""
        found, at, size = [], 0, self.bytes.size
        with open(self.path, "rb") as file:
            while at < size:
                try:
                    at = os.lseek(file.fileno(), at, os.SEEK_DATA)
                except OSError:
                    break  # holes only, up to the end
                end = min(os.lseek(file.fileno(), at, os.SEEK_HOLE), size)
                piece = np.frombuffer(os.pread(file.fileno(), end - at, at), np.uint8)
                places = np.flatnonzero(piece)
                found += zip((places + at).tolist(), piece[places].tolist(), strict=True)
                at = end
        return found

    def holds(self, *arrays):
        """Tell whether those arrays, views of the file, hold all that is in it."""
        expected = []
        for array in arrays:
            places = array.__array_interface__["data"][0] - self.bytes.ctypes.data
            places += np.arange(array.itemsize)
            for d, (size, step) in enumerate(zip(array.shape, array.strides, strict=True)):
                steps = (np.arange(size) * step).reshape(-1, *[1] * (array.ndim - d))
                places = places + steps
            values = np.frombuffer(array.tobytes(), np.uint8)
            kept = values != 0
            expected += zip(places.ravel()[kept].tolist(), values[kept].tolist(), strict=True)
        return sorted(expected) == self.written()
