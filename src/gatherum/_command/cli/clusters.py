"""The options ``--scheduler`` and ``--workers``, which run the operators on a Dask cluster."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from gatherum._model.arrays import NumpyArray
from gatherum._model.operators import Operator

from .numbers import Integer
from .options import combined_decorators, flag

if TYPE_CHECKING:
    from gatherum.dask.shuffling.clusters import Cluster

# Options of a run on one machine that a run on a cluster does not support.
_UNSUPPORTED = {
    "memory": "workers have limits of their own",
    "spill_dir": "workers have folders of their own",
    "format": "workers go by the names and the first bytes of files",
    "axes": "workers read a table in the order of its file",
}
_PACKAGES = ("dask", "distributed")


def _at_least_one(_: click.Context, __: click.Parameter, count: int | None) -> int | None:
    if count is not None and count < 1:
        raise click.BadParameter(f"must be at least 1, got {count}.")
    return count


options = combined_decorators(
    click.option(
        "--scheduler", metavar="ADDRESS",
        help="Run on the cluster of this Dask scheduler, such as tcp://10.0.0.1:8786. Its workers "
        "must see the files under the same names.",
    ),
    click.option(
        "--workers", type=Integer(), callback=_at_least_one, metavar="N",
        help="Run on a Dask cluster of N processes, made for this run.",
    ),
)  # fmt: skip


def is_wanted(options: dict[str, Any]) -> bool:
    """Return True if a command runs on a cluster. Raise UsageError if the options conflict."""
    named = [name for name in ("scheduler", "workers") if options[name] is not None]
    if not named:
        return False
    if len(named) > 1:
        raise click.UsageError("--scheduler and --workers exclude each other.")
    context = click.get_current_context()
    for name, why in _UNSUPPORTED.items():
        if context.get_parameter_source(name) not in (None, ParameterSource.DEFAULT):
            raise click.UsageError(f"--{named[0]} does not go with {flag(name)}: {why}.")
    if options["resume"] and not options.get("in_place"):
        raise click.UsageError(f"--{named[0]} resumes runs with --in-place only.")
    if missing := [name for name in _PACKAGES if find_spec(name) is None]:
        raise click.UsageError(
            f"--{named[0]} needs {' and '.join(missing)}: pip install 'dask[array]' distributed."
        )
    return True


def run(
    operator: Operator, table: str, others: tuple[str | NumpyArray, ...], out: str,
    options: dict[str, Any], *, shown: bool,
) -> str:  # fmt: skip
    """Run an operator on files on a cluster. Return a summary of the run.

    `others` contains the indices, as a path or an array, and the updates of a scatter.
    """
    from gatherum.dask.outputs import ClusterCall

    settings = {"in_place": options.pop("in_place", False), "resume": options.pop("resume")}
    settings["decode"] = options.pop("decode")
    scheduler, workers = options.pop("scheduler"), options.pop("workers")
    attributes = {name: value for name, value in options.items() if name not in _UNSUPPORTED}
    call = ClusterCall(operator.name, table, others, out, attributes, **settings)
    with _cluster(scheduler, workers) as cluster:
        if (dashboard := cluster.dashboard) is not None:
            click.echo(f"Dashboard: {dashboard}")
            sys.stdout.flush()
        worker_count, began = cluster.workers, time.perf_counter()
        rows = call.run(lambda tasks: cluster.compute(tasks, shown=shown))
        return f"{rows:,} rows, {worker_count} workers, {time.perf_counter() - began:.2f} s"


@contextmanager
def _cluster(scheduler: str | None, workers: int | None) -> Iterator[Cluster]:
    from gatherum.dask.shuffling import clusters

    if workers is not None:
        with clusters.local(workers) as cluster:
            yield cluster
        return
    assert scheduler is not None
    with ExitStack() as stack:
        try:
            cluster = stack.enter_context(clusters.connected(scheduler))
        except ConnectionError as error:
            raise click.BadParameter(f"{error}.", param_hint="'--scheduler'") from None
        yield cluster
