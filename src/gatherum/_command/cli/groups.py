"""``gatherum groups`` reduces the values of a file by groups."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from typing import Any

import click

from gatherum._model.operators import OPERATORS
from gatherum.groups.errors import DECIMALS, KEYS
from gatherum.groups.functions import IN_FILES

from . import options as shared
from .command_group import OUTPUT, commands
from .indices import NotIntegers, as_operand
from .numbers import Integer, number_or_text
from .options import FILE
from .streams import DASH, check_one, named_file, received, stream_folder, write_to_output

ENTRIES = OPERATORS["gather"]  # the shape of numbers in a text: one for each value


@commands.command(short_help="Reduce the values of each group.")
@click.argument("values", type=FILE)
@click.argument("groups", type=FILE, required=False)
@click.option(
    "-o", "--out", type=FILE, metavar="OUT", help="The output file (default: print the result)."
)
@click.option(
    "--func", type=click.Choice(IN_FILES), default="sum", show_default=True,
    help="The function of the values of a group.",
)  # fmt: skip
@click.option(
    "--size",
    type=Integer(),
    metavar="N",
    help="The number of groups; by default the largest number in GROUPS plus 1.",
)
@click.option(
    "--axis", type=Integer(), default=0, show_default=True,
    help="The axis of VALUES along which groups are formed.",
)  # fmt: skip
@click.option(
    "--fill-value",
    callback=number_or_text,
    metavar="X",
    help="The value of an empty group; by default 0 for a sum, 1 for a product, else NaN. "
    "Required for integers, which have no NaN, if such a group is empty.",
)
@shared.mode
@click.option(
    "--negative/--no-negative", default=False, show_default=True,
    help="Whether negative groups count from the end.",
)  # fmt: skip
@shared.decode
@shared.memory
@shared.spill_dir
@shared.no_clobber
@shared.no_progress
def groups(values: str, groups: str | None, out: str | None, **options: Any) -> None:
    """Reduce the VALUES of each group, whose numbers are in GROUPS.

    GROUPS is an array file, or a .csv, .tsv or .txt file of numbers. With --func count only the
    groups are needed.

    Example: gatherum groups prices.npy shop.npy -o means.npy --func mean
    """
    if groups is None and options["func"] != "count":
        raise click.UsageError("Missing argument 'GROUPS'.")
    check_one([role for role, path in (("VALUES", values), ("GROUPS", groups)) if path == DASH])
    quiet, keep = options.pop("no_progress"), options.pop("no_clobber")
    options["progress"] = not quiet and sys.stderr.isatty()
    streams = DASH in (values, groups, out)
    with stream_folder(options["spill_dir"]) if streams else nullcontext("") as folder:
        _run(values, groups, out, options, keep=keep, folder=folder)


def _run(
    values: str, groups: str | None, out: str | None, options: dict[str, Any], *, keep: bool,
    folder: str,
) -> None:  # fmt: skip
    """Reduce, and print the statistics or the result. `folder` stores streams."""
    from gatherum import files
    from gatherum.files.arguments.outputs import check_absent
    from gatherum.files.formats import locate_output

    def operand(role: str, path: str) -> Any:
        try:
            if path == DASH:
                return received(folder, ENTRIES, role)
            return path if role == "VALUES" else as_operand(ENTRIES, path, role)
        except NotIntegers as error:
            advice = DECIMALS if error.has_numbers else KEYS
            raise ValueError(f"{error}; {advice}") from None

    if keep and out not in (None, DASH):
        check_absent(locate_output(str(out)), "--no-clobber")
    source = None if groups is None else operand("VALUES", values)
    groups_source = operand("GROUPS", values if groups is None else groups)
    target: Any = out
    if out == DASH:
        target = named_file(folder, OUTPUT)
    result = files.reduce_file(source, groups_source, target, **options)
    if out is None:
        click.echo(str(result))
    elif out == DASH:
        write_to_output(target.file)
    else:
        from gatherum.files.casts import description

        click.echo(f"{out}: {description(target, folder)}; {result}")
