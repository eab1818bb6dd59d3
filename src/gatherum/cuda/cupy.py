"""CuPy's arrays: their memory pool, their current stream, their sort."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cupy
import numpy as np

from ..dtypes import AnyDType
from ..errors import Shape
from ..signature import Operand
from .views import View


class _Scratch:
    """Bytes of CuPy's pool, which gives them out again in the order of the stream."""

    def __init__(self, memory: Any) -> None:
        self.memory = memory
        self.address = int(memory.ptr)

    @classmethod
    def of(cls, array: Any) -> _Scratch:
        """Return an array's memory."""
        return cls(array.data)

    def array(self, count: int, width: int) -> Any:
        """Return its first bytes as integers."""
        return cupy.ndarray((count,), np.dtype(f"i{width}"), self.memory)


class CuPy:
    """Arrays of CuPy."""

    name = "cupy"

    def owns(self, value: object) -> bool:
        """Whether a value is an array of CuPy."""
        return isinstance(value, cupy.ndarray)

    def view(self, op: str, operand: str, value: Any) -> View:
        """Return an array as the room sees it; all of CuPy's are on a device."""
        looks = Operand(tuple(value.shape), value.dtype, tuple(value.strides))
        return View(int(value.data.ptr), looks, int(value.device.id), value)

    def stream(self, device: int, operands: Sequence[object]) -> int:
        """Return CuPy's current stream of a device."""
        return int(cupy.cuda.get_current_stream(device).ptr)

    def empty(
        self, shape: Shape, dtype: AnyDType, like: Any, device: int, stream: int
    ) -> tuple[object, int]:
        """Return a new array and its address."""
        with cupy.cuda.Device(device):
            made = cupy.empty(shape, like.dtype)
        return made, int(made.data.ptr)

    def allocate(self, nbytes: int, device: int, stream: int) -> _Scratch:
        """Return memory of CuPy's current allocator."""
        with cupy.cuda.Device(device):
            return _Scratch(cupy.cuda.alloc(nbytes))

    def sort(
        self,
        keys: _Scratch,
        payload: _Scratch,
        count: int,
        widths: tuple[int, int],
        bits: int,
        device: int,
        stream: int,
    ) -> tuple[_Scratch, _Scratch]:
        """Sort by `cupy.argsort`, which is stable."""
        with cupy.cuda.Device(device):
            pair = keys.array(count, widths[0]), payload.array(count, widths[1])
            order = cupy.argsort(pair[0], kind="stable")
            return _Scratch.of(cupy.take(pair[0], order)), _Scratch.of(cupy.take(pair[1], order))

    def keep(self, holders: Sequence[object], device: int, stream: int) -> None:
        """Keep nothing: CuPy's pool gives memory out again in the order of its stream."""
