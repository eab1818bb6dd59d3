"""Define the device interface of `gatherum.cuda`, the only access to a device.

`plan_launches.run` turns a plan into a program, and `Device.run_program` runs the program. One
implementation drives an NVIDIA GPU. The tests have another implementation, which runs the same
kernels, compiled by g++, on NumPy memory.

The protocol, in short:

- A **kernel** is one file, ``kernels/<name>.cu``, with one ``extern "C" __global__`` function of
  the same name. It includes ``.cuh`` files of the same folder. `Kernel.macros` are passed as
  ``-DNAME=VALUE`` options; they select widths, types, the reduction and the mode. Compiled code is
  identified by the text of all files in the folder, the macros, `COMPILER_OPTIONS` and the
  architecture.
- A kernel takes **one struct by value**, at most 32 764 bytes, which is passed packed:
  ``launch(kernel, grid, block, arguments)``. Pointers in the struct are 64-bit integers. Grids
  and blocks have one dimension. Kernels use no dynamic shared memory.
- All work runs on **one stream in order**, the caller's current stream. Only `read` waits. A call
  without `read` can be captured in a CUDA graph; then nothing in `run` waits for the device.
- **Scratch** lives as long as its `Buffer` is referenced. Kernels launched before the release of
scratch may still use it: a device frees memory in stream order, as the allocators of PyTorch and
CuPy do.
- **Sorting** is stable. Keys are unsigned with the highest bit 0, so a signed sort works too. The
  sort does not interpret keys or payloads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

if TYPE_CHECKING:
    from .programs import DeviceProgram

Macros: TypeAlias = tuple[tuple[str, str], ...]

# NVRTC options, in addition to the architecture and the macros. With these options, left folds are
# bit-for-bit equal to those on the CPU: there is no fused multiply-add and no flush to zero, and
# divisions and roots are correctly rounded.
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

    name: str  # name of the file ``kernels/<name>.cu`` and of its function
    macros: Macros  # names and values, sorted by name

    @classmethod
    def of(cls, name: str, **macros: object) -> Kernel:
        """Return a kernel with the given macros."""
        return cls(name, tuple(sorted((key, str(value)) for key, value in macros.items())))


class Buffer(Protocol):
    """Scratch memory on the device."""

    @property
    def address(self) -> int:
        """Address of the first byte, a multiple of 256."""

    def slice(self, start: int, nbytes: int) -> Buffer:
        """Return a part of this memory as a buffer, which keeps the memory alive."""


class Widths(NamedTuple):
    """Sizes in bytes of a key (4 or 8) and a payload (4 or 8), and significant bits of a key."""

    key: int
    payload: int
    bits: int


class Pairs(NamedTuple):
    """Key-payload pairs to sort, in scratch memory.

    There are `length` keys, at least one, and a payload of as many integers. All keys are below
    ``2**bits``, with `bits` from 1 to ``8 * key - 1``.
    """

    keys: Any
    payload: Any
    length: int
    widths: Widths


class Device(Protocol):
    """A device with one stream, as described in the module's docstring."""

    @property
    def processors(self) -> int:
        """Number of multiprocessors. Grid sizes are derived from it."""

    def allocate(self, nbytes: int) -> Buffer:
        """Return at least `nbytes` (at least 1) of uninitialized scratch memory.

        Raises
        ------
        MemoryError
            If the device is out of memory, or the error of the framework's allocator.
        """

    def clear(self, buffer: Buffer, nbytes: int) -> None:
        """Set the first `nbytes` of scratch to zero, in stream order."""

    def launch(self, kernel: Kernel, grid: int, block: int, arguments: bytes) -> None:
        """Start `grid` blocks of `block` threads, in stream order."""

    def sort(self, pairs: Pairs) -> Pairs:
        """Sort pairs by key, stably, in stream order.

        The input buffers may be overwritten, and the result may use them.
        """

    def read(self, buffer: Buffer, nbytes: int) -> bytes:
        """Wait for the stream and return the first `nbytes` of scratch."""

    def run_program(
        self,
        program: DeviceProgram,
        operands: tuple[int, ...],
        results: list[Pairs] | None = None,
    ) -> bytes:
        """Run a program. Return the bytes that it reads, or an empty value if it reads none.

        The results of its sorts are appended to `results`.

        `programs.run_steps` implements this method with the other methods of this class.
        """
