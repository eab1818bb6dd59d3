"""Support CuPy arrays with CuPy's memory pool, current stream and sort."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from typing import Any

import numpy as np

from gatherum._model.call import ArraySpec
from gatherum._model.dtypes import AnyDType
from gatherum._model.errors import Shape

from . import cub
from .device import Pairs
from .device_views import DeviceFramework, View
from .driver import LEGACY_STREAM, KeptObjects, open_driver


class _Scratch:
    """Memory from CuPy's pool, which reuses it in stream order."""

    def __init__(self, memory: Any) -> None:
        self.memory = memory
        self.address = int(memory.ptr)

    def slice(self, start: int, nbytes: int) -> _Scratch:
        """Return a part of this memory."""
        return _Scratch(self.memory + start)


class CuPy(DeviceFramework):
    """CuPy arrays."""

    name = "cupy"
    captures_graphs = True

    def __init__(self) -> None:
        self._cupy: Any = import_module("cupy")
        self._kept = KeptObjects()

    def owns(self, value: object) -> bool:
        """Return True for a CuPy array."""
        return isinstance(value, self._cupy.ndarray)

    def view(self, op: str, operand: str, value: Any) -> View:
        """Return a view of an array. Every CuPy array is on a device."""
        spec = ArraySpec(tuple(value.shape), value.dtype, tuple(value.strides))
        return View(int(value.data.ptr), spec, int(value.device.id), value)

    def stream(self, device_number: int, operands: Sequence[object]) -> int:
        """Return CuPy's current stream on a device."""
        return int(self._cupy.cuda.get_current_stream(device_number).ptr) or LEGACY_STREAM

    def empty(
        self, shape: Shape, dtype: AnyDType, like: Any, device_number: int, stream: int
    ) -> tuple[object, int]:
        """Return a new array and its address."""
        with self._cupy.cuda.Device(device_number):
            array = self._cupy.empty(shape, dtype)
        return array, int(array.data.ptr)

    def allocate(self, nbytes: int, device_number: int, stream: int) -> _Scratch:
        """Return memory from CuPy's current allocator."""
        with self._cupy.cuda.Device(device_number):
            return _Scratch(self._cupy.cuda.alloc(nbytes))

    def sort(self, pairs: Pairs, device_number: int, stream: int) -> Pairs:
        """Sort with CUB, or with `cupy.argsort` if CUB is missing.

        `cupy.argsort` is stable and, since CuPy 14, does not wait.
        """
        if cub.is_available():
            return cub.sort_with_cub(self, pairs, device_number, stream)
        with self._cupy.cuda.Device(device_number):
            keys, payload = (
                self._cupy.ndarray((pairs.length,), np.dtype(f"i{width}"), scratch.memory)
                for scratch, width in zip(pairs[:2], pairs.widths[:2], strict=True)
            )
            positions = self._cupy.argsort(keys)
            arrays = self._cupy.take(keys, positions), self._cupy.take(payload, positions)
            sorted_keys, sorted_payload = (_Scratch(array.data) for array in arrays)
            return pairs._replace(keys=sorted_keys, payload=sorted_payload)

    def keep_captured_memory(
        self, result: Any, device_number: int, stream: int
    ) -> AbstractContextManager[None]:
        """Keep memory that CuPy allocates during a graph capture alive as long as the result.

        This includes the memory of CuPy's sort. Otherwise, the pool would reuse that memory for
        other arrays, and a replay of the graph would overwrite these.
        """
        driver = open_driver()
        with driver.on(device_number):
            if not driver.captures(stream):
                return nullcontext()
        allocator, blocks = self._cupy.cuda.get_allocator(), []

        def allocate(nbytes: int) -> Any:
            blocks.append(allocator(nbytes))
            return blocks[-1]

        weakref.finalize(result, blocks.clear).atexit = False
        lasting: AbstractContextManager[None] = self._cupy.cuda.using_allocator(allocate)
        return lasting

    def keep(self, holders: Sequence[object], device_number: int, stream: int) -> None:
        """Keep host memory. CuPy's pool reuses device memory in stream order."""
        copied = [holder for holder in holders if isinstance(holder, np.ndarray)]
        if copied:
            self._kept.keep_until_done(open_driver(), device_number, stream, copied)
