"""Launch gathers, copies, and scatters without arithmetic."""

from __future__ import annotations

from math import lcm

from gatherum._model.modes import FILLING

from . import kernel_tables
from .checks import or_null
from .device import Kernel
from .device_nests import DeviceNest, with_chunks
from .launch_sizes import CHUNKS_PER_THREAD, MOST_NUMBERS_OF_GRID, THREADS
from .programs import WIDEST, Arguments, Slot
from .recording import CallRecording

# The most blocks of a gather. On an H100 (2026-11-26), gathers of single items took 2.25 ms with
# this limit, and 2.27 ms with the limit of other launches.
_GATHER_BLOCKS = MOST_NUMBERS_OF_GRID // (THREADS * CHUNKS_PER_THREAD)
# For scatters along lines: the size in bytes of a line's table in shared memory, the threads per
# block, the fewest lines, and the fewest updates of a line, as a fraction of its positions. None of
# the four values is measured.
LINE_TABLE_BYTES = 32 << 10
LINE_THREADS = 512
FEWEST_LINES = 128
LEAST_UPDATED_SHARE = 1 / 4
# The number of bytes of a fill item that one launch of ``pattern`` writes. Not measured.
PATTERN_BYTES = 240
# A copy has no components, so these values are unused.
_NO_INDEX = {"INDEX": "int64", "INDEX_ALIGN": 8, "INDEX_SWAPPED": 0, "MODE": "mode_drop"}


def gather(recording: CallRecording, record: Slot | None, fill: bytes) -> None:
    """Move data from the indexed positions to `moved`."""
    nest = recording.nest
    chunk_bytes = recording.alignment(WIDEST, nest.block)
    pattern, pattern_chunks = _write_pattern(recording, fill, chunk_bytes)
    macros = recording.index_macros(recording.plan.call.mode) | {
        "CHUNK_BYTES": chunk_bytes,
        "PER_THREAD": CHUNKS_PER_THREAD,
    }
    leading_fields = (
        recording.data,
        recording.indices,
        recording.moved,
        or_null(record),
        0,
        or_null(pattern),
        pattern_chunks,
    )
    loops = (*nest.tuple_loops, *nest.row_chunk_loops(chunk_bytes))
    recording.launch_nest(
        "gather",
        leading_fields,
        loops,
        nest.components,
        macros,
        CHUNKS_PER_THREAD,
        most_blocks=_GATHER_BLOCKS,
    )


def _write_pattern(
    recording: CallRecording, fill: bytes, chunk_bytes: int
) -> tuple[Slot | None, int]:
    """Return the chunks to store for an invalid tuple, and their number."""
    if recording.plan.call.mode not in FILLING or not any(fill):
        return None, 1
    nbytes = lcm(len(fill), chunk_bytes)
    buffer = recording.recorder.allocate(nbytes)
    whole = fill * (nbytes // len(fill))
    kernel = Kernel.of("pattern", PATTERN_BYTES=PATTERN_BYTES)
    for begin in range(0, nbytes, PATTERN_BYTES):
        piece = whole[begin : begin + PATTERN_BYTES]
        fields = buffer._replace(distance=begin), len(piece)
        arguments = Arguments.of(fields, piece.ljust(PATTERN_BYTES, b"\0"))
        recording.recorder.launch(kernel, 1, THREADS, arguments)
    return buffer, nbytes // chunk_bytes


def copy_data(recording: CallRecording, source: Slot, record: Slot | None) -> None:
    """Copy the data to a scatter's result."""
    nest = recording.nest
    loops = nest.copy_loops
    steps = [step for loop in loops for step in (loop.data, loop.moved)]
    alignments = source.alignment, recording.data.alignment
    chunk_bytes = kernel_tables.common_alignment(WIDEST, *alignments, nest.copy_block, *steps)
    macros = _NO_INDEX | {"CHUNK_BYTES": chunk_bytes, "PER_THREAD": CHUNKS_PER_THREAD}
    leading_fields = source, 0, recording.data, 0, or_null(record), 0, 1
    loops = with_chunks(loops, nest.copy_block, chunk_bytes)
    recording.launch_nest(
        "gather", leading_fields, loops, (), macros, CHUNKS_PER_THREAD, most_blocks=_GATHER_BLOCKS
    )


def scatter(recording: CallRecording, record: Slot | None, winners: Slot | None) -> None:
    """Move `moved` to the indexed positions. With `winners`, move only the winning updates."""
    nest = recording.nest
    chunk_bytes = recording.alignment(WIDEST, nest.block)
    macros = recording.writing_macros() | {
        "CHUNK_BYTES": chunk_bytes,
        "PER_THREAD": CHUNKS_PER_THREAD,
    }
    macros["WINNER_BYTES"] = winner_bytes(recording.nest) if winners else 0
    leading_fields = (
        recording.data,
        recording.indices,
        recording.moved,
        or_null(record),
        or_null(winners),
    )
    loops = (*nest.tuple_loops, *nest.row_chunk_loops(chunk_bytes))
    recording.launch_nest(
        "scatter", leading_fields, loops, nest.components, macros, CHUNKS_PER_THREAD
    )


def find_winners(recording: CallRecording) -> Slot:
    """Return a table of the last update of every destination."""
    entry_bytes = winner_bytes(recording.nest)
    table = recording.recorder.cleared(recording.nest.destinations * entry_bytes)
    macros = recording.writing_macros() | {"WINNER_BYTES": entry_bytes}
    nest = recording.nest
    recording.launch_nest(
        "winners", (recording.indices, table), nest.tuple_loops, nest.components, macros
    )
    return table


def updates_of_line(nest: DeviceNest) -> int:
    """Return the number of updates of each line, or 0 if `scatter_lines` cannot scatter them.

    The updates of a line are consecutive, and their destinations are positions along one dimension
    of the data, as in `scatter_elements` along the last axis.
    """
    moving = [loop for loop in nest.tuple_loops if loop.data]
    lines, updates = kernel_tables.count_points(moving), nest.most_updates
    is_ordered = moving == list(nest.tuple_loops[: len(moving)])
    if not is_ordered or len(nest.components) != 1 or nest.row_loops or nest.block > WIDEST:
        return 0
    size = nest.components[0].size
    fits = 4 * size <= LINE_TABLE_BYTES and LEAST_UPDATED_SHARE * size <= updates < 1 << 32
    return updates if fits and lines >= FEWEST_LINES else 0


def scatter_lines(recording: CallRecording, record: Slot | None) -> None:
    """Move the last update of every destination, line by line."""
    nest, updates_per_line = recording.nest, updates_of_line(recording.nest)
    chunk_bytes = recording.alignment(WIDEST, nest.block)
    macros = recording.writing_macros() | {
        "CHUNK_BYTES": chunk_bytes,
        "TABLE_BYTES": LINE_TABLE_BYTES,
    }
    chunks_per_update, lines = nest.block // chunk_bytes, nest.entries // updates_per_line
    leading_fields = (
        recording.data,
        recording.indices,
        recording.moved,
        or_null(record),
        chunks_per_update,
        updates_per_line,
        lines,
    )
    recording.launch_nest(
        "scatter_lines",
        leading_fields,
        nest.tuple_loops,
        nest.components,
        macros,
        per_thread=-(-updates_per_line // LINE_THREADS),
        threads=LINE_THREADS,
    )


def winner_bytes(nest: DeviceNest) -> int:
    """Return the size in bytes of a table entry for a winner, which is from 0 to `positions`."""
    return 4 if nest.most_updates < 1 << 32 else 8
