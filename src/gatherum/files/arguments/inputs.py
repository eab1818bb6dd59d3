"""The opened operands of a call, with the values that every kind of output needs."""

import copy
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatherum._arguments.conversion import as_narrow, is_integer_zero
from gatherum._model.dtypes import Extension
from gatherum._model.modes import FILLING
from gatherum._model.operators import OPERATORS
from gatherum._plans.plans import apply, plan
from gatherum.files.durable.build import Build
from gatherum.files.durable.context import Context
from gatherum.files.durable.stores import ScatterTarget
from gatherum.files.formats.dtypes import is_added, is_bytes, named_bytes
from gatherum.files.formats.storage import FlatStorage, Source
from gatherum.files.resources.resources import Resources
from gatherum.files.row_access.flat import FlatArray
from gatherum.files.row_access.row_requests import Requests
from gatherum.files.row_access.table import Block, Panel, RowTable, changed_rows, stretches, taken
from gatherum.files.strategies.file_scatter import FileScatter, Updates

__all__ = ["Inputs"]


class Inputs:
    """The opened operands of one call, by their roles."""

    def __init__(
        self, op: str, sources: dict[str, Source], attributes: dict[str, Any],
        fill_value: object, resources: Resources,
    ) -> None:  # fmt: skip
        self.op, self.sources, self.attributes = op, sources, attributes
        self.fill_value, self.resources = fill_value, resources
        self.row, self.budget, self.meter = OPERATORS[op], resources.budget, resources.meter
        self.table = sources["table"]
        if self.row.scatters and self.table.packing is not None:
            why = self.table.packing.why_not_changed
            raise ValueError(f"{op}: {self.table.location} cannot be written, {why}")
        if "updates" in sources:
            self._check_numbers()
        self._laid: dict[str, FlatArray] = {}
        self._panels: list[tuple[Panel, RowTable]] | None = None
        # raises the errors of the operator in memory
        described = [(source.shape, source.dtype) for source in self.sources.values()]
        call_plan = self._plan = plan(self.row.name, *described, **attributes)
        self.shape, self.call = call_plan.shape, call_plan.call

    def _check_numbers(self) -> None:
        """Read updates that are bytes as numbers of a dtype that NumPy and `.npy` files lack."""
        dtype, updates = self.table.dtype, self.sources["updates"]
        if is_added(dtype) and is_bytes(updates.dtype, dtype.itemsize):
            self.sources = self.sources | {"updates": replace(updates, dtype=dtype)}

    def again(self, sources: dict[str, Source], resources: Resources) -> "Inputs":
        """Return the same call on other indices of the same shape and dtype.

        Results that depend only on the table and these settings are reused.
        """
        other = copy.copy(self)
        other.sources, other.resources, other._laid = sources, resources, {}
        return other

    @property
    def entries(self) -> int:
        """The number of indices, or of index tuples."""
        shape = self.sources["indices"].shape
        return math.prod(shape[: len(shape) - self.row.tuples])

    def is_call(
        self, op: str, attributes: dict[str, Any], fill_value: object, indices: Source
    ) -> bool:
        """Return True if `again` can run this call with the given indices."""
        mine = self.sources["indices"]
        same = (mine.shape, mine.dtype) == (indices.shape, indices.dtype)
        return (
            same
            and self.op == op
            and self.fill_value is fill_value
            and self.attributes is attributes
        )

    def check_unchanged(self) -> None:
        """Raise OSError if an operand changed since it was opened."""
        for source in self.sources.values():
            source.opened.check_unchanged()

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Raise OSError instead of ValueError if an operand changed.

        The bytes of a changing file may be damaged.
        """
        try:
            yield
        except ValueError:
            self.check_unchanged()
            raise

    def panels(self, depth: int) -> list[tuple[Panel, RowTable]]:
        """Return the table's rows panel by panel. The leading `depth` dimensions are keyed."""
        if self._panels is None:
            layout = self.table.storage.layout(depth, self.budget)
            self._panels = [(panel, layout.rows(panel)) for panel in layout.panels()]
        return self._panels

    @cached_property
    def fill(self) -> NDArray[Any]:
        """The item that an invalid index returns, checked as in memory."""
        if self.attributes["mode"] not in FILLING or self.row.scatters:
            return np.zeros(1, self.table.dtype)
        beyond = np.array([[1]] if self.row.tuples else [1])
        name = named_bytes(self.table.dtype)
        if name is not None and not is_integer_zero(self.fill_value):
            number = Extension(name, self.table.dtype.itemsize)
            codes = as_narrow(self.op, "fill_value", self.fill_value, number).codes
            return codes.reshape(1).view(self.table.dtype)
        one = np.zeros(1, self.table.dtype)
        return apply(self.op, one, beyond, mode="fill", fill_value=self.fill_value)

    def flat(self, role: str) -> FlatArray:
        """Return an operand in C order. Copy it to a scratch file if it has another layout."""
        if role not in self._laid:
            source = self.sources[role]
            array = source.storage.flat(self.resources).array
            self._laid[role] = replace(array, dtype=source.dtype)
        return self._laid[role]

    def context(self, build: Build) -> Context:
        """Return the context of a run's steps."""
        attributes = self.attributes
        requests = Requests(
            self.op,
            self.table.shape,
            self.flat("indices"),
            mode=attributes["mode"],
            negative=attributes["negative"],
            axis=self.call.resolved_axis,
            resident=self.budget.slab,
            order=self.table.order,
        )
        self.meter.rows = requests.count
        self.meter.in_chunks = not isinstance(self.table.storage, FlatStorage)
        resources = {field.name: getattr(self.resources, field.name) for field in fields(Resources)}
        return Context(**resources, requests=requests, build=build)

    def scattered_whole(self) -> NDArray[Any] | None:
        """Return a scatter's result if the table is flat and everything fits in memory, else None.

        The operator in memory applies the updates in their order, without sorting. It checks every
        index before anything is written.
        """
        if not self._fits_whole():
            return None
        self.meter.chunks_touched += 1
        return self._scattered()[1]

    def _fits_whole(self) -> bool:
        """Return True if the table is flat, and all operands of a scatter fit in memory."""
        storage = self.table.storage
        if not isinstance(storage, FlatStorage) or storage.fortran:
            return False
        moved = sum(source.nbytes for source in self.sources.values()) + 2 * self.table.nbytes
        empty = not all(source.nbytes for source in self.sources.values())
        return not empty and moved + self._plan.scratch <= self.budget.whole

    def _scattered(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Read all operands. Return the table and the result of a scatter."""
        self.meter.expect(sum(source.nbytes for source in self.sources.values()))
        self.meter.expect(2 * self.table.nbytes)
        operands = [self._read_whole(role) for role in self.sources]
        result: NDArray[Any] = apply(self.op, *operands, **self.attributes)
        self.meter.advance(2 * self.table.nbytes)
        return operands[0], result

    def _read_whole(self, role: str) -> NDArray[Any]:
        array = self.flat(role)
        values = array.read(0, array.size).reshape(array.shape)
        self.meter.advance(array.nbytes)
        return values

    def scatter(self, context: Context, target: ScatterTarget, *, in_place: bool = False) -> None:
        """Write every changed block of the table to a target."""
        if context.build.replacing:
            return
        panels = tuple(target.layout.panels())
        if in_place and len(panels) == 1 and self._pays_whole():
            self._scatter_whole(context, panels[0], target)
        else:
            for panel in panels:
                self._scatter_panel(context, panel, target)

    def _pays_whole(self) -> bool:
        """Return True if reading the whole table is faster for a change in place.

        That is the case if the table is not larger than the other operands.
        """
        others = sum(source.nbytes for role, source in self.sources.items() if role != "table")
        return self.table.nbytes <= others and self._fits_whole()

    def _scatter_whole(self, context: Context, panel: Panel, target: ScatterTarget) -> None:
        """Scatter in memory, and store the rows whose bytes have changed."""
        part = {"in_memory": True}
        rows = target.rows(panel)
        if context.build.has(part):
            return
        table, result = self._scattered()
        stored, most = 0, max(1, self.budget.block // (rows.width * rows.dtype.itemsize))
        old, new = (array.reshape(rows.extent, rows.width) for array in (table, result))
        for start in range(0, rows.extent, most):
            changed = changed_rows(old[start : start + most], new[start : start + most])
            if changed.size:
                rows_of = taken(new[start : start + most], changed)
                block = Block(*stretches(start + changed), rows_of, rows_of)
                rows.write(block)
                stored += block.rows.nbytes
                self.meter.chunks_touched += block.first.size
        target.finish_part(part, stored)

    def _scatter_panel(self, context: Context, panel: Panel, target: ScatterTarget) -> None:
        requests, layout = context.requests, target.layout
        if requests.count == 0 or math.prod(layout.row_shape) == 0:
            requests.check(self.budget.entries)
            target.rows(panel)
            return
        updates = Updates(self.flat("updates"), requests.shape, layout.row_shape, panel)
        table, attributes = layout.rows(panel), self.call.attributes
        FileScatter(context, table, updates, target, attributes).run()
