"""``gatherum groups`` reduces the values of a file by groups."""

from __future__ import annotations

import sys
from typing import Any

import click

from ..groups.functions import IN_FILES
from ..operators import OPERATORS
from . import options as shared
from .group import commands
from .indices import as_operand
from .numbers import Integer, number_or_text
from .options import FILE


@commands.command()
@click.argument("values", type=FILE)
@click.argument("groups", type=FILE, required=False)
@click.option(
    "-o", "--out", type=FILE, metavar="OUT", help="The output file; else the result is printed."
)
@click.option(
    "--func", type=click.Choice(IN_FILES), default="sum", show_default=True,
    help="What becomes of the values of a group.",
)  # fmt: skip
@click.option("--size", type=Integer(), metavar="N", help="How many groups there are.")
@click.option(
    "--axis", type=Integer(), default=0, show_default=True,
    help="The axis of VALUES along which groups are formed.",
)  # fmt: skip
@click.option(
    "--fill-value", callback=number_or_text, metavar="X", help="What an empty group becomes."
)
@shared.mode
@click.option(
    "--negative/--no-negative", default=False, show_default=True,
    help="Whether negative groups count from the end.",
)  # fmt: skip
@shared.memory
@shared.spill_dir
@shared.no_clobber
@shared.no_progress
def groups(values: str, groups: str | None, out: str | None, **options: Any) -> None:
    """Reduce the VALUES of each group, whose numbers are in GROUPS.

    With --func count the groups alone are needed.

    Example: gatherum groups prices.npy shop.npy -o means.npy --func mean
    """
    from .. import files
    from ..files.formats import locate
    from ..files.run import check_absent

    if groups is None:
        if options["func"] != "count":
            raise click.UsageError("Missing argument 'GROUPS'.")
        numbers, source = values, None
    else:
        numbers, source = groups, values
    quiet, keep = options.pop("no_progress"), options.pop("no_clobber")
    if keep and out is not None:
        check_absent(locate(out), "--no-clobber")
    bar = not quiet and sys.stderr.isatty()
    found: Any = as_operand(OPERATORS["gather"], numbers, "GROUPS")
    result = files.reduce_file(source, found, out, progress=bar, **options)
    click.echo(str(result) if out is None else f"{out}: {result}")
