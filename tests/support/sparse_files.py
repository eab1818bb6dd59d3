"""Sparse files of many GiB, mapped as arrays: a few of their pages exist.

The tests read those pages back after a call, so every written byte of the file is checked, at any
offset.
"""

import os

import numpy as np
import pytest

__all__ = ["NEEDS_HOLES", "PLACES", "Space"]

NEEDS_HOLES = pytest.mark.skipif(
    not hasattr(os, "SEEK_DATA"),
    reason="asks files for their holes: run on a system with SEEK_DATA",
)
# Offsets that coincide if a cut to 31 or 32 bits or a lost sign changes them.
PLACES = np.array([0, 7, 2**31 - 1, 2**31, 2**31 + 7, 2**32 - 1, 2**32, 2**32 + 7])


class Space:
    """A mapped sparse file."""

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
        """Return the offset and value of every byte that is not zero."""
        result, at, size = [], 0, self.bytes.size
        with open(self.path, "rb") as file:
            while at < size:
                try:
                    at = os.lseek(file.fileno(), at, os.SEEK_DATA)
                except OSError:
                    break  # only holes up to the end
                end = min(os.lseek(file.fileno(), at, os.SEEK_HOLE), size)
                piece = np.frombuffer(os.pread(file.fileno(), end - at, at), np.uint8)
                places = np.flatnonzero(piece)
                result += zip((places + at).tolist(), piece[places].tolist(), strict=True)
                at = end
        return result

    def holds(self, *arrays):
        """Return True if these arrays, views of the file, contain all of its nonzero bytes."""
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
