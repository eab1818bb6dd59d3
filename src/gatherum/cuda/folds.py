"""Sort updates by destination, then fold them or move the last one."""

from __future__ import annotations

from gatherum._core import Reduction, is_exact
from gatherum._model.call import Call
from gatherum._model.dtypes import value_of
from gatherum._model.reductions import ROWS
from gatherum._plans import sharing

from . import kernel_tables
from .checks import or_null
from .device import Kernel, Pairs, Widths
from .execution import NARROW, THREADS, Execution, Macros
from .kernel_tables import Fields, Steps, count_points
from .loops import Work
from .movement import writing_mode
from .programs import WIDEST, Field, Slot

# The largest number of entries in a run that one thread folds (for each part of the row), and the
# largest number that one warp folds. A block folds longer runs. Neither value has been tuned on a
# device.
THREAD_RUN = 16
WARP_RUN = 512
# The number of threads in a warp, the number of threads in a block that folds longer runs, and the
# number of threads of such a warp or block that fold. The other threads fetch values. The last two
# values have not been tuned either.
WARP = 32
LONG_THREADS = 128
FOLDERS = 32
# The number of threads per block that round exact sums. It is small because each sum needs hundreds
# of bytes of shared memory.
EXACT_FOLDERS = 8
# Largest item, in bytes, that a sort carries as payload.
_MOST_CARRIED = 8

# The most threads of a block that sorts: kMostThreads of kernels/sorted_keys.cu. The number has not
# been tuned on a device.
SORTERS = 512

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


def sort(run: Execution, carried: int) -> Pairs:
    """Return the tuples sorted by destination, and in row-major order within each.

    The payload of a tuple is its update of `carried` bytes, or its position if `carried` is 0.
    """
    program, n, widths = run.program, run.work.entries, widths_of(run.work, carried)
    pairs = program.allocate(n * widths.key), program.allocate(n * widths.payload)
    in_block = sorts_in_block(run.work)
    write_pairs(run, carried, *pairs, in_block)
    if not in_block:
        pairs = program.sort(*pairs, n, widths)
    return Pairs(*pairs, n, widths)


def sorts_in_block(work: Work) -> bool:
    """Return True if the launch that computes the keys of a scatter also sorts them."""
    return work.entries <= sharing.MOST_IN_BLOCK and widths_of(work, 0).key == 4


def write_pairs(run: Execution, carried: int, keys: Slot, payload: Slot, in_block: bool) -> None:
    """Write the key and the payload of each tuple, sorted if one block sorts them."""
    work, widths = run.work, widths_of(run.work, carried)
    macros = run.index_macros(writing_mode(run))
    macros |= {"KEY_WIDTH": widths.key, "PAYLOAD_WIDTH": widths.payload, "CARRIED": carried}
    macros["VALUE_ALIGN"] = run.alignment(carried or 1)
    first: list[Field] = [run.indices, run.moved, keys, payload, work.destinations]
    if not in_block:
        run.launch_nest("keys", first, work.tuples, work.parts, macros)
        return
    padded = 1 << max(work.entries - 1, 1).bit_length()
    threads = min(SORTERS, max(WARP, padded // 2))
    each = -(-padded // threads)
    nest = [*first, padded], work.tuples, work.parts, macros
    run.launch_nest("sorted_keys", *nest, threads=threads, each=each)


def scatter_sorted(run: Execution, guard: Slot | None) -> None:
    """Move the last update of every destination."""
    width = run.alignment(WIDEST, run.work.block)
    pairs, row = run.order or sort(run, 0), run.work.chunks(width)
    total = pairs.length * count_points(row)
    _launch(run, "scatter_sorted", pairs, row, guard, [total], [], {"WIDTH": width})


def fold_updates(run: Execution, guard: Slot | None) -> None:
    """Fold the updates of every destination in row-major order. Exact sums need no order."""
    call, work = run.plan.call, run.work
    exact = is_exact(Reduction[call.reduction])
    name = "fold_exact" if exact else "fold"
    value, item = _part(call) if exact else (_value(call), call.data.dtype.itemsize)
    align = run.alignment(item if exact else WIDEST, work.block)
    lanes = max(1, align // item)
    carried = 0 if run.order else carried_bytes(call, work)
    pairs, row = run.order or sort(run, carried), work.chunks(item * lanes)
    macros: Macros = {
        "VALUE": value,
        "VALUE_ALIGN": align,
        "REDUCTION": call.reduction,
        "CARRIED": carried,
    }
    macros |= {} if exact else {"LANES": lanes}
    parts = count_points(row)
    # Rows with this many parts already fill a warp, which reads contiguous memory.
    alone = THREAD_RUN if parts < WARP else WARP_RUN
    total = [pairs.length * parts, alone, call.include_self]
    _launch(run, name, pairs, row, guard, total, [], macros)
    folders = EXACT_FOLDERS if exact else FOLDERS
    stretches = -(-parts // folders)
    macros |= {"THREADS": LONG_THREADS, "FOLDERS": folders}
    for group, above, longest in ((WARP, alone, WARP_RUN), (LONG_THREADS, WARP_RUN, 0)):
        if pairs.length > above != longest:
            total = [-(-pairs.length // above) * stretches, above, longest, call.include_self]
            own = macros | {"GROUP": group}
            _launch(run, f"{name}_long", pairs, row, guard, total, [stretches], own)


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


def _launch(
    run: Execution,
    name: str,
    pairs: Pairs,
    row: Steps,
    guard: Slot | None,
    total: Fields,
    divided_by: Fields,
    macros: Macros,
) -> None:
    """Launch a kernel whose arguments contain ``Sorted`` of kernels/sorted.cuh.

    The numbers in `total`, flat numbers first, precede it; the divisors of flat numbers follow it.
    """
    work = run.work
    all_steps = work.to, work.tuples, row
    most = max(kernel_tables.reach(steps, (), WIDEST) for steps in all_steps)
    most = max(most, total[0], pairs.length + WARP_RUN, work.destinations)
    bits, size = 32 if most < NARROW else 64, kernel_tables.table_size(all_steps)
    fields: list[Field] = [run.data, run.moved, or_null(guard), *total]
    fields += [pairs.keys, pairs.payload, pairs.length, work.destinations]
    for steps in all_steps:
        fields += kernel_tables.loops(steps, bits, size)
    for extent in (count_points(row), *divided_by):
        fields += kernel_tables.divisor(extent, bits)
    widths = {"KEY_WIDTH": pairs.widths.key, "PAYLOAD_WIDTH": pairs.widths.payload}
    kernel = Kernel.of(name, **macros, **widths, OFFSET_BITS=bits, LOOPS=size)
    threads = LONG_THREADS if "THREADS" in macros else THREADS
    run.launch(kernel, total[0], fields, threads=threads)


def may_be_atomic(call: Call) -> bool:
    """Return True if integer atomics can fold in place, provided that the data are aligned."""
    atomic = ROWS[call.reduction].cuda_atomic and call.include_self
    return atomic and value_of(call.data.dtype).name in _ATOMIC_VALUES


def is_atomic(run: Execution) -> bool:
    """Return True if integer atomics fold in place."""
    call = run.plan.call
    item = call.data.dtype.itemsize
    return may_be_atomic(call) and run.alignment(item) == item


def fold_atomic(run: Execution, guard: Slot | None) -> None:
    """Fold integers in place."""
    call, work = run.plan.call, run.work
    macros = run.index_macros(writing_mode(run))
    macros |= {"VALUE": _value(call), "REDUCTION": call.reduction}
    first = run.data, run.indices, run.moved, or_null(guard)
    steps = (*work.tuples, *work.chunks(call.data.dtype.itemsize))
    run.launch_nest("fold_atomic", first, steps, work.parts, macros)
