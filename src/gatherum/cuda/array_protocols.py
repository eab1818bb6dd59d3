"""Arrays of any framework, by `__cuda_array_interface__` or `__dlpack__`.

Nothing is known of their framework's streams and memory. So a call goes to the stream that an array
names, or to the legacy default stream; it waits there for the other arrays' streams; and it keeps
the arrays until its work is done. Results are a `DeviceArray`, in memory of the driver's own pool.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from gatherum._core import dtype_of_dlpack
from gatherum._model import errors, framework_errors
from gatherum._model.call import ArraySpec
from gatherum._model.dtypes import AnyDType, Extension, dtype_of
from gatherum._model.errors import Shape
from gatherum._model.shape_limits import contiguous_strides

from . import errors as cuda_errors
from .device import Pairs
from .device_views import DeviceFramework, View
from .driver import LEGACY_STREAM, Driver, Kept, open_driver

# Devices of DLPack whose memory a CUDA device reads at its address: its own, and managed memory.
_DLPACK_CUDA = (2, 13)


class Memory:
    """Memory of the driver's pool, given back in the order of a stream."""

    def __init__(self, driver: Driver, nbytes: int, device: int, stream: int) -> None:
        with driver.on(device):
            self.address = driver.allocate(nbytes, stream)
        self._free = weakref.finalize(self, _release, driver, self.address, device, stream)
        self._free.atexit = False  # the process's memory goes with it


def _release(driver: Driver, address: int, device: int, stream: int) -> None:
    with driver.on(device):
        driver.free(address, stream)


class DeviceArray:
    """An array in a CUDA device's memory, for any framework to take by its interface.

    ``cupy.asarray(result)``, ``torch.as_tensor(result, device="cuda")`` and
    ``numba.cuda.as_cuda_array(result)`` make arrays of the same memory.

    Attributes
    ----------
    shape : tuple of int
        Its sizes; it lies in C order.
    dtype : numpy.dtype
        Its dtype.
    """

    def __init__(self, memory: Any, shape: Shape, dtype: AnyDType, stream: int) -> None:
        self._memory = memory
        self._stream = stream
        self.shape = shape
        self.dtype = dtype

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The array for other frameworks, which wait for the stream that wrote it."""
        fields = {} if self.dtype.names is None else {"descr": self.dtype.descr}
        return fields | {
            "shape": self.shape,
            "typestr": _type_string(self.dtype),
            "data": (self._memory.address if 0 not in self.shape else 0, False),
            "strides": None,
            "stream": self._stream,
            "version": 3,
        }

    def __repr__(self) -> str:
        return f"<gatherum.cuda.DeviceArray of {self.dtype} {self.shape}>"


def _type_string(dtype: AnyDType) -> str:
    """Return a dtype's name in the protocol, which has none for what NumPy itself does not know."""
    known = not isinstance(dtype, Extension) and (dtype.isbuiltin == 1 or dtype.names is not None)
    return dtype.str if known else f"|V{dtype.itemsize}"  # type: ignore[union-attr]  # known


class Protocols(DeviceFramework):
    """Arrays of frameworks without an adapter of their own, by protocol."""

    name = "cuda"
    # The memory pool would take part in the graph, and whether operands have been read cannot be
    # asked while it is captured.
    captures_graphs = False

    def __init__(self) -> None:
        self._kept = Kept()

    def owns(self, value: object) -> bool:
        """Whether a value has one of the protocols, and is on a CUDA device."""
        return _interface(value) is not None or _dlpack_device(value)[0] in _DLPACK_CUDA

    def view(self, op: str, operand: str, value: Any) -> View:
        """Return an array by its interface, or else by DLPack."""
        if (interface := _interface(value)) is not None:
            return _by_interface(op, operand, value, interface)
        kind, _ = _dlpack_device(value)
        if kind not in _DLPACK_CUDA:
            raise cuda_errors.not_on_cuda(op, operand, type(value).__name__, None)
        return _by_dlpack(op, operand, value)

    def stream(self, device: int, operands: Sequence[object]) -> int:
        """Return the first stream that an array names, or the legacy default stream."""
        named = dict.fromkeys(stream for stream in map(_stream_of, operands) if stream is not None)
        first, *others = named or (LEGACY_STREAM,)
        driver = open_driver()
        with driver.on(device):
            for other in others:
                driver.wait(first, other)
        return first

    def empty(
        self, shape: Shape, dtype: AnyDType, like: object, device: int, stream: int
    ) -> tuple[object, int]:
        """Return a `DeviceArray` and its address."""
        nbytes = dtype.itemsize * int(np.prod(shape, dtype=object))
        memory = Memory(open_driver(), nbytes, device, stream)
        return DeviceArray(memory, shape, dtype, stream), memory.address

    def allocate(self, nbytes: int, device: int, stream: int) -> Memory:
        """Return memory of the driver's pool."""
        return Memory(open_driver(), nbytes, device, stream)

    def sort(self, pairs: Pairs, device: int, stream: int) -> Pairs:
        """Sort by CUB's radix sort, which is stable."""
        from .cub import radix_sort

        return radix_sort(self, pairs, device, stream)

    def keep(self, holders: Sequence[object], device: int, stream: int) -> None:
        """Keep arrays until the stream has come to this point, and let go of earlier ones."""
        self._kept.until_done(open_driver(), device, stream, holders)


def _interface(value: object) -> dict[str, Any] | None:
    found = getattr(value, "__cuda_array_interface__", None)
    return found if isinstance(found, dict) else None


def _stream_of(value: object) -> int | None:
    """Return the stream that comes first for an array, None where none does."""
    if (interface := _interface(value)) is None:
        return LEGACY_STREAM  # which was passed to DLPack's exporter
    stream = interface.get("stream")
    return None if stream is None else int(stream)


def _dlpack_device(value: object) -> tuple[int, int]:
    asked = getattr(value, "__dlpack_device__", None)
    if asked is None:
        return 0, 0
    kind, number = asked()
    return int(kind), int(number)


def _by_interface(op: str, operand: str, value: object, interface: dict[str, Any]) -> View:
    if interface.get("mask") is not None:
        raise errors.masked_array(op, operand)
    descr = interface.get("descr") or []
    fields = interface["typestr"][1] == "V" and len(descr) > 1
    dtype: AnyDType = np.dtype(descr if fields else interface["typestr"])
    if isinstance(value, DeviceArray):
        dtype = value.dtype  # which the protocol may have no name for
    shape = tuple(int(n) for n in interface["shape"])
    given = interface.get("strides")
    strides = contiguous_strides(shape, dtype.itemsize) if given is None else tuple(map(int, given))
    address = int(interface["data"][0] or 0)
    device = open_driver().device_of(address) if address else None
    return View(address, ArraySpec(shape, dtype, strides), device, value)


class _Tensor(ctypes.Structure):
    """DLPack's DLTensor."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype = ctypes.c_void_p
_pointer_of.argtypes = (ctypes.py_object, ctypes.c_char_p)


def _by_dlpack(op: str, operand: str, value: Any) -> View:
    """Return an array by DLPack. The capsule is not consumed but kept: its own end frees it."""
    capsule = value.__dlpack__(stream=LEGACY_STREAM)
    tensor = _Tensor.from_address(_pointer_of(capsule, b"dltensor"))
    code = dtype_of_dlpack(tensor.code, tensor.bits) if tensor.lanes == 1 else None
    if code is None:
        found = f"code {tensor.code}, {tensor.bits} bits, {tensor.lanes} lanes"
        raise framework_errors.no_whole_items(op, operand, "DLPack", found)
    dtype = dtype_of(code)
    shape = tuple(tensor.shape[: tensor.ndim])
    if tensor.strides:
        strides = tuple(step * dtype.itemsize for step in tensor.strides[: tensor.ndim])
    else:
        strides = contiguous_strides(shape, dtype.itemsize)
    address = (tensor.data or 0) + tensor.byte_offset
    empty = tensor.data is None
    return View(
        address, ArraySpec(shape, dtype, strides), None if empty else tensor.device_id, capsule
    )
