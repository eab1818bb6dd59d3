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

from gatherum._functions.accumulator import element_bytes
from gatherum.dask.dask_call import DaskCall

from .layout import ChunkLayout, runs_within
from .strategy import (
    FOLD_STEP,
    MERGED,
    ROUTING,
    Strategy,
    entry_bytes,
    index_bytes,
    is_small,
    owner_bytes,
)


@dataclass(frozen=True)
class Cost:
    """The predicted cost of a call."""

    tasks: int  # without tasks that rechunk or create the operands
    task: int  # the maximum bytes of a task: inputs, result and scratch
    # The number of messages with rows from one task to another: at most one for every pair of
    # tasks.
    pieces: int = 0
    # The bytes of rows sent between tasks, and of the row numbers that request these rows.
    moved: int = 0
    routes: int = 0  # bytes of routes, which are kept until the rows have moved

    def __str__(self) -> str:
        return (
            f"{self.tasks:,} tasks; {self.moved:,} bytes move; a task holds up to "
            f"{self.task:,} bytes"
        )


def cost(call: DaskCall, layout: ChunkLayout, strategy: Strategy) -> Cost:
    """Return the cost of a call with a strategy."""
    sizes = _Sizes(call, layout, strategy)
    if strategy.name in ("tasks", "shuffle"):
        return _routed_scatter(sizes) if call.operator.scatters else _routed_gather(sizes)
    if call.operator.scatters and strategy.name == "broadcast":
        return _broadcast_scatter(sizes)
    if strategy.name == "partial":
        return _partial_scatter(sizes)
    return _whole_columns(sizes)


@dataclass(frozen=True)
class _Sizes:
    """The quantities in the formulas."""

    call: DaskCall
    layout: ChunkLayout
    strategy: Strategy

    @cached_property
    def shared(self) -> int:
        """The number of columns along the shared dimensions."""
        return prod(len(self.layout.indices[d]) for d in self.layout.roles.shared)

    @cached_property
    def free(self) -> int:
        """The number of columns along the free dimensions, for each block in `shared`."""
        return prod(len(self.layout.data[d]) for d in self.layout.roles.free)

    @cached_property
    def runs(self) -> list[range]:
        """The groups of blocks of entries that one task processes."""
        return runs_within(entry_bytes(self.call, self.layout), self.strategy.chunk)

    @cached_property
    def entries(self) -> int:
        """The number of entries in the largest group of `runs`."""
        counts = self.layout.entry_counts()
        return max(sum(counts[n] for n in run) for run in self.runs)

    @cached_property
    def row(self) -> int:
        """The bytes that move for one entry."""
        elements = prod(max(self.layout.data[d]) for d in self.layout.roles.free)
        return elements * self.call.dtype.itemsize

    @cached_property
    def index(self) -> int:
        """The bytes of the indices of one entry."""
        return len(self.call.dimensions.indexed) * self.call.call.indices.dtype.itemsize

    @cached_property
    def owners(self) -> list[int]:
        """The bytes of each group of owners that one task processes, for all `shared` columns."""
        weights, addressed = owner_bytes(self.call, self.layout), self.layout.addressed
        if addressed is None:
            return _sums(weights, self.strategy.chunk) * self.shared
        groups = []
        for members in addressed.values():
            groups += _sums(weights, self.strategy.chunk, members)
        return groups

    @cached_property
    def checks(self) -> int:
        """1 if a task checks that all entries are valid, else 0."""
        return int(self.call.refuses)

    @cached_property
    def indexed(self) -> int:
        """The number of entries."""
        array_call = self.call.call
        return prod(
            array_call.indices.shape[
                : len(array_call.indices.shape) - self.call.operator.takes_tuples
            ]
        )

    @cached_property
    def rows(self) -> int:
        """The bytes of a gather's result or a scatter's updates."""
        return prod(map(sum, self.layout.moved)) * self.call.dtype.itemsize

    @cached_property
    def data(self) -> int:
        """The bytes of the largest block of data."""
        return prod(max(sizes) for sizes in self.layout.data) * self.call.dtype.itemsize

    @cached_property
    def blocks(self) -> int:
        """The number of blocks of data."""
        return prod(map(len, self.layout.data))

    @cached_property
    def numbers(self) -> int:
        """The bytes of the row numbers of all entries, in the narrowest dtype."""
        keyed = prod(max(sizes) for sizes in self.layout.keyed)
        return self.indexed * _narrow(keyed)

    @cached_property
    def routes(self) -> int:
        """The bytes of the routes: row numbers, positions, and where each owner's entries start."""
        count = self.shared * len(self.runs)
        places = _narrow(-(-self.indexed // max(1, count)))
        return self.numbers + self.indexed * places + 8 * (self.layout.owners + 1) * count

    @property
    def routing(self) -> int:
        """The bytes that are needed to create the largest route."""
        return self.entries * (ROUTING + self.index)

    @cached_property
    def state(self) -> int:
        """The bytes that a fold needs for each byte of data, including the data and a copy."""
        attributes, dtype = self.call.call.attributes, self.call.dtype
        if dtype.itemsize and attributes.fold.needs_accumulator(dtype):
            return 1 + -(-element_bytes(dtype, attributes.reduction) // dtype.itemsize)
        return 2

    def pairs(self) -> int:
        """Return the number of pieces into which the rows of all columns are divided."""
        pairs = len(self.owners) * len(self.runs)
        return self.free * min(pairs, self.indexed)


def _sums(weights: Sequence[int], limit: int, members: Sequence[int] | None = None) -> list[int]:
    return [sum(weights[n] for n in run) for run in runs_within(weights, limit, members)]


def _narrow(count: int) -> int:
    return np.min_scalar_type(max(0, count - 1)).itemsize


def _routed_gather(z: _Sizes) -> Cost:
    """Return the cost of requesting rows by routes, reading them from owners, and merging them.

    S and F are the numbers of columns; each column has E groups of entries and T groups of owners.
    The tasks are S E routes (and S E that find invalid entries), F S T takes, and F S E merges. The
    strategy "tasks" adds S T E requests, unless all indices are small, and F S T E replies. The
    strategy "shuffle" adds S E requests, and merges only groups of several blocks.
    """
    runs, owners, blocks = len(z.runs), len(z.owners), len(z.layout.entry_counts())
    columns = z.shared * z.free
    routes, small = z.shared * runs, is_small(index_bytes(z.call))
    tasks = 2 + routes + z.checks * (routes + 1) + z.free * owners + columns * blocks
    taken, replied = max(z.owners, default=0), z.entries * z.row
    if z.strategy.name == "shuffle":
        barriers = z.shared if z.layout.addressed is None else _addressed(z.layout)
        tasks += z.shared + z.free * barriers + (z.shared if small else routes + z.shared)
        tasks += columns * sum(len(run) > 1 for run in z.runs)
        taken += z.strategy.chunk + replied  # the last piece may exceed the batch size
    else:
        tasks += columns * runs + z.free * owners * runs
        tasks += 0 if small else owners * runs
        taken += z.rows // max(1, z.free * owners)
    return Cost(
        tasks=tasks,
        pieces=z.pairs(),
        moved=z.rows + (0 if small else z.numbers * z.free),
        routes=z.routes,
        task=max(z.routing, taken, 2 * replied),
    )


def _addressed(layout: ChunkLayout) -> int:
    """Return the number of columns along the shared dimensions that have an entry."""
    return sum(map(bool, (layout.addressed or {}).values()))


def _routed_scatter(z: _Sizes) -> Cost:
    """Return the cost of routes that order updates by owner, and of owners that fold them.

    S and F are the numbers of columns; each column has E groups of entries and T groups of owners.
    The data have D blocks. There are S * E route tasks, F * S * E tasks that cut or send updates,
    and D result tasks. The strategy "tasks" adds F S T E pieces, and a fold for each step of each
    group of owners.
    """
    runs, owners, routes = len(z.runs), len(z.owners), z.shared * len(z.runs)
    tasks = 2 + routes + z.checks * (routes + 1) + z.blocks
    cut = 2 * z.entries * z.row
    if z.strategy.name == "shuffle":
        with_entries = z.shared if z.layout.addressed is None else _addressed(z.layout)
        tasks += z.free * with_entries * (runs + 1)
        peak = max(cut + z.strategy.chunk, z.state * z.data)
    else:
        weights = entry_bytes(z.call, z.layout)
        sums = [sum(weights[n] for n in run) for run in z.runs]
        steps = len(runs_within(sums, FOLD_STEP * z.strategy.chunk))
        tasks += z.free * (routes + owners * (runs + steps))
        step = max(z.entries * z.row, FOLD_STEP * z.strategy.chunk)
        peak = max(cut, z.state * max(z.owners, default=0) + step)
    return Cost(
        tasks=tasks,
        pieces=z.pairs(),
        moved=(0 if z.call.one_update else z.rows) + z.numbers * z.free,
        routes=z.routes,
        task=max(z.routing, peak),
    )


def _broadcast_scatter(z: _Sizes) -> Cost:
    """Return the cost of sending a route of all entries, and all updates, to every fold."""
    columns = z.shared * z.free
    tasks = 2 + z.shared + z.checks * (z.shared + 1) + columns + z.free * len(z.owners) + z.blocks
    updates = sum(z.layout.entry_counts()) * z.row
    taken = z.state * max(z.owners, default=0)
    return Cost(
        tasks=tasks,
        pieces=z.free * len(z.owners),
        routes=z.routes,
        task=max(sum(z.layout.entry_counts()) * (ROUTING + z.index), taken + updates, 2 * updates),
    )


def _whole_columns(z: _Sizes) -> Cost:
    """Return the cost if every block of indices uses all rows of its column, joined if needed.

    S and F are the numbers of columns; each column has B blocks of indices. The data have D blocks.
    The tasks of a gather are S B checks and F S B results. The tasks of a scatter are S B checks, a
    fold for each step in each column, and D results.
    """
    columns, blocks = z.shared * z.free, len(z.layout.entry_counts())
    table = z.layout.column_elements * z.call.dtype.itemsize
    gathered = columns if z.layout.owners > 1 else 0
    tasks = 1 + z.checks * (z.shared * blocks + 1) + gathered
    most = max(z.layout.entry_counts()) * (z.row + z.index)
    if z.call.operator.scatters:
        steps = len(runs_within(entry_bytes(z.call, z.layout), FOLD_STEP * z.strategy.chunk))
        tasks += columns * steps + z.blocks
        peak = z.state * table + max(FOLD_STEP * z.strategy.chunk, most)
    else:
        tasks += columns * blocks
        peak = table + most
    return Cost(tasks, max(peak, 2 * table if gathered else 0))


def _partial_scatter(z: _Sizes) -> Cost:
    """Return the cost of folding each group of updates into a table, and of merging the tables.

    S and F are the numbers of columns; each column has E groups and B blocks of indices. The data
    have D blocks. The tasks are S B checks, F S E tables, the merged tables, F S finished columns,
    and D results.
    """
    columns, several = z.shared * z.free, z.layout.owners > 1
    table = z.layout.column_elements * element_bytes(z.call.dtype, z.call.call.reduction)
    merges, left = 0, len(z.runs)
    while left > 1:
        left = -(-left // MERGED)
        merges += left
    pieces = columns * (len(z.runs) + merges)
    checks = z.checks * (z.shared * len(z.layout.entry_counts()) + 1)
    return Cost(
        tasks=1 + checks + pieces + z.blocks + (2 * columns if several else 0),
        pieces=pieces,
        moved=pieces * table,
        task=max((MERGED + 1) * table, table + z.entries * (z.row + z.index)),
    )
