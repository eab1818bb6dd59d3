"""A call's strategy, how its rows move, is chosen by sizes alone and reported by `explain`."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from math import prod

from dask import config
from dask.utils import parse_bytes

from gatherum._functions.accumulator import element_bytes
from gatherum.dask import private
from gatherum.dask.dask_call import DaskCall

from .layout import ChunkLayout, runs_within
from .partials import can_be_partial

# A table is small if every task may hold it whole; updates are if they may go to every chunk.
SMALL_BYTES = 64 << 20
# Pairs of tasks that exchange rows: with more of them, and a cluster, rows move by shuffles.
MOST_PAIRS = 256
# How many chunks of updates one step of a fold takes.
FOLD_STEP = 2
# Bytes for each entry while a route is made: five int64 and two narrow integers.
ROUTING = 48
# How many tables of updates one task merges.
MERGED = 8


def is_small(size: int) -> bool:
    """Whether so many bytes may go whole to every task that needs some of them."""
    return size <= SMALL_BYTES


def owner_bytes(call: DaskCall, layout: ChunkLayout) -> list[int]:
    """Return the bytes of each owner of a column, at most, in row-major order."""
    item = max(call.dtype.itemsize, 1)
    return [count * item for count in layout.owner_weights()]


def entry_bytes(call: DaskCall, layout: ChunkLayout) -> list[int]:
    """Return the bytes that move with each block of entries, and those that its route takes."""
    item = max(call.dtype.itemsize, 1)
    pairs = zip(layout.entry_weights(), layout.entry_counts(), strict=True)
    return [moved * item + count * ROUTING for moved, count in pairs]


def index_bytes(call: DaskCall) -> int:
    """Return the bytes of all indices, once they are int64."""
    return prod(call.call.indices.shape) * 8


def chunk_bytes() -> int:
    """Return what Dask wants a chunk to have at most: its setting ``array.chunk-size``."""
    size: int = parse_bytes(config.get("array.chunk-size"))
    return max(1, size)


@dataclass(frozen=True)
class Strategy:
    """How rows move.

    By the name:

    - ``"blockwise"``: aligned chunks: no rows move;
    - ``"partial"``: updates are folded where they are, each task into a table of its own, and the
      tables are merged: where the order of updates does not matter, or the last one wins;
    - ``"broadcast"``: what is small goes whole to everything that needs it;
    - ``"tasks"``: entries are split by the owners of their rows, and rows are sent back;
    - ``"shuffle"``: the same, from worker to worker, over distributed's P2P machinery.
    """

    name: str
    reason: str  # the rule that chose it, with the numbers that it compared
    chunk: int  # bytes that a task may take together: neighbours that are smaller share one

    def __str__(self) -> str:
        return f"{self.name}: {self.reason}"


def choose(call: DaskCall, layout: ChunkLayout) -> Strategy:
    """Choose the strategy of a call."""
    chunk, item = chunk_bytes(), max(call.dtype.itemsize, 1)
    column = layout.column_elements * item
    if call.operator.scatters and can_be_partial(call) and (why := _why_partial(call, layout)):
        return Strategy("partial", why, chunk)
    if layout.owners <= 1:
        return Strategy("blockwise", "the indexed dimensions are not chunked", chunk)
    small = f"at most {SMALL_BYTES:,} bytes are sent whole"
    if call.operator.scatters:
        moved = item * prod(sum(sizes) for sizes in layout.moved)
        entries = prod(call.call.indices.shape) * call.call.indices.dtype.itemsize
        if is_small(moved + entries):
            return Strategy(
                "broadcast", f"{moved + entries:,} bytes of indices and updates; {small}", chunk
            )
    elif is_small(column):
        return Strategy("broadcast", f"{column:,} bytes of data a column of chunks; {small}", chunk)
    addressed = layout.addressed or {}
    members = max(addressed.values(), key=len, default=None)
    pairs = len(runs_within(owner_bytes(call, layout), chunk, members))
    pairs *= len(runs_within(entry_bytes(call, layout), chunk))
    reason = f"{layout.owners} chunks of data along the indexed dimensions"
    if members is not None:
        reason = f"at most {len(members)} of {reason} addressed"
    wanted = config.get("gatherum.way", "shuffle" if pairs > MOST_PAIRS else "tasks")
    if wanted == "shuffle" and 0 not in map(sum, layout.moved) and _can_shuffle():
        # A sender's rows wait in buffers beside it: smaller pieces need less memory.
        return Strategy("shuffle", f"{reason}, {pairs} pairs of tasks", max(1, chunk // 4))
    return Strategy("tasks", f"{reason}, {pairs} pairs of tasks", chunk)


def _why_partial(call: DaskCall, layout: ChunkLayout) -> str:
    """Return why updates are folded apart, or "" if the tables would take too many bytes."""
    updates = entry_bytes(call, layout)
    count = len(runs_within(updates, chunk_bytes()))
    table = layout.column_elements * element_bytes(call.dtype, call.call.reduction)
    if not partial_pays(count, table, sum(updates)):
        return ""
    return f"{count} tables of {table:,} bytes for {sum(updates):,} bytes of updates"


def partial_pays(count: int, table: int, updates: int) -> bool:
    """Whether so many tables of so many bytes are little beside the updates of a column."""
    return count > 1 and 2 * count * table <= updates


def _can_shuffle() -> bool:
    """Whether calls run on a cluster whose machinery is known."""
    try:
        from distributed import __version__ as VERSION
        from distributed import default_client

        default_client()
    except (ImportError, ValueError):  # there is no cluster: rows move as tasks
        return False
    if not (why := private.why_no_shuffle(VERSION)):
        return True
    warnings.warn(f"gatherum.dask: rows move as tasks: {why}", stacklevel=5)
    return False
