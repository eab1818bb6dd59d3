"""Choose the strategy of a call from sizes and a setting. `explain` reports the choice."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from math import prod

from dask import config
from dask.utils import parse_bytes

from gatherum._functions.fold_properties import element_bytes
from gatherum._model import errors
from gatherum.dask import private
from gatherum.dask.dask_call import DaskCall

from .layout import ChunkLayout, runs_within
from .partials import can_be_partial
from .strategies import MOST_PAIRS, SMALL_BYTES, Strategy

# The number of chunks of updates in one step of a fold.
FOLD_STEP = 2
# The number of bytes for each entry while a route is created: five int64 and two narrow integers.
ROUTING = 48
# The number of tables of updates that one task merges.
MERGED = 8


def is_small(size: int) -> bool:
    """Return True if an operand of this size may be sent whole to every task that needs a part."""
    return size <= SMALL_BYTES


def owner_bytes(call: DaskCall, layout: ChunkLayout) -> list[int]:
    """Return the maximum number of bytes of each owner of a column, in row-major order."""
    item = max(call.dtype.itemsize, 1)
    return [count * item for count in layout.owner_weights()]


def entry_bytes(call: DaskCall, layout: ChunkLayout) -> list[int]:
    """Return the size of each block of entries in bytes: the rows that move, and the route."""
    item = max(call.dtype.itemsize, 1)
    pairs = zip(layout.entry_weights(), layout.entry_counts(), strict=True)
    return [elements * item + count * ROUTING for elements, count in pairs]


def index_bytes(call: DaskCall) -> int:
    """Return the size in bytes of all indices as int64."""
    return prod(call.array_call.indices.shape) * 8


def chunk_bytes() -> int:
    """Return the maximum size of a chunk in bytes: Dask's setting ``array.chunk-size``."""
    size: int = parse_bytes(config.get("array.chunk-size"))
    return max(1, size)


@dataclass(frozen=True)
class Choice:
    """The strategy of a call."""

    strategy: Strategy
    reason: str  # the reason for the choice, with the numbers compared
    chunk: int  # maximum bytes of adjacent blocks that share a task

    def __str__(self) -> str:
        return f"{self.strategy}: {self.reason}"


def choose(call: DaskCall, layout: ChunkLayout) -> Choice:
    """Choose the strategy of a call."""
    task_bytes = chunk_bytes()
    itemsize = max(call.dtype.itemsize, 1)
    setting = _wanted(call.operator.name)
    column_bytes = layout.column_elements * itemsize
    if call.operator.scatters and can_be_partial(call) and (why := _why_partial(call, layout)):
        return Choice(Strategy.PARTIAL, why, task_bytes)
    if layout.owners <= 1:
        return Choice(Strategy.BLOCKWISE, Strategy.BLOCKWISE.when, task_bytes)
    sent_whole = f"at most {SMALL_BYTES:,} bytes are sent whole"
    if call.operator.scatters:
        update_bytes = itemsize * prod(sum(sizes) for sizes in layout.moved)
        index_bytes = prod(call.array_call.indices.shape) * call.array_call.indices.dtype.itemsize
        if is_small(update_bytes + index_bytes):
            why = f"{update_bytes + index_bytes:,} bytes of indices and updates; {sent_whole}"
            return Choice(Strategy.BROADCAST, why, task_bytes)
    elif is_small(column_bytes):
        why = f"{column_bytes:,} bytes of data a column of chunks; {sent_whole}"
        return Choice(Strategy.BROADCAST, why, task_bytes)
    addressed = layout.addressed or {}
    addressed_owners = max(addressed.values(), key=len, default=None)
    pair_count = len(runs_within(owner_bytes(call, layout), task_bytes, addressed_owners))
    pair_count *= len(runs_within(entry_bytes(call, layout), task_bytes))
    reason = f"{layout.owners} chunks of data along the indexed dimensions"
    if addressed_owners is not None:
        reason = f"at most {len(addressed_owners)} of {reason} addressed"
    strategy = setting or (Strategy.SHUFFLE if pair_count > MOST_PAIRS else Strategy.TASKS)
    if strategy == Strategy.SHUFFLE and 0 not in map(sum, layout.moved) and _can_shuffle():
        # A sender's rows also wait in buffers, so smaller pieces need less memory.
        task_bytes = max(1, task_bytes // 4)
        return Choice(Strategy.SHUFFLE, f"{reason}, {pair_count} pairs of tasks", task_bytes)
    return Choice(Strategy.TASKS, f"{reason}, {pair_count} pairs of tasks", task_bytes)


def _wanted(op: str) -> str | None:
    """Return the strategy that Dask's setting ``gatherum.strategy`` requests, or None."""
    wanted: str | None = config.get("gatherum.strategy", None)
    choices = [str(Strategy.TASKS), str(Strategy.SHUFFLE)]
    if wanted is not None and wanted not in choices:
        raise errors.not_one_of(op, "gatherum.strategy", wanted, choices)
    return wanted


def _why_partial(call: DaskCall, layout: ChunkLayout) -> str:
    """Return the reason for separate tables of updates, or "" if they need too many bytes."""
    updates = entry_bytes(call, layout)
    count = len(runs_within(updates, chunk_bytes()))
    table = layout.column_elements * element_bytes(call.dtype, call.array_call.reduction)
    if not partial_pays(count, table, sum(updates)):
        return ""
    return f"{count} tables of {table:,} bytes for {sum(updates):,} bytes of updates"


def partial_pays(count: int, table: int, updates: int) -> bool:
    """Return True if tables of updates need little memory compared with a column's updates."""
    return count > 1 and 2 * count * table <= updates


def _can_shuffle() -> bool:
    """Return True if calls run on a cluster with a tested version of distributed."""
    try:
        from distributed import __version__ as VERSION
        from distributed import default_client

        default_client()
    except (ImportError, ValueError):  # without a cluster, rows move as tasks
        return False
    if not (why := private.why_no_shuffle(VERSION)):
        return True
    warnings.warn(f"gatherum.dask: rows move as tasks: {why}", stacklevel=5)
    return False
