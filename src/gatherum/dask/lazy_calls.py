"""Convert a call on Dask arrays to a lazy array. Its graph layer creates the tasks on demand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import dask.array as da
import numpy as np
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph, Layer

from gatherum._model.arrays import AnyArray
from gatherum._model.call import Attributes
from gatherum.dask.graph.tasks import Key, RechunkedOperand, Tasks
from gatherum.dask.planning.choice import Choice, choose
from gatherum.dask.planning.layout import ChunkLayout, Chunks

from .dask_call import DaskCall
from .gather_tasks import gather_tasks
from .operands import normalize
from .scatter_tasks import scatter_tasks


class CallLayer(Layer):  # type: ignore[misc]  # dask is not imported by type checkers
    """A call, its layout and the chosen strategy, which determine the tasks."""

    def __init__(
        self,
        name: str,
        token: str,
        call: DaskCall,
        layout: ChunkLayout,
        choice: Choice,
        sources: Sequence[RechunkedOperand],
    ) -> None:
        super().__init__()
        self.name, self.token, self.sources = name, token, tuple(sources)
        self.call, self.layout, self.choice = call, layout, choice
        self._tasks: dict[Any, Any] | None = None

    @property
    def chunks(self) -> Chunks:
        """The chunks of the result."""
        return self.layout.data if self.call.operator.scatters else self.layout.moved

    def get_output_keys(self) -> set[Key]:
        """Return the keys of the result's blocks."""
        return set(product((self.name,), *(range(len(sizes)) for sizes in self.chunks)))

    def is_materialized(self) -> bool:
        """Return True if the tasks have been created."""
        return self._tasks is not None

    @property
    def _by_key(self) -> dict[Any, Any]:
        if self._tasks is None:
            tasks = Tasks(self)
            (scatter_tasks if self.call.operator.scatters else gather_tasks)(tasks)
            self._tasks = tasks.by_key
        return self._tasks

    def __getitem__(self, key: Key) -> Any:
        return self._by_key[key]

    def __iter__(self) -> Iterator[Key]:
        return iter(self._by_key)

    def __len__(self) -> int:
        return len(self._by_key)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_tasks": None}


def lazy_call(
    attributes: Attributes, data: Any, indices: Any, updates: Any, fill_value: object
) -> AnyArray:
    """Check and lower a call, and return its lazy array."""
    call, arrays, layout = normalize(attributes, data, indices, updates, fill_value)
    choice = choose(call, layout)
    sources = [RechunkedOperand(*operand) for operand in zip(arrays, layout.operands, strict=True)]
    token = tokenize(repr(call), [array.name for array in arrays], layout, choice)
    name = f"{attributes.op}-{token}"
    layer = CallLayer(name, token, call, layout, choice, sources)
    graph = HighLevelGraph.from_collections(name, layer, dependencies=arrays)
    meta = np.empty((0,) * len(layer.chunks), call.dtype)
    return da.Array(graph, name, layer.chunks, meta=meta)
