"""View array items as plain bytes to move them, because NumPy's assignment may omit padding."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
DType: TypeAlias = np.dtype[Any]
Position: TypeAlias = tuple[int, ...]
Items: TypeAlias = list[bytes]

MAX_RANK = 64  # NumPy's limit


class _Bytes:
    """The memory of an array as items of plain bytes."""

    def __init__(self, array: Array) -> None:
        self.owner = array
        self.__array_interface__ = {
            "version": 3,
            "typestr": f"|V{array.dtype.itemsize}",
            "data": (array.__array_interface__["data"][0], True),
            "shape": array.shape,
            "strides": array.strides,
        }


def as_bytes(array: Array) -> Array:
    """View an array as an array whose items are raw bytes, without a copy."""
    return np.asarray(_Bytes(array))


def blank(op: str, shape: Position, dtype: DType) -> Array:
    """Create the items of a result, all zero."""
    check_result_rank(op, len(shape))
    nbytes = dtype.itemsize
    for size in shape:
        nbytes *= max(size, 1)  # NumPy limits the other dimensions of an empty array as well
    if nbytes > np.iinfo(np.intp).max:
        raise ValueError(f"{op}: the result of shape {shape} is too large for an address")
    return np.zeros(shape, f"V{dtype.itemsize}")


def typed(items: Array, dtype: DType) -> Array:
    """View items of bytes as items of a dtype, without a copy."""
    return np.ndarray(items.shape, dtype, buffer=items)


def check_result_rank(op: str, rank: int) -> None:
    """Raise ValueError for a result of more dimensions than NumPy supports."""
    if rank > MAX_RANK:
        raise ValueError(f"{op}: the result must have rank 0 to {MAX_RANK}, got {rank}")
