"""Add the tasks of a scatter: they order updates by owner and fold them.

An owner is a block of the data. A route orders the updates of adjacent blocks by owner. Each owner
folds its updates in the order of the entries, in steps that fit in the memory planned for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

from gatherum.dask.graph.tasks import Ref, Tasks
from gatherum.dask.planning.choice import FOLD_STEP, MERGED
from gatherum.dask.planning.layout import Coordinates, runs_within
from gatherum.dask.planning.partials import cut_out, finish_whole, fold_apart, merged
from gatherum.dask.planning.strategies import Strategy, for_scatters

from . import private
from .graph import block_kernels


def scatter_tasks(tasks: Tasks) -> None:
    """Add the tasks of a scatter."""
    checked = _ADDERS[tasks.choice.strategy](tasks)
    for coordinates in product(*(range(len(sizes)) for sizes in tasks.layout.data)):
        if (key := (tasks.name, *coordinates)) in tasks.by_key:
            continue
        block = tasks.data(coordinates)  # no entry addresses it
        if checked is None:
            tasks.by_key[key] = private.Alias(key, block.key)
        else:
            tasks.result(coordinates, block_kernels.kept, checked, block)


def _fold_by_shuffle(tasks: Tasks) -> Ref | None:
    from gatherum.dask.shuffling.shuffle import scatter_by_shuffle

    return scatter_by_shuffle(tasks)


def _fold_blocks(tasks: Tasks) -> Ref:
    """Fold into blocks that have all rows of their columns; return the task of the check."""
    layout, checked = tasks.layout, tasks.check()
    steps = runs_within(tasks.entry_bytes, FOLD_STEP * tasks.choice.chunk)
    for shared in layout.shared_coordinates():
        where = [tasks.indices(layout.indices_at(shared, entry)) for entry in tasks.entries]
        for free in layout.free_coordinates():
            target = layout.data_at(shared, free, tasks.owners[0])
            state = tasks.data(target)
            for i, step in enumerate(steps):
                indices = private.List(*where[step.start : step.stop])
                arguments = tasks.call, checked, state, indices, tasks.updates(shared, free, step)
                state = tasks.add("fold", (*target, i), block_kernels.fold_block, *arguments)
            tasks.result(target, block_kernels.BlockFold.finish, state)
    return checked


def _fold_apart(tasks: Tasks) -> Ref:
    """Fold each group of updates into a separate table, and merge a few tables at a time."""
    layout, checked = tasks.layout, tasks.check()
    for shared in layout.shared_coordinates():
        where = [tasks.indices(layout.indices_at(shared, entry)) for entry in tasks.entries]
        for free in layout.free_coordinates():
            column, shape = (*shared, *free), layout.table_shape(shared, free)
            parts = []
            for run_number, run in enumerate(tasks.entry_runs()):
                indices = private.List(*where[run.start : run.stop])
                arguments = tasks.call, shape, indices, tasks.updates(shared, free, run)
                parts.append(tasks.add("apart", (*column, run_number), fold_apart, *arguments))
            total = _merged(tasks, column, parts)
            arguments = tasks.call, checked, tasks.table(shared, free), total
            blocks_at = tasks.owned(shared, free, range(len(tasks.owners)))
            if len(blocks_at) == 1:
                tasks.result(blocks_at[0], finish_whole, *arguments)
                continue
            whole = tasks.add("whole", column, finish_whole, *arguments)
            for coordinates in blocks_at:
                starts, size = layout.within_column(coordinates), layout.data_shape(coordinates)
                tasks.result(coordinates, cut_out, whole, starts, size)
    return checked


def _merged(tasks: Tasks, coordinates: Coordinates, parts: Sequence[Ref]) -> Ref:
    """Merge adjacent tables of updates until one is left."""
    level = 0
    while len(parts) > 1:
        steps = range(0, len(parts), MERGED)
        few = [private.List(*parts[n : n + MERGED]) for n in steps]
        parts = [
            tasks.add("merged", (*coordinates, level, n), merged, tasks.call, some)
            for n, some in enumerate(few)
        ]
        level += 1
    return parts[0]


def _fold_by_routes(tasks: Tasks) -> Ref:
    whole = tasks.choice.strategy is Strategy.BROADCAST
    entries = [range(len(tasks.entries))] if whole else tasks.entry_runs()
    routes = tasks.routes(entries)
    checked = tasks.check_routes(routes)
    for shared in tasks.layout.shared_coordinates():
        column_routes = routes[shared]
        for free in tasks.layout.free_coordinates():
            values = [
                _cut(tasks, (shared, free), n, run, column_routes[n], checked)
                for n, run in enumerate(entries)
            ]
            for run_number, run in enumerate(tasks.owner_runs(shared)):
                blocks_at = tasks.owned(shared, free, run)
                state: Any = tasks.blocks(blocks_at)
                run_coordinates = (*shared, *free, run_number)
                if whole:
                    arguments = tasks.call, checked, state, run.start, column_routes[0], values[0]
                    state = tasks.add(
                        "fold", (*run_coordinates, 0), block_kernels.fold_whole, *arguments
                    )
                else:
                    state = _fold_steps(
                        tasks, run_coordinates, state, run, entries, column_routes, values, checked
                    )
                for n, coordinates in enumerate(blocks_at):
                    shape = tasks.layout.data_shape(coordinates)
                    tasks.result(coordinates, block_kernels.finished_of, state, n, shape)
    return checked


def _fold_steps(
    tasks: Tasks,
    coordinates: Coordinates,
    state: Any,
    run: range,
    entries: Sequence[range],
    routes: Sequence[Ref],
    values: Sequence[Ref],
    checked: Ref,
) -> Ref:
    """Fold the updates of all routes into adjacent owners, a few routes at a time."""
    sizes = [sum(tasks.entry_bytes[n] for n in run) for run in entries]
    for step, members in enumerate(runs_within(sizes, FOLD_STEP * tasks.choice.chunk)):
        parts = []
        for n in members:
            cut = routes[n], values[n], run.start, run.stop
            parts.append(
                tasks.add("part", (*coordinates, n), block_kernels.values_of, tasks.call, *cut)
            )
        arguments = tasks.call, checked, state, private.List(*parts)
        state = tasks.add("fold", (*coordinates, step), block_kernels.fold_parts, *arguments)
    return state


def _cut(
    tasks: Tasks,
    column: tuple[Coordinates, Coordinates],
    run_number: int,
    run: range,
    route: Ref,
    checked: Ref,
) -> Ref:
    """Return the updates of a run of blocks in the order of their route."""
    coordinates = (*column[0], *column[1], run_number)
    arguments = tasks.call, checked, route, tasks.shapes(*column, run), tasks.updates(*column, run)
    return tasks.add("cut", coordinates, block_kernels.routed_updates, *arguments)


_ADDERS = for_scatters(
    {
        Strategy.BLOCKWISE: _fold_blocks,
        Strategy.PARTIAL: _fold_apart,
        Strategy.BROADCAST: _fold_by_routes,
        Strategy.TASKS: _fold_by_routes,
        Strategy.SHUFFLE: _fold_by_shuffle,
    }
)
