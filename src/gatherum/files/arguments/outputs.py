"""Check the output file of a call, and create the sink that receives the rows."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from gatherum._model.defaults import MEMORY
from gatherum._model.errors import missing_folder
from gatherum._model.errors.audience import option
from gatherum._model.operators import OPERATORS
from gatherum.files import errors
from gatherum.files.durable.build import Build
from gatherum.files.durable.journal import Record
from gatherum.files.durable.marker import is_completed
from gatherum.files.durable.sinks import CompleteSink, Sink
from gatherum.files.formats.decoding import decoded
from gatherum.files.formats.format import Location
from gatherum.files.formats.storage import Source, check_unchanged, unchanged
from gatherum.files.job import Job
from gatherum.files.resources.resources import Resources
from gatherum.files.resources.stats import Meter, Progress

from .operands import ArrayOperand, Path, files_under

Operands = Mapping[str, Location | ArrayOperand]


@dataclass(frozen=True)
class RunSettings:
    """The settings of a run. Storage options may contain credentials, so they are not shown."""

    memory: str | int = MEMORY
    spill_dir: Path | None = None
    resume: bool = False
    overwrite: bool = True
    progress: Progress | bool | None = None
    storage_options: Mapping[str, Any] | None = field(default=None, repr=False)
    in_place: bool = False
    decode: bool = True


@dataclass(frozen=True)
class FileOutput:
    """The output file `out` of a call. With `in_place`, it is the table."""

    op: str
    out: Location
    operands: Operands
    settings: RunSettings

    def check(self, resources: Resources) -> None:
        """Raise if the output cannot be written, before an operand is opened."""
        arrays = [role for role, where in self.operands.items() if isinstance(where, ArrayOperand)]
        if self.settings.resume and arrays:
            raise errors.array_in_resumed_run(self.op, arrays[0])
        if not self.settings.overwrite:
            check_absent(self.out, "overwrite=False")
        if not self.settings.in_place:
            check_target(self.op, self.out, self.operands, resources.meter)
            self._check_not_packed(resources)

    def _check_not_packed(self, resources: Resources) -> None:
        """Raise ValueError if decoded values would replace an array of packed numbers."""
        out = self.out
        if not (out.format.stores_packed and resources.decode and os.path.lexists(out.resolved)):
            return
        with ExitStack() as stack:
            local = replace(resources, meter=Meter(), at_end=stack.callback, watched=False)
            try:
                packing = decoded(out.format.open(out, local), local.budget).packing
            except (OSError, ValueError):  # an output that contains no readable array is replaced
                return
        if packing is not None:
            raise errors.not_writable(self.op, out, packing.why_not_changed)

    @contextmanager
    def sink(self, job: Job) -> Iterator[Sink]:
        """Yield the sink for the rows of a job.

        After an argument error, remove the partial output; after others, keep it for a resume.
        """
        out, resume, in_place = self.out, self.settings.resume, self.settings.in_place
        if in_place:
            self._check_in_place(job)
        fingerprint = self._fingerprint(job)
        if in_place and is_completed(self.op, out.resolved, fingerprint, resume=resume):
            yield CompleteSink(job.resources)
            return
        build = Build(
            out.resolved,
            fingerprint,
            resume=resume,
            check_inputs=partial(check_unchanged, job.sources.values()),
            meter=job.meter,
            staged=not in_place
            and out.format.is_staged(job.table if job.operator.scatters else None),
        )
        with removed_when_refused(build):
            with unchanged(job.sources.values()):
                sink = self._build_sink(job, build)
            with closing(sink):
                yield sink

    def _build_sink(self, job: Job, build: Build) -> Sink:
        file_format, table, resources = self.out.format, job.table, job.resources
        if self.settings.in_place:
            patch = table.storage.patch(resources, build, job.requests.depth)
            patch.takes_whole_result = len(list(patch.layout.panels())) == 1 and job.pays_whole
            return patch
        if build.replacing:
            return CompleteSink(resources, build)
        depth = job.requests.depth
        if job.operator.scatters and (file_format.is_staged(table) or not job.fits_whole):
            return file_format.copy(self.out, table, resources, build, depth)
        return file_format.new(self.out, job.shape, table, resources, build)

    def _check_in_place(self, job: Job) -> None:
        location = self.operands["table"]
        if isinstance(location, ArrayOperand):
            raise errors.array_in_place(self.op)
        if (self.out.resolved, self.out.member) != (location.resolved, location.member):
            raise errors.other_output_in_place(self.op, location, self.out)
        other_operands = {role: self.operands[role] for role in ("indices", "updates")}
        check_changeable(self.op, location, job.table, other_operands)

    def _fingerprint(self, job: Job) -> Record:
        states = {role: source.state() for role, source in job.sources.items()}
        order = {} if job.table.order is None else {"axes": job.table.order}
        attributes = sorted((job.attributes | order).items())
        return {
            "operator": self.op,
            "attributes": {k: repr(v) for k, v in attributes},
            "fill value": hashlib.sha256(job.fill.tobytes()).hexdigest(),
            "memory": job.budget.total,
            "output": [self.out.resolved, self.out.member],
            "in_place": self.settings.in_place,
            "table_state": states["table"].pop("file"),
            **states,
        }


def check_changeable(op: str, location: Location, table: Source, operands: Operands) -> None:
    """Raise ValueError if the table at `location` cannot be changed in place.

    `operands` are the indices and the updates.
    """
    why = location.format.read_only or table.storage.cannot_change
    if why:
        raise errors.not_writable(op, location, why)
    for role, where in operands.items():
        if location.resolved in files_under(where):
            raise errors.operand_in_table(op, role, location.file)


def check_absent(out: Location, reason: str) -> None:
    """Raise FileExistsError if the output exists. `reason` explains why it is not replaced."""
    if os.path.lexists(out.file):
        raise errors.output_exists(out, reason)


def check_target(
    op: str, out: Location, inputs: Mapping[str, Location | ArrayOperand], meter: Meter
) -> None:
    """Raise if an output cannot be written, or if replacing it would destroy other data.

    Raise ValueError if the output is an input, or contains more than the one array to replace.
    Raise OSError if it is a special file or its directory does not exist.
    """
    target = out.resolved
    for role, location in inputs.items():
        if any(_overlap(target, path) for path in files_under(location)):
            with_path = "with its path, " if isinstance(location, ArrayOperand) else ""
            change = f"; {with_path}{option('in_place=True')} changes the table itself"
            hint = change if role == "table" else ""
            hint = hint if hint and OPERATORS[op].scatters else ""
            raise errors.output_is_operand(op, out, role, hint)
    if out.format.read_only:
        raise errors.not_writable(op, out, out.format.read_only)
    if not os.path.isdir(os.path.dirname(target)):
        raise missing_folder(out, os.path.dirname(target))
    out.format.check_target(op, out, meter)


def _overlap(first: str, second: str) -> bool:
    """Return True if two paths are the same, or one of them is inside the other."""
    return first == second or first.startswith(second + os.sep) or second.startswith(first + os.sep)


@contextmanager
def removed_when_refused(build: Build) -> Iterator[None]:
    """Remove the partial output if the call raises an argument error, else keep it for a resume."""
    try:
        yield
    except (ValueError, TypeError, IndexError):
        if not build.replacing:
            build.remove_files()
        raise
    finally:
        build.close()
