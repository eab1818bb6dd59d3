"""The command ``gatherum vectors``, which writes test vectors for other implementations."""

from __future__ import annotations

import re
from typing import Any

import click

from gatherum._model.operators import OPERATORS

from . import options as shared
from .command_group import commands
from .numbers import Integer
from .streams import DASH

# Equal to the formats of gatherum.conformance, which is imported only when the command runs. A test
# compares them.
FORMATS = ("npz", "onnx", "webnn", "dxdispatch")


@commands.command(short_help="Write test vectors for other libraries.")
@click.argument("folder", type=click.Path(file_okay=False), metavar="DIR")
@click.option(
    "--format", "target", type=click.Choice(FORMATS), default="npz", show_default=True,
    help="The format of the files, and the rules to follow.",
)  # fmt: skip
@click.option(
    "--op", type=click.Choice([operator.command for operator in OPERATORS.values()]),
    help="Write the cases of one operator only.",
)  # fmt: skip
@shared.dtype
@click.option(
    "--rule", metavar="NAME",
    help="Write the cases of one rule only. Those of far_sizes, whose tables are not stored, are "
    "written only when it is named.",
)  # fmt: skip
@click.option("--opset", type=Integer(), metavar="N", help="The opset, for --format onnx.")
@click.option(
    "--feature-level", metavar="LEVEL", help="DirectML's feature level, for --format dxdispatch."
)
@click.option(
    "--seed", type=Integer(), default=0, show_default=True, help="The seed of the random cases."
)
def vectors(folder: str, target: Any, **options: Any) -> None:
    """Write test vectors into the folder DIR: calls, their results, and the rule that each tests.

    DIR must be empty or missing. It gets all files, or none if the command fails.

    Example: gatherum vectors cases --format onnx --op scatter-nd
    """
    from gatherum import conformance

    if folder == DASH:
        raise click.UsageError(f"DIR is a folder of files, which standard output ({DASH}) is not.")
    try:
        conformance.vectors(target, **options)
    except ValueError as error:
        text = re.sub("^vectors: `([a-z_]+)`", lambda found: shared.flag(found[1]), str(error))
        raise click.UsageError(f"{text}.") from None
    count = conformance.write(folder, target, **options)
    click.echo(f"{folder}: {count} cases")
