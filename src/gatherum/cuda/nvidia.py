"""Implement `Device` for an NVIDIA GPU: NVRTC compiles kernels, the driver launches them."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

from . import code_cache, kernels
from .device import COMPILER_OPTIONS, Buffer, Kernel, Pairs
from .device_views import DeviceFramework
from .driver import Driver, open_compiler, open_driver


class Nvidia:
    """A GPU with one stream. A framework supplies the memory and the sort."""

    def __init__(self, framework: DeviceFramework, number: int, stream: int) -> None:
        self._framework = framework
        self._driver = open_driver()
        self._number = number
        self._stream = stream

    @property
    def processors(self) -> int:
        """Number of multiprocessors."""
        return _processors(self._driver, self._number)

    def allocate(self, nbytes: int) -> Buffer:
        """Return scratch memory from the framework's allocator."""
        return self._framework.allocate(nbytes, self._number, self._stream)

    def clear(self, buffer: Buffer, nbytes: int) -> None:
        """Set scratch to zero."""
        with self._driver.on(self._number):
            self._driver.clear(buffer.address, nbytes, self._stream)

    def launch(self, kernel: Kernel, grid: int, block: int, arguments: bytes) -> None:
        """Launch a kernel, compiled for this device."""
        with self._driver.on(self._number):
            function = loaded(self._driver, kernel, architecture_of(self._driver, self._number))
            self._driver.launch(function, grid, block, self._stream, arguments)

    def sort(self, pairs: Pairs) -> Pairs:
        """Sort with the framework's stable sort."""
        return self._framework.sort(pairs, self._number, self._stream)

    def read(self, buffer: Buffer, nbytes: int) -> bytes:
        """Wait for the stream and return the first bytes of scratch."""
        content = ctypes.create_string_buffer(nbytes)
        with self._driver.on(self._number):
            self._driver.copy_out(ctypes.addressof(content), buffer.address, nbytes, self._stream)
        return content.raw


@cache
def _processors(driver: Driver, number: int) -> int:
    return driver.attribute(number, "MULTIPROCESSOR_COUNT")


@cache
def architecture_of(driver: Driver, number: int) -> str:
    """Return a device's architecture as compilers name it. The value is cached."""
    return driver.architecture(number)


@cache
def loaded(driver: Driver, kernel: Kernel, architecture: str) -> Any:
    """Return a kernel that devices of an architecture can launch."""
    return driver.kernel(driver.load(kernel_code(kernel, architecture)), kernel.name)


def kernel_code(kernel: Kernel, architecture: str) -> bytes:
    """Return a kernel's cubin for an architecture, from disk if it is cached."""
    compiler = open_compiler()
    options = options_of(kernel, architecture)
    sources = _sources()
    parts = [compiler.version(), kernel.name, *options]
    parts += [part for named in sources.items() for part in named]
    return code_cache.cached_code(parts, lambda: compiler.compile(kernel.name, sources, options))


def options_of(kernel: Kernel, architecture: str) -> tuple[str, ...]:
    """Return the compiler options of a kernel."""
    macros = (f"-D{name}={value}" for name, value in kernel.macros)
    return (f"--gpu-architecture={architecture}", *COMPILER_OPTIONS, *macros)


@cache
def _sources() -> dict[str, str]:
    return kernels.sources()
