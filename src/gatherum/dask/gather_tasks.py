"""Add the tasks of a gather, which order entries, read rows, and write the rows to the result.

An owner is a block of the data. A route orders the entries of a block of indices by the owners of
the rows that they address. Each owner reads the rows that are requested, and each block of the
result arranges them in the order of its entries. Adjacent blocks share a task if they are small in
total.
"""

from __future__ import annotations

from gatherum.dask.graph.tasks import Ref, Tasks
from gatherum.dask.planning.choice import is_small
from gatherum.dask.planning.layout import Coordinates
from gatherum.dask.planning.routing import ChunkRoute
from gatherum.dask.planning.strategies import Strategy, for_gathers

from . import private
from .graph import block_kernels


def gather_tasks(tasks: Tasks) -> None:
    """Add the tasks of a gather."""
    _ADDERS[tasks.choice.strategy](tasks)


def _by_shuffle(tasks: Tasks) -> None:
    from gatherum.dask.shuffling.shuffle import gather_by_shuffle

    gather_by_shuffle(tasks, is_small(tasks.index_bytes))


def _by_columns(tasks: Tasks) -> None:
    """Read the rows of each block of indices from the complete table of its column."""
    layout, checked = tasks.layout, tasks.check()
    for shared in layout.shared_coordinates():
        for free in layout.free_coordinates():
            table = tasks.table(shared, free)
            for entry in tasks.entries:
                indices = tasks.indices(layout.indices_at(shared, entry))
                coordinates = layout.moved_at(shared, free, entry)
                tasks.add_result(
                    coordinates, block_kernels.gather_block, tasks.call, checked, table, indices
                )


def _by_routes(tasks: Tasks) -> None:
    entries = tasks.entry_runs()
    routes = tasks.routes(entries)
    checked = tasks.check_routes(routes)
    for shared in tasks.layout.shared_coordinates():
        owners = tasks.owner_runs(shared)
        column_routes = routes[shared]
        for free in tasks.layout.free_coordinates():
            column = (*shared, *free)
            rows_of_owners = [
                _add_reads(tasks, (shared, free), n, run, column_routes, checked)
                for n, run in enumerate(owners)
            ]
            for entry_run_number, run in enumerate(entries):
                replies = [
                    tasks.add(
                        "reply",
                        (*column, n, entry_run_number),
                        list.__getitem__,
                        rows,
                        entry_run_number,
                    )
                    for n, rows in enumerate(rows_of_owners)
                ]
                route, shapes = column_routes[entry_run_number], tasks.shapes(shared, free, run)
                arguments = tasks.call, checked, route, shapes, owners, private.List(*replies)
                merged = tasks.add(
                    "merge", (*column, entry_run_number), block_kernels.merge_rows, *arguments
                )
                for n, coordinates in enumerate(tasks.moved_coordinates(shared, free, run)):
                    tasks.add_result(coordinates, list.__getitem__, merged, n)


def _add_reads(
    tasks: Tasks,
    column: tuple[Coordinates, Coordinates],
    run_number: int,
    run: range,
    routes: list[Ref],
    checked: Ref,
) -> Ref:
    """Return the rows of adjacent owners, as a list with the rows for each route."""
    shared, free = column
    coordinates = (*shared, *free, run_number)
    blocks = tasks.blocks(tasks.data_coordinates(shared, free, run))
    if is_small(tasks.index_bytes):  # every owner receives all routes
        arguments = tasks.call, checked, blocks, run.start, private.List(*routes)
        return tasks.add("take", coordinates, block_kernels.read_routed_rows, *arguments)
    parts = [
        tasks.add("part", (*shared, run_number, n), ChunkRoute.part, route, run.start, run.stop)
        for n, route in enumerate(routes)
    ]
    return tasks.add(
        "take",
        coordinates,
        block_kernels.read_requested_rows,
        tasks.call,
        checked,
        blocks,
        private.List(*parts),
    )


_ADDERS = for_gathers(
    {
        Strategy.BLOCKWISE: _by_columns,
        Strategy.BROADCAST: _by_columns,
        Strategy.TASKS: _by_routes,
        Strategy.SHUFFLE: _by_shuffle,
    }
)
