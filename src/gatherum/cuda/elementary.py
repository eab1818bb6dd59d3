"""Compute exp or log of contiguous device memory, bit-for-bit equal to the NumPy calls."""

from __future__ import annotations

from functools import lru_cache

from gatherum._system import native

from . import kernel_tables, kernels
from .device import Device, Kernel
from .launch_sizes import THREADS, block_count, offset_bits
from .programs import DATA, OPERANDS, OUT, Arguments, DeviceProgram, Launch, Slot

__all__ = ["map_on_device", "program_of"]


def map_on_device(
    device: Device, function: str, dtype: str, values: int, out: int, count: int
) -> None:
    """Write exp or log of `count` items at one address to another address.

    See `gatherum._derivatives.elementary`. Both addresses are aligned to the items and may be
    equal.
    """
    if count:
        program = program_of(function, dtype, count, device.processors)
        device.run_program(program, (values, 0, 0, out))


@native.emptied_at_exit
@lru_cache(maxsize=1024)
def program_of(function: str, dtype: str, count: int, processors: int) -> DeviceProgram:
    """Return the program that writes exp or log of `count` items of the data to the result.

    `processors` is the number of multiprocessors of the device.
    """
    bits = offset_bits(count)
    macros = {"VALUE": kernels.value_macro(dtype), "FUNCTION": function.capitalize()}
    sizes = {"OFFSET_BITS": bits, "LOOPS": kernel_tables.FEW_LOOPS}
    kernel = Kernel.of("elementary", **macros, **sizes)
    blocks = block_count(processors, count, THREADS)
    launch = Launch(kernel, blocks, THREADS, Arguments.of((Slot(DATA), Slot(OUT), count)))
    return DeviceProgram((launch,), (), OPERANDS)
