"""``gatherum groups`` reduces the values of a file by groups."""

from __future__ import annotations

import os
import sys
from contextlib import nullcontext
from difflib import get_close_matches
from typing import Any

import click
import numpy as np
from click.shell_completion import CompletionItem

from gatherum._model.operators import OPERATORS
from gatherum.groups.errors import DECIMALS, KEYS
from gatherum.groups.functions import REDUCES
from gatherum.groups.order_statistics import METHODS

from . import options as shared
from .command_group import OUTPUT, commands
from .indices import NotIntegers, as_operand
from .numbers import Integer, Parsed, number_or_text, short, text_and_number
from .options import FILE
from .streams import DASH, check_one, named_file, read_array, stream_folder, write_to_output

SHOWN = 1000  # rows of a table that are printed completely
ENTRIES = OPERATORS["gather"]  # the shape of numbers in a text: one for each value


class Functions(Parsed):
    """Names of functions, separated by commas."""

    name = "functions"
    expected = "names of functions, separated by commas"

    def parse(self, text: str) -> str | list[str] | None:
        """Return the name of one function, or the names of several."""
        names = text.split(",")
        if unknown := [name for name in names if name not in REDUCES]:
            close = get_close_matches(unknown[0], REDUCES, 1)
            hint = f", such as {close[0]}" if close else ""
            raise click.BadParameter(f"{short(unknown[0])} is not a function{hint}.")
        return names[0] if len(names) == 1 else names

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Complete the last name."""
        *before, last = incomplete.split(",")
        names = (name for name in REDUCES if name.startswith(last))
        return [CompletionItem(",".join((*before, name))) for name in names]


@commands.command(short_help="Reduce the values of each group.")
@click.argument("values", type=FILE)
@click.argument("groups", type=FILE, required=False)
@click.option(
    "-o", "--out", type=FILE, metavar="OUT", help="The output file (default: print the result)."
)
@click.option(
    "--func", type=Functions(), default="sum", show_default=True, metavar="NAMES",
    help="The function of the values of a group, or several, separated by commas: "
    f"{', '.join(REDUCES[: len(REDUCES) // 2])}, or with the prefix nan, which skips NaN.",
)  # fmt: skip
@click.option(
    "--weights", type=FILE, metavar="FILE",
    help="The weight of each value, for sums, means, variances and deviations.",
)  # fmt: skip
@click.option(
    "--q", callback=number_or_text, metavar="X", help="The probability of a quantile, in [0, 1]."
)
@click.option(
    "--method", type=click.Choice(METHODS), default="linear", show_default=True,
    help="The method of a quantile, as in numpy.quantile.",
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
    callback=text_and_number,
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
    """Reduce the VALUES of each group, whose numbers or keys are in GROUPS.

    GROUPS is an array file of numbers from 0 or of keys (strings, bytes or dates), or a .csv,
    .tsv or .txt file of numbers. A path such as sales.parquet:shop,day names several columns.
    Missing keys are omitted. With --func count only GROUPS is needed.

    OUT is an array file, or a table with named columns: .parquet, .arrow, .feather or .csv.
    Several results in an array file are records with these names.

    Example: gatherum groups prices.npy shop.npy -o means.npy --func mean
    Example: gatherum groups sales.parquet:price sales.parquet:shop -o shops.csv --func sum,nanmax
    """
    if groups is None and options["func"] != "count":
        raise click.UsageError("Missing argument 'GROUPS'.")
    weights = options["weights"]
    roles = ("VALUES", values), ("GROUPS", groups), ("WEIGHTS", weights)
    check_one([role for role, path in roles if path == DASH])
    quiet, keep = options.pop("no_progress"), options.pop("no_clobber")
    options["progress"] = not quiet and sys.stderr.isatty()
    streams = DASH in (values, groups, weights, out)
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
    from gatherum.files.grouped.decimal_columns import FillText
    from gatherum.files.grouped.outputs import TABLES, table_suffix, table_target

    def operand(role: str, path: str) -> Any:
        try:
            if path == DASH:
                return read_array(folder, ENTRIES, role)
            return path if role != "GROUPS" else as_operand(ENTRIES, path, role)
        except NotIntegers as error:
            advice = DECIMALS if error.has_numbers else KEYS
            raise ValueError(f"{error}; {advice}") from None

    if keep and out not in (None, DASH):
        text = str(out)
        check_absent(
            table_target(text) if table_suffix(text) else locate_output(text, TABLES),
            "--no-clobber",
        )
    source = None if groups is None else operand("VALUES", values)
    groups_source = operand("GROUPS", values if groups is None else groups)
    if options["weights"] is not None:
        options["weights"] = operand("WEIGHTS", options["weights"])
    if options["fill_value"] is not None:
        options["fill_value"] = FillText(*options["fill_value"])
    target: Any = out
    if out == DASH:
        target = named_file(folder, OUTPUT)
    result = files.reduce_file(source, groups_source, target, **options)
    if out is None:
        click.echo(_text(result))
    elif out == DASH:
        write_to_output(target.file)
    else:
        click.echo(_summary(out, folder, result))


def _text(result: Any) -> str:
    """Return results as text: a table with one column for each result, if that is possible."""
    if not isinstance(result, dict):
        return np.array2string(result, formatter={"object": str})
    if any(part.ndim != 1 for part in result.values()):
        return "\n".join(f"{name}:\n{part}" for name, part in result.items())
    length = len(next(iter(result.values())))
    shown = list(range(length)) if length <= SHOWN else [*range(3), *range(length - 3, length)]
    rows = [list(result), *([str(part[i]) for part in result.values()] for i in shown)]
    if length > SHOWN:
        rows.insert(4, ["..."] * len(result))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(map(str.rjust, row, widths)) for row in rows)
    return "\n".join(lines)


def _summary(out: str, folder: str, stats: Any) -> str:
    """Return a line that describes the output, and the work of the run."""
    from gatherum.files.casts import description
    from gatherum.files.grouped.outputs import describe_table
    from gatherum.files.resources.stats import size_text

    table = describe_table(out)
    result = f"{table}, {size_text(os.path.getsize(out))}" if table else description(out, folder)
    rows = f"{stats.rows:,} {'row' if stats.rows == 1 else 'rows'}"
    memory = size_text(stats.peak_memory)
    return f"{out}: {result}; from {rows} in {stats.seconds:.2f} s, peak memory {memory}"
