"""The CUDA driver and NVRTC, by `cuda.bindings`: a method per call, which checks every status.

Nothing here is imported or loaded before the first call on a device's arrays.
"""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from threading import Lock
from typing import Any

from . import errors as cuda_errors

# The legacy default stream by a number of its own: 0 would be another stream where cuda.bindings
# has been set, by an environment variable, to a default stream per thread.
LEGACY_STREAM = 1


class Driver:
    """The calls of the driver that this package makes, by `cuda.bindings.driver`."""

    def __init__(self, api: Any) -> None:
        self.api = api
        self._contexts: dict[int, Any] = {}
        self.call("cuInit", 0)

    def call(self, name: str, *arguments: Any) -> Any:
        """Call a function of the driver; return what it gives, or raise what its status says."""
        status, *given = getattr(self.api, name)(*arguments)
        if status != self.api.CUresult.CUDA_SUCCESS:
            raise self._failed(name, status)
        return given[0] if len(given) == 1 else tuple(given)

    def _failed(self, name: str, status: Any) -> Exception:
        found, words = self.api.cuGetErrorString(status)
        known = found == self.api.CUresult.CUDA_SUCCESS and words
        text = words.decode() if known else "an unknown error"
        if status == self.api.CUresult.CUDA_ERROR_OUT_OF_MEMORY:
            return cuda_errors.no_device_memory(name, text)
        return cuda_errors.driver_failed(name, getattr(status, "name", str(status)), text)

    @contextmanager
    def on(self, device: int) -> Iterator[None]:
        """Make a device's primary context, which frameworks use, the current one."""
        if (context := self._contexts.get(device)) is None:
            handle = self.call("cuDeviceGet", device)
            context = self._contexts[device] = self.call("cuDevicePrimaryCtxRetain", handle)
        self.call("cuCtxPushCurrent", context)
        try:
            yield
        finally:
            self.call("cuCtxPopCurrent")

    def attribute(self, device: int, name: str) -> int:
        """Return an attribute of a device by the end of its name."""
        number = getattr(self.api.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
        return int(self.call("cuDeviceGetAttribute", number, self.call("cuDeviceGet", device)))

    def architecture(self, device: int) -> str:
        """Return a device's architecture as compilers call it: ``"sm_90"``."""
        major = self.attribute(device, "COMPUTE_CAPABILITY_MAJOR")
        return f"sm_{major}{self.attribute(device, 'COMPUTE_CAPABILITY_MINOR')}"

    def device_of(self, address: int) -> int:
        """Return the number of the device that memory belongs to."""
        kind = self.api.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
        return int(self.call("cuPointerGetAttribute", kind, address))

    def captures(self, stream: int) -> bool:
        """Whether a stream records a graph."""
        status = self.call("cuStreamIsCapturing", stream)
        return bool(status != self.api.CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_NONE)

    def load(self, code: bytes) -> Any:
        """Load compiled code; it is good for every device of its architecture."""
        return self.call("cuLibraryLoadData", code, [], [], 0, [], [], 0)

    def kernel(self, library: Any, name: str) -> Any:
        """Return a kernel of loaded code."""
        return self.call("cuLibraryGetKernel", library, name.encode())

    def launch(self, kernel: Any, grid: int, block: int, stream: int, arguments: bytes) -> None:
        """Start a kernel that takes one struct by value; the driver copies it."""
        struct = (ctypes.c_char * len(arguments)).from_buffer_copy(arguments)
        parameters = (ctypes.c_void_p * 1)(ctypes.addressof(struct))
        sizes = grid, 1, 1, block, 1, 1, 0
        handle = self.api.CUfunction(int(kernel))
        self.call("cuLaunchKernel", handle, *sizes, stream, ctypes.addressof(parameters), 0)

    def clear(self, address: int, nbytes: int, stream: int) -> None:
        """Make bytes of a device zero."""
        if nbytes:
            self.call("cuMemsetD8Async", address, 0, nbytes, stream)

    def copy_in(self, address: int, source: int, nbytes: int, stream: int) -> None:
        """Copy from the host, whose memory may still be read when this returns."""
        if nbytes:
            self.call("cuMemcpyHtoDAsync", address, source, nbytes, stream)

    def copy_out(self, target: int, address: int, nbytes: int, stream: int) -> None:
        """Copy to the host, and wait for it and for all that the stream was given before."""
        if nbytes:
            self.call("cuMemcpyDtoHAsync", target, address, nbytes, stream)
        self.call("cuStreamSynchronize", stream)

    def time_copy(self, target: int, source: int, nbytes: int, stream: int) -> float:
        """Return how long a copy on the device takes, in seconds."""
        flags = self.api.CUevent_flags.CU_EVENT_DEFAULT
        events = [self.call("cuEventCreate", flags) for _ in range(2)]
        self.call("cuEventRecord", events[0], stream)
        self.call("cuMemcpyDtoDAsync", target, source, nbytes, stream)
        self.call("cuEventRecord", events[1], stream)
        self.call("cuEventSynchronize", events[1])
        milliseconds = float(self.call("cuEventElapsedTime", *events))
        for event in events:
            self.destroy(event)
        return milliseconds / 1e3

    def allocate(self, nbytes: int, stream: int) -> int:
        """Return memory of the current device, in the order of a stream."""
        return int(self.call("cuMemAllocAsync", max(nbytes, 1), stream))

    def free(self, address: int, stream: int) -> None:
        """Give memory back, in the order of a stream."""
        self.call("cuMemFreeAsync", address, stream)

    def record(self, stream: int) -> Any:
        """Return an event for all that a stream was given until now."""
        event = self.call("cuEventCreate", self.api.CUevent_flags.CU_EVENT_DISABLE_TIMING)
        self.call("cuEventRecord", event, stream)
        return event

    def is_done(self, event: Any) -> bool:
        """Whether what an event stands for is done."""
        status, *_ = self.api.cuEventQuery(event)
        if status == self.api.CUresult.CUDA_ERROR_NOT_READY:
            return False
        if status != self.api.CUresult.CUDA_SUCCESS:
            raise self._failed("cuEventQuery", status)
        return True

    def destroy(self, event: Any) -> None:
        """Let go of an event."""
        self.call("cuEventDestroy", event)

    def wait(self, stream: int, other: int) -> None:
        """Let a stream wait for all that another one was given until now."""
        event = self.record(other)
        self.call("cuStreamWaitEvent", stream, event, 0)
        self.destroy(event)


class Kept:
    """What streams may still use, until they have come past the point where it was put here."""

    def __init__(self) -> None:
        self._kept: deque[tuple[Any, object]] = deque()
        self._lock = Lock()

    def until_done(self, driver: Driver, device: int, stream: int, used: object) -> None:
        """Keep `used` until all that a stream was given is done, and let go of what is done now."""
        with driver.on(device):
            event = driver.record(stream)
        done = []
        with self._lock:
            self._kept.append((event, used))
            while self._kept and driver.is_done(self._kept[0][0]):
                done.append(self._kept.popleft())
        for event, _ in done:
            driver.destroy(event)


class Compiler:
    """NVRTC, by `cuda.bindings.nvrtc`: it compiles for any architecture, and needs no device."""

    def __init__(self, api: Any) -> None:
        self.api = api

    def call(self, name: str, *arguments: Any) -> Any:
        """Call a function of NVRTC; return what it gives, or raise what its status says."""
        status, *given = getattr(self.api, name)(*arguments)
        if status != self.api.nvrtcResult.NVRTC_SUCCESS:
            raise cuda_errors.driver_failed(name, status.name, "NVRTC")
        return given[0] if len(given) == 1 else tuple(given)

    def version(self) -> str:
        """Return the version, which decides what comes out."""
        return ".".join(map(str, self.call("nvrtcVersion")))

    def compile(self, name: str, sources: Mapping[str, str], options: Sequence[str]) -> bytes:
        """Return the cubin of a kernel, whose source is ``<name>.cu``, for the architecture that
        the options name. `sources` are the texts of all files by their names.
        """
        headers = {file: text for file, text in sources.items() if file.endswith(".cuh")}
        program = self.call(
            "nvrtcCreateProgram",
            sources[f"{name}.cu"].encode(),
            f"{name}.cu".encode(),
            len(headers),
            [text.encode() for text in headers.values()],
            [file.encode() for file in headers],
        )
        try:
            given = [option.encode() for option in options]
            status, *_ = self.api.nvrtcCompileProgram(program, len(given), given)
            if status != self.api.nvrtcResult.NVRTC_SUCCESS:
                raise cuda_errors.not_compiled(name, self._log(program))
            code = bytes(self.call("nvrtcGetCUBINSize", program))
            self.call("nvrtcGetCUBIN", program, code)
            return code
        finally:
            self.call("nvrtcDestroyProgram", program)

    def _log(self, program: Any) -> str:
        text = bytes(self.call("nvrtcGetProgramLogSize", program))
        self.call("nvrtcGetProgramLog", program, text)
        return text.rstrip(b"\0\n ").decode(errors="replace")


@cache
def open_driver() -> Driver:
    """Return the driver, or raise an error that says what is missing."""
    api = _import("driver")
    try:
        return Driver(api)
    except RuntimeError as why:  # no library of the driver, or no device
        raise cuda_errors.no_cuda_driver(why) from None


@cache
def open_compiler() -> Compiler:
    """Return NVRTC, or raise an error that says what is missing."""
    compiler = Compiler(_import("nvrtc"))
    try:
        compiler.version()
    except RuntimeError:  # no library of that name
        raise cuda_errors.no_cuda_package("NVRTC") from None
    return compiler


def _import(name: str) -> Any:
    try:
        return import_module(f"cuda.bindings.{name}")
    except ImportError:
        raise cuda_errors.no_cuda_package("cuda.bindings") from None
