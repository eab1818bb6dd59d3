"""A job is a call with opened operands, its plan and its requests. Strategies run jobs."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from gatherum._arguments.conversion import is_integer_zero
from gatherum._arguments.weak_values import as_narrow
from gatherum._model.dtypes import Extension
from gatherum._model.modes import FILLING
from gatherum._model.named_bytes import named_bytes
from gatherum._model.operators import OPERATORS
from gatherum._plans.plans import apply, plan
from gatherum.files import errors
from gatherum.files.durable.sinks import Sink
from gatherum.files.formats.dtypes import is_added, is_bytes
from gatherum.files.formats.storage import FlatStorage, Source
from gatherum.files.resources.resources import Budget, Resources
from gatherum.files.resources.stats import Meter
from gatherum.files.row_access.flat import FlatArray
from gatherum.files.row_access.row_requests import Requests
from gatherum.files.row_access.table import Panel, RowTable

S_contra = TypeVar("S_contra", bound=Sink, contravariant=True)


class Strategy(Protocol[S_contra]):
    """A method to run a job, or one panel of a job. All strategies write the same bytes."""

    def run(self, job: Job, sink: S_contra) -> None:
        """Check the indices of a job before the first write, and write its rows to a sink."""


class IndexCheck:
    """The strategy of a job that moves no elements."""

    def run(self, job: Job, sink: Sink) -> None:
        """Check every index."""
        job.check_indices()
        sink.prepare()


@dataclass
class _Run:
    """The opened operands of one run, its resources, and values that depend on both.

    These values are computed on first use.
    """

    sources: dict[str, Source]
    resources: Resources
    flat_operands: dict[str, FlatArray] = field(default_factory=dict)
    requests: Requests | None = None


class Job:
    """A call with opened operands, its plan and its requests."""

    def __init__(
        self, op: str, sources: dict[str, Source], attributes: dict[str, Any],
        fill_value: object, resources: Resources,
    ) -> None:  # fmt: skip
        self.op, self.attributes, self.fill_value = op, attributes, fill_value
        self.operator, self.table = OPERATORS[op], sources["table"]
        if self.operator.scatters and self.table.packing is not None:
            why = self.table.packing.why_not_changed
            raise errors.not_writable(op, self.table.location, why)
        self._run = _Run(self._as_numbers(sources), resources)
        self._panels: list[tuple[Panel, RowTable]] | None = None
        # raises the errors of the operator in memory
        described = [(source.shape, source.dtype) for source in self.sources.values()]
        call_plan = self._plan = plan(self.operator.name, *described, **attributes)
        self.shape, self.call = call_plan.shape, call_plan.call

    def _as_numbers(self, sources: dict[str, Source]) -> dict[str, Source]:
        """Return byte updates as numbers of a dtype that NumPy and `.npy` files lack."""
        dtype, updates = self.table.dtype, sources.get("updates")
        if updates is None or not (is_added(dtype) and is_bytes(updates.dtype, dtype.itemsize)):
            return sources
        return sources | {"updates": replace(updates, dtype=dtype)}

    def with_indices(self, sources: dict[str, Source], resources: Resources) -> Job:
        """Return the same call on other indices of the same shape and dtype.

        Results that depend only on the table and these settings are reused.
        """
        job = copy.copy(self)
        job._run = _Run(sources, resources)
        return job

    @property
    def sources(self) -> dict[str, Source]:
        """The opened operands."""
        return self._run.sources

    @property
    def resources(self) -> Resources:
        """The resources of the run."""
        return self._run.resources

    @property
    def budget(self) -> Budget:
        """The memory of the run."""
        return self._run.resources.budget

    @property
    def meter(self) -> Meter:
        """The meter of the run."""
        return self._run.resources.meter

    @property
    def entries(self) -> int:
        """The number of indices, or of index tuples."""
        shape = self.sources["indices"].shape
        return math.prod(shape[: len(shape) - self.operator.takes_tuples])

    def is_call(
        self, op: str, attributes: dict[str, Any], fill_value: object, indices: Source
    ) -> bool:
        """Return True if `with_indices` can run this call with the given indices."""
        own_indices = self.sources["indices"]
        have_same_spec = (own_indices.shape, own_indices.dtype) == (indices.shape, indices.dtype)
        return (
            have_same_spec
            and self.op == op
            and self.fill_value is fill_value
            and self.attributes is attributes
        )

    @property
    def requests(self) -> Requests:
        """The requests, one for each index or tuple. A request has a row number."""
        run = self._run
        if run.requests is None:
            attributes = self.attributes
            run.requests = Requests(
                self.op,
                self.table.shape,
                self.flat("indices"),
                mode=attributes["mode"],
                negative=attributes["negative"],
                axis=self.call.resolved_axis,
                resident=self.budget.slab,
                order=self.table.order,
            )
            self.meter.rows = run.requests.count
            self.meter.in_chunks = not isinstance(self.table.storage, FlatStorage)
        return run.requests

    def check_indices(self) -> None:
        """Check every index, even if no request uses it. Raise IndexError."""
        self.requests.check(self.budget.entries)

    def panels(self) -> list[tuple[Panel, RowTable]]:
        """Return the table's rows panel by panel."""
        if self._panels is None:
            layout = self.table.storage.layout(self.requests.depth, self.budget)
            self._panels = [(panel, layout.rows(panel)) for panel in layout.panels()]
        return self._panels

    @cached_property
    def fill(self) -> NDArray[Any]:
        """The item that an invalid index returns, checked as in memory."""
        if self.attributes["mode"] not in FILLING or self.operator.scatters:
            return np.zeros(1, self.table.dtype)
        beyond = np.array([[1]] if self.operator.takes_tuples else [1])
        name = named_bytes(self.table.dtype)
        if name is not None and not is_integer_zero(self.fill_value):
            extension = Extension(name, self.table.dtype.itemsize)
            codes = as_narrow(self.op, "fill_value", self.fill_value, extension).codes
            return codes.reshape(1).view(self.table.dtype)
        single = np.zeros(1, self.table.dtype)
        return apply(self.op, single, beyond, mode="fill", fill_value=self.fill_value)

    def flat(self, role: str) -> FlatArray:
        """Return an operand in C order. Copy it to a scratch file if it has another layout."""
        flat_operands = self._run.flat_operands
        if role not in flat_operands:
            source = self.sources[role]
            array = source.storage.flat(self.resources).array
            flat_operands[role] = replace(array, dtype=source.dtype)
        return flat_operands[role]

    def read_whole(self, role: str) -> NDArray[Any]:
        """Return all elements of an operand."""
        array = self.flat(role)
        values = array.read(0, array.size).reshape(array.shape)
        self.meter.advance(array.nbytes)
        return values

    @property
    def fits_whole(self) -> bool:
        """Whether the table is flat, and all operands of a scatter fit in memory."""
        storage = self.table.storage
        if not isinstance(storage, FlatStorage) or storage.fortran:
            return False
        nbytes = sum(source.nbytes for source in self.sources.values()) + 2 * self.table.nbytes
        is_empty = not all(source.nbytes for source in self.sources.values())
        return not is_empty and nbytes + self._plan.scratch <= self.budget.whole_output

    @property
    def pays_whole(self) -> bool:
        """Whether it is faster to read the complete table for a change in place.

        That is the case if the table is not larger than the other operands.
        """
        others = sum(source.nbytes for role, source in self.sources.items() if role != "table")
        return self.table.nbytes <= others and self.fits_whole
