"""A FileCall runs one call on files: it opens and checks the operands, and writes the output."""

import hashlib
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from gatherum._arguments.plain_values import as_boolean
from gatherum._model.audience import option
from gatherum._model.operators import OPERATORS
from gatherum.files.arguments.inputs import Inputs
from gatherum.files.arguments.operands import (
    ArrayOperand,
    Operand,
    Path,
    be,
    files_under,
    find_operand,
    open_all,
)
from gatherum.files.arguments.results import gathered, scattered
from gatherum.files.durable.build import Build
from gatherum.files.durable.context import Context
from gatherum.files.durable.interrupt import uninterrupted
from gatherum.files.durable.journal import Record
from gatherum.files.durable.marker import is_completed, mark
from gatherum.files.formats import locate_output
from gatherum.files.formats.format import Location
from gatherum.files.resources.progress import progress_shown
from gatherum.files.resources.resources import Resources
from gatherum.files.resources.stats import Meter, Progress, Stats
from gatherum.files.strategies.file_gather import FileGather
from gatherum.files.strategies.reordered import Axes, reordered

__all__ = ["FileCall", "RunSettings", "check_absent"]


@dataclass(frozen=True)
class RunSettings:
    """The settings of a run. Storage options may contain credentials, so they are not shown."""

    memory: str | int = "1GiB"
    spill_dir: Path | None = None
    resume: bool = False
    overwrite: bool = True
    progress: Progress | bool | None = None
    storage_options: Mapping[str, Any] | None = field(default=None, repr=False)
    in_place: bool = False
    decode: bool = True


@dataclass(frozen=True)
class FileCall:
    """One call on files, executed by `run`. URLs may contain credentials, so they are not shown."""

    op: str
    operands: dict[str, Operand] = field(repr=False)
    out: Path | None = field(repr=False)
    attributes: dict[str, Any]
    settings: RunSettings
    fill_value: object = 0
    axes: Axes | None = None

    def run(self) -> Stats | NDArray[Any]:
        """Run the call. Return statistics, or the result itself if the call has no output file."""
        settings = self.settings
        with ExitStack() as stack, progress_shown(settings.progress) as progress:
            out = None if self.out is None else locate_output(self.out)
            if out is not None and out.remote:
                raise ValueError(f"{self.op}: the output {out} is a URL; outputs are local files")
            parent = tempfile.gettempdir() if out is None else os.path.dirname(out.resolved)
            decode = as_boolean(self.op, "decode", settings.decode)
            resources = Resources.of(
                stack,
                settings.memory,
                settings.spill_dir or parent,
                settings.storage_options,
                progress,
                decode,
            )
            operands = {
                role: find_operand(role, operand, self.op)
                for role, operand in self.operands.items()
            }
            for where in (out, *operands.values()):
                if isinstance(where, Location):
                    where.require()  # raise ImportError for a missing package before any work
            if out is not None:
                return Session(self, out, operands, resources).run()
            self._check_array(operands)
            inputs = self.opened(operands, resources)
            with inputs.unchanged():
                result = scattered(inputs) if inputs.row.scatters else gathered(inputs)
            inputs.check_unchanged()
            return result

    def opened(self, operands: dict[str, Location | ArrayOperand], resources: Resources) -> Inputs:
        """Open the operands, with the dimensions of the table in the order of `axes`."""
        sources = open_all(operands, resources, in_place=self.settings.in_place)
        if self.axes is not None:
            indices, batch_dims = sources["indices"].shape, self.attributes["batch_dims"]
            table = reordered(self.op, sources["table"], indices, self.axes, batch_dims)
            sources["table"] = table
        return Inputs(self.op, sources, self.attributes, self.fill_value, resources)

    def _check_array(self, operands: dict[str, Location | ArrayOperand]) -> None:
        """Raise ValueError for options that need an output file."""
        if self.settings.in_place:
            raise ValueError(
                f"{self.op}: in place the output is the table, {operands['table']}, got None"
            )
        if self.settings.resume:
            raise ValueError(f"{self.op}: a run without an output file cannot be resumed")


class Session:
    """A call whose result is written to a file."""

    def __init__(
        self,
        call: FileCall,
        out: Location,
        operands: dict[str, Location | ArrayOperand],
        resources: Resources,
    ) -> None:
        self.call, self.op, self.out, self.resources = call, call.op, out, resources
        self.settings = call.settings
        self.budget, self.meter = resources.budget, resources.meter
        self._check_held(operands)
        if not self.settings.overwrite:
            check_absent(out, "overwrite=False")
        if not self.settings.in_place:
            check_target(self.op, out, operands, self.meter)
        self.inputs = call.opened(operands, resources)
        self.table = self.inputs.table
        if self.settings.in_place:
            self._check_in_place(operands)

    def _check_held(self, operands: dict[str, Location | ArrayOperand]) -> None:
        """Raise ValueError for arrays if the call is resumed."""
        arrays = [role for role, where in operands.items() if isinstance(where, ArrayOperand)]
        if self.settings.resume and arrays:
            raise ValueError(
                f"{self.op}: a run can be resumed when all operands are files, the {arrays[0]} "
                f"{be(arrays[0])} an array"
            )

    def _check_in_place(self, operands: dict[str, Location | ArrayOperand]) -> None:
        location = operands["table"]
        if isinstance(location, ArrayOperand):
            raise ValueError(f"{self.op}: only a table in a file can be changed in place")
        if (self.out.resolved, self.out.member) != (location.resolved, location.member):
            raise ValueError(
                f"{self.op}: in place the output is the table, {location}, got {self.out}"
            )
        why = location.format.read_only or self.table.storage.cannot_change
        if why:
            raise ValueError(f"{self.op}: {location} cannot be written, {why}")
        for role in ("indices", "updates"):
            if location.resolved in files_under(operands[role]):
                raise ValueError(f"{self.op}: the {role} lie in the table's file, {location.file}")

    def run(self) -> Stats:
        """Run the call."""
        fingerprint = self._fingerprint()
        out, resume = self.out.resolved, self.settings.resume
        if self.settings.in_place and is_completed(self.op, out, fingerprint, resume=resume):
            return self.meter.stats()
        scatters = self.inputs.row.scatters
        build = Build(
            out,
            fingerprint,
            resume=resume,
            check_inputs=self.inputs.check_unchanged,
            meter=self.meter,
            staged=not self.settings.in_place
            and self.out.format.staged(self.table if scatters else None),
        )
        with removed_when_refused(build):
            if build.replacing and not self.settings.in_place:
                build.replace()
                return self.meter.stats()
            context = self.inputs.context(build)
            if self.settings.in_place:
                self._scatter_in_place(context)
            else:
                with self.inputs.unchanged():
                    (self._scatter_copy if scatters else self._gather)(context)
        return self.meter.stats()

    def _fingerprint(self) -> Record:
        states = {role: source.state() for role, source in self.inputs.sources.items()}
        order = {} if self.table.order is None else {"axes": self.table.order}
        attributes = sorted((self.call.attributes | order).items())
        return {
            "operator": self.op,
            "attributes": {k: repr(v) for k, v in attributes},
            "fill value": hashlib.sha256(self.inputs.fill.tobytes()).hexdigest(),
            "memory": self.budget.total,
            "output": [self.out.resolved, self.out.member],
            "in_place": self.settings.in_place,
            "table_state": states["table"].pop("file"),
            **states,
        }

    # ------------------------------------------------------------------ gather

    def _gather(self, context: Context) -> None:
        form, build = self.out.format, context.build
        array = form.create(self.out, self.inputs.shape, self.table.dtype, build)
        if array.size == 0:
            context.requests.check(self.budget.entries)
        else:
            layout = self.table.storage.layout(context.requests.depth, self.budget)
            for panel in layout.panels():
                FileGather(context, layout.rows(panel), array, panel, self.inputs.fill).run()
        form.put(array, self.table, build, self.budget.block)

    # ----------------------------------------------------------------- scatter

    def _scatter_copy(self, context: Context) -> None:
        form = self.out.format
        if not form.staged(self.table) and (result := self.inputs.scattered_whole()) is not None:
            array = form.create(self.out, self.table.shape, self.table.dtype, context.build)
            array.write(0, result)
            form.put(array, self.table, context.build, self.budget.block)
            return
        target = self.out.format.copy(self.out, self.table, context)
        self.inputs.scatter(context, target)
        target.complete()

    def _scatter_in_place(self, context: Context) -> None:
        patch = self.table.storage.patch(context)
        with closing(patch):
            self.inputs.scatter(context, patch, in_place=True)
            patch.complete()
            with uninterrupted():
                patch.apply()
                mark(self.out.resolved, self._fingerprint(), patch.state())
                context.build.clear()


def check_absent(out: Location, reason: str) -> None:
    """Raise FileExistsError if the output exists, which `reason` preserves."""
    if os.path.lexists(out.file):
        raise FileExistsError(f"{out}: exists already, and {reason} keeps it")


def check_target(
    op: str, out: Location, inputs: Mapping[str, Location | ArrayOperand], meter: Meter
) -> None:
    """Raise if an output cannot be written, or if replacing it would destroy something else.

    Raise ValueError if the output is an input, or contains more than the one array to replace.
    Raise OSError if it is a special file or its directory does not exist.
    """
    target = out.resolved
    for role, location in inputs.items():
        if any(_overlap(target, path) for path in files_under(location)):
            with_path = "with its path, " if isinstance(location, ArrayOperand) else ""
            change = f"; {with_path}{option('in_place=True')} changes the table itself"
            hint = change if role == "table" else ""
            hint = hint if OPERATORS[op].scatters else ""
            raise ValueError(f"{op}: the output {out} is the same file as the {role}{hint}")
    if out.format.read_only:
        raise ValueError(f"{op}: {out} cannot be written, {out.format.read_only}")
    if not os.path.isdir(os.path.dirname(target)):
        raise FileNotFoundError(f"{out}: the directory {os.path.dirname(target)} does not exist")
    out.format.check_target(op, out, meter)


def _overlap(one: str, other: str) -> bool:
    """Return True if two paths are the same, or one of them is inside the other."""
    return one == other or one.startswith(other + os.sep) or other.startswith(one + os.sep)


@contextmanager
def removed_when_refused(build: Build) -> Iterator[None]:
    """Remove the partial output if the call raises an argument error, else keep it for a resume."""
    try:
        yield
    except (ValueError, TypeError, IndexError):
        if not build.replacing:
            build.clear()
        raise
    finally:
        build.close()
