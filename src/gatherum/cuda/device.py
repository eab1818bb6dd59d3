"""Defines what `gatherum.cuda` requires of a device; nothing else reaches one.

`plan_launches.run` turns a plan into launches on a `Device`. One implementation drives an NVIDIA
GPU; the tests have another, which runs the same kernels, compiled by g++, on NumPy memory.

The protocol, in short:

- A **kernel** is one file, ``kernels/<name>.cu``, with one ``extern "C" __global__`` function of
  the same name. It includes the ``.cuh`` files beside it by their names. `Kernel.macros` are its
  options, ``-DNAME=VALUE`` each: they choose widths, types, the reduction, the mode. What is
  compiled is known by the text of the folder, the macros, `COMPILER_OPTIONS` and the architecture.
- A kernel takes **one struct by value**, at most 32 764 bytes, which arrives here packed:
  ``launch(kernel, grid, block, arguments)``. Pointers in it are addresses as 64-bit integers. Grids
  and blocks have one dimension. No dynamic shared memory.
- Everything goes to **one stream in order**, the caller's current one. Only `read` waits. Without
  `read` a call can be captured in a CUDA graph; then nothing that `run` does waits for the device.
- **Scratch** lives as long as its `Buffer` is referenced, and what was launched before it went may
  still use it: a device frees in stream order, as torch's and CuPy's allocators do.
- **Sorting** is stable, of unsigned keys whose highest bit is 0, so that signed sorts do. Neither
  keys nor payloads mean anything to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias

Macros: TypeAlias = tuple[tuple[str, str], ...]

# For NVRTC, beside the architecture and the macros. Left folds have the bits of the processor's:
# no fused multiply-add, no flush to zero, division and roots rounded right.
COMPILER_OPTIONS = (
    "--std=c++17",
    "--fmad=false",
    "--ftz=false",
    "--prec-div=true",
    "--prec-sqrt=true",
)


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel and its compile-time options."""

    name: str  # of the file ``kernels/<name>.cu`` and of the function in it
    macros: Macros  # names and values, sorted by name

    @classmethod
    def of(cls, name: str, **macros: object) -> Kernel:
        """Return a kernel with these macros."""
        return cls(name, tuple(sorted((key, str(value)) for key, value in macros.items())))


class Buffer(Protocol):
    """Scratch memory on the device."""

    @property
    def address(self) -> int:
        """Where it starts; a multiple of 256."""


class Widths(NamedTuple):
    """Bytes of a key, 4 or 8, and of a payload, 4 or 8; and how many bits of a key count."""

    key: int
    payload: int
    bits: int


class Pairs(NamedTuple):
    """What is sorted: `length` keys, at least one, and as many integers that go with them, in
    scratch memory. All keys are below ``2**bits``; there are 1 to ``8 * key - 1`` bits.
    """

    keys: Any
    payload: Any
    length: int
    widths: Widths


class Device(Protocol):
    """A device with one stream, as this module's docstring says."""

    @property
    def processors(self) -> int:
        """How many multiprocessors it has: grids are a multiple of it."""

    def allocate(self, nbytes: int) -> Buffer:
        """Return at least `nbytes` (at least 1) of scratch, with anything in it.

        Raises
        ------
        MemoryError
            If the device has none left, or what the framework's allocator raises.
        """

    def clear(self, buffer: Buffer, nbytes: int) -> None:
        """Set the first `nbytes` of scratch to zero, in stream order."""

    def launch(self, kernel: Kernel, grid: int, block: int, arguments: bytes) -> None:
        """Start `grid` blocks of `block` threads, in stream order."""

    def sort(self, pairs: Pairs) -> Pairs:
        """Sort pairs by their keys, equal keys in the order they stand, in stream order.

        What is given may be overwritten, and may hold what is returned.
        """

    def read(self, buffer: Buffer, nbytes: int) -> bytes:
        """Wait for the stream, and return the first `nbytes` of scratch."""
