"""Sort updates by destination, and launch kernels that read the sorted updates."""

from __future__ import annotations

from typing import NamedTuple

from gatherum._model.call import Call

from . import kernel_tables, radix_sort
from .checks import or_null
from .device import Kernel, Pairs, Widths
from .device_nests import DeviceNest
from .kernel_tables import DeviceLoops, Fields, count_points
from .launch_sizes import THREADS, WARP, block_count, offset_bits
from .programs import ROWS, WEIGHTS, WIDEST, Arguments, Field, Slot
from .recording import CallRecording, Macros

# The size in bytes of the largest item that a sort carries as payload: that of the widest payload.
# Not measured.
_MOST_CARRIED = 8

# The largest number of updates that one block sorts. Sorting them again is cheaper than sharing
# their order. On an H200 (2026-11-27), 2048 rows took 0.032 ms and 4096 took 0.053; 8192 took 0.046
# with the sort in several launches, but the host starts six more launches.
MOST_IN_BLOCK = 4096
# The maximum number of threads in a block that sorts. On that device, 4096 rows took 0.053 ms,
# 0.060 with 256 threads, and 0.052 with 1024.
SORT_THREADS = 512


def carried_bytes_of(call: Call, nest: DeviceNest) -> int:
    """Return the size in bytes of an update that the sort carries as payload, or 0 for none.

    Updates are carried only by a fold whose updates are single items. Otherwise the payload is the
    position of the update.
    """
    single = count_points(nest.row_loops) * nest.block == call.data.dtype.itemsize
    return nest.block if call.reduction != "none" and single and nest.block <= _MOST_CARRIED else 0


def widths_of(nest: DeviceNest, carried_bytes: int) -> Widths:
    """Return the widths of keys and payload. `carried_bytes` is 0 if no updates are carried.

    A key is a destination's number; one extra key means that a tuple has no destination.
    """
    bits = max(nest.destinations.bit_length(), 1)
    wide = carried_bytes > 4 if carried_bytes else nest.entries >= 1 << 31
    return Widths(4 if bits < 32 else 8, 8 if wide else 4, bits)


def sort_updates(
    recording: CallRecording, carried_bytes: int, into: radix_sort.Pair | None = None
) -> Pairs:
    """Return the tuples sorted by destination, and in row-major order within each destination.

    The payload of a tuple is its update of `carried_bytes` bytes, or its position if that is 0. If
    the sort consists of launches, `into` may be the memory of the results.
    """
    recorder, nest = recording.recorder, recording.nest
    pair_count, widths = nest.entries, widths_of(nest, carried_bytes)

    def buffers() -> radix_sort.Pair:
        return recorder.allocate(pair_count * widths.key), recorder.allocate(
            pair_count * widths.payload
        )

    in_block = sorts_in_block(nest)
    if sorts_in_launches(nest):
        pairs, spare = radix_sort.source_of(into or buffers(), buffers(), widths.bits)
        write_pairs(recording, carried_bytes, *pairs, in_block)
        pairs = radix_sort.record_passes(recorder, pair_count, widths, pairs, spare)
    else:
        pairs = buffers()
        write_pairs(recording, carried_bytes, *pairs, in_block)
        if not in_block:
            pairs = recorder.sort(*pairs, pair_count, widths)
    return Pairs(*pairs, pair_count, widths)


def sorts_in_block(nest: DeviceNest) -> bool:
    """Return True if the launch that computes the keys of a scatter also sorts them."""
    return nest.entries <= MOST_IN_BLOCK and widths_of(nest, 0).key == 4


def sorts_in_launches(nest: DeviceNest) -> bool:
    """Return True if launches of this package, and not a library, sort the updates."""
    is_short = MOST_IN_BLOCK < nest.entries <= radix_sort.MOST_PAIRS
    return is_short and widths_of(nest, 0).key == 4


def write_pairs(
    recording: CallRecording, carried_bytes: int, keys: Slot, payload: Slot, in_block: bool
) -> None:
    """Write the key and the payload of each tuple, sorted if one block sorts them."""
    nest, widths = recording.nest, widths_of(recording.nest, carried_bytes)
    macros = recording.writing_macros()
    macros |= {
        "KEY_BYTES": widths.key,
        "PAYLOAD_BYTES": widths.payload,
        "CARRIED_BYTES": carried_bytes,
    }
    macros["VALUE_ALIGN"] = recording.alignment(carried_bytes or 1)
    leading_fields: list[Field] = [
        recording.indices,
        recording.moved,
        keys,
        payload,
        nest.destinations,
    ]
    if not in_block:
        recording.launch_nest("keys", leading_fields, nest.tuple_loops, nest.components, macros)
        return
    padded = padded_length(nest.entries)
    threads = min(SORT_THREADS, max(WARP, padded // 2))
    per_thread = -(-padded // threads)
    macros |= {"MOST_TUPLES": MOST_IN_BLOCK, "SORT_THREADS": SORT_THREADS}
    arguments = [*leading_fields, padded], nest.tuple_loops, nest.components, macros
    recording.launch_nest("sorted_keys", *arguments, threads=threads, per_thread=per_thread)


def padded_length(count: int) -> int:
    """Return the smallest power of two, at least 2, that is at least `count`."""
    return 1 << max(count - 1, 1).bit_length()


class SortedUpdates(NamedTuple):
    """Sorted tuples, and facts about the kernel that reads them."""

    pairs: Pairs
    row_loops: DeviceLoops  # over the chunks of a row
    record: Slot | None  # of invalid indices
    tuples_ahead: int  # the greatest distance from a tuple to another that its thread looks at


def scatter_sorted(recording: CallRecording, record: Slot | None) -> None:
    """Move the last update of every destination."""
    chunk_bytes = recording.alignment(WIDEST, recording.nest.block)
    pairs = recording.order or sort_updates(recording, 0)
    updates = SortedUpdates(
        pairs, recording.nest.row_chunk_loops(chunk_bytes), record, tuples_ahead=1
    )
    launch_threads(recording, "scatter_sorted", updates, [], {"CHUNK_BYTES": chunk_bytes})


def launch_threads(
    recording: CallRecording,
    kernel_name: str,
    updates: SortedUpdates,
    limits: Fields,
    macros: Macros,
) -> None:
    """Launch a thread for every entry and chunk of a row. `limits` follow their number."""
    total = updates.pairs.length * count_points(updates.row_loops)
    kernel, fields = sorted_kernel(recording, kernel_name, updates, [total, *limits], [], macros)
    blocks = block_count(recording.processors, total, THREADS)
    recording.recorder.launch(kernel, blocks, THREADS, Arguments.of(fields))


def sorted_kernel(
    recording: CallRecording,
    kernel_name: str,
    updates: SortedUpdates,
    numbers: Fields,
    divided_by: Fields,
    macros: Macros,
) -> tuple[Kernel, list[Field]]:
    """Return a kernel for sorted updates, and its arguments.

    The arguments contain ``Sorted`` of kernels/sorted.cuh. The `numbers` precede it; the first one
    is the number of flat numbers. The divisors of flat numbers follow ``Sorted``.
    """
    (pairs, row_loops, record, tuples_ahead), nest = updates, recording.nest
    tables = nest.destination_loops, nest.tuple_loops, row_loops
    largest = max(kernel_tables.largest_number(loops, (), WIDEST) for loops in tables)
    largest = max(largest, numbers[0], pairs.length + tuples_ahead, nest.destinations)
    if recording.row_number_bytes:  # bytes of the weights
        largest = max(largest, pairs.length * recording.plan.call.data.dtype.itemsize)
    bits, size = offset_bits(largest), kernel_tables.table_size(tables)
    fields: list[Field] = [recording.data, recording.moved, or_null(record), *numbers]
    fields += [pairs.keys, pairs.payload, pairs.length, nest.destinations]
    for loops in tables:
        fields += kernel_tables.loops_fields(loops, bits, size)
    for extent in (count_points(row_loops), *divided_by):
        fields += kernel_tables.divisor_of(extent, bits)
    fields += [Slot(ROWS), Slot(WEIGHTS)] if recording.row_number_bytes else []
    widths = {"KEY_BYTES": pairs.widths.key, "PAYLOAD_BYTES": pairs.widths.payload}
    kernel = Kernel.of(kernel_name, **macros, **widths, OFFSET_BITS=bits, LOOPS=size)
    return kernel, fields
