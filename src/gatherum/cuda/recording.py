"""Select the kernels and arguments of one call, and record their launches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from gatherum._model.modes import CORE_MODES, mode_after_check
from gatherum._plans.plans import Plan

from . import kernel_tables, kernels
from .device import Kernel, Pairs
from .device_nests import DeviceNest, index_strides
from .kernel_tables import DeviceComponents, DeviceLoops
from .launch_sizes import THREADS, block_count, offset_bits
from .programs import WIDEST, Arguments, Field, Recorder, Slot

# Macros of a kernel, by name.
Macros: TypeAlias = dict[str, object]


@dataclass(frozen=True, slots=True)
class CallRecording:
    """One call: its program so far, the plan and its nest, and the slots of the operands."""

    recorder: Recorder  # of the call's program so far
    processors: int  # of the device
    plan: Plan
    nest: DeviceNest
    data: Slot
    indices: Slot
    moved: Slot
    order: Pairs | None = None  # the updates sorted by destination, if an earlier call sorted them
    # Size in bytes of a row number if the updates are weighted rows (only with an order), or 0.
    row_number_bytes: int = 0

    def index_macros(self, mode: str) -> Macros:
        """Return the macros of a kernel that reads indices and resolves them in a mode."""
        dtype = self.plan.call.indices.dtype
        prefix = "int" if dtype.kind == "i" else "uint"
        return {
            "INDEX": f"{prefix}{8 * dtype.itemsize}",
            "INDEX_ALIGN": kernel_tables.common_alignment(
                dtype.itemsize, self.indices.alignment, *index_strides(self.nest)
            ),
            "INDEX_SWAPPED": int(not dtype.isnative),
            "MODE": kernels.mode_macro(CORE_MODES[mode]),
        }

    def writing_macros(self) -> Macros:
        """Return the macros of a scatter's writing kernels, which run after the index check."""
        return self.index_macros(mode_after_check(self.plan.call.mode))

    def alignment(self, most: int, *values: int) -> int:
        """Return the common alignment of data, the moved operand and all their steps."""
        nest = self.nest
        loops = (*nest.tuple_loops, *nest.row_loops)
        return kernel_tables.common_alignment(
            most,
            self.data.alignment,
            self.moved.alignment,
            *(loop.data for loop in loops),
            *(loop.moved for loop in loops),
            *(component.stride for component in nest.components),
            *values,
        )

    def launch_nest(
        self,
        kernel_name: str,
        leading_fields: Sequence[Field],
        loops: DeviceLoops,
        components: DeviceComponents,
        macros: Macros,
        per_thread: int = 1,
        threads: int = THREADS,
        most_blocks: int | None = None,
        table_loops: DeviceLoops = (),
    ) -> None:
        """Launch a kernel.

        Its arguments are `leading_fields`, the total, the loops, the components and, if any,
        `table_loops`. Each thread processes `per_thread` numbers at a time.
        `most_blocks` replaces the limit of the grid.
        """
        bits = offset_bits(kernel_tables.largest_number(loops, components, WIDEST))
        size = kernel_tables.table_size((loops, table_loops))
        few = len(components) <= kernel_tables.FEW_COMPONENTS
        tuple_size = kernel_tables.FEW_COMPONENTS if few else kernel_tables.MOST_COMPONENTS
        total = kernel_tables.count_points(loops)
        fields: list[Field] = [
            *leading_fields,
            total,
            *kernel_tables.loops_fields(loops, bits, size),
        ]
        fields += kernel_tables.tuple_fields(components, tuple_size)
        fields += kernel_tables.loops_fields(table_loops, bits, size) if table_loops else []
        sizes = {"OFFSET_BITS": bits, "LOOPS": size, "COMPONENTS": tuple_size}
        kernel = Kernel.of(kernel_name, **macros, **sizes)
        blocks = block_count(self.processors, total, threads * per_thread, most_blocks)
        self.recorder.launch(kernel, blocks, threads, Arguments.of(fields))
