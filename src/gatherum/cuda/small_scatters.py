"""Launch small scatters: one kernel checks the indices, sorts, copies the data and writes updates.

Every launch takes the host time. On an H200 (2026-11-27), a scatter of 512 rows took the host 14 us
with two launches and 25 us with four. Larger scatters have several launches, because each block of
this one sorts all tuples: 2048 rows took 0.032 ms on the device, and 4096 took 0.053 ms, which is
longer than the host needs for the launches.
"""

from __future__ import annotations

from math import gcd, prod
from typing import NamedTuple

from gatherum._core import Reduction, is_exact

from . import checks, kernel_tables
from .device import Kernel
from .folds import value_macro
from .kernel_tables import DeviceLoops, count_points
from .launch_sizes import block_count, offset_bits
from .programs import WIDEST, Arguments, Field, Slot
from .recording import CallRecording, Macros
from .sorted_updates import padded_length, widths_of

# The most tuples of a small scatter. Not measured. The sort of 512 tuples has 45 passes, with a
# comparison per thread; that of 4096 tuples of 78 passes, with 4. A thread folds all updates of a
# destination, at most 512 here, for which larger scatters start a warp.
MOST_TUPLES = 512
# The most chunks that a small scatter copies and writes. Not measured. 2^18 chunks of 16 bytes are
# 4 MiB, which a copy on an H200 moves in 2 us; for more, the launches add little to the whole time.
MOST_POINTS = 1 << 18
# The threads of a block, and the most blocks per multiprocessor. Not measured.
SMALL_THREADS = 256
BLOCKS_PER_PROCESSOR = 2
# Values of the macro SOURCE.
IN_PLACE, SAME_LAYOUT, ONE_ITEM = range(3)


class SmallScatter(NamedTuple):
    """The kernel of a small scatter, and the loops over the chunks of a row."""

    kernel_name: str
    macros: Macros
    row_loops: DeviceLoops
    points: int  # chunks that the launch copies and writes


def small_scatter(recording: CallRecording, source: Slot | None) -> SmallScatter | None:
    """Return how one launch runs a scatter, or None if it needs several.

    `source` is the data that the scatter copies, or None if it works in place.
    """
    nest = recording.nest
    if not 0 < nest.entries <= MOST_TUPLES or widths_of(nest, 0).key != 4:
        return None
    layout = _layout_of(recording, source) if nest.block and nest.destinations else None
    if layout is None:
        return None
    alignments = [nest.block, *([source.alignment] if source else [])]
    chosen = _chosen_kernel(recording, layout, alignments)
    if chosen is None:
        return None
    kernel_name, chunk_bytes, macros = chosen
    row_loops = nest.row_chunk_loops(chunk_bytes)
    rows = nest.entries if layout == IN_PLACE else nest.destinations
    points = rows * count_points(row_loops)
    if points > MOST_POINTS:
        return None
    return SmallScatter(kernel_name, macros | {"SOURCE": layout}, row_loops, points)


def _chosen_kernel(
    recording: CallRecording, layout: int, alignments: list[int]
) -> tuple[str, int, Macros] | None:
    """Return the name of the kernel, the size of a chunk in bytes, and the macros that say so."""
    call = recording.plan.call
    item_bytes = call.data.dtype.itemsize
    align = recording.alignment(WIDEST, *alignments)
    if call.reduction == "none":
        chunk_bytes = gcd(align, item_bytes) if layout == ONE_ITEM else align
        is_item = layout != ONE_ITEM or chunk_bytes == item_bytes
        return ("scatter_small", chunk_bytes, {"CHUNK_BYTES": chunk_bytes}) if is_item else None
    if is_exact(Reduction[call.reduction]):
        return None
    chunk_items = max(1, align // item_bytes)
    macros: Macros = {"VALUE": value_macro(call), "REDUCTION": call.reduction}
    macros |= {"VALUE_ALIGN": align, "CHUNK_ITEMS": chunk_items}
    return "fold_small", item_bytes * chunk_items, macros


def _layout_of(recording: CallRecording, source: Slot | None) -> int | None:
    """Return the value of SOURCE, or None if a separate launch has to copy the data.

    The kernel copies destinations, so these must be all items of the data.
    """
    if source is None:
        return IN_PLACE
    data, nest = recording.plan.call.data, recording.nest
    data_bytes = data.dtype.itemsize * prod(data.shape)
    if nest.destinations * count_points(nest.row_loops) * nest.block != data_bytes:
        return None
    if nest.copy_block == data_bytes:
        return SAME_LAYOUT
    is_one_item = nest.copy_block == data.dtype.itemsize and not any(
        loop.data for loop in nest.copy_loops
    )
    return ONE_ITEM if is_one_item else None


def launch(recording: CallRecording, source: Slot | None, small: SmallScatter) -> Slot | None:
    """Launch a small scatter. Return the record of invalid indices, which the launch fills."""
    nest, recorder = recording.nest, recording.recorder
    record = checks.new_record(recording, cleared=False)
    macros = recording.index_macros("raise") if record else recording.writing_macros()
    macros |= small.macros | {"MOST_TUPLES": MOST_TUPLES, "SMALL_THREADS": SMALL_THREADS}
    tables = nest.tuple_loops, nest.destination_loops, small.row_loops
    largest = max(kernel_tables.largest_number(loops, (), WIDEST) for loops in tables)
    tuples = kernel_tables.largest_number(nest.tuple_loops, nest.components, WIDEST)
    bits = offset_bits(max(largest, tuples, small.points, nest.destinations))
    size = kernel_tables.table_size(tables)
    few = len(nest.components) <= kernel_tables.FEW_COMPONENTS
    components = kernel_tables.FEW_COMPONENTS if few else kernel_tables.MOST_COMPONENTS
    fields: list[Field] = [
        recording.data,
        checks.or_null(source),
        recording.indices,
        recording.moved,
        checks.or_null(record),
        nest.destinations,
        padded_length(nest.entries),
        recording.plan.call.include_self,
        small.points,
        nest.entries,
        *kernel_tables.loops_fields(nest.tuple_loops, bits, size),
        *kernel_tables.tuple_fields(nest.components, components),
        *kernel_tables.loops_fields(nest.destination_loops, bits, size),
        *kernel_tables.loops_fields(small.row_loops, bits, size),
        *kernel_tables.divisor_of(count_points(small.row_loops), bits),
    ]
    sizes = {"OFFSET_BITS": bits, "LOOPS": size, "COMPONENTS": components}
    kernel = Kernel.of(small.kernel_name, **macros, **sizes)
    most_blocks = BLOCKS_PER_PROCESSOR * recording.processors
    blocks = block_count(recording.processors, small.points, SMALL_THREADS, most_blocks)
    recorder.launch(kernel, blocks, SMALL_THREADS, Arguments.of(fields))
    return record
