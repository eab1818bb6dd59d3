"""``gatherum check`` checks models and operator descs against DirectML's feature levels."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from . import options as shared
from .group import commands
from .numbers import integer, short

if TYPE_CHECKING:
    from ..directml import FeatureLevel


def _sizes(_: click.Context, __: click.Parameter, given: Sequence[str]) -> dict[str, int]:
    sizes = {}
    for text in given:
        name, _equals, size = text.partition("=")
        number = integer(size, 0, 2**63 - 1) if size.isdecimal() else None  # as ONNX has them
        if not name or number is None:
            raise click.BadParameter(
                f"must be a name and a size such as batch=8, got {short(text)}."
            )
        sizes[name] = number
    return sizes


@commands.command()
@click.argument("file")
@shared.feature_level
@click.option(
    "--size", "sizes", multiple=True, callback=_sizes, metavar="NAME=N",
    help="The size of a symbolic dimension of an ONNX model; can be repeated.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def check(file: str, feature_level: FeatureLevel, sizes: dict[str, int], as_json: bool) -> None:
    """Check FILE against a DirectML feature level, and list every reason against it.

    FILE is an ONNX model (.onnx), or an operator desc in JSON. Exit status 0: accepted; 1:
    rejected, or undecided because a shape or type is unknown.

    Example: gatherum check model.onnx --feature-level 4_1 --size batch=8
    """
    from ..files.remote import refuse_url

    refuse_url(file, "a URL is not checked; download it")
    os.stat(file)  # a file that is missing is so without the package onnx, too
    is_model = file.lower().endswith(".onnx")
    if sizes and not is_model:
        raise click.UsageError("--size is for ONNX models.")
    try:
        if is_model:
            accepted, lines = _check_model(file, feature_level, sizes, as_json)
        else:
            accepted, lines = _check_desc(file, feature_level, as_json)
    except ValueError as error:
        if file in str(error):
            raise
        raise ValueError(f"{file}: {str(error).removeprefix('check_model: ')}") from error
    click.echo("\n".join(lines))
    if not accepted:
        raise click.exceptions.Exit(1)


def _check_model(
    file: str, level: FeatureLevel, sizes: dict[str, int], as_json: bool
) -> tuple[bool, list[str]]:
    from .. import onnx

    reports = onnx.check_model(file, level, sizes=sizes)
    accepted = all(report.accepted for report in reports)
    return accepted, [onnx.reports_to_json(reports)] if as_json else onnx.report_lines(reports)


def _check_desc(file: str, level: FeatureLevel, as_json: bool) -> tuple[bool, list[str]]:
    from .. import directml

    found = directml.check_file(file, level)
    if as_json:
        answer = {"accepted": found.accepted, "lines": list(found.lines)}
        return found.accepted, [json.dumps(answer, indent=2)]
    return found.accepted, list(found.lines)
