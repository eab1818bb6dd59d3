"""Hold one call while its program is recorded, and record launches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from gatherum._model.modes import FILLING
from gatherum._plans.plans import Plan

from . import kernel_tables
from .device import Kernel, Pairs
from .kernel_tables import Parts, Steps
from .loops import Work, index_strides
from .programs import Arguments, Field, Recorder, Slot

# Macros of a kernel, by name.
Macros: TypeAlias = dict[str, object]

# Threads per block, and chunks in flight per thread in movement kernels.
THREADS = 256
EACH = 4
# Maximum blocks of a grid per multiprocessor; larger launches give each thread more work. None of
# the three values has been tuned on a device.
BLOCKS = 64
# Offsets have 32 bits if all numbers of a launch are below this limit. A thread's flat number can
# exceed the total by one grid (THREADS * EACH * BLOCKS per multiprocessor) and stays below 2**31.
NARROW = (1 << 31) - (1 << 27)


@dataclass(frozen=True, slots=True)
class Execution:
    """One call: its program so far, the plan and its work, and the slots of the operands."""

    program: Recorder
    processors: int  # of the device
    plan: Plan
    work: Work
    data: Slot
    indices: Slot
    moved: Slot
    order: Pairs | None = None  # the updates sorted by destination, if an earlier call sorted them

    def index_macros(self, mode: str) -> Macros:
        """Return the macros of a kernel that reads indices and resolves them in a mode."""
        dtype = self.plan.call.indices.dtype
        kind = "int" if dtype.kind == "i" else "uint"
        return {
            "INDEX": f"{kind}{8 * dtype.itemsize}",
            "INDEX_ALIGN": kernel_tables.alignment(
                dtype.itemsize, self.indices.alignment, *index_strides(self.work)
            ),
            "SWAPPED": int(not dtype.isnative),
            "MODE": f"mode_{'drop' if mode in FILLING else mode}",
        }

    def alignment(self, most: int, *values: int) -> int:
        """Return the common alignment of data, the moved operand and all their steps."""
        work = self.work
        steps = (*work.tuples, *work.row)
        return kernel_tables.alignment(
            most,
            self.data.alignment,
            self.moved.alignment,
            *(step.data for step in steps),
            *(step.moved for step in steps),
            *(part.stride for part in work.parts),
            *values,
        )

    def launch_nest(
        self,
        name: str,
        first: Sequence[Field],
        steps: Steps,
        parts: Parts,
        macros: Macros,
        each: int = 1,
        threads: int = THREADS,
    ) -> None:
        """Launch a kernel with the arguments `first`, the total, the loops and the components."""
        bits = offset_bits(steps, parts)
        size = kernel_tables.table_size((steps,))
        few = len(parts) <= kernel_tables.FEW_COMPONENTS
        components = kernel_tables.FEW_COMPONENTS if few else kernel_tables.MOST_COMPONENTS
        total = kernel_tables.count_points(steps)
        fields: list[Field] = [*first, total, *kernel_tables.loops(steps, bits, size)]
        fields += kernel_tables.tuple_of(parts, components)
        own = {"OFFSET_BITS": bits, "LOOPS": size, "COMPONENTS": components}
        kernel = Kernel.of(name, **macros, **own)
        self.launch(kernel, total, fields, threads=threads, each=each)

    def launch(
        self,
        kernel: Kernel,
        total: int,
        fields: Sequence[Field],
        *,
        threads: int = THREADS,
        each: int = 1,
    ) -> None:
        """Launch a kernel over `total` flat numbers, with `each` per thread."""
        grid = grid_of(self.processors, total, threads * each)
        self.program.launch(kernel, grid, threads, Arguments.of(fields))


def offset_bits(steps: Steps, parts: Parts) -> int:
    """Return the bits of offsets in a launch of `launch_nest`."""
    return 32 if kernel_tables.reach(steps, parts, 16) < NARROW else 64


def grid_of(processors: int, total: int, per_block: int) -> int:
    """Return the number of blocks for `total` flat numbers."""
    return min(-(-total // per_block), processors * BLOCKS)
