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

# Threads per block, and chunks in flight per thread in movement kernels. On an H100 (2026-11-26), a
# gather of rows of 512 bytes took 0.383 ms with these values, 0.382 with 128 and 2, and 0.435 with
# 256 and 8; single items took 2.27, 2.29 and 2.27 ms.
THREADS = 256
CHUNKS_PER_THREAD = 4
# Maximum blocks of a grid per multiprocessor; larger launches give each thread more work. On an
# H100, scatters of rows took 0.478 ms with this value and 0.493 without a limit.
BLOCKS = 64
# Offsets have 32 bits if all numbers of a launch are below this limit. A thread's flat number can
# exceed the total by one grid (at most `WHOLE_GRID`, or THREADS * CHUNKS_PER_THREAD * BLOCKS per multiprocessor)
# and stays below 2**31.
WHOLE_GRID = 1 << 27
NARROW = (1 << 31) - WHOLE_GRID


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
    # Bytes of the number of a row if the updates are weighted rows (with an order only), else 0.
    weighted: int = 0

    def index_macros(self, mode: str) -> Macros:
        """Return the macros of a kernel that reads indices and resolves them in a mode."""
        dtype = self.plan.call.indices.dtype
        kind = "int" if dtype.kind == "i" else "uint"
        return {
            "INDEX": f"{kind}{8 * dtype.itemsize}",
            "INDEX_ALIGN": kernel_tables.alignment(
                dtype.itemsize, self.indices.alignment, *index_strides(self.work)
            ),
            "INDEX_SWAPPED": int(not dtype.isnative),
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
        blocks: int | None = None,
        table: Steps = (),
    ) -> None:
        """Launch a kernel with the arguments `first`, the total, the loops and the components.

        The loops of `table`, if any, follow. Each thread processes `each` numbers at a time.
        `blocks` replaces the limit of the grid.
        """
        bits = offset_bits(steps, parts)
        size = kernel_tables.table_size((steps, table))
        few = len(parts) <= kernel_tables.FEW_COMPONENTS
        components = kernel_tables.FEW_COMPONENTS if few else kernel_tables.MOST_COMPONENTS
        total = kernel_tables.count_points(steps)
        fields: list[Field] = [*first, total, *kernel_tables.loops(steps, bits, size)]
        fields += kernel_tables.tuple_of(parts, components)
        fields += kernel_tables.loops(table, bits, size) if table else []
        own = {"OFFSET_BITS": bits, "LOOPS": size, "COMPONENTS": components}
        kernel = Kernel.of(name, **macros, **own)
        self.launch(kernel, total, fields, threads=threads, each=each, blocks=blocks)

    def launch(
        self,
        kernel: Kernel,
        total: int,
        fields: Sequence[Field],
        *,
        threads: int = THREADS,
        each: int = 1,
        blocks: int | None = None,
    ) -> None:
        """Launch a kernel over `total` flat numbers, with `each` per thread.

        `blocks` replaces the limit of the grid.
        """
        grid = grid_of(self.processors, total, threads * each, blocks)
        self.program.launch(kernel, grid, threads, Arguments.of(fields))


def offset_bits(steps: Steps, parts: Parts) -> int:
    """Return the bits of offsets in a launch of `launch_nest`."""
    return 32 if kernel_tables.reach(steps, parts, 16) < NARROW else 64


def grid_of(processors: int, total: int, per_block: int, most: int | None = None) -> int:
    """Return the number of blocks for `total` flat numbers, at most `most`."""
    return min(-(-total // per_block), processors * BLOCKS if most is None else most)
