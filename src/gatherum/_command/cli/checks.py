"""``gatherum check`` checks models and operator descs against DirectML's feature levels."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from . import options as shared
from .command_group import commands
from .indices import LARGEST
from .numbers import integer, short
from .streams import DASH, INPUT, check_one, open_input, read_input

if TYPE_CHECKING:
    from gatherum.directml import FeatureLevel

ONNX: Final = b"\x08"  # an ONNX model begins with it: the tag of its version; JSON does not
LARGEST_MODEL: Final = (2 << 30) - 1
NOTHING: Final = 3  # exit status of a model without a gather or scatter node


def _sizes(_: click.Context, __: click.Parameter, texts: Sequence[str]) -> dict[str, int]:
    sizes = {}
    for text in texts:
        name, _equals, size = text.partition("=")
        parsed = integer(size, 0, 2**63 - 1) if size.isdecimal() else None  # no sign, as in ONNX
        if not name or parsed is None:
            raise click.BadParameter(
                f"must be a name and a size such as batch=8, got {short(text)}."
            )
        sizes[name] = parsed
    return sizes


@commands.command(short_help="Check models against a DirectML level.")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@shared.feature_level
@click.option(
    "--size", "sizes", multiple=True, callback=_sizes, metavar="NAME=N",
    help="The size of a symbolic dimension of an ONNX model; may be given several times.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def check(
    files: tuple[str, ...], feature_level: FeatureLevel, sizes: dict[str, int], as_json: bool
) -> None:
    """Check each FILE against a DirectML feature level, and list every reason for a rejection.

    FILE is an ONNX model (.onnx), or a JSON file with an operator desc or a DxDispatch model. Only
    gather and scatter nodes are checked. Exit status: 0 if all are accepted; 1 if one is rejected,
    or the result is open because a shape or a type is unknown; 3 if none is rejected, but a model
    has no such node.

    Example: gatherum check model.onnx --feature-level 4_1 --size batch=8
    """
    check_one(["FILE"] * files.count(DASH))
    inputs = list(map(_input, files))
    if sizes and not any(operand.is_model for operand in inputs):
        raise click.UsageError("--size is for ONNX models.")
    accepted_files = []
    results: list[dict[str, Any]] = []
    for operand in inputs:
        accepted, lines, result = _check(operand, feature_level, sizes)
        accepted_files.append(accepted)
        results.append({"file": operand.name, **result} if len(files) > 1 else result)
        if not as_json:
            click.echo("\n".join([f"{operand.name}:", *lines] if len(files) > 1 else lines))
    if as_json:
        click.echo(json.dumps(results if len(files) > 1 else results[0], indent=2))
    if False in accepted_files:
        raise click.exceptions.Exit(1)
    if None in accepted_files:
        raise click.exceptions.Exit(NOTHING)


class _Input(NamedTuple):
    """An input to check: a file, or the content of standard input."""

    name: str
    source: str | bytes
    is_model: bool


def _input(file: str) -> _Input:
    if file != DASH:
        return _Input(file, file, file.lower().endswith(".onnx"))
    first_byte = open_input("FILE").read(1)
    is_model = first_byte == ONNX
    limit = LARGEST_MODEL if is_model else LARGEST
    return _Input(INPUT, read_input("FILE", limit, first_byte), is_model)


def _check(
    source_file: _Input, level: FeatureLevel, sizes: dict[str, int]
) -> tuple[bool | None, list[str], dict[str, Any]]:
    """Return (accepted, lines, result). `accepted` is None if the file has nothing to check."""
    from gatherum.directml.report import NothingToCheckError
    from gatherum.files.remote import refuse_url

    name, source, is_model = source_file
    if isinstance(source, str):
        refuse_url(source, "a URL is not checked; download it")
        os.stat(source)  # raise for a missing file even without the package onnx
    try:
        return (_check_model if is_model else _check_desc)(source, level, sizes)
    except NothingToCheckError as error:
        item_name = "nodes" if is_model else "lines"
        return (
            None,
            [str(error)],
            {"accepted": None, item_name: [], "operators": list(error.operators)},
        )
    except ValueError as error:
        if name in str(error):
            raise
        raise ValueError(f"{name}: {str(error).removeprefix('check_model: ')}") from error


def _check_model(
    source: str | bytes, level: FeatureLevel, sizes: dict[str, int]
) -> tuple[bool, list[str], dict[str, Any]]:
    from gatherum import onnx
    from gatherum.directml.report import NothingToCheckError
    from gatherum.onnx.graphs import op_types

    reports = onnx.check_model(source, level, sizes=sizes)
    if not reports:
        raise NothingToCheckError("node", op_types(source))
    accepted = all(report.accepted for report in reports)
    return accepted, onnx.report_lines(reports), json.loads(onnx.reports_to_json(reports))


def _check_desc(
    source: str | bytes, level: FeatureLevel, _: dict[str, int]
) -> tuple[bool, list[str], dict[str, Any]]:
    from gatherum import directml

    if isinstance(source, bytes):
        report = directml.check_text(source, level)
    else:
        report = directml.check_file(source, level)
    lines = list(report.lines)
    return report.accepted, lines, {"accepted": report.accepted, "lines": lines}
