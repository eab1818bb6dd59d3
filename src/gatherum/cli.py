"""The command line: five operators on files, checks, and what is installed.

Errors are one line on standard error, with exit status 2 for usage and 1 for data.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import Any, TypeVar

import click
import numpy as np

from .config import config_lines, read_config
from .dtypes import MODES, REDUCTIONS
from .version import __version__

F = TypeVar("F", bound=Callable[..., Any])
INTERRUPTED = 130
# What wrong data, files or settings raise; anything else is a mistake of this package.
DATA_ERRORS = (TypeError, ValueError, IndexError, OSError, MemoryError, ImportError)


class Commands(click.Group):
    """A group whose commands end in one line, whatever happens."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command, and turn what it raises into a line and an exit status."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise _stop("interrupted", INTERRUPTED) from None
        except BrokenPipeError:
            # Whoever reads the output has seen enough; Python's own last flush must not complain.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise click.exceptions.Exit(1) from None
        except (click.ClickException, click.exceptions.Exit):
            raise
        except DATA_ERRORS as error:
            raise _stop(_sentence(error), 1) from error
        except Exception as error:
            text = f"internal error, please report it: {type(error).__name__}: {error}"
            raise _stop(text, 1) from error


def _stop(text: str, status: int) -> click.exceptions.Exit:
    click.echo(f"gatherum: {' '.join(text.split())}", err=True)
    return click.exceptions.Exit(status)


def _sentence(error: BaseException) -> str:
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, MemoryError):
        return f"not enough memory: {error}" if str(error) else "not enough memory"
    return str(error) or type(error).__name__


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command line.

    Parameters
    ----------
    arguments : sequence of str, optional
        Default: those of the process.

    Returns
    -------
    int
        The exit status.
    """
    try:
        status = commands.main(
            None if arguments is None else list(arguments),
            prog_name="gatherum",
            standalone_mode=False,
        )
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx else "gatherum"
        return _stop(f"{error.format_message()} See {path} --help.", 2).exit_code
    return status if isinstance(status, int) else 0


@click.group(
    cls=Commands, no_args_is_help=False, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(__version__, message="%(prog)s %(version)s")
def commands() -> None:
    """Gather and scatter on arrays in files.

    A file is x.npy, x.npz:name, model.safetensors:tensor, or a Zarr directory. Results appear only
    when they are complete. Exit status: 0 done, 1 data, 2 usage.
    """


def _together(*decorators: Callable[[F], F]) -> Callable[[F], F]:
    return lambda function: reduce(lambda f, decorate: decorate(f), reversed(decorators), function)


def _number_or_text(_: click.Context, __: click.Parameter, text: str) -> object:
    for convert in (int, float, complex):
        try:
            return convert(text)
        except ValueError:
            continue
    return text


def _size(_: click.Context, __: click.Parameter, text: str) -> str:
    from .files.budget import Budget

    try:
        Budget.parse(text)
    except ValueError as error:
        raise click.BadParameter(f"{error}.") from None
    return text


_axis = click.option("--axis", default=0, show_default=True, help="The axis that is indexed.")
_batch_dims = click.option(
    "--batch-dims", default=0, show_default=True, help="Leading dimensions of table and indices."
)
_mode = click.option(
    "--mode", type=click.Choice(MODES), default="raise", show_default=True,
    help="What an index outside of its dimension does.",
)  # fmt: skip
_common = _together(
    _mode,
    click.option(
        "--negative/--no-negative", default=True, show_default=True,
        help="Whether negative indices count from the end.",
    ),
    click.option(
        "--memory", default="1GiB", show_default=True, callback=_size, metavar="BYTES",
        help="How much memory the run may use.",
    ),
    click.option("--spill-dir", metavar="DIR", help="Where scratch files go; else beside OUT."),
    click.option("--resume", is_flag=True, help="Go on where a killed run stopped."),
    click.option("--no-progress", is_flag=True, help="Show no progress bar."),
    click.option("--print", "show", is_flag=True, help="Print the result, a .npy file."),
)  # fmt: skip
_gathers = _together(
    click.argument("table"),
    click.argument("indices"),
    click.option("-o", "--out", required=True, metavar="OUT", help="Where the result goes."),
    _common,
    click.option(
        "--fill-value", default="0", show_default=True, callback=_number_or_text, metavar="X",
        help="What an invalid index gives with --mode fill.",
    ),
)  # fmt: skip
_scatters = _together(
    click.argument("table"),
    click.argument("indices"),
    click.argument("updates"),
    click.option("-o", "--out", metavar="OUT", help="Where the result goes."),
    click.option("--in-place", is_flag=True, help="Change TABLE itself."),
    click.option(
        "--reduction", type=click.Choice(REDUCTIONS), default="none", show_default=True,
        help="How an update meets the old value.",
    ),
    click.option("--exclude-self", is_flag=True, help="Leave the old value out of the reduction."),
    _common,
)  # fmt: skip


@commands.command()
@_gathers
@_axis
def gather(**options: Any) -> None:
    """Take slices of TABLE along one axis, by their numbers in INDICES.

    Example: gatherum gather table.npy rows.npy -o picked.npy --axis 0
    """
    _run_gather("gather_file", options)


@commands.command()
@_gathers
@_axis
def gather_elements(**options: Any) -> None:
    """Take one element of TABLE for every index in INDICES.

    Example: gatherum gather-elements scores.npy order.npy -o sorted.npy --axis 1
    """
    _run_gather("gather_elements_file", options)


@commands.command()
@_gathers
@_batch_dims
def gather_nd(**options: Any) -> None:
    """Take elements or slices of TABLE by the tuples in INDICES.

    Example: gatherum gather-nd volume.zarr points.npy -o values.npy --mode fill --fill-value nan
    """
    _run_gather("gather_nd_file", options)


@commands.command()
@_scatters
@_axis
def scatter_elements(**options: Any) -> None:
    """Write one element of UPDATES into TABLE for every index in INDICES.

    Example: gatherum scatter-elements t.npy i.npy u.npy -o changed.npy --axis 1 --reduction add
    """
    _run_scatter("scatter_elements_file", options)


@commands.command()
@_scatters
@_batch_dims
def scatter_nd(**options: Any) -> None:
    """Write elements or slices of UPDATES into TABLE by the tuples in INDICES.

    Example: gatherum scatter-nd table.npy rows.npy new.npy --in-place
    """
    _run_scatter("scatter_nd_file", options)


def _run_gather(name: str, options: dict[str, Any]) -> None:
    table, indices, out = (options.pop(key) for key in ("table", "indices", "out"))
    _run_on_files(name, (table, indices), out, options)


def _run_scatter(name: str, options: dict[str, Any]) -> None:
    table, indices, updates, out = (
        options.pop(key) for key in ("table", "indices", "updates", "out")
    )
    if options["in_place"]:
        if out is not None:
            raise click.UsageError("--in-place changes TABLE, so it takes no --out.")
        out = table
    elif out is None:
        raise click.UsageError("Missing option '-o' / '--out' (or --in-place).")
    options["include_self"] = not options.pop("exclude_self")
    _run_on_files(name, (table, indices, updates), out, options)


def _run_on_files(name: str, inputs: tuple[str, ...], out: str, options: dict[str, Any]) -> None:
    """Run a function of `gatherum.files` and say what it did."""
    from . import files

    show, quiet = options.pop("show"), options.pop("no_progress")
    if show and not out.endswith(".npy"):
        raise click.UsageError("--print shows .npy files only.")
    with _progress(quiet) as progress:
        stats = getattr(files, name)(*inputs, out, progress=progress, **options)
    if show:
        click.echo(str(np.load(out, mmap_mode="r", allow_pickle=False)))
    else:
        click.echo(f"{out}: {stats}")


@contextmanager
def _progress(quiet: bool) -> Iterator[Callable[[int, int], None] | None]:
    """Give what shows a progress bar, if anyone can see it."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    moved = BarColumn(), DownloadColumn(binary_units=True)
    columns = *moved, TransferSpeedColumn(), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("moved", total=None)
        yield lambda moved, expected: bar.update(task, completed=moved, total=expected)


def _sizes(_: click.Context, __: click.Parameter, given: Sequence[str]) -> dict[str, int]:
    sizes = {}
    for text in given:
        name, _equals, size = text.partition("=")
        if not name or not size.isdecimal():
            raise click.BadParameter(f"must be a name and a size such as batch=8, got {text!r}.")
        sizes[name] = int(size)
    return sizes


@commands.command()
@click.argument("file")
@click.option(
    "--feature-level",
    default="6_4",
    show_default=True,
    metavar="LEVEL",
    help="DirectML's feature level, 1_0 to 6_4.",
)
@click.option(
    "--size", "sizes", multiple=True, callback=_sizes, metavar="NAME=N",
    help="The size of a symbolic dimension of an ONNX model; may be repeated.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the answer for programs.")
def check(file: str, feature_level: str, sizes: dict[str, int], as_json: bool) -> None:
    """Check FILE against a DirectML feature level, and say every reason against it.

    FILE is an ONNX model (.onnx), or an operator desc in JSON. Exit status 0: accepted; 1:
    rejected, or not to be decided because a shape or type is unknown.

    Example: gatherum check model.onnx --feature-level 4_1 --size batch=8
    """
    from . import directml

    try:
        level = directml.FeatureLevel.of(feature_level)
    except ValueError as error:
        raise click.BadParameter(f"{error}.", param_hint="'--feature-level'") from None
    if file.endswith(".onnx"):
        from . import onnx

        reports = onnx.check_model(file, level, sizes=sizes)
        accepted = all(report.accepted for report in reports)
        lines = [onnx.reports_to_json(reports)] if as_json else onnx.report_lines(reports)
    else:
        found = directml.check_file(file, level)
        accepted, lines = found.accepted, list(found.lines)
        if as_json:
            lines = [json.dumps({"accepted": accepted, "lines": lines}, indent=2)]
    click.echo("\n".join(lines))
    if not accepted:
        raise click.exceptions.Exit(1)


@commands.command()
@click.option(
    "--only", multiple=True, metavar="NAME", help="Workloads, parts of names or patterns."
)
@click.option("--peers", metavar="NAMES", help="Peers, with commas between; else all installed.")
@click.option("--scale", default=1.0, show_default=True, help="Size against the full workloads.")
@click.option("--rounds", default=7, show_default=True, help="Timed runs of each peer, at most.")
@click.option("--json", "json_file", metavar="FILE", help="Write the report for programs.")
@click.option("--svg", "svg_file", metavar="FILE", help="Write the roofline picture.")
def bench(
    only: tuple[str, ...],
    peers: str | None,
    scale: float,
    rounds: int,
    json_file: str | None,
    svg_file: str | None,
) -> None:
    """Measure this machine against its own limits and the peers installed on it.

    Example: gatherum bench --scale 0.1 --peers numpy
    """
    from .bench import main

    families = None if peers is None else peers.split(",")
    try:
        main(only or None, json_file, scale, rounds, svg_file, families)
    except ValueError as option:  # a workload, peer, scale or number that it does not know
        raise click.UsageError(str(option)) from None


@commands.command()
def info() -> None:
    """Show the version, instruction set, threads, caches and optional parts.

    Example: gatherum info
    """
    click.echo("\n".join(config_lines(read_config())))
