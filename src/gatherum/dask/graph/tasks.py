"""Build a call's tasks: keys, blocks, and the steps that all operators share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeAlias

import dask.array as da
from dask.highlevelgraph import HighLevelGraph

from gatherum._model.errors import Shape
from gatherum.dask import private
from gatherum.dask.planning.choice import entry_bytes, index_bytes, owner_bytes
from gatherum.dask.planning.layout import Chunks, Coordinates, runs_within
from gatherum.dask.planning.routing import find_invalid, make_route, refuse_invalid

from . import block_kernels

if TYPE_CHECKING:
    from gatherum.dask.lazy_calls import CallLayer

Key: TypeAlias = tuple[str | int, ...]
Ref: TypeAlias = Any  # a TaskRef, or None


class RechunkedOperand:
    """An operand, identified by name and chunks. It is rechunked when the tasks are created."""

    def __init__(self, array: Any, chunks: Chunks) -> None:
        self.name, self.original_chunks, self.dtype = array.name, array.chunks, array.dtype
        self.chunks = chunks

    def blocks(self, tasks: dict[Any, Any]) -> Callable[[Coordinates], Ref]:
        """Add the tasks that rechunk the array; return a function from coordinates to blocks."""
        name = self.name
        if self.original_chunks != self.chunks:
            shape = tuple(map(sum, self.chunks))
            if 0 in shape:  # Dask cannot rechunk some of these
                rechunked = da.empty(shape, chunks=self.chunks, dtype=self.dtype)
            else:
                empty_graph = HighLevelGraph({self.name: {}}, {self.name: set()})
                array = da.Array(empty_graph, self.name, self.original_chunks, dtype=self.dtype)
                rechunked = array.rechunk(self.chunks, method="tasks")
            tasks.update(dict(rechunked.dask))
            name = rechunked.name
        if self.dtype.isnative and self.dtype.names is None:
            return lambda coordinates: private.TaskRef((name, *coordinates))

        def declared(coordinates: Coordinates) -> Ref:
            key = (f"declared-{name}", *coordinates)
            tasks[key] = private.Task(
                key, block_kernels.as_declared, self.dtype, private.TaskRef((name, *coordinates))
            )
            return private.TaskRef(key)

        return declared


class Tasks:
    """The tasks of one call, while they are created."""

    def __init__(self, layer: CallLayer) -> None:
        call, layout, choice = layer.call, layer.layout, layer.choice
        self.name, self.token = layer.name, layer.token
        self.operator, self.layout, self.choice = call.operator, layout, choice
        self.by_key: dict[Any, Any] = {}
        self.data, self.indices, *updates = (source.blocks(self.by_key) for source in layer.sources)
        self._updates = updates[0] if updates else None
        self.raises_if_invalid = call.raises_if_invalid
        self.call = self.add_shared_value("call", call)
        self.entries = layout.entry_coordinates()
        self.owners = layout.keyed_coordinates()
        self.owner_bytes, self.entry_bytes = owner_bytes(call, layout), entry_bytes(call, layout)
        self.index_bytes = index_bytes(call)

    def add(
        self, step: str, coordinates: Coordinates, function: Callable[..., Any], *arguments: Any
    ) -> Ref:
        """Add a task unless it exists, and return a reference to it."""
        key = (f"{self.operator.name}-{step}-{self.token}", *coordinates)
        if key not in self.by_key:
            self.by_key[key] = private.Task(key, function, *arguments)
        return private.TaskRef(key)

    def add_result(
        self, coordinates: Coordinates, function: Callable[..., Any], *arguments: Any
    ) -> None:
        """Add the task of a block of the result."""
        key = (self.name, *coordinates)
        self.by_key[key] = private.Task(key, function, *arguments)

    def entry_runs(self) -> list[range]:
        """Return runs of adjacent blocks of entries that one task processes together."""
        return runs_within(self.entry_bytes, self.choice.chunk)

    def owner_runs(self, shared: Coordinates) -> list[range]:
        """Return runs of adjacent blocks of a column's data that one task processes together.

        Blocks that are known to contain no entries are skipped.
        """
        addressed = self.layout.addressed
        members = None if addressed is None else addressed[shared]
        return runs_within(self.owner_bytes, self.choice.chunk, members)

    def data_coordinates(
        self, shared: Coordinates, free: Coordinates, run: range
    ) -> list[Coordinates]:
        """Return the coordinates of consecutive data blocks in a column."""
        return [self.layout.data_at(shared, free, self.owners[n]) for n in run]

    def moved_coordinates(
        self, shared: Coordinates, free: Coordinates, run: range
    ) -> list[Coordinates]:
        """Return the coordinates of a run of blocks of moved elements."""
        return [self.layout.moved_at(shared, free, self.entries[n]) for n in run]

    def updates(self, shared: Coordinates, free: Coordinates, run: range) -> Any:
        """Return references to the blocks of updates for a range of blocks of moved elements."""
        assert self._updates is not None
        blocks_at = map(self.layout.updates_at, self.moved_coordinates(shared, free, run))
        return private.List(*map(self._updates, blocks_at))

    def shapes(self, shared: Coordinates, free: Coordinates, run: range) -> list[Shape]:
        """Return the shapes of a run of blocks of moved elements."""
        return [
            self.layout.moved_shape(coordinates)
            for coordinates in self.moved_coordinates(shared, free, run)
        ]

    def blocks(self, blocks_at: Sequence[Coordinates]) -> Any:
        """Return references to blocks of the data."""
        return private.List(*(self.data(coordinates) for coordinates in blocks_at))

    def table(self, shared: Coordinates, free: Coordinates) -> Ref:
        """Return a reference to the array that joins all blocks of a column."""
        blocks_at = self.data_coordinates(shared, free, range(len(self.owners)))
        if len(blocks_at) == 1:
            return self.data(blocks_at[0])
        grid = tuple(len(sizes) for sizes in self.layout.keyed)
        arguments = grid, self.layout.roles.indexed, self.blocks(blocks_at)
        return self.add("table", (*shared, *free), block_kernels.assemble, *arguments)

    def routes(self, entries: Sequence[range]) -> dict[Coordinates, list[Ref]]:
        """Add the tasks that order entries by the owners of their rows.

        For each block along the shared dimensions, return references to these tasks.
        """
        columns: dict[Coordinates, list[Ref]] = {}
        keyed = self.add_shared_value("chunks", self.layout.keyed)
        for shared in self.layout.shared_coordinates():
            shape, columns[shared] = self.layout.column_shape(shared), []
            for run_number, run in enumerate(entries):
                blocks_at = [self.layout.indices_at(shared, self.entries[n]) for n in run]
                origins = [self.layout.origin(coordinates) for coordinates in blocks_at]
                blocks = private.List(*(self.indices(coordinates) for coordinates in blocks_at))
                arguments = self.call, keyed, shape, origins, blocks
                columns[shared].append(
                    self.add("route", (*shared, run_number), make_route, *arguments)
                )
        return columns

    def check_routes(self, routes: dict[Coordinates, list[Ref]]) -> Ref:
        """Return the task that checks that all entries are valid, or None if none is needed."""
        if not self.raises_if_invalid:
            return None
        invalid = [
            self.add("refused", (*shared, n), attrgetter("invalid"), route)
            for shared, column in routes.items()
            for n, route in enumerate(column)
        ]
        return self.add("check", (), refuse_invalid, self.call, private.List(*invalid))

    def check(self) -> Ref:
        """Return the task that checks that all entries are valid, for a call without routes."""
        if not self.raises_if_invalid:
            return None
        invalid = []
        for shared in self.layout.shared_coordinates():
            shape = self.layout.column_shape(shared)
            for entry in self.entries:
                coordinates = self.layout.indices_at(shared, entry)
                arguments = (
                    self.call,
                    shape,
                    self.layout.origin(coordinates),
                    self.indices(coordinates),
                )
                invalid.append(self.add("examine", coordinates, find_invalid, *arguments))
        return self.add("check", (), refuse_invalid, self.call, private.List(*invalid))

    def add_shared_value(self, step: str, value: object) -> Ref:
        """Add a value that many tasks share, and return a reference to it."""
        key = f"{self.operator.name}-{step}-{self.token}"
        self.by_key[key] = private.DataNode(key, value)
        return private.TaskRef(key)
