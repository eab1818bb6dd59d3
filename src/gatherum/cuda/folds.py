"""Sort updates by destination, then fold them or move the last one."""

from __future__ import annotations

from typing import NamedTuple

from gatherum._core import Reduction, is_exact
from gatherum._model import reductions
from gatherum._model.call import Call
from gatherum._model.dtypes import value_of
from gatherum._plans import sharing

from . import kernel_tables, radix_sort
from .checks import or_null
from .device import Kernel, Pairs, Widths
from .execution import CHUNKS_PER_THREAD, NARROW, Execution, Macros, grid_of
from .kernel_tables import Fields, Step, Steps, count_points
from .loops import Work
from .movement import writing_mode
from .programs import ROWS, WEIGHTS, WIDEST, Arguments, Field, Slot

# The measurements below are of an H100 (2026-11-26) if they name no other device.

# The largest number of entries in a run that one thread folds, for each part of the row, and for
# single items. On an H200 (2026-11-27), rows of 64 into 100,000 took 0.79 ms, and 0.87 with 32;
# 2^24 float32 into 2^20 took 1.00 ms with 16, 0.93 with 32 and 0.92 with 64.
LONGEST_THREAD_SEGMENT = 16
LONGEST_ITEM_SEGMENT = 32
# The largest number that one warp folds. A block folds longer runs. With 128, rows of 64 float32
# into 1000 destinations took 1.29 ms instead of 0.85, and no case was faster.
LONGEST_WARP_SEGMENT = 512
# The number of threads in a warp.
WARP = 32
# The number of threads in a block that folds longer runs: of single items, and of rows. With 256
# threads, 2^24 float16 into 100,000 took 0.97 ms instead of 0.90; skewed rows of 16 float32 took
# 3.77 ms instead of 7.49. The launch that folds by warps has 128: with 256, rows of 64 into 100,000
# took 0.91 ms instead of 0.88. Other sizes, and exact sums, are not measured.
LONG_THREADS = 128
ROW_THREADS = 256
# The number of threads of such a warp or block that fold. The other threads fetch values. Not
# measured.
FOLDING_THREADS = 32
# Blocks per multiprocessor over which the candidates of long runs are spread, if there are enough.
# Rows of 64 into 1000, with 8192 candidates, took 7.30 ms with 128 candidates per block, and 0.85
# with 4, which is the number for this value on that device. On an H200, values from 8 to 64 took
# the same time.
LONG_BLOCKS_PER_PROCESSOR = 16
# Blocks fold runs with more than HUGE_SEGMENT entries in stretches of HUGE_STRETCH_BYTES of the rows:
# such a run waits for the loads of each tile, and tiles of short stretches have more entries. On an
# H200 (2026-11-27), skewed rows of 16 took 3.31 ms without these launches, 2.66 for runs of more
# than 2^15 entries, and 2.39 for 2^13; rows of 128 into 100 took 1.02, 1.18 and 0.89 ms. With
# stretches of 32 bytes, 2^15 took 2.74 ms. Short stretches of all runs took longer.
HUGE_SEGMENT = 1 << 13
HUGE_STRETCH_BYTES = 16
# The number of threads per block that round exact sums. It is small because each sum needs hundreds
# of bytes of shared memory. Not measured.
EXACT_FOLDING_THREADS = 8
# Integers are folded in shared memory first if the items of all destinations fit this number of
# bytes, and if there are this many updates for each item. On an H200 (2026-11-27), 2^16 int64 into
# 256 took 0.013 ms with the table and 0.015 without, 2^18 took 0.013 and 0.047, and 2^24 into 1000
# took 0.08 and 0.92.
TABLE_BYTES = 8 << 10
TABLE_UPDATES_PER_ITEM = 256
# The most blocks of that launch per multiprocessor (2^24 into 256 on that device: 0.08 ms, 0.11
# with 4, 0.09 with 16), and the fewest updates of a block: a number, and a multiple of the items
# that it adds to the data (4, 16 and 64 took the same time).
TABLE_BLOCKS_PER_PROCESSOR = 8
TABLE_UPDATES_PER_BLOCK = 4096
TABLE_UPDATES_PER_ADDED_ITEM = 16
# Largest item, in bytes, that a sort carries as payload.
_MOST_CARRIED = 8

# The most threads of a block that sorts. On an H200 (2026-11-27), 4096 rows took 0.053 ms, 0.060
# with 256 threads, and 0.052 with 1024.
SORT_THREADS = 512

# The loops over one item.
_ONE = (Step(1),)
_ATOMIC_VALUES = ("int32", "int64", "uint32", "uint64")


def carried_bytes(call: Call, work: Work) -> int:
    """Return the bytes of an update that the sort carries as payload, or 0.

    Updates are carried only if a fold has updates of one item. Otherwise the payload is the
    position of the update.
    """
    single = count_points(work.row) * work.block == call.data.dtype.itemsize
    return work.block if call.reduction != "none" and single and work.block <= _MOST_CARRIED else 0


def widths_of(work: Work, carried: int) -> Widths:
    """Return key and payload widths, for updates of which the payload carries some bytes.

    A key is a destination's number; one extra key means that a tuple has no destination.
    """
    bits = max(work.destinations.bit_length(), 1)
    wide = carried > 4 if carried else work.entries >= 1 << 31
    return Widths(4 if bits < 32 else 8, 8 if wide else 4, bits)


def sort(run: Execution, carried: int, into: radix_sort.Pair | None = None) -> Pairs:
    """Return the tuples sorted by destination, and in row-major order within each.

    The payload of a tuple is its update of `carried` bytes, or its position if `carried` is 0. If
    the sort consists of launches, `into` may be the memory of the results.
    """
    program, n, widths = run.program, run.work.entries, widths_of(run.work, carried)

    def buffers() -> radix_sort.Pair:
        return program.allocate(n * widths.key), program.allocate(n * widths.payload)

    in_block = sorts_in_block(run.work)
    if sorts_in_launches(run.work):
        pairs, spare = radix_sort.source_of(into or buffers(), buffers(), widths.bits)
        write_pairs(run, carried, *pairs, in_block)
        pairs = radix_sort.sort(program, n, widths, pairs, spare)
    else:
        pairs = buffers()
        write_pairs(run, carried, *pairs, in_block)
        if not in_block:
            pairs = program.sort(*pairs, n, widths)
    return Pairs(*pairs, n, widths)


def sorts_in_block(work: Work) -> bool:
    """Return True if the launch that computes the keys of a scatter also sorts them."""
    return work.entries <= sharing.MOST_IN_BLOCK and widths_of(work, 0).key == 4


def sorts_in_launches(work: Work) -> bool:
    """Return True if launches of this package sort, not a library."""
    is_short = sharing.MOST_IN_BLOCK < work.entries <= radix_sort.MOST_PAIRS
    return is_short and widths_of(work, 0).key == 4


def write_pairs(run: Execution, carried: int, keys: Slot, payload: Slot, in_block: bool) -> None:
    """Write the key and the payload of each tuple, sorted if one block sorts them."""
    work, widths = run.work, widths_of(run.work, carried)
    macros = run.index_macros(writing_mode(run))
    macros |= {"KEY_BYTES": widths.key, "PAYLOAD_BYTES": widths.payload, "CARRIED_BYTES": carried}
    macros["VALUE_ALIGN"] = run.alignment(carried or 1)
    first: list[Field] = [run.indices, run.moved, keys, payload, work.destinations]
    if not in_block:
        run.launch_nest("keys", first, work.tuples, work.parts, macros)
        return
    padded = 1 << max(work.entries - 1, 1).bit_length()
    threads = min(SORT_THREADS, max(WARP, padded // 2))
    each = -(-padded // threads)
    macros |= {"MOST_TUPLES": sharing.MOST_IN_BLOCK, "SORT_THREADS": SORT_THREADS}
    nest = [*first, padded], work.tuples, work.parts, macros
    run.launch_nest("sorted_keys", *nest, threads=threads, each=each)


class SortedUpdates(NamedTuple):
    """The sorted tuples, the loops over parts of an update, and the record of invalid indices."""

    pairs: Pairs
    row: Steps
    record: Slot | None


def scatter_sorted(run: Execution, record: Slot | None) -> None:
    """Move the last update of every destination."""
    width = run.alignment(WIDEST, run.work.block)
    pairs, row = run.order or sort(run, 0), run.work.chunks(width)
    total, updates = pairs.length * count_points(row), SortedUpdates(pairs, row, record)
    run.launch(*_kernel(run, "scatter_sorted", updates, [total], [], {"CHUNK_BYTES": width}))


def fold_updates(run: Execution, record: Slot | None) -> None:
    """Fold the updates of every destination in row-major order. Exact sums need no order."""
    call, work = run.plan.call, run.work
    exact = is_exact(Reduction[call.reduction])
    name = "fold_exact" if exact else "fold"
    value, item = _part(call) if exact else (_value(call), call.data.dtype.itemsize)
    align = run.alignment(item if exact else WIDEST, work.block)
    lanes = max(1, align // item)
    carried = 0 if run.order else carried_bytes(call, work)
    pairs, row = run.order or sort(run, carried), work.chunks(item * lanes)
    updates, parts = SortedUpdates(pairs, row, record), count_points(row)
    macros: Macros = {
        "VALUE": value,
        "VALUE_ALIGN": align,
        "REDUCTION": call.reduction,
        "CARRIED_BYTES": carried,
    }
    macros |= {} if exact else {"CHUNK_ITEMS": lanes, "ROW_NUMBER_BYTES": run.weighted}
    # Rows with this many parts already fill a warp, which reads contiguous memory.
    alone = (
        (LONGEST_ITEM_SEGMENT if parts == 1 else LONGEST_THREAD_SEGMENT)
        if parts < WARP
        else LONGEST_WARP_SEGMENT
    )
    numbers = [pairs.length * parts, alone, call.include_self]
    run.launch(*_kernel(run, name, updates, numbers, [], macros))
    macros |= {"FOLDING_THREADS": EXACT_FOLDING_THREADS if exact else FOLDING_THREADS}
    for tier in _tiers(parts, item * lanes, alone, exact):
        if pairs.length > tier.above:
            _launch_groups(run, f"{name}_long", updates, tier, macros)


class Tier(NamedTuple):
    """A launch for runs of more than `above` entries and at most `longest` (0: no limit).

    A warp or a block of `group` threads folds a run and `stretch` parts of its rows.
    """

    above: int
    longest: int
    group: int
    stretch: int


def _tiers(parts: int, part_bytes: int, alone: int, exact: bool) -> list[Tier]:
    """Return the launches for runs of more than `alone` entries, with rows of `parts` parts."""
    folders = EXACT_FOLDING_THREADS if exact else FOLDING_THREADS
    block = LONG_THREADS if exact or parts == 1 else ROW_THREADS
    short = max(1, HUGE_STRETCH_BYTES // part_bytes)
    tiers = (
        [Tier(alone, LONGEST_WARP_SEGMENT, WARP, folders)] if alone < LONGEST_WARP_SEGMENT else []
    )
    if exact or parts <= short:
        return [*tiers, Tier(LONGEST_WARP_SEGMENT, 0, block, folders)]
    huge = Tier(HUGE_SEGMENT, 0, block, min(short, folders))
    return [*tiers, Tier(LONGEST_WARP_SEGMENT, HUGE_SEGMENT, block, folders), huge]


def _launch_groups(
    run: Execution, name: str, updates: SortedUpdates, tier: Tier, macros: Macros
) -> None:
    """Launch the groups of a tier, which test all entries where a run of the tier may be found."""
    stretches = -(-count_points(updates.row) // tier.stretch)
    candidates = -(-updates.pairs.length // tier.above) * stretches
    threads = max(tier.group, LONG_THREADS)
    groups = threads // tier.group  # of a block
    each = _candidates_per_group(candidates, run.processors * groups, tier.group)
    self = run.plan.call.include_self
    numbers = [candidates, tier.above, tier.longest, self, tier.stretch, each]
    macros = macros | {"THREADS": threads, "GROUP_THREADS": tier.group}
    kernel, _, fields = _kernel(run, name, updates, numbers, [stretches], macros)
    grid = grid_of(run.processors, candidates, groups * each)
    run.program.launch(kernel, grid, threads, Arguments.of(fields))


def _candidates_per_group(candidates: int, groups: int, most: int) -> int:
    """Return the candidates that each group tests at a time, for a number of groups at a time."""
    return min(most, -(-candidates // (LONG_BLOCKS_PER_PROCESSOR * groups)))


def _value(call: Call) -> str:
    return f"value_{value_of(call.data.dtype).name}"


def _part(call: Call) -> tuple[str, int]:
    """Return the type and size in bytes of an exact sum's terms: for complex numbers, the parts."""
    size = call.data.dtype.itemsize
    return (
        (f"value_float{4 * size}", size // 2)
        if call.data.dtype.kind == "c"
        else (_value(call), size)
    )


def _kernel(
    run: Execution,
    name: str,
    updates: SortedUpdates,
    numbers: Fields,
    divided_by: Fields,
    macros: Macros,
) -> tuple[Kernel, int, list[Field]]:
    """Return a kernel for sorted updates, the number of its flat numbers, and its arguments.

    The arguments contain ``Sorted`` of kernels/sorted.cuh. The `numbers` precede it; the first one
    is the number of flat numbers. The divisors of flat numbers follow it.
    """
    (pairs, row, record), work = updates, run.work
    all_steps = work.destination_steps, work.tuples, row
    most = max(kernel_tables.reach(steps, (), WIDEST) for steps in all_steps)
    most = max(most, numbers[0], pairs.length + HUGE_SEGMENT, work.destinations)
    if run.weighted:  # bytes of the weights
        most = max(most, pairs.length * run.plan.call.data.dtype.itemsize)
    bits, size = 32 if most < NARROW else 64, kernel_tables.table_size(all_steps)
    fields: list[Field] = [run.data, run.moved, or_null(record), *numbers]
    fields += [pairs.keys, pairs.payload, pairs.length, work.destinations]
    for steps in all_steps:
        fields += kernel_tables.loops(steps, bits, size)
    for extent in (count_points(row), *divided_by):
        fields += kernel_tables.divisor(extent, bits)
    fields += [Slot(ROWS), Slot(WEIGHTS)] if run.weighted else []
    widths = {"KEY_BYTES": pairs.widths.key, "PAYLOAD_BYTES": pairs.widths.payload}
    kernel = Kernel.of(name, **macros, **widths, OFFSET_BITS=bits, LOOPS=size)
    return kernel, numbers[0], fields


def may_be_atomic(call: Call) -> bool:
    """Return True if integer atomics can fold in place, provided that the data are aligned."""
    atomic = reductions.ROWS[call.reduction].cuda_atomic and call.include_self
    return atomic and value_of(call.data.dtype).name in _ATOMIC_VALUES


def is_atomic(run: Execution) -> bool:
    """Return True if integer atomics fold in place."""
    call = run.plan.call
    item = call.data.dtype.itemsize
    return may_be_atomic(call) and run.alignment(item) == item


def fold_atomic(run: Execution, record: Slot | None) -> None:
    """Fold integers in place."""
    call, work = run.plan.call, run.work
    item = call.data.dtype.itemsize
    macros = run.index_macros(writing_mode(run))
    macros |= {"VALUE": _value(call), "REDUCTION": call.reduction}
    first = run.data, run.indices, run.moved, or_null(record)
    row = work.chunks(item)
    items = work.destinations * count_points(row)
    if (
        items * item <= TABLE_BYTES
        and work.entries * count_points(row) >= TABLE_UPDATES_PER_ITEM * items
    ):
        _fold_in_table(run, [*first, items], row, macros)
    else:
        run.launch_nest("fold_atomic", first, (*work.tuples, *row), work.parts, macros)


def _fold_in_table(run: Execution, first: list[Field], row: Steps, macros: Macros) -> None:
    """Fold integers into a table of all destinations in shared memory, then into the data."""
    work, width = run.work, count_points(row)
    number, steps = width, []
    for step in row:  # number the items of a row
        number //= step.extent
        steps.append(step._replace(destination=number))
    tuples = (step._replace(destination=width * step.destination) for step in work.tuples)
    parts = tuple(part._replace(destination=width * part.destination) for part in work.parts)
    total, items = work.entries * width, work.destinations * width
    fewest = max(TABLE_UPDATES_PER_BLOCK, TABLE_UPDATES_PER_ADDED_ITEM * items)
    blocks = max(1, min(TABLE_BLOCKS_PER_PROCESSOR * run.processors, total // fewest))
    macros |= {"TABLE_BYTES": TABLE_BYTES, "PER_THREAD": CHUNKS_PER_THREAD}
    nest = first, (*tuples, *steps), parts, macros, CHUNKS_PER_THREAD
    run.launch_nest(
        "fold_table", *nest, blocks=blocks, table=(*work.destination_steps, *row) or _ONE
    )
