"""One call on files from its arguments to its statistics: open, check, work, put in place."""

import hashlib
import math
import os
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatherum.files.budget import Budget
from gatherum.files.durable.build import Build
from gatherum.files.durable.context import Context
from gatherum.files.durable.interrupt import uninterrupted
from gatherum.files.durable.journal import Record, check_readable
from gatherum.files.durable.marker import is_marked, mark
from gatherum.files.durable.stores import BlockStore, Target
from gatherum.files.formats import locate
from gatherum.files.formats.format import Location, Opening
from gatherum.files.formats.storage import Source
from gatherum.files.gathering import Gather
from gatherum.files.requests import IndexRule, Requests
from gatherum.files.rows.flat import FlatArray
from gatherum.files.rows.table import Layout, Panel
from gatherum.files.scattering import Scatter, Updates
from gatherum.files.stats import Meter, Progress, Stats
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
        self.scatters = OPERATORS[call.op].scatters
        self.meter = Meter(call.progress)
        self.budget = Budget.parse(call.memory)
        self.out = locate(call.out)
        self.spill_dir = os.fspath(call.spill_dir or os.path.dirname(self.out.resolved))
        if not os.path.isdir(self.spill_dir):
            raise FileNotFoundError(f"{self.spill_dir}: there is no such directory")
        operands = {role: locate(path) for role, path in call.operands.items()}
        for location in (self.out, *operands.values()):
            location.format.require()  # what is not installed is said before any work
        if not call.in_place:
            check_target(self.op, self.out, operands, self.meter)
        self.opening = Opening(self.meter, self.budget, self.spill_dir, stack.callback)
        self.sources = {role: self._open(role, at) for role, at in operands.items()}
        self.table = self.sources["table"]
        self._laid: dict[str, FlatArray] = {}
        self.shape = self._checked_shape()
        if call.in_place:
            self._check_in_place(operands)

    def _open(self, role: str, location: Location) -> Source:
        if not (role == "table" and self.call.in_place):
            check_readable(location.resolved)
        source = location.format.open(location, self.opening)
        self.budget.check_item(location, source.dtype.itemsize)
        return source

    def _checked_shape(self) -> tuple[int, ...]:
        """Return the result's shape, or raise what the operator in memory would raise."""
        described = [(source.shape, source.dtype) for source in self.sources.values()]
        return plan(OPERATORS[self.op].name, *described, **self.call.attributes).shape

    def _check_in_place(self, operands: dict[str, Location]) -> None:
        location = operands["table"]
        if (self.out.resolved, self.out.member) != (location.resolved, location.member):
            raise ValueError(
                f"{self.op}: in place the output is the table, {location}, got {self.out}"
            )
        why = location.format.read_only or self.table.storage.cannot_change
        if why:
            raise ValueError(f"{self.op}: {location} cannot be written, {why}")
        for role in ("indices", "updates"):
            if operands[role].resolved == location.resolved:
                raise ValueError(f"{self.op}: the {role} lie in the table's file, {location.file}")

    def run(self) -> Stats:
        """Do the work."""
        fingerprint = self._fingerprint()
        if self._is_completed(fingerprint):
            return self.meter.stats()
        copied = self.table if self.scatters else None
        build = Build(
            self.out.resolved,
            fingerprint,
            resume=self.call.resume,
            check_inputs=self._check_inputs,
            meter=self.meter,
            staged=not self.call.in_place and self.out.format.staged(copied),
        )
        with removed_when_refused(build):
            if build.replacing and not self.call.in_place:
                build.replace()
                return self.meter.stats()
            requests = self._requests()
            self.meter.rows = requests.count
            context = Context(
                requests, self.budget, build, self.spill_dir, self.meter, self.stack.callback
            )
            if not self.scatters:
                self._gather(context)
            elif self.call.in_place:
                self._scatter_in_place(context)
            else:
                self._scatter_copy(context)
        return self.meter.stats()

    def _is_completed(self, fingerprint: Record) -> bool:
        """Whether an in-place run that is to be resumed had come to its end."""
        return (
            self.call.in_place
            and self.call.resume
            and not os.path.lexists(self.out.resolved + ".partial.journal")
            and is_marked(self.out.resolved, fingerprint, fingerprint["table_state"])
        )

    def _check_inputs(self) -> None:
        for source in self.sources.values():
            source.opened.check_unchanged()

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
        if self.call.attributes["mode"] not in ("fill", "drop") or self.scatters:
            return np.zeros(1, self.table.dtype)
        beyond = np.array([[1]] if OPERATORS[self.op].tuples else [1])
        one = np.zeros(1, self.table.dtype)
        return apply(self.op, one, beyond, mode="fill", fill_value=self.call.fill_value)

    def _flat(self, role: str) -> FlatArray:
        """Return an operand in C order, laid out in a scratch file if it is not."""
        if role not in self._laid:
            array = self.sources[role].storage.flat(self.spill_dir, self.budget).array
            self.stack.callback(array.file.close)
            self._laid[role] = array
        return self._laid[role]

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

    # ------------------------------------------------------------------ gather

    def _gather(self, context: Context) -> None:
        form, build = self.out.format, context.build
        array = form.create(self.out, self.shape, self.table.dtype, build)
        if array.size == 0:
            context.requests.check(self.budget.entries)
        else:
            layout = self.table.storage.layout(context.requests.depth, self.budget)
            for panel in layout.panels():
                Gather(context, layout.rows(panel), array, panel, self._fill()).run()
        form.put(array, self.table, build, self.budget.block)

    # ----------------------------------------------------------------- scatter

    def _scatter_copy(self, context: Context) -> None:
        target = self.out.format.copy(self.out, self.table, context)
        self._scatter(context, target)
        target.finish()

    def _scatter_in_place(self, context: Context) -> None:
        patch = self.table.storage.patch(context)
        with closing(patch):
            self._scatter(context, patch)
            patch.finish()
            with uninterrupted():
                patch.lay()
                mark(self.out.resolved, self._fingerprint(), patch.state())
                context.build.clear()

    def _scatter(self, context: Context, target: Target) -> None:
        layout = target.layout
        for panel in layout.panels():
            store = target.store(panel)
            if not context.build.replacing:
                self._scatter_panel(context, layout, panel, store)

    def _scatter_panel(
        self, context: Context, layout: Layout, panel: Panel, store: BlockStore
    ) -> None:
        requests = context.requests
        if requests.count == 0 or math.prod(layout.row_shape) == 0:
            requests.check(self.budget.entries)
            store.prepare()
            return
        updates = Updates(self._flat("updates"), requests.shape, layout.row_shape, panel)
        Scatter(
            context,
            layout.rows(panel),
            updates,
            store,
            reduction=self.call.attributes["reduction"],
            include_self=self.call.attributes["include_self"],
        ).run()


def check_target(op: str, out: Location, inputs: dict[str, Location], meter: Meter) -> None:
    """Refuse an output that cannot be written, or whose replacement would destroy something.

    Raises
    ------
    ValueError
        The output is an input, or holds more than the one array that is to be replaced.
    FileNotFoundError
        Its directory does not exist.
    OSError
        It is a device or another special file.
    """
    target = out.resolved
    for role, location in inputs.items():
        path = location.resolved
        if target == path or target.startswith(path + os.sep) or path.startswith(target + os.sep):
            hint = "; to change the table itself, ask for it in place" if role == "table" else ""
            hint = hint if OPERATORS[op].scatters else ""
            raise ValueError(f"{op}: the output {out} is the same file as the {role}{hint}")
    if out.format.read_only:
        raise ValueError(f"{op}: {out} cannot be written, {out.format.read_only}")
    if not os.path.isdir(os.path.dirname(target)):
        raise FileNotFoundError(f"{out}: the directory {os.path.dirname(target)} does not exist")
    out.format.check_target(op, out, meter)


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
