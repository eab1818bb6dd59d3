"""Predict a call's cost from sizes only: tasks, pieces, and bytes.

Numbers of tasks are exact. Numbers of pieces and bytes are exact for evenly distributed indices;
for other indices they are upper bounds. docs/dask-planning.md explains how times are computed from
these numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from gatherum._functions.fold_properties import element_bytes
from gatherum.dask.dask_call import DaskCall

from .choice import (
    FOLD_STEP,
    MERGED,
    ROUTING,
    Choice,
    entry_bytes,
    index_bytes,
    is_small,
    owner_bytes,
)
from .layout import ChunkLayout, runs_within
from .strategies import Strategy, for_gathers, for_scatters


@dataclass(frozen=True)
class Cost:
    """The predicted cost of a call."""

    task_count: int  # without tasks that rechunk or create the operands
    task_bytes: int  # the maximum bytes of a task: inputs, result and scratch
    # The number of messages with rows from one task to another: at most one for every pair of
    # tasks.
    piece_count: int = 0
    # The size in bytes of the rows sent between tasks, and of the row numbers that request these
    # rows.
    sent_bytes: int = 0
    route_bytes: int = 0  # bytes of routes, which are kept until the rows have moved

    def __str__(self) -> str:
        return (
            f"{self.task_count:,} tasks; {self.sent_bytes:,} bytes move; a task holds up to "
            f"{self.task_bytes:,} bytes"
        )


def cost(call: DaskCall, layout: ChunkLayout, choice: Choice) -> Cost:
    """Return the cost of a call with the chosen strategy."""
    costs = _SCATTER_COSTS if call.operator.scatters else _GATHER_COSTS
    return costs[choice.strategy](_Sizes(call, layout, choice))


@dataclass(frozen=True)
class _Sizes:
    """The quantities in the formulas."""

    call: DaskCall
    layout: ChunkLayout
    choice: Choice

    @cached_property
    def shared_columns(self) -> int:
        """The number of columns along the shared dimensions."""
        return prod(len(self.layout.indices[d]) for d in self.layout.roles.shared)

    @cached_property
    def free_columns(self) -> int:
        """The number of columns along the free dimensions, for each of `shared_columns`."""
        return prod(len(self.layout.data[d]) for d in self.layout.roles.free)

    @cached_property
    def entry_runs(self) -> list[range]:
        """The groups of entry blocks that one task processes together."""
        return runs_within(entry_bytes(self.call, self.layout), self.choice.chunk)

    @cached_property
    def largest_group(self) -> int:
        """The number of entries in the largest group of entries."""
        counts = self.layout.entry_counts()
        return max(sum(counts[n] for n in run) for run in self.entry_runs)

    @cached_property
    def row_bytes(self) -> int:
        """The number of bytes that move for one entry."""
        elements = prod(max(self.layout.data[d]) for d in self.layout.roles.free)
        return elements * self.call.dtype.itemsize

    @cached_property
    def entry_index_bytes(self) -> int:
        """The number of bytes in the indices of one entry."""
        return len(self.call.dimensions.indexed) * self.call.array_call.indices.dtype.itemsize

    @cached_property
    def owner_run_bytes(self) -> list[int]:
        """The bytes of each group of owners that one task processes, for all `shared_columns`."""
        weights, addressed = owner_bytes(self.call, self.layout), self.layout.addressed
        if addressed is None:
            return _sums(weights, self.choice.chunk) * self.shared_columns
        groups = []
        for members in addressed.values():
            groups += _sums(weights, self.choice.chunk, members)
        return groups

    @cached_property
    def check_count(self) -> int:
        """1 if a task checks that all entries are valid, and 0 otherwise."""
        return int(self.call.raises_if_invalid)

    @cached_property
    def entry_count(self) -> int:
        """The number of entries."""
        array_call = self.call.array_call
        return prod(
            array_call.indices.shape[
                : len(array_call.indices.shape) - self.call.operator.takes_tuples
            ]
        )

    @cached_property
    def moved_bytes(self) -> int:
        """The size in bytes of a gather's result or a scatter's updates."""
        return prod(map(sum, self.layout.moved)) * self.call.dtype.itemsize

    @cached_property
    def block_bytes(self) -> int:
        """The size in bytes of the largest block of data."""
        return prod(max(sizes) for sizes in self.layout.data) * self.call.dtype.itemsize

    @cached_property
    def block_count(self) -> int:
        """The number of blocks of data."""
        return prod(map(len, self.layout.data))

    @cached_property
    def row_number_bytes(self) -> int:
        """The size in bytes of the row numbers of all entries, in the narrowest dtype."""
        keyed = prod(max(sizes) for sizes in self.layout.keyed)
        return self.entry_count * _narrow(keyed)

    @cached_property
    def route_bytes(self) -> int:
        """The bytes of the routes: row numbers, positions, and where each owner's entries start."""
        count = self.shared_columns * len(self.entry_runs)
        position_bytes = _narrow(-(-self.entry_count // max(1, count)))
        return (
            self.row_number_bytes
            + self.entry_count * position_bytes
            + 8 * (self.layout.owners + 1) * count
        )

    @property
    def routing_bytes(self) -> int:
        """The number of bytes needed to create the largest route."""
        return self.largest_group * (ROUTING + self.entry_index_bytes)

    @cached_property
    def bytes_per_data_byte(self) -> int:
        """The bytes that a fold needs for each byte of data, including the data and a copy."""
        attributes, dtype = self.call.array_call.attributes, self.call.dtype
        if dtype.itemsize and attributes.fold.needs_accumulator(dtype):
            return 1 + -(-element_bytes(dtype, attributes.reduction) // dtype.itemsize)
        return 2

    def piece_count(self) -> int:
        """Return the number of pieces into which the rows of all columns are divided."""
        pair_count = len(self.owner_run_bytes) * len(self.entry_runs)
        return self.free_columns * min(pair_count, self.entry_count)


def _sums(weights: Sequence[int], limit: int, members: Sequence[int] | None = None) -> list[int]:
    return [sum(weights[n] for n in run) for run in runs_within(weights, limit, members)]


def _narrow(count: int) -> int:
    return np.min_scalar_type(max(0, count - 1)).itemsize


def _routed_gather(sizes: _Sizes) -> Cost:
    """Return the cost of requesting rows by routes, reading them from owners, and merging them.

    S and F are the numbers of columns; each column has E groups of entries and T groups of owners.
    The tasks are S E routes (and S E that find invalid entries), F S T takes, and F S E merges. The
    strategy "tasks" adds S T E requests, unless all indices are small, and F S T E replies. The
    strategy "shuffle" adds S E requests, and only groups of several blocks are merged.
    """
    shared, free = sizes.shared_columns, sizes.free_columns
    runs, owners = len(sizes.entry_runs), len(sizes.owner_run_bytes)
    column_count, block_count = shared * free, len(sizes.layout.entry_counts())
    route_count, sends_all_indices = shared * runs, is_small(index_bytes(sizes.call))
    tasks = (
        2
        + route_count
        + sizes.check_count * (route_count + 1)
        + free * owners
        + column_count * block_count
    )
    read_bytes = max(sizes.owner_run_bytes, default=0)
    reply_bytes = sizes.largest_group * sizes.row_bytes
    if sizes.choice.strategy is Strategy.SHUFFLE:
        barriers = shared if sizes.layout.addressed is None else _addressed(sizes.layout)
        tasks += shared + free * barriers + (shared if sends_all_indices else route_count + shared)
        tasks += column_count * sum(len(run) > 1 for run in sizes.entry_runs)
        read_bytes += sizes.choice.chunk + reply_bytes  # the last piece may exceed the batch size
    else:
        tasks += column_count * runs + free * owners * runs
        tasks += 0 if sends_all_indices else owners * runs
        read_bytes += sizes.moved_bytes // max(1, free * owners)
    return Cost(
        task_count=tasks,
        piece_count=sizes.piece_count(),
        sent_bytes=sizes.moved_bytes + (0 if sends_all_indices else sizes.row_number_bytes * free),
        route_bytes=sizes.route_bytes,
        task_bytes=max(sizes.routing_bytes, read_bytes, 2 * reply_bytes),
    )


def _addressed(layout: ChunkLayout) -> int:
    """Return the number of columns along the shared dimensions that have an entry."""
    return sum(map(bool, (layout.addressed or {}).values()))


def _routed_scatter(sizes: _Sizes) -> Cost:
    """Return the cost of routes that order updates by owner, and of owners that fold them.

    S and F are the numbers of columns; each column has E groups of entries and T groups of owners.
    The data have D blocks. There are S * E route tasks, F * S * E tasks that cut or send updates,
    and D result tasks. The strategy "tasks" adds F S T E pieces, and a fold for each step of each
    group of owners.
    """
    shared, free = sizes.shared_columns, sizes.free_columns
    runs, owners = len(sizes.entry_runs), len(sizes.owner_run_bytes)
    routes = shared * runs
    tasks = 2 + routes + sizes.check_count * (routes + 1) + sizes.block_count
    cut = 2 * sizes.largest_group * sizes.row_bytes
    if sizes.choice.strategy is Strategy.SHUFFLE:
        with_entries = shared if sizes.layout.addressed is None else _addressed(sizes.layout)
        tasks += free * with_entries * (runs + 1)
        peak = max(cut + sizes.choice.chunk, sizes.bytes_per_data_byte * sizes.block_bytes)
    else:
        weights = entry_bytes(sizes.call, sizes.layout)
        sums = [sum(weights[n] for n in run) for run in sizes.entry_runs]
        steps = len(runs_within(sums, FOLD_STEP * sizes.choice.chunk))
        tasks += free * (routes + owners * (runs + steps))
        step = max(sizes.largest_group * sizes.row_bytes, FOLD_STEP * sizes.choice.chunk)
        peak = max(cut, sizes.bytes_per_data_byte * max(sizes.owner_run_bytes, default=0) + step)
    return Cost(
        task_count=tasks,
        piece_count=sizes.piece_count(),
        sent_bytes=(0 if sizes.call.broadcasts_update else sizes.moved_bytes)
        + sizes.row_number_bytes * free,
        route_bytes=sizes.route_bytes,
        task_bytes=max(sizes.routing_bytes, peak),
    )


def _broadcast_scatter(sizes: _Sizes) -> Cost:
    """Return the cost of sending a route of all entries, and all updates, to every fold."""
    shared, free = sizes.shared_columns, sizes.free_columns
    columns = shared * free
    owners, entries = len(sizes.owner_run_bytes), sum(sizes.layout.entry_counts())
    tasks = 2 + shared + sizes.check_count * (shared + 1) + columns + free * owners
    tasks += sizes.block_count
    update_bytes = entries * sizes.row_bytes
    fold_bytes = sizes.bytes_per_data_byte * max(sizes.owner_run_bytes, default=0)
    return Cost(
        task_count=tasks,
        piece_count=free * owners,
        route_bytes=sizes.route_bytes,
        task_bytes=max(
            entries * (ROUTING + sizes.entry_index_bytes),
            fold_bytes + update_bytes,
            2 * update_bytes,
        ),
    )


def _whole_columns(sizes: _Sizes) -> Cost:
    """Return the cost if every block of indices uses all rows of its column, joined if needed.

    S and F are the numbers of columns; each column has B blocks of indices. The data have D blocks.
    The tasks of a gather are S B checks and F S B results. The tasks of a scatter are S * B checks,
    a fold for each step in each column, and D results.
    """
    shared, free = sizes.shared_columns, sizes.free_columns
    columns, blocks = shared * free, len(sizes.layout.entry_counts())
    table_bytes = sizes.layout.column_elements * sizes.call.dtype.itemsize
    join_count = columns if sizes.layout.owners > 1 else 0
    tasks = 1 + sizes.check_count * (shared * blocks + 1) + join_count
    block_bytes = max(sizes.layout.entry_counts()) * (sizes.row_bytes + sizes.entry_index_bytes)
    if sizes.call.operator.scatters:
        steps = len(
            runs_within(entry_bytes(sizes.call, sizes.layout), FOLD_STEP * sizes.choice.chunk)
        )
        tasks += columns * steps + sizes.block_count
        fold_bytes = sizes.bytes_per_data_byte * table_bytes + max(
            FOLD_STEP * sizes.choice.chunk, block_bytes
        )
    else:
        tasks += columns * blocks
        fold_bytes = table_bytes + block_bytes
    return Cost(tasks, max(fold_bytes, 2 * table_bytes if join_count else 0))


def _partial_scatter(sizes: _Sizes) -> Cost:
    """Return the cost of folding each group of updates into a table, and of merging the tables.

    S and F are the numbers of columns; each column has E groups and B blocks of indices. The data
    have D blocks. The tasks are S B checks, F S E tables, the merged tables, F S finished columns,
    and D results.
    """
    shared, free = sizes.shared_columns, sizes.free_columns
    columns, is_divided = shared * free, sizes.layout.owners > 1
    call = sizes.call
    table_bytes = sizes.layout.column_elements * element_bytes(
        call.dtype, call.array_call.reduction
    )
    merges, tables_left = 0, len(sizes.entry_runs)
    while tables_left > 1:
        tables_left = -(-tables_left // MERGED)
        merges += tables_left
    pieces = columns * (len(sizes.entry_runs) + merges)
    checks = sizes.check_count * (shared * len(sizes.layout.entry_counts()) + 1)
    return Cost(
        task_count=1 + checks + pieces + sizes.block_count + (2 * columns if is_divided else 0),
        piece_count=pieces,
        sent_bytes=pieces * table_bytes,
        task_bytes=max(
            (MERGED + 1) * table_bytes,
            table_bytes + sizes.largest_group * (sizes.row_bytes + sizes.entry_index_bytes),
        ),
    )


_GATHER_COSTS = for_gathers(
    {
        Strategy.BLOCKWISE: _whole_columns,
        Strategy.BROADCAST: _whole_columns,
        Strategy.TASKS: _routed_gather,
        Strategy.SHUFFLE: _routed_gather,
    }
)
_SCATTER_COSTS = for_scatters(
    {
        Strategy.BLOCKWISE: _whole_columns,
        Strategy.PARTIAL: _partial_scatter,
        Strategy.BROADCAST: _broadcast_scatter,
        Strategy.TASKS: _routed_scatter,
        Strategy.SHUFFLE: _routed_scatter,
    }
)
