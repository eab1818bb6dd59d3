"""Lookups: many gathers from one open table."""

import threading
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from gatherum.files.arguments.inputs import Inputs
from gatherum.files.arguments.operands import Operand, find_operand, open_all
from gatherum.files.arguments.receivers import Receiver
from gatherum.files.arguments.results import gathered
from gatherum.files.formats.format import Location
from gatherum.files.formats.storage import FlatStorage, Source
from gatherum.files.resources.resources import Resources

__all__ = ["Lookups"]


class Lookups:
    """Calls on one opened table; threads may share it."""

    def __init__(self, table: Source, resources: Resources) -> None:
        self.table, self.resources = table, resources
        # Only one call at a time can use a reader of chunks.
        flat = isinstance(table.storage, FlatStorage)
        self._turn: AbstractContextManager[object] = nullcontext() if flat else threading.RLock()
        self._last: Inputs | None = None

    def gather(
        self, op: str, indices: Operand, attributes: dict[str, Any], fill_value: object,
        out: object = None,
    ) -> tuple[NDArray[Any], int]:  # fmt: skip
        """Run one of the three gathers. Return the result and the number of indices or tuples.

        The result is written to `out` if given.
        """
        with self._turn, ExitStack() as stack:  # the call closes the files that it opens
            own = replace(self.resources, at_end=stack.callback)
            where = find_operand("indices", indices, op)
            if isinstance(where, Location):
                where.require()
            sources = {"table": self.table, **open_all({"indices": where}, own)}
            last = self._last
            if last is not None and last.is_call(op, attributes, fill_value, sources["indices"]):
                inputs = last.again(sources, own)
            else:
                inputs = Inputs(op, sources, attributes, fill_value, own)
            self._last = inputs
            if out is None:
                return gathered(inputs), inputs.entries
            receiver = Receiver(op, out, inputs.shape, self.table.dtype)
            receiver.check_apart(self.table.location, where)
            return gathered(inputs, receiver.array), inputs.entries
