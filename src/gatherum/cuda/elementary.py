"""Compute exp or log of contiguous device memory, bit-for-bit equal to the NumPy calls."""

from __future__ import annotations

from . import kernel_tables
from .device import Device, Kernel
from .execution import NARROW, THREADS, grid_of
from .programs import Arguments

__all__ = ["map_on_device"]


def map_on_device(
    device: Device, function: str, dtype: str, values: int, out: int, count: int
) -> None:
    """Write exp or log of `count` items at one address to another address.

    See `gatherum._derivatives.elementary`. Both addresses are aligned to the items and may be
    equal.
    """
    if count == 0:
        return
    bits = 32 if count < NARROW else 64
    macros = {"VALUE": f"value_{dtype}", "FUNCTION": function.capitalize(), "OFFSET_BITS": bits}
    kernel = Kernel.of("elementary", **macros, LOOPS=kernel_tables.FEW_LOOPS)
    grid = grid_of(device.processors, count, THREADS)
    device.launch(kernel, grid, THREADS, Arguments.of((values, out, count)).content)
