"""Implement `Device` for an NVIDIA GPU: NVRTC compiles kernels, the driver launches them."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any, TypeAlias

from gatherum._system import native

from . import code_cache, kernels, programs
from . import errors as cuda_errors
from .device import COMPILER_OPTIONS, Buffer, Kernel, Pairs, Widths
from .device_views import DeviceFramework
from .driver import Driver, open_compiler, open_driver
from .programs import Clear, DeviceProgram, Launch, Read, Sort

# Sorts pairs. The arguments are the distances of the pairs from the start of all scratch memory,
# their length, the widths of key and payload, and the bits. Returns the addresses of both results.
Sorter: TypeAlias = Callable[[int, int, int, int, int, int], tuple[int, int]]


class Nvidia:
    """A GPU with one stream. A framework supplies the memory and the sort."""

    def __init__(self, framework: DeviceFramework, device_number: int, stream: int) -> None:
        self._framework = framework
        self._driver = open_driver()
        self._device_number = device_number
        self._stream = stream

    @property
    def processors(self) -> int:
        """Number of multiprocessors."""
        return processors_of(self._driver, self._device_number)

    def allocate(self, nbytes: int) -> Buffer:
        """Return scratch memory from the framework's allocator."""
        return self._framework.allocate(nbytes, self._device_number, self._stream)

    def clear(self, buffer: Buffer, nbytes: int) -> None:
        """Set scratch to zero."""
        with self._driver.on(self._device_number):
            self._driver.clear(buffer.address, nbytes, self._stream)

    def launch(self, kernel: Kernel, grid: int, block: int, arguments: bytes) -> None:
        """Launch a kernel, compiled for this device."""
        with self._driver.on(self._device_number):
            architecture = architecture_of(self._driver, self._device_number)
            function = loaded_kernel(self._driver, kernel, architecture, len(arguments))
            self._driver.launch(function, grid, block, self._stream, arguments)

    def sort(self, pairs: Pairs) -> Pairs:
        """Sort with the framework's stable sort."""
        return self._framework.sort(pairs, self._device_number, self._stream)

    def read(self, buffer: Buffer, nbytes: int) -> bytes:
        """Wait for the stream and return the first bytes of scratch."""
        content = ctypes.create_string_buffer(nbytes)
        with self._driver.on(self._device_number):
            self._driver.copy_to_host(
                ctypes.addressof(content), buffer.address, nbytes, self._stream
            )
        return content.raw

    def run_program(
        self,
        program: DeviceProgram,
        operands: tuple[int, ...],
        results: list[Pairs] | None = None,
    ) -> bytes:
        """Replay a program in the core, or step by step if the core cannot call the driver."""
        if not self._driver.replays:
            return programs.run_steps(self, program, operands, results)
        loaded = loaded_program(self._driver, program, self._device_number)
        arena, sort, address = None, None, 0
        if program.arena:
            arena = self.allocate(program.arena)
            sort = sorter(self._framework, arena, self._device_number, self._stream, results)
            address = arena.address
        result = loaded.replay(operands, address, self._stream, sort)
        if isinstance(result, tuple):
            raise self._driver.failed(*result)
        return result


def sorter(
    framework: DeviceFramework,
    arena: Buffer,
    device_number: int,
    stream: int,
    results: list[Pairs] | None = None,
) -> Sorter:
    """Return the sort for one replay. The sort keeps its results, or appends them to a list."""
    kept = [] if results is None else results

    def sort(keys: int, payload: int, length: int, *widths: int) -> tuple[int, int]:
        key, value, bits = widths
        buffers = arena.slice(keys, length * key), arena.slice(payload, length * value)
        pairs = Pairs(*buffers, length, Widths(key, value, bits))
        kept.append(framework.sort(pairs, device_number, stream))
        return kept[-1].keys.address, kept[-1].payload.address

    return sort


@native.emptied_at_exit
@lru_cache(maxsize=1024)
def loaded_program(
    driver: Driver, program: DeviceProgram, device_number: int
) -> native.DeviceProgram:
    """Return a program for replays on a device, with its kernels compiled and loaded."""
    architecture = architecture_of(driver, device_number)
    steps: list[tuple[Any, ...]] = []
    for step in program.steps:
        match step:
            case Launch(kernel, grid, block, (content, patches)):
                handle = int(loaded_kernel(driver, kernel, architecture, len(content)))
                steps.append(("launch", handle, grid, block, content, patches))
            case Clear(slot, nbytes):
                steps.append(("clear", slot, nbytes))
            case Read(slot, nbytes):
                steps.append(("read", slot, nbytes))
            case Sort(pairs, results, length, widths):
                steps.append(("sort", *pairs, *results, length, *widths))
    offsets = tuple((buffer.slot, buffer.offset) for buffer in program.scratch)
    with driver.on(device_number):
        return native.DeviceProgram(
            driver.context(device_number), tuple(steps), offsets, program.slots, program.arena
        )


@cache
def processors_of(driver: Driver, device_number: int) -> int:
    """Return a device's number of multiprocessors. The value is cached."""
    return driver.attribute(device_number, "MULTIPROCESSOR_COUNT")


@cache
def architecture_of(driver: Driver, device_number: int) -> str:
    """Return a device's architecture as compilers name it. The value is cached."""
    return driver.architecture(device_number)


@cache
def loaded_kernel(driver: Driver, kernel: Kernel, architecture: str, nbytes: int) -> Any:
    """Return a kernel that devices of an architecture can launch, with a struct of `nbytes` bytes.

    Raise RuntimeError if the kernel takes other parameters. A launch would then read other fields,
    or memory beyond the struct.
    """
    loaded = driver.kernel(driver.load(kernel_code(kernel, architecture)), kernel.name)
    expected, found = [(0, nbytes)], driver.parameters(loaded)
    if found is not None and found != expected:
        raise cuda_errors.other_parameters(kernel.name, expected, found)
    return loaded


def kernel_code(kernel: Kernel, architecture: str) -> bytes:
    """Return a kernel's cubin for an architecture, from disk if it is cached."""
    compiler = open_compiler()
    options = options_of(kernel, architecture)
    sources = _sources()
    inputs = [compiler.version(), kernel.name, *options]
    inputs += [text for named in sources.items() for text in named]
    return code_cache.cached_code(inputs, lambda: compiler.compile(kernel.name, sources, options))


def options_of(kernel: Kernel, architecture: str) -> tuple[str, ...]:
    """Return the compiler options of a kernel."""
    macros = (f"-D{name}={value}" for name, value in kernel.macros)
    return (f"--gpu-architecture={architecture}", *COMPILER_OPTIONS, *macros)


@cache
def _sources() -> dict[str, str]:
    return kernels.sources()
