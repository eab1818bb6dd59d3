"""Launch gathers, copies, and scatters without arithmetic."""

from __future__ import annotations

from math import lcm

from gatherum._model.modes import FILLING

from . import kernel_tables
from .checks import or_null
from .device import Kernel
from .execution import CHUNKS_PER_THREAD, THREADS, WHOLE_GRID, Execution
from .loops import Work, with_chunks
from .programs import WIDEST, Arguments, Slot

# The most blocks of a gather. On an H100 (2026-11-26), gathers of single items took 2.25 ms with
# this limit, and 2.27 ms with the limit of other launches.
_GATHER_BLOCKS = WHOLE_GRID // (THREADS * CHUNKS_PER_THREAD)
# Scatters along lines: bytes of the table of a line in shared memory, threads per block, the fewest
# lines, and the fewest updates of a line as a part of its positions. None of the four values is
# measured.
LINE_TABLE_BYTES = 32 << 10
LINE_THREADS = 512
FEWEST_LINES = 128
LEAST_UPDATED_SHARE = 1 / 4
# The bytes of a fill item that one launch of ``pattern`` writes.
_PIECE = 240
# A copy has no components, so these values are unused.
_NO_INDEX = {"INDEX": "int64", "INDEX_ALIGN": 8, "INDEX_SWAPPED": 0, "MODE": "mode_drop"}


def gather(run: Execution, record: Slot | None, fill: bytes) -> None:
    """Move data from the indexed positions to `moved`."""
    work = run.work
    width = run.alignment(WIDEST, work.block)
    pattern, chunks = _pattern(run, fill, width)
    macros = run.index_macros(run.plan.call.mode) | {
        "CHUNK_BYTES": width,
        "PER_THREAD": CHUNKS_PER_THREAD,
    }
    first = run.data, run.indices, run.moved, or_null(record), 0, or_null(pattern), chunks
    steps = (*work.tuples, *work.chunks(width))
    run.launch_nest(
        "gather", first, steps, work.parts, macros, CHUNKS_PER_THREAD, blocks=_GATHER_BLOCKS
    )


def _pattern(run: Execution, fill: bytes, width: int) -> tuple[Slot | None, int]:
    """Return the chunks to store for an invalid tuple, and their number."""
    if run.plan.call.mode not in FILLING or not any(fill):
        return None, 1
    nbytes = lcm(len(fill), width)
    buffer = run.program.allocate(nbytes)
    whole = fill * (nbytes // len(fill))
    for begin in range(0, nbytes, _PIECE):
        piece = whole[begin : begin + _PIECE]
        fields = buffer._replace(distance=begin), len(piece)
        arguments = Arguments.of(fields, piece.ljust(_PIECE, b"\0"))
        run.program.launch(Kernel.of("pattern"), 1, THREADS, arguments)
    return buffer, nbytes // width


def copy_data(run: Execution, source: Slot, record: Slot | None) -> None:
    """Copy the data to a scatter's result."""
    work = run.work
    steps = work.copy_steps
    moved = [step_bytes for step in steps for step_bytes in (step.data, step.moved)]
    alignments = source.alignment, run.data.alignment
    width = kernel_tables.alignment(WIDEST, *alignments, work.copy_block, *moved)
    macros = _NO_INDEX | {"CHUNK_BYTES": width, "PER_THREAD": CHUNKS_PER_THREAD}
    first = source, 0, run.data, 0, or_null(record), 0, 1
    steps = with_chunks(steps, work.copy_block, width)
    run.launch_nest("gather", first, steps, (), macros, CHUNKS_PER_THREAD, blocks=_GATHER_BLOCKS)


def scatter(run: Execution, record: Slot | None, winners: Slot | None) -> None:
    """Move `moved` to the indexed positions. With `winners`, move only the winning updates."""
    work = run.work
    width = run.alignment(WIDEST, work.block)
    macros = run.index_macros(writing_mode(run)) | {
        "CHUNK_BYTES": width,
        "PER_THREAD": CHUNKS_PER_THREAD,
    }
    macros["WINNER_BYTES"] = winner_width(run.work) if winners else 0
    first = run.data, run.indices, run.moved, or_null(record), or_null(winners)
    steps = (*work.tuples, *work.chunks(width))
    run.launch_nest("scatter", first, steps, work.parts, macros, CHUNKS_PER_THREAD)


def find_winners(run: Execution) -> Slot:
    """Return a table of the last update of every destination."""
    width = winner_width(run.work)
    table = run.program.cleared(run.work.destinations * width)
    macros = run.index_macros(writing_mode(run)) | {"WINNER_BYTES": width}
    work = run.work
    run.launch_nest("winners", (run.indices, table), work.tuples, work.parts, macros)
    return table


def updates_of_line(work: Work) -> int:
    """Return the updates of each line if `scatter_lines` can scatter them, or 0.

    The updates of a line are consecutive, and their destinations are the positions of one dimension
    of the data, such as in `scatter_elements` along the last axis.
    """
    moving = [step for step in work.tuples if step.data]
    lines, updates = kernel_tables.count_points(moving), work.most_updates
    is_ordered = moving == list(work.tuples[: len(moving)])
    if not is_ordered or len(work.parts) != 1 or work.row or work.block > WIDEST:
        return 0
    size = work.parts[0].size
    fits = 4 * size <= LINE_TABLE_BYTES and LEAST_UPDATED_SHARE * size <= updates < 1 << 32
    return updates if fits and lines >= FEWEST_LINES else 0


def scatter_lines(run: Execution, record: Slot | None) -> None:
    """Move the last update of every destination, line by line."""
    work, updates = run.work, updates_of_line(run.work)
    width = run.alignment(WIDEST, work.block)
    macros = run.index_macros(writing_mode(run)) | {
        "CHUNK_BYTES": width,
        "TABLE_BYTES": LINE_TABLE_BYTES,
    }
    chunks, lines = work.block // width, work.entries // updates
    first = run.data, run.indices, run.moved, or_null(record), chunks, updates, lines
    run.launch_nest(
        "scatter_lines",
        first,
        work.tuples,
        work.parts,
        macros,
        each=-(-updates // LINE_THREADS),
        threads=LINE_THREADS,
    )


def winner_width(work: Work) -> int:
    """Return the bytes of an entry in the table of winners, which holds 0 to `positions`."""
    return 4 if work.most_updates < 1 << 32 else 8


def writing_mode(run: Execution) -> str:
    """Return the mode of a scatter's writing launches.

    In mode "raise" the indices are already checked. Indices that another stream has made invalid
    since the check are dropped.
    """
    mode = run.plan.call.mode
    return "drop" if mode == "raise" else mode
