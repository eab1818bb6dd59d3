"""Sort with CUB's stable radix sort, through `cuda.compute`.

It sorts only the bits in use, and moves keys and payloads together. On an H100 a fold with this
sort took 0.5 to 1 times as long as with torch's sort (docs/cuda-devices.md). The module
`radix_sort` sorts smaller numbers of pairs with less work for the host.

A sorter takes seconds to compile for each pair of widths. Sorters are cached next to the compiled
kernels, as bytes serialized by `cuda.compute`.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import cache, partial
from importlib import import_module, metadata
from threading import Lock
from typing import Any

import numpy as np

from . import code_cache
from . import errors as cuda_errors
from .device import Pairs, Widths
from .driver import open_compiler, open_driver
from .nvidia import architecture_of

# All calls with the same types share a sorter. The sorter holds the memory addresses of the last
# call.
_sorting = Lock()
# The size in bytes of the scratch memory of a sort, by device, number of pairs and widths: all that
# CUB's answer depends on. If the memory were too small, a sort would return an error.
_scratch_bytes: dict[tuple[int, int, Widths], int] = {}
_MOST_SIZES = 1024
# An address that is never read.
_ADDRESS = 256


class _Array:
    """Scratch memory as an integer array, for `cuda.compute`."""

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
    """A stream given by its handle, for `cuda.compute`."""

    def __init__(self, stream: int) -> None:
        self._stream = stream

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self._stream


@cache
def is_available() -> bool:
    """Return True if `cuda.compute` is installed."""
    try:
        _compute()
    except ImportError:  # the framework sorts
        return False
    return True


def sort_with_cub(framework: Any, pairs: Pairs, device_number: int, stream: int) -> Pairs:
    """Sort pairs in scratch memory. The results are in scratch memory of the same framework."""
    driver, (keys, payload, count, widths) = open_driver(), pairs
    buffers = [framework.allocate(count * width, device_number, stream) for width in widths[:2]]
    memory = keys, buffers[0], payload, buffers[1]
    operands = _operands(count, widths, [each.address for each in memory])
    with _sorting, driver.on(device_number):
        sorter = _loaded(widths[:2], architecture_of(driver, device_number))
        sort = partial(sorter, **operands, stream=_Stream(stream))
        call = device_number, count, widths
        if (nbytes := _scratch_bytes.get(call)) is None:
            if len(_scratch_bytes) == _MOST_SIZES:
                _scratch_bytes.clear()
            # With a null address, the sort would only return the size.
            nbytes = _scratch_bytes[call] = max(sort(temp_storage=None), 1)
        scratch = framework.allocate(nbytes, device_number, stream)
        sort(temp_storage=_Array(scratch.address, nbytes, 1))
    return pairs._replace(keys=buffers[0], payload=buffers[1])


def _operands(count: int, widths: Widths, addresses: Sequence[int]) -> dict[str, object]:
    """Return the arguments of a sorter: the keys and their result, the payload and its result."""
    names = "d_in_keys", "d_out_keys", "d_in_values", "d_out_values"
    sizes = widths.key, widths.key, widths.payload, widths.payload
    arrays = [_Array(at, count, size) for at, size in zip(addresses, sizes, strict=True)]
    bits = {"begin_bit": 0, "end_bit": widths.bits}
    return {**dict(zip(names, arrays, strict=True)), "num_items": count, **bits}


@cache
def _loaded(widths: tuple[int, int], architecture: str) -> Any:
    """Return a sorter for an architecture, which must match the current device."""
    return _compute().deserialize(sorter_code(widths, architecture))


def sorter_code(widths: tuple[int, int], architecture: str) -> bytes:
    """Return a serialized sorter for keys and payloads of the given widths in bytes.

    `cuda.compute.deserialize` reads it. The code is taken from disk if it is cached. No device is
    needed.
    """
    compute = _compute()

    def compile_() -> bytes:
        # For arrays without an address, such as `cuda.compute.ProxyArray`, cuda.compute would
        # compile a sort of keys without payloads.
        keys, values = (_Array(_ADDRESS, 1, width) for width in widths)
        sorter = compute.make_radix_sort(
            d_in_keys=keys,
            d_out_keys=keys,
            d_in_values=values,
            d_out_values=values,
            order=compute.SortOrder.ASCENDING,
            compute_capability=int(architecture.removeprefix("sm_")),
        )
        code: bytes = compute.serialize(sorter)
        return code

    package = f"cuda-cccl {metadata.version('cuda-cccl')}"
    inputs = "radix_sort", package, open_compiler().version(), architecture, *map(str, widths)
    return code_cache.cached_code(inputs, compile_, ".sort")


def check_import() -> None:
    """Raise ImportError if `cuda.compute` cannot be imported."""
    _compute()


@cache
def _compute() -> Any:
    """Return `cuda.compute`, or raise ImportError.

    If a library that `cuda.compute` loads is missing, importing `cuda.compute` only warns, and the
    module contains no functions.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            compute = import_module("cuda.compute")
        except (ImportError, RuntimeError) as why:  # RuntimeError: a library is missing
            raise cuda_errors.no_cuda_sort(why) from why
    if not hasattr(compute, "deserialize"):
        reason = caught[0].message if caught else "it has no function deserialize"
        raise cuda_errors.no_cuda_sort(reason)
    return compute
