"""Add the tasks of a scatter, which order updates by owner and fold them.

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
from gatherum.dask.planning.partials import copy_block, finish_column, fold_to_table, merge_tables
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
            tasks.add_result(coordinates, block_kernels.unchanged_block, checked, block)


def _fold_by_shuffle(tasks: Tasks) -> Ref | None:
    from gatherum.dask.shuffling.shuffle import scatter_by_shuffle

    return scatter_by_shuffle(tasks)


def _fold_blocks(tasks: Tasks) -> Ref:
    """Fold into blocks that contain all rows of their columns; return the task of the check."""
    layout, checked = tasks.layout, tasks.check()
    steps = runs_within(tasks.entry_bytes, FOLD_STEP * tasks.choice.chunk)
    for shared in layout.shared_coordinates():
        indices_of_entries = [
            tasks.indices(layout.indices_at(shared, entry)) for entry in tasks.entries
        ]
        for free in layout.free_coordinates():
            target = layout.data_at(shared, free, tasks.owners[0])
            folded = tasks.data(target)
            for i, step in enumerate(steps):
                indices = private.List(*indices_of_entries[step.start : step.stop])
                arguments = tasks.call, checked, folded, indices, tasks.updates(shared, free, step)
                folded = tasks.add("fold", (*target, i), block_kernels.fold_block, *arguments)
            tasks.add_result(target, block_kernels.BlockFold.finish, folded)
    return checked


def _fold_to_tables(tasks: Tasks) -> Ref:
    """Fold each group of updates into a separate table, and merge a few tables at a time."""
    layout, checked = tasks.layout, tasks.check()
    for shared in layout.shared_coordinates():
        indices_of_entries = [
            tasks.indices(layout.indices_at(shared, entry)) for entry in tasks.entries
        ]
        for free in layout.free_coordinates():
            column, shape = (*shared, *free), layout.table_shape(shared, free)
            tables = []
            for run_number, run in enumerate(tasks.entry_runs()):
                indices = private.List(*indices_of_entries[run.start : run.stop])
                arguments = tasks.call, shape, indices, tasks.updates(shared, free, run)
                tables.append(tasks.add("apart", (*column, run_number), fold_to_table, *arguments))
            merged_table = _add_merges(tasks, column, tables)
            arguments = tasks.call, checked, tasks.table(shared, free), merged_table
            blocks_at = tasks.data_coordinates(shared, free, range(len(tasks.owners)))
            if len(blocks_at) == 1:
                tasks.add_result(blocks_at[0], finish_column, *arguments)
                continue
            folded_column = tasks.add("whole", column, finish_column, *arguments)
            for coordinates in blocks_at:
                starts, size = layout.within_column(coordinates), layout.data_shape(coordinates)
                tasks.add_result(coordinates, copy_block, folded_column, starts, size)
    return checked


def _add_merges(tasks: Tasks, coordinates: Coordinates, tables: Sequence[Ref]) -> Ref:
    """Merge adjacent tables of updates until one is left."""
    level = 0
    while len(tables) > 1:
        steps = range(0, len(tables), MERGED)
        adjacent = [private.List(*tables[n : n + MERGED]) for n in steps]
        tables = [
            tasks.add("merged", (*coordinates, level, n), merge_tables, tasks.call, tables_to_merge)
            for n, tables_to_merge in enumerate(adjacent)
        ]
        level += 1
    return tables[0]


def _fold_by_routes(tasks: Tasks) -> Ref:
    is_broadcast = tasks.choice.strategy is Strategy.BROADCAST
    entries = [range(len(tasks.entries))] if is_broadcast else tasks.entry_runs()
    routes = tasks.routes(entries)
    checked = tasks.check_routes(routes)
    for shared in tasks.layout.shared_coordinates():
        column_routes = routes[shared]
        for free in tasks.layout.free_coordinates():
            values = [
                _add_routed_updates(tasks, (shared, free), n, run, column_routes[n], checked)
                for n, run in enumerate(entries)
            ]
            for run_number, run in enumerate(tasks.owner_runs(shared)):
                blocks_at = tasks.data_coordinates(shared, free, run)
                folded: Any = tasks.blocks(blocks_at)
                run_coordinates = (*shared, *free, run_number)
                if is_broadcast:
                    arguments = tasks.call, checked, folded, run.start, column_routes[0], values[0]
                    folded = tasks.add(
                        "fold", (*run_coordinates, 0), block_kernels.fold_routed_updates, *arguments
                    )
                else:
                    folded = _fold_steps(
                        tasks, run_coordinates, folded, run, entries, column_routes, values, checked
                    )
                for n, coordinates in enumerate(blocks_at):
                    shape = tasks.layout.data_shape(coordinates)
                    tasks.add_result(coordinates, block_kernels.finished_block, folded, n, shape)
    return checked


def _fold_steps(
    tasks: Tasks,
    coordinates: Coordinates,
    folded: Any,
    run: range,
    entries: Sequence[range],
    routes: Sequence[Ref],
    values: Sequence[Ref],
    checked: Ref,
) -> Ref:
    """Fold the updates of all routes into adjacent owners, a few routes at a time."""
    sizes = [sum(tasks.entry_bytes[n] for n in run) for run in entries]
    for step, members in enumerate(runs_within(sizes, FOLD_STEP * tasks.choice.chunk)):
        updates_of_routes = []
        for n in members:
            cut = routes[n], values[n], run.start, run.stop
            updates_of_routes.append(
                tasks.add(
                    "part", (*coordinates, n), block_kernels.updates_for_owners, tasks.call, *cut
                )
            )
        arguments = tasks.call, checked, folded, private.List(*updates_of_routes)
        folded = tasks.add("fold", (*coordinates, step), block_kernels.fold_updates, *arguments)
    return folded


def _add_routed_updates(
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
        Strategy.PARTIAL: _fold_to_tables,
        Strategy.BROADCAST: _fold_by_routes,
        Strategy.TASKS: _fold_by_routes,
        Strategy.SHUFFLE: _fold_by_shuffle,
    }
)
