"""Support arrays of any framework through `__cuda_array_interface__` or `__dlpack__`.

The framework's streams and memory pool are unknown. A call therefore runs on the stream that an
array names, or on the legacy default stream. That stream waits for the streams of the other arrays,
and the arrays are kept alive until the call has finished on the device. The result is a
`DeviceArray` in memory from the driver's pool.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from gatherum._core import dtype_of_dlpack
from gatherum._model import errors
from gatherum._model.call import ArraySpec
from gatherum._model.dtypes import AnyDType, Extension, dtype_of
from gatherum._model.errors import Shape
from gatherum._model.errors import frameworks as framework_errors
from gatherum._model.shape_limits import contiguous_strides

from . import errors as cuda_errors
from .device import Pairs
from .device_views import DeviceFramework, View
from .driver import LEGACY_STREAM, Driver, KeptObjects, open_driver

# DLPack device types whose memory a CUDA device can address: CUDA memory and managed memory.
_DLPACK_CUDA = (2, 13)


class Memory:
    """Memory from the driver's pool, freed in stream order."""

    def __init__(self, driver: Driver, nbytes: int, device_number: int, stream: int) -> None:
        with driver.on(device_number):
            self.address = driver.allocate(nbytes, stream)
        self._free = weakref.finalize(
            self, _free_memory, driver, self.address, device_number, stream
        )
        self._free.atexit = False  # the memory is freed when the process ends

    def slice(self, start: int, nbytes: int) -> MemorySlice:
        """Return the bytes of this memory from `start` on."""
        return MemorySlice(self, start)


class MemorySlice:
    """Bytes of a block of memory, from `start` on."""

    def __init__(self, memory: Memory, start: int) -> None:
        self._memory = memory
        self.address = memory.address + start

    def slice(self, start: int, nbytes: int) -> MemorySlice:
        """Return the bytes of this slice from `start` on."""
        return MemorySlice(self._memory, self.address - self._memory.address + start)


def _free_memory(driver: Driver, address: int, device_number: int, stream: int) -> None:
    with driver.on(device_number):
        driver.free(address, stream)


class DeviceArray:
    """An array in a CUDA device's memory that other frameworks can import without a copy.

    ``cupy.asarray(result)``, ``torch.as_tensor(result, device="cuda")`` and
    ``numba.cuda.as_cuda_array(result)`` make arrays of the same memory.

    Attributes
    ----------
    shape : tuple of int
        Sizes of the dimensions. The array is in C order.
    dtype : numpy.dtype
        Data type.
    """

    def __init__(self, memory: Any, shape: Shape, dtype: AnyDType, stream: int) -> None:
        self._memory = memory
        self._stream = stream
        self.shape = shape
        self.dtype = dtype

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """The CUDA array interface. Readers wait for the stream that wrote the array."""
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
    """Return the protocol's string for a dtype, or raw bytes (V) for one that NumPy lacks."""
    known = not isinstance(dtype, Extension) and (dtype.isbuiltin == 1 or dtype.names is not None)
    return dtype.str if known else f"|V{dtype.itemsize}"  # type: ignore[union-attr]  # known


class Protocols(DeviceFramework):
    """Arrays of frameworks that have no adapter, accessed through a protocol."""

    name = "cuda"
    # A captured graph would include the operations of the memory pool. During a capture, events
    # cannot be queried to find out whether operands have been read.
    captures_graphs = False

    def __init__(self) -> None:
        self._kept = KeptObjects()

    def owns(self, value: object) -> bool:
        """Return True if a value has one of the protocols and is on a CUDA device."""
        return _interface(value) is not None or _dlpack_device(value)[0] in _DLPACK_CUDA

    def view(self, op: str, operand: str, value: Any) -> View:
        """Return a view of an array through its CUDA interface, or else through DLPack."""
        if (interface := _interface(value)) is not None:
            return _view_of_interface(op, operand, value, interface)
        device_type, _ = _dlpack_device(value)
        if device_type not in _DLPACK_CUDA:
            raise cuda_errors.not_on_cuda(op, operand, type(value).__name__, None)
        return _view_of_dlpack(op, operand, value)

    def stream(self, device_number: int, operands: Sequence[object]) -> int:
        """Return the first stream that an array names, or the legacy default stream."""
        streams = dict.fromkeys(
            stream for stream in map(_stream_of, operands) if stream is not None
        )
        first, *others = streams or (LEGACY_STREAM,)
        driver = open_driver()
        with driver.on(device_number):
            for other in others:
                driver.wait(first, other)
        return first

    def empty(
        self, shape: Shape, dtype: AnyDType, like: object, device_number: int, stream: int
    ) -> tuple[object, int]:
        """Return a new `DeviceArray` and its address."""
        nbytes = dtype.itemsize * int(np.prod(shape, dtype=object))
        memory = Memory(open_driver(), nbytes, device_number, stream)
        return DeviceArray(memory, shape, dtype, stream), memory.address

    def allocate(self, nbytes: int, device_number: int, stream: int) -> Memory:
        """Return memory from the driver's pool."""
        return Memory(open_driver(), nbytes, device_number, stream)

    def sort(self, pairs: Pairs, device_number: int, stream: int) -> Pairs:
        """Sort with CUB's radix sort, which is stable."""
        from .cub import sort_with_cub

        return sort_with_cub(self, pairs, device_number, stream)

    def mark_written(self, out: object, device_number: int, stream: int) -> None:
        """Make the stream of `out` wait for the call, because readers of `out` wait for it."""
        if (other := _stream_of(out)) not in (None, stream):
            driver = open_driver()
            with driver.on(device_number):
                driver.wait(other, stream)

    def keep(self, holders: Sequence[object], device_number: int, stream: int) -> None:
        """Keep arrays until the stream reaches this point. Release earlier ones that are done."""
        self._kept.keep_until_done(open_driver(), device_number, stream, holders)


def _interface(value: object) -> dict[str, Any] | None:
    interface = getattr(value, "__cuda_array_interface__", None)
    return interface if isinstance(interface, dict) else None


def _stream_of(value: object) -> int | None:
    """Return the stream that must finish before an array is read, or None."""
    if (interface := _interface(value)) is None:
        return LEGACY_STREAM  # the stream passed to DLPack's exporter
    stream = interface.get("stream")
    return None if stream is None else int(stream)


def _dlpack_device(value: object) -> tuple[int, int]:
    """Return DLPack's device type and device number, or zeros for a value without DLPack."""
    dlpack_device = getattr(value, "__dlpack_device__", None)
    if dlpack_device is None:
        return 0, 0
    device_type, device_number = dlpack_device()
    return int(device_type), int(device_number)


def _view_of_interface(op: str, operand: str, value: object, interface: dict[str, Any]) -> View:
    if interface.get("mask") is not None:
        raise errors.masked_array(op, operand)
    descr = interface.get("descr") or []
    has_fields = interface["typestr"][1] == "V" and len(descr) > 1
    dtype: AnyDType = np.dtype(descr if has_fields else interface["typestr"])
    if isinstance(value, DeviceArray):
        dtype = value.dtype  # the protocol has no names for some dtypes
    shape = tuple(int(n) for n in interface["shape"])
    strides = interface.get("strides")
    if strides is None:
        strides = contiguous_strides(shape, dtype.itemsize)
    address, read_only = interface["data"]
    address = int(address or 0)
    device = open_driver().device_of(address) if address else None
    return View(
        address, ArraySpec(shape, dtype, tuple(map(int, strides))), device, value, not read_only
    )


class _DLTensor(ctypes.Structure):
    """The DLTensor struct of DLPack."""

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


def _view_of_dlpack(op: str, operand: str, value: Any) -> View:
    """Return a view of an array through DLPack.

    The capsule is kept, not consumed; its destructor frees the tensor.
    """
    capsule = value.__dlpack__(stream=LEGACY_STREAM)
    tensor = _DLTensor.from_address(_pointer_of(capsule, b"dltensor"))
    dtype_code = dtype_of_dlpack(tensor.code, tensor.bits) if tensor.lanes == 1 else None
    if dtype_code is None:
        description = f"code {tensor.code}, {tensor.bits} bits, {tensor.lanes} lanes"
        raise framework_errors.no_whole_items(op, operand, "DLPack", description)
    dtype = dtype_of(dtype_code)
    shape = tuple(tensor.shape[: tensor.ndim])
    if tensor.strides:
        strides = tuple(step * dtype.itemsize for step in tensor.strides[: tensor.ndim])
    else:
        strides = contiguous_strides(shape, dtype.itemsize)
    address = (tensor.data or 0) + tensor.byte_offset
    is_empty = tensor.data is None
    return View(
        address, ArraySpec(shape, dtype, strides), None if is_empty else tensor.device_id, capsule
    )
