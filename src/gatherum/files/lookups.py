"""Lookups: many gathers from one open table."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from gatherum.files.arguments.operands import Operand, find_operand, open_all
from gatherum.files.arguments.receivers import Receiver
from gatherum.files.durable.sinks import ArraySink
from gatherum.files.formats.format import Location
from gatherum.files.formats.storage import FlatStorage, Source
from gatherum.files.job import Job
from gatherum.files.resources.resources import Resources
from gatherum.files.strategies.file_gather import IntoArray


class Lookups:
    """Calls on one opened table; threads may share it."""

    def __init__(self, table: Source, resources: Resources) -> None:
        self.table, self.resources = table, resources
        # Only one call at a time can use a reader of chunks.
        flat = isinstance(table.storage, FlatStorage)
        self._reader: AbstractContextManager[object] = nullcontext() if flat else threading.RLock()
        self._last: Job | None = None

    def gather(
        self, op: str, indices: Operand, attributes: dict[str, Any], fill_value: object,
        out: object = None,
    ) -> tuple[NDArray[Any], int]:  # fmt: skip
        """Run one of the three gathers. Return the result and the number of indices or tuples.

        The result is written to `out` if given.
        """
        with self._reader, ExitStack() as stack:  # the call closes the files that it opens
            own_resources = replace(self.resources, at_end=stack.callback)
            where = find_operand("indices", indices, op)
            if isinstance(where, Location):
                where.require()
            sources = open_all({"indices": where}, own_resources, table=self.table)
            last = self._last
            if last is not None and last.is_call(op, attributes, fill_value, sources["indices"]):
                job = last.with_indices(sources, own_resources)
            else:
                job = Job(op, sources, attributes, fill_value, own_resources)
            self._last = job
            array = None
            if out is not None:
                receiver = Receiver(op, out, job.shape, self.table.dtype)
                receiver.check_apart(self.table.location, where)
                array = receiver.array
            sink = ArraySink(own_resources, job.shape, self.table.dtype, array)
            IntoArray().run(job, sink)
            return sink.commit(), job.entries
