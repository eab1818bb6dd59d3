"""Call the CUDA driver and NVRTC through `cuda.bindings`, and check every status.

Nothing is imported or loaded before the first call on a device's arrays.
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

from gatherum._system import native

from . import errors as cuda_errors

# Explicit handle of the legacy default stream. With handle 0, cuda.bindings may use a default
# stream per thread, depending on an environment variable.
LEGACY_STREAM = 1


class Driver:
    """The driver functions that this package uses, from `cuda.bindings.driver`.

    `replays` is True if the core can call the same driver.
    """

    def __init__(self, api: Any, replays: bool = False) -> None:
        self.api = api
        self.replays = replays
        self._contexts: dict[int, Any] = {}
        self.call("cuInit", 0)

    def call(self, name: str, *arguments: Any) -> Any:
        """Call a driver function. Return its results, or raise an error for its status."""
        status, *results = getattr(self.api, name)(*arguments)
        if status != self.api.CUresult.CUDA_SUCCESS:
            raise self.failed(name, status)
        return results[0] if len(results) == 1 else tuple(results)

    def failed(self, name: str, status: Any) -> Exception:
        """Return the error for the status of a driver function; the status may be a number."""
        status = self.api.CUresult(status)
        lookup, words = self.api.cuGetErrorString(status)
        known = lookup == self.api.CUresult.CUDA_SUCCESS and words
        text = words.decode() if known else "an unknown error"
        if status == self.api.CUresult.CUDA_ERROR_OUT_OF_MEMORY:
            return cuda_errors.no_device_memory(name, text)
        return cuda_errors.driver_failed(name, getattr(status, "name", str(status)), text)

    @contextmanager
    def on(self, device_number: int) -> Iterator[None]:
        """Make the primary context of a device the current one; frameworks use the same context."""
        self.call("cuCtxPushCurrent", self._context(device_number))
        try:
            yield
        finally:
            self.call("cuCtxPopCurrent")

    def _context(self, device_number: int) -> Any:
        if (context := self._contexts.get(device_number)) is None:
            handle = self.call("cuDeviceGet", device_number)
            context = self._contexts[device_number] = self.call("cuDevicePrimaryCtxRetain", handle)
        return context

    def context(self, device_number: int) -> int:
        """Return the handle of a device's primary context."""
        return int(self._context(device_number))

    def attribute(self, device_number: int, name: str) -> int:
        """Return a device attribute by the suffix of its name."""
        attribute_code = getattr(self.api.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
        return int(
            self.call(
                "cuDeviceGetAttribute", attribute_code, self.call("cuDeviceGet", device_number)
            )
        )

    def architecture(self, device_number: int) -> str:
        """Return a device's architecture as compilers name it: ``"sm_90"``."""
        major = self.attribute(device_number, "COMPUTE_CAPABILITY_MAJOR")
        return f"sm_{major}{self.attribute(device_number, 'COMPUTE_CAPABILITY_MINOR')}"

    def device_of(self, address: int) -> int:
        """Return the number of the device that owns the memory at an address."""
        attribute = self.api.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
        return int(self.call("cuPointerGetAttribute", attribute, address))

    def captures(self, stream: int) -> bool:
        """Return True if a stream is capturing a graph."""
        status = self.call("cuStreamIsCapturing", stream)
        return bool(status != self.api.CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_NONE)

    def load(self, code: bytes) -> Any:
        """Load compiled code, which any device of its architecture can run."""
        return self.call("cuLibraryLoadData", code, [], [], 0, [], [], 0)

    def kernel(self, library: Any, name: str) -> Any:
        """Return a kernel of loaded code."""
        return self.call("cuLibraryGetKernel", library, name.encode())

    def parameters(self, kernel: Any) -> list[tuple[int, int]] | None:
        """Return the offset and the size in bytes of each parameter of a kernel.

        Return None if the driver cannot tell: drivers before CUDA 12.4 have no function for this.
        """
        places: list[tuple[int, int]] = []
        while True:
            try:
                status, *place = self.api.cuKernelGetParamInfo(kernel, len(places))
            except (AttributeError, RuntimeError):  # cuda.bindings, or the driver, is older
                return None
            if status == self.api.CUresult.CUDA_ERROR_INVALID_VALUE:  # there are no more
                return places
            if status != self.api.CUresult.CUDA_SUCCESS:
                return None
            places.append((int(place[0]), int(place[1])))

    def launch(self, kernel: Any, grid: int, block: int, stream: int, arguments: bytes) -> None:
        """Launch a kernel with one struct passed by value. The driver copies the struct."""
        struct = (ctypes.c_char * len(arguments)).from_buffer_copy(arguments)
        parameters = (ctypes.c_void_p * 1)(ctypes.addressof(struct))
        sizes = grid, 1, 1, block, 1, 1, 0
        handle = self.api.CUfunction(int(kernel))
        self.call("cuLaunchKernel", handle, *sizes, stream, ctypes.addressof(parameters), 0)

    def clear(self, address: int, nbytes: int, stream: int) -> None:
        """Set bytes on a device to zero."""
        if nbytes:
            self.call("cuMemsetD8Async", address, 0, nbytes, stream)

    def copy_to_device(self, address: int, source: int, nbytes: int, stream: int) -> None:
        """Copy from the host. The host memory may still be read after this returns."""
        if nbytes:
            self.call("cuMemcpyHtoDAsync", address, source, nbytes, stream)

    def copy_to_host(self, target: int, address: int, nbytes: int, stream: int) -> None:
        """Copy to the host. Wait for the copy and for all earlier work on the stream."""
        if nbytes:
            self.call("cuMemcpyDtoHAsync", target, address, nbytes, stream)
        self.call("cuStreamSynchronize", stream)

    def time_copy(self, target: int, source: int, nbytes: int, stream: int) -> float:
        """Return the duration of a copy on the device, in seconds."""
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
        """Allocate memory on the current device, in stream order. Return its address."""
        return int(self.call("cuMemAllocAsync", max(nbytes, 1), stream))

    def free(self, address: int, stream: int) -> None:
        """Free memory, in stream order."""
        self.call("cuMemFreeAsync", address, stream)

    def record(self, stream: int) -> Any:
        """Record an event after all work submitted to a stream so far."""
        event = self.call("cuEventCreate", self.api.CUevent_flags.CU_EVENT_DISABLE_TIMING)
        self.call("cuEventRecord", event, stream)
        return event

    def is_done(self, event: Any) -> bool:
        """Return True if the work before an event is done."""
        status, *_ = self.api.cuEventQuery(event)
        if status == self.api.CUresult.CUDA_ERROR_NOT_READY:
            return False
        if status != self.api.CUresult.CUDA_SUCCESS:
            raise self.failed("cuEventQuery", status)
        return True

    def destroy(self, event: Any) -> None:
        """Destroy an event."""
        self.call("cuEventDestroy", event)

    def wait(self, stream: int, other: int) -> None:
        """Make a stream wait for all work submitted to another stream so far."""
        event = self.record(other)
        self.call("cuStreamWaitEvent", stream, event, 0)
        self.destroy(event)


class KeptObjects:
    """Objects that streams may still use. Each object is kept until its stream passes an event."""

    def __init__(self) -> None:
        self._kept: deque[tuple[Any, object]] = deque()
        self._lock = Lock()

    def keep_until_done(
        self, driver: Driver, device_number: int, stream: int, used: object
    ) -> None:
        """Keep `used` until all work submitted to a stream so far is done.

        Release the objects that no pending work uses.
        """
        with driver.on(device_number):
            event = driver.record(stream)
        done = []
        with self._lock:
            self._kept.append((event, used))
            while self._kept and driver.is_done(self._kept[0][0]):
                done.append(self._kept.popleft())
        for event, _ in done:
            driver.destroy(event)


class Compiler:
    """NVRTC, through `cuda.bindings.nvrtc`. It compiles for any architecture without a device."""

    def __init__(self, api: Any) -> None:
        self.api = api

    def call(self, name: str, *arguments: Any) -> Any:
        """Call an NVRTC function. Return its results, or raise an error for its status."""
        status, *results = getattr(self.api, name)(*arguments)
        if status != self.api.nvrtcResult.NVRTC_SUCCESS:
            raise cuda_errors.driver_failed(name, status.name, "NVRTC")
        return results[0] if len(results) == 1 else tuple(results)

    def version(self) -> str:
        """Return the NVRTC version, which affects the compiled code."""
        return ".".join(map(str, self.call("nvrtcVersion")))

    def compile(self, name: str, sources: Mapping[str, str], options: Sequence[str]) -> bytes:
        """Compile the kernel in ``<name>.cu`` to a cubin for the architecture in the options.

        `sources` maps the name of each file to its text.
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
            encoded = [option.encode() for option in options]
            status, *_ = self.api.nvrtcCompileProgram(program, len(encoded), encoded)
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
    """Return the driver, or raise an error that names the missing part."""
    api = _import("driver")
    try:
        return Driver(api, native.has_cuda_driver())
    except RuntimeError as why:  # missing driver library, or no device
        raise cuda_errors.no_cuda_driver(why) from None


@cache
def open_compiler() -> Compiler:
    """Return NVRTC, or raise an error that names the missing package."""
    compiler = Compiler(_import("nvrtc"))
    try:
        compiler.version()
    except RuntimeError:  # the NVRTC library is missing
        raise cuda_errors.no_cuda_package("NVRTC") from None
    return compiler


def is_available() -> bool:
    """Return True if arrays in a GPU's memory can be used: packages, driver and a device exist.

    Nothing is compiled. The first call on a device compiles its kernels.

    Returns
    -------
    bool
        Whether ``cuda.bindings`` and NVRTC are installed and the driver has a device. If False, the
        first call on a device array raises an error that names the missing part.

    Examples
    --------
    >>> device = "cuda" if gatherum.cuda.is_available() else "cpu"
    """
    try:
        driver = open_driver()
        open_compiler()
        return bool(driver.call("cuDeviceGetCount") > 0)
    except (ImportError, RuntimeError):  # a part is missing, as the first call would report
        return False


def _import(name: str) -> Any:
    try:
        return import_module(f"cuda.bindings.{name}")
    except ImportError:
        raise cuda_errors.no_cuda_package("cuda.bindings") from None
