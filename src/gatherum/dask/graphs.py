"""The tasks of a call, made when Dask asks for them: building an array makes none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from math import prod
from typing import Any, TypeAlias

import dask.array as da
from dask.highlevelgraph import HighLevelGraph, Layer
from dask.task_spec import Alias, DataNode, List, Task, TaskRef

from . import work
from .call import Call
from .entries import find_invalid, refuse_invalid, route
from .layout import Chunks, Layout, Place, groups
from .ways import SMALL_BYTES, Way

Key: TypeAlias = tuple[str | int, ...]
Ref: TypeAlias = Any  # a TaskRef


class Source:
    """An operand by its name and chunks, rechunked where the tasks are made."""

    def __init__(self, array: Any, chunks: Chunks) -> None:
        self.name, self.given, self.dtype, self.chunks = array.name, array.chunks, array.dtype, chunks

    def blocks(self, tasks: dict[Any, Any]) -> Callable[[Place], Ref]:
        """Return what refers to a block in the chunks that are wanted; tasks that bring them there
        are added.
        """
        name = self.name
        if self.given != self.chunks:
            shape = tuple(map(sum, self.chunks))
            if 0 in shape:  # which Dask does not always rechunk
                wanted = da.empty(shape, chunks=self.chunks, dtype=self.dtype)
            else:
                none = HighLevelGraph({self.name: {}}, {self.name: set()})
                given = da.Array(none, self.name, self.given, dtype=self.dtype)
                wanted = given.rechunk(self.chunks, method="tasks")
            tasks.update(dict(wanted.dask))
            name = wanted.name
        return lambda at: TaskRef((name, *at))


class Calls(Layer):  # type: ignore[misc]  # dask is not imported by type checkers
    """The layer of a call: what it needs to make its tasks, and no task before they are asked for."""

    def __init__(
        self, name: str, token: str, call: Call, layout: Layout, way: Way, sources: Sequence[Source]
    ) -> None:
        super().__init__()
        self.name, self.token, self.call, self.layout, self.way = name, token, call, layout, way
        self.sources = tuple(sources)
        self._tasks: dict[Any, Any] | None = None

    @property
    def chunks(self) -> Chunks:
        """The chunks of the result."""
        return self.layout.data if self.call.operator.scatters else self.layout.moved

    def get_output_keys(self) -> set[Key]:
        """Return the keys of the result's blocks."""
        return set(product((self.name,), *(range(len(sizes)) for sizes in self.chunks)))

    def is_materialized(self) -> bool:
        """Whether the tasks have been made."""
        return self._tasks is not None

    @property
    def _made(self) -> dict[Any, Any]:
        if self._tasks is None:
            self._tasks = Build(self).run()
        return self._tasks

    def __getitem__(self, key: Key) -> Any:
        return self._made[key]

    def __iter__(self) -> Iterator[Key]:
        return iter(self._made)

    def __len__(self) -> int:
        return len(self._made)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_tasks": None}


class Build:
    """The tasks of one call."""

    def __init__(self, layer: Calls) -> None:
        self.name, self.token = layer.name, layer.token
        self.layout, self.way, self.operator = layer.layout, layer.way, layer.call.operator
        self.tasks: dict[Any, Any] = {}
        self.data, self.indices, *updates = (each.blocks(self.tasks) for each in layer.sources)
        self.updates = updates[0] if updates else None
        self.refuses = layer.call.refuses
        self.call = self._node("call", layer.call)
        self.keyed = self._node("chunks", layer.layout.keyed)
        self.entries = layer.layout.entry_places()
        self.owners = layer.layout.keyed_places()
        self.item = max(layer.call.dtype.itemsize, 1)
        self.index_bytes = prod(layer.call.signature.indices.shape) * 8

    def run(self) -> dict[Any, Any]:
        """Return the tasks."""
        if self.operator.scatters:
            self._scatter()
        else:
            self._gather()
        return self.tasks

    def _gather(self) -> None:
        if self.way.name == "tasks":
            self._gather_by_routes()
            return
        checked = self._checked()
        for shared in self.layout.shared_places():
            for free in self.layout.free_places():
                table = self._table(shared, free)
                for entry in self.entries:
                    indices = self.indices(self.layout.indices_at(shared, entry))
                    at = self.layout.moved_at(shared, free, entry)
                    self._output(at, work.gather_block, self.call, checked, table, indices)

    def _table(self, shared: Place, free: Place) -> Ref:
        blocks = [self.data(self.layout.data_at(shared, free, owner)) for owner in self.owners]
        if len(blocks) == 1:
            return blocks[0]
        grid = tuple(len(sizes) for sizes in self.layout.keyed)
        dims = self.layout.roles.keyed
        return self._task("table", (*shared, *free), work.assemble, grid, dims, List(*blocks))

    def _gather_by_routes(self) -> None:
        layout = self.layout
        owners = groups([n * self.item for n in layout.owner_weights()], self.way.chunk)
        entries = groups([n * self.item for n in layout.entry_weights()], self.way.chunk)
        routes = self._routes(entries)
        checked = self._checked_routes(routes)
        whole = self.index_bytes <= SMALL_BYTES
        for shared in layout.shared_places():
            ways = [routes[(*shared, n)] for n in range(len(entries))]
            for free in layout.free_places():
                at = (*shared, *free)
                taken = []
                for number, run in enumerate(owners):
                    key = (*at, number)
                    blocks = List(*(self.data(layout.data_at(shared, free, self.owners[n])) for n in run))
                    if whole:
                        given = work.take_whole, self.call, checked, blocks, run.start, List(*ways)
                    else:
                        given = work.take, self.call, checked, blocks, self._parts(shared, number, run, ways)
                    taken.append(self._task("take", key, *given))
                for number, run in enumerate(entries):
                    replies = [
                        self._task("reply", (*at, n, number), list.__getitem__, rows, number)
                        for n, rows in enumerate(taken)
                    ]
                    places = [layout.moved_at(shared, free, self.entries[n]) for n in run]
                    shapes = [layout.moved_shape(place) for place in places]
                    given = self.call, ways[number], shapes, owners, List(*replies)
                    merged = self._task("merge", (*at, number), work.merge, *given)
                    for n, place in enumerate(places):
                        self._output(place, list.__getitem__, merged, n)

    def _parts(self, shared: Place, number: int, run: range, ways: Sequence[Ref]) -> Any:
        """Return what a run of owners is asked for by each route; columns share it."""
        found = []
        for n, way in enumerate(ways):
            key = (*shared, number, n)
            found.append(self._once("part", key, work.part_of, way, run.start, run.stop))
        return List(*found)

    def _scatter(self) -> None:
        layout = self.layout
        reached = {shared: None for shared in layout.shared_places()}
        if self.way.name == "blockwise":
            self._fold_blocks()
        else:
            self._fold_by_routes()
        for at in product(*(range(len(sizes)) for sizes in layout.data)):
            if tuple(at[d] for d in layout.roles.shared) not in reached:
                self.tasks[(self.name, *at)] = Alias((self.name, *at), self.data(at).key)

    def _fold_blocks(self) -> None:
        """Fold into blocks that hold all rows of their columns."""
        layout, checked = self.layout, self._checked()
        steps = groups([n * self.item for n in layout.entry_weights()], self._step_bytes())
        for shared in layout.shared_places():
            for free in layout.free_places():
                target = layout.data_at(shared, free, self.owners[0])
                held = self.data(target)
                for number, step in enumerate(steps):
                    given = [layout.moved_at(shared, free, self.entries[n]) for n in step]
                    held = self._task(
                        "fold", (*target, number), work.fold_block, self.call, checked, held,
                        List(*(self.indices(layout.indices_at(shared, self.entries[n])) for n in step)),
                        List(*(self._update(at) for at in given)),
                    )  # fmt: skip
                self._output(target, work.finished_block, held)

    def _fold_by_routes(self) -> None:
        layout, whole = self.layout, self.way.name == "broadcast"
        weights = [n * self.item for n in layout.entry_weights()]
        owners = groups([n * self.item for n in layout.owner_weights()], self.way.chunk)
        entries = [range(len(weights))] if whole else groups(weights, self.way.chunk)
        steps = groups([sum(weights[n] for n in run) for run in entries], self._step_bytes())
        routes = self._routes(entries)
        checked = self._checked_routes(routes)
        for shared in layout.shared_places():
            ways = [routes[(*shared, n)] for n in range(len(entries))]
            for free in layout.free_places():
                at = (*shared, *free)
                values = [
                    self._cut(shared, free, number, run, ways[number], checked)
                    for number, run in enumerate(entries)
                ]
                for number, run in enumerate(owners):
                    places = [layout.data_at(shared, free, self.owners[n]) for n in run]
                    held: Any = List(*(self.data(place) for place in places))
                    key = (*at, number)
                    if whole:
                        given = self.call, checked, held, run.start, ways[0], values[0]
                        held = self._task("fold", (*key, 0), work.fold_whole, *given)
                    for step, members in enumerate([] if whole else steps):
                        parts = [
                            self._task(
                                "part", (*key, n), work.values_of, self.call, ways[n], values[n],
                                run.start, run.stop,
                            )
                            for n in members
                        ]  # fmt: skip
                        given = self.call, checked, held, List(*parts)
                        held = self._task("fold", (*key, step), work.fold_parts, *given)
                    for n, place in enumerate(places):
                        shape = tuple(s[p] for s, p in zip(layout.data, place, strict=True))
                        self._output(place, work.finished, held, n, shape)

    def _step_bytes(self) -> int:
        """Return how many bytes of updates one step of a fold takes, however they fall."""
        return 2 * self.way.chunk

    def _cut(
        self, shared: Place, free: Place, number: int, run: range, way: Ref, checked: Ref
    ) -> Ref:
        places = [self.layout.moved_at(shared, free, self.entries[n]) for n in run]
        shapes = [self.layout.moved_shape(place) for place in places]
        blocks = List(*(self._update(place) for place in places))
        return self._task(
            "cut", (*shared, *free, number), work.cut, self.call, checked, way, shapes, blocks
        )

    def _update(self, moved: Place) -> Ref:
        assert self.updates is not None
        return self.updates(self.layout.updates_at(moved))

    def _routes(self, entries: Sequence[range]) -> dict[Place, Ref]:
        """Add the tasks that order entries by the owners of their rows."""
        found = {}
        for shared in self.layout.shared_places():
            shape = self.layout.column_shape(shared)
            for number, run in enumerate(entries):
                places = [self.layout.indices_at(shared, self.entries[n]) for n in run]
                origins = [self.layout.origin(place) for place in places]
                blocks = List(*(self.indices(place) for place in places))
                given = self.call, self.keyed, shape, origins, blocks
                found[(*shared, number)] = self._task("route", (*shared, number), route, *given)
        return found

    def _checked_routes(self, routes: dict[Place, Ref]) -> Ref:
        """Return what waits until all entries are known to be valid."""
        if not self.refuses:
            return None
        found = [self._task("refused", at, work.refused_by, way) for at, way in routes.items()]
        return self._task("check", (), refuse_invalid, self.call, List(*found))

    def _checked(self) -> Ref:
        if not self.refuses:
            return None
        found = []
        for shared in self.layout.shared_places():
            shape = self.layout.column_shape(shared)
            for entry in self.entries:
                at = self.layout.indices_at(shared, entry)
                given = self.call, shape, self.layout.origin(at), self.indices(at)
                found.append(self._task("examine", at, find_invalid, *given))
        return self._task("check", (), refuse_invalid, self.call, List(*found))

    def _node(self, step: str, value: object) -> Ref:
        key = f"{self.operator.name}-{step}-{self.token}"
        self.tasks[key] = DataNode(key, value)
        return TaskRef(key)

    def _task(self, step: str, at: Place, function: Callable[..., Any], *arguments: Any) -> Ref:
        key = (f"{self.operator.name}-{step}-{self.token}", *at)
        self.tasks[key] = Task(key, function, *arguments)
        return TaskRef(key)

    def _once(self, step: str, at: Place, function: Callable[..., Any], *arguments: Any) -> Ref:
        key = (f"{self.operator.name}-{step}-{self.token}", *at)
        return TaskRef(key) if key in self.tasks else self._task(step, at, function, *arguments)

    def _output(self, at: Place, function: Callable[..., Any], *arguments: Any) -> None:
        key = (self.name, *at)
        self.tasks[key] = Task(key, function, *arguments)
