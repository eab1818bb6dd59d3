"""The commands that run the operators on files: ``gatherum gather`` and five others."""

from __future__ import annotations

import os
import sys
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import click
import numpy as np

from gatherum._model.operators import OPERATORS, Operator

from . import clusters
from . import options as shared
from .command_group import OUTPUT, commands
from .indices import Axes, Values, as_operand, is_text
from .numbers import short
from .options import FILE, combined_decorators
from .streams import (
    DASH,
    array_input,
    check_one,
    named_file,
    read_array,
    stream_folder,
    write_to_output,
)

if TYPE_CHECKING:
    from gatherum._model.arrays import NumpyArray
    from gatherum.files import Stats
    from gatherum.files.formats.format import Location


Source: TypeAlias = str | list[int]  # a path, a dash, or the numbers of --values


def _format(_: click.Context, __: click.Parameter, name: str | None) -> str | None:
    from gatherum.files.formats import FORMATS

    names = [file_format.name for file_format in FORMATS]
    if name is not None and name not in names:
        raise click.BadParameter(f"must be one of {', '.join(names)}, got {short(name)}.")
    return name


def _number_type(
    ctx: click.Context, param: click.Parameter, text: str | None
) -> np.dtype[Any] | None:
    from gatherum._model.narrow_floats import FORMATS
    from gatherum.files.formats.dtypes import number_type

    return number_type(text) if text in FORMATS else shared.named_dtype(ctx, param, text)


_values = click.option(
    "--values", type=Values(), metavar="N,N,...",
    help="The indices themselves, such as 2,0,2, in place of INDICES.",
)  # fmt: skip
_common = combined_decorators(
    shared.mode,
    shared.negative,
    click.option(
        "--format", callback=_format, metavar="NAME",
        help="The format of TABLE, if its name does not show it: npy, npz, safetensors, hdf5, "
        "arrow or zarr.",
    ),
    shared.decode,
    shared.memory,
    shared.spill_dir,
    click.option("--resume", is_flag=True, help="Continue a killed run of the same arguments."),
    shared.no_clobber,
    clusters.options,
    shared.no_progress,
    click.option(
        "--cast", callback=_number_type, metavar="DTYPE",
        help="The dtype of OUT, such as float32; a scatter converts TABLE and UPDATES first.",
    ),
    click.option("--print", "show", is_flag=True, help="Print the result in place of statistics."),
)  # fmt: skip
_gathers = combined_decorators(
    click.argument("table", type=FILE),
    click.argument("indices", type=FILE, required=False, metavar="INDICES"),
    _values,
    click.option("-o", "--out", required=True, type=FILE, metavar="OUT", help="The output file."),
    _common,
    shared.fill_value,
)  # fmt: skip
_scatters = combined_decorators(
    click.argument("table", type=FILE),
    click.argument("indices", type=FILE, required=False, metavar="INDICES"),
    click.argument("updates", type=FILE, required=False, metavar="UPDATES"),
    _values,
    click.option("-o", "--out", type=FILE, metavar="OUT", help="The output file."),
    click.option("--in-place", is_flag=True, help="Change TABLE itself."),
    shared.reduction,
    shared.exclude_self,
    _common,
)  # fmt: skip


@commands.command(short_help="Take slices along one axis.")
@_gathers
@shared.axis
def gather(**options: Any) -> None:
    """Take slices of TABLE along one axis, by their numbers in INDICES.

    INDICES is an array file, or a .csv, .tsv or .txt file of numbers.

    Example: gatherum gather table.npy rows.npy -o picked.npy --axis 0
    """
    _run_command("gather", options)


@commands.command(short_help="Take one element for every index.")
@_gathers
@shared.axis
def gather_elements(**options: Any) -> None:
    """Take one element of TABLE for every index in INDICES.

    INDICES has as many dimensions as TABLE. The output has the shape of INDICES.

    Example: gatherum gather-elements scores.npy order.npy -o sorted.npy --axis 1
    """
    _run_command("gather_elements", options)


@commands.command(short_help="Take elements or slices by tuples.")
@_gathers
@shared.batch_dims
@click.option(
    "--axes", type=Axes(), metavar="AXIS,...",
    help="The dimensions of TABLE that a tuple's numbers address, by number (1,2) or by name "
    "(lat,lon) where the file has names; by default the first ones.",
)  # fmt: skip
def gather_nd(**options: Any) -> None:
    """Take elements or slices of TABLE by the tuples in INDICES.

    INDICES is an array file, or a .csv, .tsv or .txt file with a tuple on each line. The output has
    the dimensions of INDICES without the last one, followed by the dimensions of TABLE that the
    tuples do not address.

    Example: gatherum gather-nd volume.zarr points.npy -o values.npy --mode fill --fill-value nan

    Example: gatherum gather-nd cube.nc:t2m stations.csv -o series.npy --axes lat,lon
    """
    _run_command("gather_nd", options)


@commands.command(short_help="Write slices along one axis.")
@_scatters
@shared.axis
def scatter_slices(**options: Any) -> None:
    """Write slices of UPDATES into TABLE along one axis, by their numbers in INDICES.

    The result is written to OUT, or into TABLE itself with --in-place.

    Example: gatherum scatter-slices table.npy rows.npy new.npy --in-place
    """
    _run_command("scatter_slices", options)


@commands.command(short_help="Write one element for every index.")
@_scatters
@shared.axis
def scatter_elements(**options: Any) -> None:
    """Write one element of UPDATES into TABLE for every index in INDICES.

    INDICES and UPDATES have as many dimensions as TABLE. The result is written to OUT, or into
    TABLE itself with --in-place.

    Example: gatherum scatter-elements t.npy i.npy u.npy -o changed.npy --axis 1 --reduction add
    """
    _run_command("scatter_elements", options)


@commands.command(short_help="Write elements or slices by tuples.")
@_scatters
@shared.batch_dims
def scatter_nd(**options: Any) -> None:
    """Write elements or slices of UPDATES into TABLE at the index tuples in INDICES.

    The result is written to OUT, or into TABLE itself with --in-place.

    Example: gatherum scatter-nd volume.zarr points.npy values.npy --in-place
    """
    _run_command("scatter_nd", options)


def _run_command(name: str, options: dict[str, Any]) -> None:
    """Run an operator's command, and print the statistics of the run."""
    operator, table, out = OPERATORS[name], options.pop("table"), options.pop("out")
    operands = {"TABLE": table, **_operands(options)}
    if operator.scatters:
        options |= shared.fold_keywords(options.pop("reduction"), options.pop("exclude_self"))
        if options["in_place"]:
            if out is not None or options["no_clobber"]:
                output_flag = "--no-clobber" if out is None else "--out"
                raise click.UsageError(f"--in-place changes TABLE, so it takes no {output_flag}.")
            out = table
        elif out is None:
            raise click.UsageError("Missing option '-o' / '--out' (or --in-place).")
    _run_on_files(operator, operands, out, options)


def _operands(options: dict[str, Any]) -> dict[str, Source]:
    """Return the operands other than TABLE. With --values, the first argument is UPDATES."""
    arguments = [options.pop(key) for key in ("indices", "updates") if key in options]
    values = options.pop("values")
    if values is not None:
        if arguments[-1] is not None:
            raise click.UsageError("--values takes the place of INDICES.")
        arguments = [values, *arguments[:-1]]
    operands = dict(zip(("INDICES", "UPDATES"), arguments, strict=False))
    for role, operand in operands.items():
        if operand is None:
            hint = " (or --values)" if role == "INDICES" else ""
            raise click.UsageError(f"Missing argument '{role}'{hint}.")
    return operands


def _run_on_files(
    operator: Operator, operands: dict[str, Source], out: str, options: dict[str, Any]
) -> None:
    """Run on a cluster, or on this machine with a folder for streams and copies."""
    from gatherum.files.arguments.outputs import check_absent
    from gatherum.files.formats import locate_output

    show, quiet = options.pop("show"), options.pop("no_progress")
    streams = [role for role, source in operands.items() if source == DASH]
    _check_usage(operands["INDICES"], out, options, streams)
    on_cluster = clusters.is_wanted(options)
    if options.pop("no_clobber") and out != DASH:
        check_absent(locate_output(out), "--no-clobber")
    bar = not quiet and sys.stderr.isatty()  # only if a person can see it
    if on_cluster:
        del options["cast"]  # `_check_usage` has raised an error for it
        table, *other_operands = (_cluster_operand(operator, *item) for item in operands.items())
        did = clusters.run(operator, str(table), tuple(other_operands), out, options, shown=bar)
        click.echo(f"{out}: {did}")
        return
    for option in ("scheduler", "workers"):
        options.pop(option)
    call = {"progress": bar, **options}
    needs_folder = streams or out == DASH or show or options["cast"] is not None
    beside = os.path.dirname(os.path.abspath(out))  # for copies in another dtype
    at_out = options["cast"] is not None and out != DASH and os.path.isdir(beside)
    scratch_folder = options["spill_dir"] or (beside if at_out else None)
    with stream_folder(scratch_folder) if needs_folder else nullcontext("") as folder:
        _run_alone(operator, operands, out, call, show=show, folder=folder)


def _cluster_operand(operator: Operator, role: str, operand: Source) -> str | NumpyArray:
    """Return an operand for a run on a cluster.

    Workers cannot read standard input, so it is read into memory.
    """
    if operand == DASH:
        return array_input(operator, role)
    return as_operand(operator, operand) if role == "INDICES" else str(operand)


def _check_usage(indices: Source, out: str, options: dict[str, Any], streams: list[str]) -> None:
    """Raise UsageError for options that exclude each other."""
    shared.check_fill_value(options["mode"])
    check_one(streams)
    if streams == ["TABLE"] and options.get("in_place"):
        raise click.UsageError("--in-place changes a file, not standard input.")
    if options["resume"] and (streams or out == DASH):
        raise click.UsageError(f"--resume needs files, not {DASH}.")
    if options["format"] is not None and "TABLE" in streams:
        raise click.UsageError(f"--format is of a file, not of {DASH}, which is a .npy file.")
    flag = next((f"--{name}" for name in ("workers", "scheduler") if options[name]), None)
    if flag and ("TABLE" in streams or out == DASH):
        raise click.UsageError(f"{flag} needs files as TABLE and OUT, not {DASH}.")
    for name in ("in_place", "resume", "workers", "scheduler"):
        if options["cast"] is not None and options.get(name):
            raise click.UsageError(f"--cast does not go with {shared.flag(name)}.")
    if options["resume"] and (not isinstance(indices, str) or is_text(indices)):
        raise click.UsageError("--resume needs an array file as INDICES.")


def _run_alone(
    operator: Operator, inputs: dict[str, Source], out: str, options: dict[str, Any], *, show: bool,
    folder: str,
) -> None:  # fmt: skip
    """Run an operator on this machine. `folder` is for streams, and copies in another dtype."""
    from gatherum.files.formats import locate, locate_output

    def operand(role: str, source: Source) -> Any:
        if source == DASH:
            return read_array(folder, operator, role)
        if role == "INDICES":
            return as_operand(operator, source, components=components)
        return locate(str(source), location_format) if role == "TABLE" else source

    location_format, cast = options.pop("format"), options.pop("cast")
    components = len(options.get("axes") or [0])
    operands = [operand(*item) for item in inputs.items()]
    target = named_file(folder, OUTPUT) if out == DASH else locate_output(out)
    if options.get("in_place"):
        target = operands[0]
    run = _run if cast is None else partial(_run_cast, cast, folder)
    stats = run(operator, operands, target, options)
    if show or (out == DASH and sys.stdout.isatty()):
        from gatherum.files.casts import array_text, stored_dtype

        decode = options["decode"]
        like = stored_dtype(operands[0], folder, decode=decode) if cast is None else cast
        click.echo(array_text(target, like, folder, decode=decode))
    elif out == DASH:
        write_to_output(target.file)
    else:
        from gatherum.files.casts import description

        click.echo(f"{out}: {description(target, folder)}; {stats}")


def _run(operator: Operator, operands: list[Any], out: Location, options: dict[str, Any]) -> Stats:
    from gatherum import files

    stats: Stats = getattr(files, f"{operator.name}_file")(*operands, out, **options)
    return stats


def _run_cast(
    dtype: np.dtype[Any], folder: str, operator: Operator, operands: list[Any], out: Location,
    options: dict[str, Any],
) -> Stats:  # fmt: skip
    """Run an operator whose output has a different dtype from its data.

    For a scatter, convert copies of the operands first. For a gather, run on the file and convert
    the result.
    """
    from gatherum.files.casts import cast_copy, check_cast, copy_array, stored_dtype
    from gatherum.files.formats import locate

    (table, indices, *updates), decode = operands, options["decode"]
    like = stored_dtype(table, folder, decode=decode)
    if operator.scatters:
        copies = [
            cast_copy(where, like, dtype, folder, name, decode=decode)
            for name, where in zip(("table", "updates"), (table, *updates), strict=True)
        ]
        return _run(operator, [copies[0], indices, copies[1]], out, options)
    check_cast(table, like, dtype)
    picked = locate(os.path.join(folder, f"picked.{table.format.temporary}"))
    stats = _run(operator, operands, picked, options)
    copy_array(cast_copy(picked, like, dtype, folder, "cast"), out, memory=options["memory"])
    return stats
