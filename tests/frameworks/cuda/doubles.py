"""A simulated machine with CUDA devices: their memory is the host's, and every call is recorded.

`DriverDouble` behaves as `cuda.bindings.driver` does. `HostArray` and `HostTensor` are arrays of an
unknown framework which claim to be on a device.
"""

import ctypes
from enum import IntEnum
from types import SimpleNamespace

import numpy as np

from gatherum._model.call import ArraySpec
from gatherum._model.shape_limits import contiguous_strides
from gatherum._plans.plans import apply
from gatherum.cuda.device import Pairs


class Status(IntEnum):
    CUDA_SUCCESS = 0
    CUDA_ERROR_INVALID_VALUE = 1
    CUDA_ERROR_OUT_OF_MEMORY = 2
    CUDA_ERROR_NOT_READY = 600
    CUDA_ERROR_NOT_SUPPORTED = 801
    CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900
    CUDA_ERROR_CAPTURED_EVENT = 907


class Attribute(IntEnum):
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16


OK = Status.CUDA_SUCCESS
ANSWERS = {75: 9, 76: 0, 16: 4}


class DriverDouble:
    """Behaves as `cuda.bindings.driver` does, for any number of devices in host memory.

    Attributes
    ----------
    calls : list of tuple
        Each call: its name and its arguments.
    fail : dict
        The status that a function returns instead of its result, keyed by name.
    device_of : dict
        The device of an address; 0 by default.
    parameters : list of tuple, or Status, optional
        The offset and the size of each parameter of all kernels, or the status of the request. None
        for a driver that has no function for this.
    """

    CUresult = Status
    CUdevice_attribute = Attribute
    CUpointer_attribute = SimpleNamespace(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL=9)
    CUstreamCaptureStatus = SimpleNamespace(CU_STREAM_CAPTURE_STATUS_NONE=0)
    CUevent_flags = SimpleNamespace(CU_EVENT_DISABLE_TIMING=2, CU_EVENT_DEFAULT=0)
    CUfunction = int

    def __init__(self):
        self.calls = []
        self.fail = {}
        self.devices = 2
        self.device_of = {}
        self.parameters = None
        self.memory = {}
        self.freed = []
        self.contexts = []
        self.capturing = set()
        self.unfinished = set()
        self.captured = set()  # events in a graph

    def __getattr__(self, name):
        if not name.startswith("cu"):
            raise AttributeError(name)

        def call(*arguments):
            self.calls.append((name, *arguments))
            if name in self.fail:
                return (self.fail[name],)
            answer = getattr(self, f"_{name}")(*arguments)
            return (OK,) if answer is None else (OK, answer)

        return call

    def cuGetErrorString(self, status):  # the driver's name
        return OK, f"words of {status.name}".encode()

    def cuEventQuery(self, event):
        if event in self.captured:
            return (Status.CUDA_ERROR_CAPTURED_EVENT,)
        return (Status.CUDA_ERROR_NOT_READY if event in self.unfinished else OK,)

    def cuKernelGetParamInfo(self, kernel, number):
        if self.parameters is None:  # as `cuda.bindings` does
            raise RuntimeError("function cuKernelGetParamInfo is not found")
        if isinstance(self.parameters, Status):
            return (self.parameters,)
        if number >= len(self.parameters):
            return (Status.CUDA_ERROR_INVALID_VALUE,)
        return OK, *self.parameters[number]

    def named(self, *names):
        """Return the recorded calls of these names."""
        return [call for call in self.calls if call[0] in names]

    def _cuInit(self, flags):
        return None

    def _cuDeviceGetCount(self):
        return self.devices

    def _cuDeviceGet(self, number):
        return number

    def _cuDevicePrimaryCtxRetain(self, device):
        return f"context {device}"

    def _cuCtxPushCurrent(self, context):
        self.contexts.append(context)

    def _cuCtxPopCurrent(self):
        return self.contexts.pop()

    def _cuDeviceGetAttribute(self, number, device):
        return ANSWERS[number]

    def _cuPointerGetAttribute(self, attribute, address):
        return self.device_of.get(address, 0)

    def _cuStreamIsCapturing(self, stream):
        return int(stream in self.capturing)

    def _cuLibraryLoadData(self, code, *options):
        return bytes(code)

    def _cuLibraryGetKernel(self, library, name):
        return 77

    def _cuLaunchKernel(self, kernel, *more):
        assert self.contexts

    def _cuMemAllocAsync(self, nbytes, stream):
        assert self.contexts
        memory = np.full(nbytes + 512, 0xA5, np.uint8)  # marks bytes that are never written
        address = (memory.ctypes.data + 511) // 512 * 512
        self.memory[address] = memory
        return address

    def _cuMemFreeAsync(self, address, stream):
        self.freed.append(address)
        self.memory.pop(address)

    def _cuMemsetD8Async(self, address, value, nbytes, stream):
        ctypes.memset(address, value, nbytes)

    def _cuMemcpyHtoDAsync(self, address, source, nbytes, stream):
        ctypes.memmove(address, source, nbytes)

    def _cuMemcpyDtoHAsync(self, target, address, nbytes, stream):
        ctypes.memmove(target, address, nbytes)

    def _cuStreamSynchronize(self, stream):
        assert stream not in self.capturing

    def _cuEventCreate(self, flags):
        return f"event {len(self.calls)}"

    def _cuEventRecord(self, event, stream):
        if stream in self.capturing:
            self.captured.add(event)

    def _cuEventDestroy(self, event):
        return None

    def _cuEventSynchronize(self, event):
        return None

    def _cuEventElapsedTime(self, begin, end):
        return 0.25

    def _cuMemcpyDtoDAsync(self, target, source, nbytes, stream):
        return None

    def _cuStreamWaitEvent(self, stream, event, flags):
        return None


class CompilerDouble:
    """Behaves as `cuda.bindings.nvrtc` does. Its compiled code is the list of options."""

    nvrtcResult = SimpleNamespace(
        NVRTC_SUCCESS=SimpleNamespace(name="NVRTC_SUCCESS"),
        NVRTC_ERROR_COMPILATION=SimpleNamespace(name="NVRTC_ERROR_COMPILATION"),
    )

    def __init__(self, log=b""):
        self.compiled = []
        self.destroyed = 0
        self.log = log
        self.good = self.nvrtcResult.NVRTC_SUCCESS

    def nvrtcVersion(self):
        return self.good, 13, 5

    def nvrtcCreateProgram(self, source, name, count, headers, names):
        assert count == len(headers) == len(names)
        return self.good, (source, name, dict(zip(names, headers, strict=True)))

    def nvrtcCompileProgram(self, program, count, options):
        assert count == len(options)
        self.compiled.append((program, tuple(options)))
        return (self.nvrtcResult.NVRTC_ERROR_COMPILATION if self.log else self.good,)

    def nvrtcGetProgramLogSize(self, program):
        return self.good, len(self.log) + 1

    def nvrtcGetProgramLog(self, program, text):
        _write(text, self.log + b"\0")
        return (self.good,)

    def nvrtcGetCUBINSize(self, program):
        return self.good, 64

    def nvrtcGetCUBIN(self, program, code):
        _write(code, repr(self.compiled[-1][1]).encode()[-64:].ljust(64))
        return (self.good,)

    def nvrtcDestroyProgram(self, program):
        self.destroyed += 1
        return (self.good,)


def _write(into, content):
    """Write into a bytes object, as `cuda.bindings` does."""
    assert len(into) == len(content)
    place = ctypes.cast(ctypes.c_char_p(into), ctypes.c_void_p).value
    ctypes.memmove(place, content, len(content))


class HostArray:
    """An array that claims to be on a device, by `__cuda_array_interface__`."""

    def __init__(self, array, stream=None, **more):
        self.array = array
        self.stream = stream
        self.more = more

    @property
    def __cuda_array_interface__(self):
        a = self.array
        extension = a.dtype.kind == "V" and a.dtype.names is None
        return {
            "shape": a.shape,
            "typestr": f"|V{a.itemsize}" if extension else a.dtype.str,
            "descr": a.dtype.descr,
            "data": (a.ctypes.data if a.size else 0, not a.flags.writeable),
            "strides": None if a.flags.c_contiguous else a.strides,
            "stream": self.stream,
            "version": 3,
        } | self.more


class HostTensor:
    """An array that claims to be on a device, by DLPack."""

    def __init__(self, array, device=(2, 0)):
        self.array = array
        self.device = device
        self.streams = []

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, *, stream=None):
        self.streams.append(stream)
        capsule = self.array.__dlpack__()
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
        place = ctypes.c_int32 * 2
        place.from_address(pointer(capsule, b"dltensor") + 8)[:] = self.device
        return capsule


def array_of(result):
    """Return the current values of a `DeviceArray` in host memory."""
    interface = dict(result.__cuda_array_interface__)
    dtype = result.dtype
    size = dtype.itemsize * int(np.prod(result.shape, dtype=object))
    if not size:
        return np.empty(result.shape, dtype)
    raw = ctypes.string_at(interface["data"][0], size)
    return np.frombuffer(bytearray(raw), dtype).reshape(result.shape)


def memory_of(address, operand):
    """Return an array of host memory at an address."""
    interface = {
        "version": 3,
        "data": (address or 1, False),
        "shape": operand.shape,
        "strides": operand.strides,
        "typestr": f"|V{operand.dtype.itemsize}",
    }
    result = np.asarray(SimpleNamespace(__array_interface__=interface))
    known = isinstance(operand.dtype, np.dtype) and operand.dtype.itemsize
    return result.view(operand.dtype) if known else result


def sort_on_host(framework, pairs, device, stream):
    """Sort pairs in host memory, in place of `cub.sort_with_cub`."""
    arrays = [
        np.frombuffer(bytearray(ctypes.string_at(at.address, width * pairs[2])), f"u{width}")
        for at, width in zip(pairs[:2], pairs.widths[:2], strict=True)
    ]
    assert int(arrays[0].max()) < 2**pairs.widths.bits
    order = np.argsort(arrays[0], kind="stable")
    allocated = [framework.allocate(each.nbytes, device, stream) for each in arrays]
    for memory, each in zip(allocated, arrays, strict=True):
        moved = each[order]
        ctypes.memmove(memory.address, moved.ctypes.data, moved.nbytes)
    return Pairs(*allocated, *pairs[2:])


def run_on_core(device, plan, data, indices, updates, out, fill=b"", order=None):
    """Run a plan on host memory by the core, in place of `plan_launches.run`."""
    s = plan.call
    memories = [memory_of(data, s.data), memory_of(indices, s.indices)]
    if s.updates is not None:
        memories.append(memory_of(updates, s.updates))
    strides = contiguous_strides(plan.shape, s.data.dtype.itemsize)
    to = s.out or ArraySpec(plan.shape, s.data.dtype, strides)
    attributes = {s.operator.attribute: s.axis, "mode": s.mode, "negative": s.negative}
    if s.updates is not None:
        attributes |= {"reduction": s.reduction, "include_self": s.include_self}
    elif fill:
        attributes["fill_value"] = np.frombuffer(fill, s.data.dtype)[0]
    apply(s.op, *memories, out=memory_of(out, to), **attributes)
