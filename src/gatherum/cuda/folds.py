"""Fold updates, sorted by destination or with integer atomics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from gatherum._core import Reduction, is_exact
from gatherum._model import reductions
from gatherum._model.call import Call
from gatherum._model.dtypes import value_of

from . import kernels
from .checks import or_null
from .kernel_tables import DeviceLoop, DeviceLoops, count_points
from .launch_sizes import CHUNKS_PER_THREAD, WARP, block_count
from .programs import WIDEST, Arguments, Field, Slot
from .recording import CallRecording, Macros
from .sorted_updates import (
    SortedUpdates,
    carried_bytes_of,
    launch_threads,
    sort_updates,
    sorted_kernel,
)

# The measurements below were made on an H100 (2026-11-26) unless they name another device.

# A segment has all the sorted updates of one destination; a chunk is what a thread folds of a row.
# The largest number of entries in a segment that one thread folds, if it folds a chunk of the row,
# and if it folds single items. On an H200 (2026-11-27), rows of 64 into 100,000 took 0.79 ms, and
# 0.87 with 32; 2^24 float32 into 2^20 took 1.00 ms with 16, 0.93 with 32 and 0.92 with 64.
LONGEST_THREAD_SEGMENT = 16
LONGEST_ITEM_SEGMENT = 32
# The largest number of entries that one warp folds. A block folds longer segments. With 128, rows
# of 64 float32 into 1000 destinations took 1.29 ms instead of 0.85, and no case was faster.
LONGEST_WARP_SEGMENT = 512
# The number of threads in a block that folds longer segments of single items, and longer segments
# of rows. With 256 threads, 2^24 float16 into 100,000 took 0.97 ms instead of 0.90; skewed rows of
# 16 float32 took 3.77 ms instead of 7.49. The launch in which warps fold has 128 threads per block:
# with 256, rows of 64 into 100,000 took 0.91 ms instead of 0.88. Other sizes, and exact sums, are
# not measured.
LONG_THREADS = 128
ROW_THREADS = 256
# The number of threads that fold in such a warp or block. The other threads fetch values. Not
# measured.
FOLDING_THREADS = 32
# Blocks per multiprocessor over which the candidates of long segments are spread, if there are
# enough. Rows of 64 into 1000, with 8192 candidates, took 7.30 ms with 128 candidates per block,
# and 0.85 with 4, which is the number for this value on that device. On an H200, values from 8 to
# 64 took the same time.
LONG_BLOCKS_PER_PROCESSOR = 16
# Blocks fold segments with more than HUGE_SEGMENT entries in stretches of HUGE_STRETCH_BYTES of the
# rows: such a segment waits for the loads of each tile, and tiles of short stretches have more
# entries. On an H200 (2026-11-27), skewed rows of 16 took 3.31 ms without these launches, 2.66 for
# segments of more than 2^15 entries, and 2.39 for 2^13; rows of 128 into 100 took 1.02, 1.18 and
# 0.89 ms. With stretches of 32 bytes, 2^15 took 2.74 ms. Short stretches of all segments took
# longer.
HUGE_SEGMENT = 1 << 13
HUGE_STRETCH_BYTES = 16
# The number of threads per block that round exact sums. It is small because each sum needs hundreds
# of bytes of shared memory. Not measured.
EXACT_FOLDING_THREADS = 8
# Integers are folded in shared memory first if the items of all destinations fit this number of
# bytes, and if there are at least this many updates for each item. On an H200 (2026-11-27), 2^16
# int64 into 256 took 0.013 ms with the table and 0.015 without, 2^18 took 0.013 and 0.047, and 2^24
# into 1000 took 0.08 and 0.92.
TABLE_BYTES = 8 << 10
TABLE_UPDATES_PER_ITEM = 256
# The most blocks of that launch per multiprocessor (2^24 into 256 on that device: 0.08 ms, 0.11
# with 4, 0.09 with 16), and the fewest updates of a block: a number, and a multiple of the items
# that it adds to the data (4, 16 and 64 took the same time).
TABLE_BLOCKS_PER_PROCESSOR = 8
TABLE_UPDATES_PER_BLOCK = 4096
TABLE_UPDATES_PER_ADDED_ITEM = 16
# The loops over one item.
_ONE_STEP = (DeviceLoop(1),)
# The value types that atomics fold.
ATOMIC_VALUES = ("int32", "int64", "uint32", "uint64")


def fold_updates(recording: CallRecording, record: Slot | None) -> None:
    """Fold the updates of every destination in row-major order. Exact sums need no order."""
    call, nest = recording.plan.call, recording.nest
    exact = is_exact(Reduction[call.reduction])
    kernel_name = "fold_exact" if exact else "fold"
    if exact:
        term_macro, item_bytes = _exact_term(call)
    else:
        term_macro, item_bytes = value_macro(call), call.data.dtype.itemsize
    align = recording.alignment(item_bytes if exact else WIDEST, nest.block)
    chunk_items = max(1, align // item_bytes)
    carried_bytes = 0 if recording.order else carried_bytes_of(call, nest)
    row_loops = nest.row_chunk_loops(item_bytes * chunk_items)
    updates = SortedUpdates(
        recording.order or sort_updates(recording, carried_bytes), row_loops, record, HUGE_SEGMENT
    )
    macros: Macros = {
        "VALUE": term_macro,
        "VALUE_ALIGN": align,
        "REDUCTION": call.reduction,
        "CARRIED_BYTES": carried_bytes,
    }
    if not exact:
        macros |= {"CHUNK_ITEMS": chunk_items, "ROW_NUMBER_BYTES": recording.row_number_bytes}
    chunks_per_row = count_points(row_loops)
    longest = _longest_of_thread(chunks_per_row)
    launch_threads(recording, kernel_name, updates, [longest, call.include_self], macros)
    macros |= {"FOLDING_THREADS": EXACT_FOLDING_THREADS if exact else FOLDING_THREADS}
    for tier in _tiers(chunks_per_row, item_bytes * chunk_items, longest, exact):
        if updates.pairs.length > tier.more_than:
            _launch_groups(recording, f"{kernel_name}_long", updates, tier, macros)


def _longest_of_thread(chunks_per_row: int) -> int:
    """Return the most entries of a segment that one thread folds.

    Rows with as many chunks as a warp has threads already fill a warp, which reads contiguous
    memory.
    """
    if chunks_per_row >= WARP:
        return LONGEST_WARP_SEGMENT
    return LONGEST_ITEM_SEGMENT if chunks_per_row == 1 else LONGEST_THREAD_SEGMENT


class Tier(NamedTuple):
    """A launch for segments of more than `more_than` entries and at most `at_most` (0: no limit).

    A group of threads, a warp or a block, folds a segment and `stretch_chunks` chunks of its rows.
    """

    more_than: int
    at_most: int
    group_threads: int
    stretch_chunks: int


def _tiers(chunks_per_row: int, chunk_bytes: int, longest: int, exact: bool) -> list[Tier]:
    """Return the launches for segments of more than `longest` entries."""
    folding = EXACT_FOLDING_THREADS if exact else FOLDING_THREADS
    block = LONG_THREADS if exact or chunks_per_row == 1 else ROW_THREADS
    short = max(1, HUGE_STRETCH_BYTES // chunk_bytes)
    by_warp = Tier(longest, LONGEST_WARP_SEGMENT, WARP, folding)
    tiers = [by_warp] if longest < LONGEST_WARP_SEGMENT else []
    if exact or chunks_per_row <= short:
        return [*tiers, Tier(LONGEST_WARP_SEGMENT, 0, block, folding)]
    huge = Tier(HUGE_SEGMENT, 0, block, min(short, folding))
    return [*tiers, Tier(LONGEST_WARP_SEGMENT, HUGE_SEGMENT, block, folding), huge]


def _launch_groups(
    recording: CallRecording, kernel_name: str, updates: SortedUpdates, tier: Tier, macros: Macros
) -> None:
    """Launch the groups of a tier, which test all entries where a segment of it may be found."""
    stretches = -(-count_points(updates.row_loops) // tier.stretch_chunks)
    candidates = -(-updates.pairs.length // tier.more_than) * stretches
    threads = max(tier.group_threads, LONG_THREADS)
    groups = threads // tier.group_threads  # of a block
    per_group = _candidates_per_group(candidates, recording.processors * groups, tier.group_threads)
    limits = [tier.more_than, tier.at_most, recording.plan.call.include_self]
    numbers = [candidates, *limits, tier.stretch_chunks, per_group]
    macros = macros | {"THREADS": threads, "GROUP_THREADS": tier.group_threads}
    kernel, fields = sorted_kernel(recording, kernel_name, updates, numbers, [stretches], macros)
    blocks = block_count(recording.processors, candidates, groups * per_group)
    recording.recorder.launch(kernel, blocks, threads, Arguments.of(fields))


def _candidates_per_group(candidates: int, groups: int, most: int) -> int:
    """Return how many candidates each group tests at a time, for a number of parallel groups."""
    return min(most, -(-candidates // (LONG_BLOCKS_PER_PROCESSOR * groups)))


def value_macro(call: Call) -> str:
    """Return the name of a call's value type in kernels."""
    return kernels.value_macro(value_of(call.data.dtype).name)


def _exact_term(call: Call) -> tuple[str, int]:
    """Return the type and the size in bytes of an exact sum's terms; a complex number has two."""
    item_bytes = call.data.dtype.itemsize
    if call.data.dtype.kind == "c":
        return kernels.value_macro(f"float{4 * item_bytes}"), item_bytes // 2
    return value_macro(call), item_bytes


def has_atomics(reduction: str, include_self: bool, value_name: str) -> bool:
    """Return True if atomics fold values of a type in place, provided that they are aligned."""
    is_atomic = reductions.ROWS[reduction].cuda_atomic and include_self
    return is_atomic and value_name in ATOMIC_VALUES


def may_be_atomic(call: Call) -> bool:
    """Return True if atomics fold the updates of a call, provided that the data are aligned."""
    return has_atomics(call.reduction, call.include_self, value_of(call.data.dtype).name)


def is_atomic(recording: CallRecording) -> bool:
    """Return True if integer atomics fold in place."""
    call = recording.plan.call
    item_bytes = call.data.dtype.itemsize
    return may_be_atomic(call) and recording.alignment(item_bytes) == item_bytes


def fold_atomic(recording: CallRecording, record: Slot | None) -> None:
    """Fold integers in place."""
    call, nest = recording.plan.call, recording.nest
    item_bytes = call.data.dtype.itemsize
    macros = recording.writing_macros()
    macros |= {"VALUE": value_macro(call), "REDUCTION": call.reduction}
    leading_fields = recording.data, recording.indices, recording.moved, or_null(record)
    row_loops = nest.row_chunk_loops(item_bytes)
    items_per_row = count_points(row_loops)
    items, updates = nest.destinations * items_per_row, nest.entries * items_per_row
    if items * item_bytes <= TABLE_BYTES and updates >= TABLE_UPDATES_PER_ITEM * items:
        _fold_in_table(recording, leading_fields, row_loops, macros)
    else:
        loops = (*nest.tuple_loops, *row_loops)
        recording.launch_nest("fold_atomic", leading_fields, loops, nest.components, macros)


def _fold_in_table(
    recording: CallRecording,
    leading_fields: Sequence[Field],
    row_loops: DeviceLoops,
    macros: Macros,
) -> None:
    """Fold integers into a table of all destinations in shared memory, then into the data."""
    nest, items_per_row = recording.nest, count_points(row_loops)
    item_stride, numbered_loops = items_per_row, []
    for loop in row_loops:  # number the items of a row
        item_stride //= loop.extent
        numbered_loops.append(loop._replace(destination=item_stride))
    tuples = (
        loop._replace(destination=items_per_row * loop.destination) for loop in nest.tuple_loops
    )
    components = tuple(
        component._replace(destination=items_per_row * component.destination)
        for component in nest.components
    )
    updates, items = nest.entries * items_per_row, nest.destinations * items_per_row
    fewest = max(TABLE_UPDATES_PER_BLOCK, TABLE_UPDATES_PER_ADDED_ITEM * items)
    most_blocks = max(1, min(TABLE_BLOCKS_PER_PROCESSOR * recording.processors, updates // fewest))
    macros |= {"TABLE_BYTES": TABLE_BYTES, "PER_THREAD": CHUNKS_PER_THREAD}
    recording.launch_nest(
        "fold_table",
        [*leading_fields, items],
        (*tuples, *numbered_loops),
        components,
        macros,
        CHUNKS_PER_THREAD,
        most_blocks=most_blocks,
        table_loops=(*nest.destination_loops, *row_loops) or _ONE_STEP,
    )
