"""Run file commands on a cluster, as tasks that write Zarr arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from dask.delayed import delayed

from gatherum._model.errors import Shape
from gatherum._model.operators import OPERATORS
from gatherum.dask.planning.choice import chunk_bytes
from gatherum.dask.planning.layout import grid_coordinates
from gatherum.dask.shuffling.staging import Compute, Staging, discarded_when_failed, write
from gatherum.files.arguments.outputs import check_target
from gatherum.files.durable.build import Build
from gatherum.files.formats import locate, locate_output
from gatherum.files.formats.format import Location
from gatherum.files.formats.zarr.arrays import ZarrArray
from gatherum.files.resources.stats import Meter
from gatherum.files.row_access.boxes import chunk_boxes
from gatherum.files.row_access.table import largest_box

from . import errors as dask_errors
from .adapter import FUNCTIONS
from .files import BUDGET, check_unpacked, finished_file, lazy_file
from .operands import KNOWN_MOST
from .store_changes import change, changes


@dataclass(frozen=True)
class ClusterCall:
    """A call whose operands and output are given by paths."""

    op: str
    table: str
    # The indices (a path or an array) and, for a scatter, the path of the updates.
    operands: tuple[Any, ...]
    out: str  # a Zarr directory; the table if it is changed in place
    attributes: dict[str, Any]  # keyword arguments of the operator
    in_place: bool = False
    resume: bool = False  # whether to complete a killed run in place
    decode: bool = True

    def __post_init__(self) -> None:
        out = locate_output(self.out)
        if not out.format.writes_in_parallel:
            raise dask_errors.no_zarr_output(self.op, out)
        out.format.require()

    def run(self, compute: Compute) -> int:
        """Run the call, and return the number of entries of its indices."""
        out = locate_output(self.out)
        roles = ("indices", "updates")
        operands = [
            _operand(value, role, self.decode)
            for value, role in zip(self.operands, roles, strict=False)
        ]
        if self.in_place:
            arguments = self.op, out.resolved, *operands, self.attributes
            change(*arguments, resume=self.resume, decode=self.decode, compute=compute)
        else:
            self._write(out, operands, compute)
        shape = operands[0].shape
        return prod(shape[: len(shape) - OPERATORS[self.op].takes_tuples])

    def _write(self, out: Location, operands: Sequence[Any], compute: Compute) -> None:
        paths = {"table": self.table, "indices": self.operands[0]}
        paths |= dict(zip(["updates"], self.operands[1:], strict=False))
        located = {role: locate(path) for role, path in paths.items() if isinstance(path, str)}
        check_target(self.op, out, located, meter := Meter())
        stored, table = finished_file(self.table, decode=self.decode), None
        if OPERATORS[self.op].scatters:
            check_unpacked(self.op, stored)
        data = lazy_file(stored, "auto")
        if OPERATORS[self.op].scatters and located["table"].format is out.format:
            table = ZarrArray(stored.path, meter, BUDGET)
            data = lazy_file(stored, table.chunks)
        result = FUNCTIONS.named(self.op)(data, *operands, **self.attributes)
        if table is None:
            out.format.checked_header(out, result.shape, result.dtype)
        build = Build(
            out.resolved,
            {"operator": self.op, "call": result.name, "in_place": False},
            resume=False,
            check_inputs=_check_nothing if table is None else table.check_unchanged,
            meter=meter,
            staged=True,
        )
        with discarded_when_failed(build, resumable=False):
            staging = Staging(build)
            if table is None:
                chunks = staging.like(stored.path, result.shape, result.dtype)
                tasks = _writes(staging.folder, chunks, result)
            else:
                staging.copy(table, whole=True)
                tasks = changes(staging.folder, table, stored, result)
            staging.fill(tasks, compute)
            build.replace()


def _operand(value: Any, role: str, decode: bool) -> Any:
    """Return an operand as an array. A few indices are read, to find chunks without entries."""
    if not isinstance(value, str):
        return value
    stored = finished_file(value, role, decode=decode)
    if prod(stored.shape) <= KNOWN_MOST and stored.dtype.kind in "iu":
        return stored.read(tuple(slice(0, n) for n in stored.shape))
    return lazy_file(stored, "auto")


def _check_nothing() -> None:
    """Do nothing, because the tasks check whether a file has changed."""


def _writes(folder: str, chunks: Shape, result: Any) -> list[Any]:
    """Return the tasks that write a result. No two tasks write to the same chunk."""
    if result.size == 0:
        return [result]  # computing it checks its indices
    sizes = largest_box(
        result.shape, max(result.dtype.itemsize, 1), chunk_bytes(), least_extents=chunks
    )
    rechunked = result.rechunk(sizes, method="tasks")
    blocks, boxes = rechunked.to_delayed(), chunk_boxes(result.shape, sizes)
    return [
        delayed(write)(folder, box, blocks[coordinates])
        for coordinates, box in zip(grid_coordinates(rechunked.chunks), boxes, strict=True)
    ]
