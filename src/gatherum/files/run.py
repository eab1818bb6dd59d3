"""One call on files from its arguments to its statistics: open, check, work, put in place."""

import hashlib
import math
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatherum.files.budget import Budget
from gatherum.files.build import Build
from gatherum.files.disk import FlatArray
from gatherum.files.gathering import Gather
from gatherum.files.interrupt import uninterrupted
from gatherum.files.journal import Record, check_readable
from gatherum.files.location import Location
from gatherum.files.marker import is_marked, mark
from gatherum.files.outputs import CREATE, FlatOutput, check_target
from gatherum.files.readers import Source, open_source
from gatherum.files.requests import IndexRule, Requests
from gatherum.files.rows import Panel
from gatherum.files.scattering import BlockStore, Scatter, Updates
from gatherum.files.stats import Meter, Progress, Stats
from gatherum.files.stores import (
    FlatCopy,
    FlatPatch,
    PatchLog,
    ZarrStore,
    lay_chunks,
    lay_patch,
    writable,
)
from gatherum.files.tables import Layout
from gatherum.files.zarrays import ZarrArray, import_bounded
from gatherum.operators import OPERATORS
from gatherum.plan import apply, plan

__all__ = ["Call"]

Path = str | os.PathLike[str]


@dataclass(frozen=True)
class Call:
    """What a user asked for; `run` does it."""

    op: str
    operands: dict[str, Path]
    out: Path
    attributes: dict[str, Any]
    fill_value: object = 0
    memory: str | int = "1GiB"
    spill_dir: Path | None = None
    resume: bool = False
    in_place: bool = False
    progress: Progress | None = None

    def run(self) -> Stats:
        """Run the call.

        Returns
        -------
        Stats
            What was done.
        """
        with ExitStack() as stack:
            return Session(self, stack).run()


class Session:
    """The opened inputs of a call, and the steps of its run."""

    def __init__(self, call: Call, stack: ExitStack) -> None:
        self.call, self.op, self.stack = call, call.op, stack
        self.meter = Meter(call.progress)
        self.budget = Budget.parse(call.memory)
        self.out = Location.parse(call.out)
        target = self.out.resolved
        self.spill_dir = os.fspath(call.spill_dir or os.path.dirname(target))
        if not os.path.isdir(self.spill_dir):
            raise FileNotFoundError(f"{self.spill_dir}: there is no such directory")
        operands = {role: Location.parse(path) for role, path in call.operands.items()}
        if "zarr" in {self.out.kind, *(location.kind for location in operands.values())}:
            import_bounded()  # what is not installed is said before any work
        if not call.in_place:
            check_target(self.op, self.out, operands, self.meter)
        self.sources = {role: self._open(role, at) for role, at in operands.items()}
        self.table = self.sources["table"]
        self._laid: dict[str, FlatArray] = {}
        self.shape = self._checked_shape()
        if call.in_place:
            self._check_in_place()

    def _open(self, role: str, location: Location) -> Source:
        if not (role == "table" and self.call.in_place):
            check_readable(location.resolved)
        source = open_source(location, self.meter, self.spill_dir, self.budget)
        self.stack.callback(source.close)
        self.budget.check_item(location, source.dtype.itemsize)
        return source

    def _checked_shape(self) -> tuple[int, ...]:
        """Return the result's shape, or raise what the operator in memory would raise."""
        described = [(source.shape, source.dtype) for source in self.sources.values()]
        return plan(OPERATORS[self.op].name, *described, **self.call.attributes).shape

    def _check_in_place(self) -> None:
        location = self.table.location
        if (self.out.resolved, self.out.member) != (location.resolved, location.member):
            raise ValueError(
                f"{self.op}: in place the output is the table, {location}, got {self.out}"
            )
        if location.kind == "npz":
            raise ValueError(f"{self.op}: {location} cannot be written, .npz files are read only")
        for role in ("indices", "updates"):
            if self.sources[role].location.resolved == location.resolved:
                raise ValueError(f"{self.op}: the {role} lie in the table's file, {location.file}")

    def run(self) -> Stats:
        """Do the work."""
        fingerprint = self._fingerprint()
        if self._is_completed(fingerprint):
            return self.meter.stats()
        build = Build(
            self.out.resolved,
            fingerprint,
            resume=self.call.resume,
            check_inputs=self._check_inputs,
            meter=self.meter,
            staged=not self.call.in_place and self.out.kind == "zarr" and not self._copies_zarr,
        )
        with removed_when_refused(build):
            if build.replacing and not self.call.in_place:
                build.replace()
                return self.meter.stats()
            self.requests = self._requests()
            self.meter.rows = self.requests.count
            if "updates" not in self.sources:
                self._gather(build)
            elif self.call.in_place:
                self._scatter_in_place(build)
            elif self._copies_zarr:
                self._scatter_zarr(build)
            else:
                self._scatter_flat(build)
        return self.meter.stats()

    def _is_completed(self, fingerprint: Record) -> bool:
        """Whether an in-place run that is to be resumed had come to its end."""
        return (
            self.call.in_place
            and self.call.resume
            and not os.path.lexists(self.out.resolved + ".partial.journal")
            and is_marked(self.out.resolved, fingerprint, fingerprint["table_state"])
        )

    @property
    def _copies_zarr(self) -> bool:
        """Whether the output is a Zarr array with the table's own chunks."""
        return (
            "updates" in self.sources
            and self.out.kind == "zarr"
            and isinstance(self.table.content, ZarrArray)
        )

    def _check_inputs(self) -> None:
        for source in self.sources.values():
            source.check_unchanged()

    def _fingerprint(self) -> Record:
        states = {role: source.state() for role, source in self.sources.items()}
        return {
            "operator": self.op,
            "attributes": {k: repr(v) for k, v in sorted(self.call.attributes.items())},
            "fill value": hashlib.sha256(self._fill().tobytes()).hexdigest(),
            "memory": self.budget.total,
            "output": [self.out.resolved, self.out.member],
            "in_place": self.call.in_place,
            "table_state": states["table"].pop("file"),
            **states,
        }

    def _fill(self) -> NDArray[Any]:
        """Return the item that an invalid index gives, checked as in memory."""
        if self.call.attributes["mode"] not in ("fill", "drop") or "updates" in self.sources:
            return np.zeros(1, self.table.dtype)
        beyond = np.array([[1]] if OPERATORS[self.op].tuples else [1])
        one = np.zeros(1, self.table.dtype)
        return apply(self.op, one, beyond, mode="fill", fill_value=self.call.fill_value)

    def _flat(self, role: str) -> FlatArray:
        """Return an operand in C order, laid out in a scratch file if it is not."""
        if role in self._laid:
            return self._laid[role]
        laid = self.sources[role].flat(self.spill_dir, self.budget.window)
        if laid is not self.sources[role]:
            self.stack.callback(laid.close)
        if isinstance(laid.content, ZarrArray):
            raise TypeError(f"{laid.location}: was not laid out flat")
        self._laid[role] = laid.content
        return laid.content

    def _requests(self) -> Requests:
        attributes = self.call.attributes
        rank = len(self.table.shape)
        axis = attributes.get("axis", 0) % rank if rank else 0
        return Requests(
            self.op,
            self.table.shape,
            self._flat("indices"),
            IndexRule(self.op, attributes["mode"], attributes["negative"]),
            axis=axis,
            batch_dims=attributes.get("batch_dims", 0),
            resident=self.budget.slab,
        )

    def _layout(self, table: Source) -> Layout:
        return Layout(table, self.requests.depth, self.budget)

    # ------------------------------------------------------------------ gather

    def _gather(self, build: Build) -> None:
        version = self.table.content.format if isinstance(self.table.content, ZarrArray) else 3
        output = FlatOutput(self.out, self.shape, self.table.dtype, version=version)
        array = output.begin(build)
        if array.size == 0:
            self.requests.check(self.budget.entries)
        else:
            layout = self._layout(self.table)
            for panel in layout.panels():
                Gather(
                    layout.rows(panel),
                    self.requests,
                    array,
                    panel,
                    fill=self._fill(),
                    budget=self.budget,
                    build=build,
                    spill_dir=self.spill_dir,
                    meter=self.meter,
                ).run()
        output.end(build, array, self.budget.block)

    # ----------------------------------------------------------------- scatter

    def _scatter_flat(self, build: Build) -> None:
        table = self.table
        stays = self.out.kind == "npy" and isinstance(table.content, FlatArray)
        if not stays:
            table = table.flat(self.spill_dir, self.budget.window)
            self.stack.callback(table.close)
        output = FlatOutput(self.out, self.shape, table.dtype, fortran=table.fortran)
        array = output.begin(build)
        if not isinstance(table.content, FlatArray):
            raise TypeError(f"{table.location}: was not laid out flat")
        layout = self._layout(table)
        for panel in layout.panels():
            rows = layout.rows_of_copy(array.file, array.offset, panel)
            store = FlatCopy(build, table.content, array, rows, self.budget.block)
            self._scatter(build, layout, panel, store)
        output.end(build, array, self.budget.block)

    def _scatter_zarr(self, build: Build) -> None:
        layout = self._layout(self.table)
        self._scatter_chunks(build, layout, whole=True)
        build.replace()

    def _scatter_chunks(self, build: Build, layout: Layout, *, whole: bool) -> None:
        if not isinstance(self.table.content, ZarrArray):
            raise TypeError(f"{self.table.location}: no Zarr array")
        for panel in layout.panels():
            store = ZarrStore(
                build,
                self.table.content,
                lambda copy, panel=panel: layout.rows_of_array(copy, panel),  # type: ignore[misc]
                whole=whole,
            )
            self._scatter(build, layout, panel, store)

    def _scatter(self, build: Build, layout: Layout, panel: Panel, store: BlockStore) -> None:
        if build.replacing:
            return
        if self.requests.count == 0 or math.prod(layout.row_shape) == 0:
            self.requests.check(self.budget.entries)
            store.prepare()
            return
        updates = Updates(self._flat("updates"), self.requests.shape, layout.row_shape, panel)
        Scatter(
            layout.rows(panel),
            self.requests,
            updates,
            store,
            reduction=self.call.attributes["reduction"],
            include_self=self.call.attributes["include_self"],
            budget=self.budget,
            build=build,
            spill_dir=self.spill_dir,
            meter=self.meter,
        ).run()

    # ---------------------------------------------------------------- in place

    def _scatter_in_place(self, build: Build) -> None:
        layout = self._layout(self.table)
        content = self.table.content
        if isinstance(content, ZarrArray):
            self._scatter_chunks(build, layout, whole=False)
            build.seal()
            with uninterrupted():
                lay_chunks(build.partial, content.path)
                mark(self.out.resolved, self._fingerprint(), [content.tree()])
                build.clear()
            return
        with writable(content, self.meter) as target:
            log = PatchLog(build.partial, self.meter, CREATE)
            build.use(log, 0)
            for panel in layout.panels():
                rows = layout.rows_of_copy(log, content.offset, panel)
                self._scatter(build, layout, panel, FlatPatch(build, log, rows))
            build.seal()
            with uninterrupted():
                lay_patch(log, target, self.budget.block)
                mark(self.out.resolved, self._fingerprint(), target.file.fresh_state())
                build.clear()


@contextmanager
def removed_when_refused(build: Build) -> Iterator[None]:
    """Remove the partial output when the call is refused; keep it for a resume otherwise."""
    try:
        yield
    except (ValueError, TypeError, IndexError):
        if not build.replacing:
            build.clear()
        raise
    finally:
        build.close()
