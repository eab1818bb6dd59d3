"""CUB's stable radix sort, by `cuda.compute`, for arrays whose framework has no sort of its own."""

from __future__ import annotations

from importlib import import_module
from threading import Lock
from typing import Any

import numpy as np

from . import errors as cuda_errors
from .driver import open_driver

# A sorter is shared by all calls of the same types, and holds the pointers of the last one.
_sorting = Lock()


class _Array:
    """Scratch memory as an array of integers, for `cuda.compute`."""

    def __init__(self, address: int, count: int, width: int) -> None:
        self.dtype = np.dtype(f"u{width}")
        self.shape = (count,)
        self.nbytes = count * width
        self.__cuda_array_interface__ = {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (address, False),
            "strides": None,
            "version": 3,
        }


class _Stream:
    """A stream by its number, for `cuda.compute`."""

    def __init__(self, stream: int) -> None:
        self._stream = stream

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self._stream


def radix_sort(
    framework: Any,
    keys: Any,
    payload: Any,
    count: int,
    widths: tuple[int, int],
    bits: int,
    device: int,
    stream: int,
) -> tuple[Any, Any]:
    """Sort pairs of scratch memory; the results are in scratch memory of the same framework."""
    try:
        compute = import_module("cuda.compute")
    except (ImportError, RuntimeError) as why:  # a RuntimeError: libraries that it loads
        raise cuda_errors.no_cuda_sort() from why
    found = [framework.allocate(count * width, device, stream) for width in widths]
    operands = {
        "d_in_keys": _Array(keys.address, count, widths[0]),
        "d_out_keys": _Array(found[0].address, count, widths[0]),
        "d_in_values": _Array(payload.address, count, widths[1]),
        "d_out_values": _Array(found[1].address, count, widths[1]),
    }
    with _sorting, open_driver().on(device):
        sorter = compute.make_radix_sort(**operands, order=compute.SortOrder.ASCENDING)
        more = {"num_items": count, "begin_bit": 0, "end_bit": bits, "stream": _Stream(stream)}
        nbytes = sorter(temp_storage=None, **operands, **more)
        nbytes = max(nbytes, 1)  # without an address the next call would only ask for the size
        scratch = framework.allocate(nbytes, device, stream)
        sorter(temp_storage=_Array(scratch.address, nbytes, 1), **operands, **more)
    return found[0], found[1]
