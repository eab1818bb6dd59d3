"""Memory with canaries: arrays inside larger buffers whose other bytes must never change.

The bytes around an array follow a pattern that differs at every offset, so stray writes are
detected, and stray reads differ from data.
"""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["MARGIN", "byte_rows", "guarded", "guarded_copy", "strays"]

Array = NDArray[Any]

# Bytes on either side: more than a vector store past the end of a row writes.
MARGIN = 136


class _Buffer(np.ndarray[Any, np.dtype[np.uint8]]):
    """Bytes that were canaries when the buffer was made."""


_PATTERN = (np.arange(1 << 16) * 167 % 251 + 1).astype(np.uint8)


def _canaries(count: int) -> NDArray[np.uint8]:
    return _PATTERN[:count] if count <= _PATTERN.size else np.resize(_PATTERN, count)


def guarded(
    shape: Sequence[int], dtype: Any, strides: Sequence[int] | None = None, shift: int = 0
) -> Array:
    """Make an array whose bytes, including those around it and in its gaps, are canaries.

    Parameters
    ----------
    shape, dtype
        Of the array.
    strides
        In bytes; C order when None.
    shift
        Offset of the array's address from a cache line, in bytes.

    Returns
    -------
    numpy.ndarray
        Its ``base`` is the buffer, which `strays` inspects.
    """
    dtype = np.dtype(dtype)
    if strides is None:
        strides = [prod(shape[d + 1 :]) * dtype.itemsize for d in range(len(shape))]
    steps = [stride * (size - 1) for stride, size in zip(strides, shape, strict=True) if size]
    low = sum(step for step in steps if step < 0)
    high = sum(step for step in steps if step > 0) + dtype.itemsize
    room = 64 + shift - low + high + 2 * MARGIN
    buffer = _Buffer(room, np.uint8)
    buffer[...] = _canaries(room)
    start = -(buffer.ctypes.data + MARGIN - low) % 64 + MARGIN - low + shift
    return np.ndarray(shape, dtype, buffer=buffer, offset=start, strides=strides)


def guarded_copy(array: Array, strides: Sequence[int] | None = None, shift: int = 0) -> Array:
    """Copy an array, padding included, into memory with canaries around it."""
    copy = guarded(array.shape, array.dtype, strides, shift)
    byte_rows(copy, writable=True)[...] = byte_rows(array)
    return copy


def strays(array: Array) -> list[int]:
    """Return the offsets of changed canaries from the array's first item."""
    buffer: Any = array
    while not isinstance(buffer, _Buffer):
        if buffer is None:
            raise ValueError("the array does not lie among canaries")
        buffer = buffer.base
    changed = np.asarray(buffer) != _canaries(buffer.size)
    start = array.__array_interface__["data"][0] - buffer.ctypes.data
    item = f"V{array.dtype.itemsize}"
    inside = np.ndarray(array.shape, item, buffer=changed, offset=start, strides=array.strides)
    inside[...] = np.zeros((), item)
    return [int(offset) - start for offset in np.flatnonzero(changed)]


def _by_bytes(array: Array) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the shape and strides of an array with an additional dimension of bytes.

    At NumPy's limit of dimensions, a dimension of size 1 (or 0) is removed first.
    """
    dims = list(zip(array.shape, array.strides, strict=True))
    if len(dims) == 64:
        dims.remove(min(dims, key=lambda dim: abs(dim[0] - 1)))
    shape, strides = zip(*dims, (array.dtype.itemsize, 1), strict=True)
    return shape, strides


class _Bytes:
    def __init__(self, array: Array, writable: bool) -> None:
        self.owner = array
        shape, strides = _by_bytes(array)
        self.__array_interface__ = {
            "version": 3,
            "typestr": "|u1",
            "data": (array.__array_interface__["data"][0], not writable),
            "shape": shape,
            "strides": strides,
        }


def byte_rows(array: Array, writable: bool = False) -> NDArray[np.uint8]:
    """View the memory of an array, padding included, with an additional dimension of bytes."""
    return np.asarray(_Bytes(array, writable))
