"""One call on a device: its operands, and what all its launches have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from gatherum._plans.plans import Plan

from . import kernel_tables
from .device import Buffer, Device, Kernel
from .kernel_tables import Fields, Parts, Steps
from .loops import Work, index_strides

# Macros of a kernel by their names.
Macros: TypeAlias = dict[str, object]

# Threads of a block, and the chunks that a thread of a movement has in flight.
THREADS = 256
EACH = 4
# Blocks of a grid for each multiprocessor, at most: each thread then takes more.
# All three wait for a measurement on a device.
BLOCKS = 64
# Offsets have 32 bits where all numbers of a launch are below this: what a grid adds to a flat
# number before it ends (THREADS * EACH * BLOCKS for each multiprocessor) stays below 2**31.
NARROW = (1 << 31) - (1 << 27)


@dataclass(frozen=True, slots=True)
class Execution:
    """One call: the device, the plan, what it asks for, and the addresses of the operands."""

    device: Device
    plan: Plan
    work: Work
    data: int
    indices: int
    other: int

    def index_macros(self, mode: str) -> Macros:
        """Return the macros of a kernel that reads indices, and resolves them in a mode."""
        dtype = self.plan.call.indices.dtype
        kind = "int" if dtype.kind == "i" else "uint"
        return {
            "INDEX": f"{kind}{8 * dtype.itemsize}",
            "INDEX_ALIGN": kernel_tables.alignment(
                dtype.itemsize, self.indices, *index_strides(self.work)
            ),
            "SWAPPED": int(not dtype.isnative),
            "MODE": f"mode_{'drop' if mode == 'fill' else mode}",
        }

    def alignment(self, most: int, *numbers: int) -> int:
        """Return what data and the other operand, and all steps in them, are aligned to."""
        work = self.work
        steps = (*work.tuples, *work.row)
        return kernel_tables.alignment(
            most,
            self.data,
            self.other,
            *(step.data for step in steps),
            *(step.other for step in steps),
            *(part.stride for part in work.parts),
            *numbers,
        )

    def launch_nest(
        self,
        name: str,
        first: Sequence[int],
        steps: Steps,
        parts: Parts,
        macros: Macros,
        each: int = 1,
    ) -> None:
        """Launch a kernel whose arguments are `first`, the total, the loops and the components."""
        bits = 32 if kernel_tables.reach(steps, parts, 16) < NARROW else 64
        size = kernel_tables.table_size((steps,))
        few = len(parts) <= kernel_tables.FEW_COMPONENTS
        components = kernel_tables.FEW_COMPONENTS if few else kernel_tables.MOST_COMPONENTS
        total = kernel_tables.count_points(steps)
        fields = [*first, total, *kernel_tables.loops(steps, bits, size)]
        fields += kernel_tables.tuple_of(parts, components)
        own = {"OFFSET_BITS": bits, "LOOPS": size, "COMPONENTS": components}
        launch(self.device, Kernel.of(name, **macros, **own), total, fields, each=each)

    def cleared(self, nbytes: int) -> Buffer:
        """Return scratch memory of zeros."""
        buffer = self.device.allocate(nbytes)
        self.device.clear(buffer, nbytes)
        return buffer


def launch(
    device: Device,
    kernel: Kernel,
    total: int,
    fields: Fields,
    *,
    threads: int = THREADS,
    each: int = 1,
) -> None:
    """Launch a kernel over so many flat numbers, as blocks of `threads` that take `each`."""
    blocks = -(-total // (threads * each))
    most = device.processors * BLOCKS
    device.launch(kernel, min(blocks, most), threads, kernel_tables.struct_bytes(fields))
