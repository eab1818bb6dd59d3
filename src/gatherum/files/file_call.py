"""Run a call on files: open the operands, run the strategies of the job, and commit."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatherum._arguments.plain_values import as_boolean
from gatherum.files import errors
from gatherum.files.arguments.operands import ArrayOperand, Operand, Path, find_operand, open_all
from gatherum.files.arguments.outputs import FileOutput, Operands, RunSettings
from gatherum.files.durable.sinks import ArraySink, CopySink, Sink
from gatherum.files.formats import locate_output
from gatherum.files.formats.format import Location
from gatherum.files.formats.storage import check_unchanged, unchanged
from gatherum.files.job import Job
from gatherum.files.resources.disk import MemoryFile
from gatherum.files.resources.progress import progress_shown
from gatherum.files.resources.resources import Resources
from gatherum.files.resources.stats import Progress, Stats
from gatherum.files.strategies import file_gather, file_scatter
from gatherum.files.strategies.reordered import Axes, reordered


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
        result, stats = self.measured()
        return stats if result is None else result

    def measured(self) -> tuple[NDArray[Any] | None, Stats]:
        """Run the call. Return the result, None if the call has an output file, and statistics."""
        with self.checked() as (operands, resources, output):
            job = self._opened(operands, resources)
            with output.sink(job) as sink:
                if not sink.is_complete:
                    run_strategies(job, sink)
                result = sink.commit()
            return result, resources.meter.stats()

    @contextmanager
    def checked(
        self,
    ) -> Iterator[tuple[dict[str, Location | ArrayOperand], Resources, FileOutput | MemoryOutput]]:
        """Locate the operands, and check the output. Yield both, and the resources of the run."""
        with ExitStack() as stack:
            progress = self.settings.progress
            if isinstance(progress, bool):
                progress = stack.enter_context(progress_shown(progress, self._label))
            out = None if self.out is None else locate_output(self.out)
            if out is not None and out.remote:
                raise errors.output_is_url(self.op, out)
            resources = self._resources(stack, out, progress)
            operands = {
                role: find_operand(role, operand, self.op)
                for role, operand in self.operands.items()
            }
            for where in (out, *operands.values()):
                if isinstance(where, Location):
                    where.require()  # raise ImportError for a missing package before any work
            output: FileOutput | MemoryOutput = MemoryOutput(self.op, operands, self.settings)
            if out is not None:
                output = FileOutput(self.op, out, operands, self.settings)
            output.check(resources)
            resources.meter.phase("opening")
            yield operands, resources, output

    @property
    def _label(self) -> str:
        """The operator, and the name of its first operand if it is a file."""
        table = next(iter(self.operands.values()))
        if not isinstance(table, (str, os.PathLike)):
            return self.op
        name = os.path.basename(os.fspath(table).partition("?")[0].rstrip("/"))
        return f"{self.op} {name}"

    def _resources(
        self, stack: ExitStack, out: Location | None, progress: Progress | None
    ) -> Resources:
        """Return the resources of the run. Scratch files are next to the output by default."""
        settings = self.settings
        parent = tempfile.gettempdir() if out is None else os.path.dirname(out.resolved)
        decode = as_boolean(self.op, "decode", settings.decode)
        spill_dir = settings.spill_dir or parent
        options = settings.storage_options
        return Resources.of(self.op, stack, settings.memory, spill_dir, options, progress, decode)

    def _opened(self, operands: dict[str, Location | ArrayOperand], resources: Resources) -> Job:
        """Open the operands, with the dimensions of the table in the order of `axes`."""
        sources = open_all(operands, resources, in_place=self.settings.in_place)
        if self.axes is not None:
            indices, batch_dims = sources["indices"].shape, self.attributes["batch_dims"]
            table = reordered(self.op, sources["table"], indices, self.axes, batch_dims)
            sources["table"] = table
        return Job(self.op, sources, self.attributes, self.fill_value, resources)


def run_strategies(job: Job, sink: Sink) -> None:
    """Write the rows of a job to a sink."""
    scatters = job.operator.scatters
    with unchanged(job.sources.values()):
        for strategy in (file_scatter if scatters else file_gather).strategies(job, sink):
            strategy.run(job, sink)


@dataclass(frozen=True)
class MemoryOutput:
    """The result of a call that is returned."""

    op: str
    operands: Operands
    settings: RunSettings

    def check(self, resources: Resources) -> None:
        """Raise ValueError for options that need an output file."""
        if self.settings.in_place:
            raise errors.other_output_in_place(self.op, self.operands["table"], None)
        if self.settings.resume:
            raise errors.no_output_to_resume(self.op)

    @contextmanager
    def sink(self, job: Job) -> Iterator[Sink]:
        """Yield the sink for the rows of a job."""
        with unchanged(job.sources.values()):
            yield _array_sink(job)
        check_unchanged(job.sources.values())


def _array_sink(job: Job) -> Sink:
    """Return a sink in memory. For a scatter that does not fit twice, the sink is a copy."""
    resources, dtype = job.resources, job.table.dtype
    if not job.operator.scatters or job.fits_whole:
        return ArraySink(resources, job.shape, dtype)
    depth, table = job.requests.depth, job.table.storage.flat(resources)
    result: NDArray[Any] = np.empty(job.shape, dtype)
    copy = replace(table.array, file=MemoryFile(result, resources.meter), offset=0)
    layout = table.layout(depth, resources.budget)
    return CopySink(resources, None, layout, table.array, copy, lambda: result)
