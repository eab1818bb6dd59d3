"""A CuPy on host memory, with the parts that test_cuda_gpu.py and the benchmark use."""

from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np

__version__ = "double"
Graph = None  # gpu_double sets it
_OF_NUMPY = {"shape", "typestr", "data", "strides", "version"}


class _Memory:
    """Memory of the pool."""

    def __init__(self, nbytes):
        self.bytes = np.full(nbytes + 512, 0xA5, np.uint8)
        self.ptr = (self.bytes.ctypes.data + 511) // 512 * 512


class ndarray:  # CuPy's name
    """An array. Attributes that are not defined here are those of NumPy's array."""

    device = SimpleNamespace(id=0)

    def __init__(self, values):
        self.values = values
        self.data = SimpleNamespace(ptr=values.ctypes.data)

    def __getattr__(self, name):
        return getattr(self.values, name)

    def get(self):
        return self.values

    def __eq__(self, other):
        return self.values == other

    def __setitem__(self, index, values):
        self.values[index.values] = values.values

    def copy(self):
        return ndarray(self.values.copy())

    def __iadd__(self, other):
        self.values += other
        return self

    __hash__ = None

    @property
    def __cuda_array_interface__(self):
        a = self.values
        return {"shape": a.shape, "typestr": a.dtype.str, "data": (a.ctypes.data, False),
                "strides": a.strides, "stream": _Stream.ptr, "version": 3}  # fmt: skip


ndarray.__module__ = "cupy"


def asarray(values):
    """Return an array of values, or of an object with the protocol."""
    interface = getattr(values, "__cuda_array_interface__", None)
    if interface is not None:
        interface = {key: value for key, value in interface.items() if key in _OF_NUMPY}
        values = SimpleNamespace(__array_interface__=interface, keeps=values)
    return ndarray(np.asarray(values))


def array(values):
    return ndarray(np.array(values, order="C"))


def asnumpy(array):
    return array.values


def empty(shape, dtype):
    return ndarray(np.empty(shape, dtype))


def zeros(shape, dtype):
    return ndarray(np.zeros(shape, dtype))


def ones(shape, dtype):
    return ndarray(np.ones(shape, dtype))


def argsort(keys):
    return ndarray(np.argsort(keys.values, kind="stable"))


def take(values, index, axis=None):
    return ndarray(np.take(values.values, index.values, axis))


def take_along_axis(values, index, axis):
    return ndarray(np.take_along_axis(values.values, index.values, axis))


class add:  # CuPy's name
    @staticmethod
    def at(values, index, updates):
        np.add.at(values.values, index.values, updates.values)


class _Stream:
    """A stream that runs everything immediately, and captures what gpu_double runs meanwhile."""

    ptr = 60

    def __init__(self, non_blocking=False):
        return None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def begin_capture(self):
        self.graph = Graph()
        self.graph.capture_begin()

    def end_capture(self):
        self.graph.capture_end()
        return SimpleNamespace(launch=lambda stream: self.graph.replay())

    def synchronize(self):
        return None


class _Device:
    id = 0

    def __init__(self, number=0):
        return None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def synchronize(self):
        return None


random = SimpleNamespace(
    random=lambda n, dtype: ndarray(np.random.default_rng(1).random(n).astype(dtype)),
    randint=lambda low, high, n: ndarray(np.random.default_rng(2).integers(low, high, n)),
)
cuda = SimpleNamespace(
    Device=_Device,
    Stream=_Stream,
    is_available=lambda: True,
    alloc=_Memory,
    get_allocator=lambda: _Memory,
    using_allocator=lambda _: nullcontext(),
    get_current_stream=lambda _: _Stream(),
    runtime=SimpleNamespace(getDeviceProperties=lambda _: {"name": b"a double"}),
)
