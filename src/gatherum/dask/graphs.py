"""A call's layer in Dask's graph makes its tasks on demand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

from dask.highlevelgraph import Layer

from .dask_call import DaskCall
from .gather_tasks import gather_tasks
from .layout import ChunkLayout, Chunks
from .scatter_tasks import scatter_tasks
from .strategy import Strategy
from .tasks import Key, RechunkedOperand, Tasks


class CallLayer(Layer):  # type: ignore[misc]  # dask is not imported by type checkers
    """A call, its layout and its strategy, from which the tasks are made."""

    def __init__(
        self,
        name: str,
        token: str,
        call: DaskCall,
        layout: ChunkLayout,
        strategy: Strategy,
        sources: Sequence[RechunkedOperand],
    ) -> None:
        super().__init__()
        self.name, self.token, self.call, self.layout, self.strategy = (
            name,
            token,
            call,
            layout,
            strategy,
        )
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
            tasks = Tasks(
                self.name, self.token, self.call, self.layout, self.strategy, self.sources
            )
            make = scatter_tasks if self.call.operator.scatters else gather_tasks
            make(tasks)
            self._tasks = tasks.made
        return self._tasks

    def __getitem__(self, key: Key) -> Any:
        return self._made[key]

    def __iter__(self) -> Iterator[Key]:
        return iter(self._made)

    def __len__(self) -> int:
        return len(self._made)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_tasks": None}
