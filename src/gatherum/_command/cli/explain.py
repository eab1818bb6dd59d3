"""``gatherum explain`` describes a call from shapes or from files, without running it."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from click.shell_completion import CompletionItem

from gatherum._model import errors
from gatherum._model.arrays import NumpyArray
from gatherum._model.errors import Shape
from gatherum._model.operators import OPERATORS, Operator, find_operator
from gatherum._system.regular_files import check_folder

from . import options as shared
from .command_group import commands
from .indices import Values
from .numbers import Integer, Parsed, integer
from .options import FILE
from .streams import DASH, array_input, check_one, map_file, mapped_input

if TYPE_CHECKING:
    from gatherum._inspection.explanations import Explanation


class OperatorChoice(click.Choice):  # type: ignore[type-arg]  # generic only in new versions
    """An operator's name, with hyphens like the commands or with Python's underscores."""

    def __init__(self) -> None:
        super().__init__([operator.command for operator in OPERATORS.values()])

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the operator's row."""
        return find_operator(super().convert(str(value).replace("_", "-"), param, ctx))


def _role(param: click.Parameter | None, ctx: click.Context | None) -> str:
    """Return the option that reads standard input. Raise UsageError if two options do."""
    ctx = ctx or click.get_current_context()
    if ctx.resilient_parsing:  # shell completion: do not read its input
        raise click.UsageError("standard input is not read now.")
    roles: list[str] = ctx.meta.setdefault(__name__, [])
    roles.append(param.opts[0] if param is not None else DASH)
    check_one(roles)
    return roles[0]


class OperandSpec(Parsed):
    """The description of an operand: its sizes, or the array in a file."""

    name = "shape"
    expected = f"sizes such as 2x3x4, scalar, a .npy file or {DASH}"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return a shape or an array."""
        if value == DASH:
            return mapped_input(_role(param, ctx))
        return super().convert(value, param, ctx)

    def parse(self, text: str) -> Shape | NumpyArray | None:
        """Return the sizes in a string, or the array in a file."""
        if text.endswith(".npy"):
            return map_file(text)
        sizes = [] if text == "scalar" else text.split("x")
        digits = all(map(str.isdecimal, sizes))
        shape = [extent for size in sizes if (extent := integer(size)) is not None]
        return tuple(shape) if digits and len(shape) == len(sizes) else None

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Offer files."""
        return [CompletionItem(incomplete, type="file")]


class ValuesOrFile(Values):
    """Indices: comma-separated numbers, or the array in a file."""

    expected = f"{Values.expected}, a .npy file or {DASH}"
    shell_complete = OperandSpec.shell_complete

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return a list or an array."""
        if value == DASH:
            _role(param, ctx)
            operator = (ctx or click.get_current_context()).params["operator"]  # already parsed
            return array_input(operator, "INDICES")
        return super().convert(value, param, ctx)

    def parse(self, text: str) -> list[int] | NumpyArray | None:
        """Return the numbers in a string, or the array in a file."""
        return map_file(text) if text.endswith(".npy") else super().parse(text)


@commands.command(short_help="Explain what a call would do.")
@click.argument("operator", type=OperatorChoice(), metavar="OP", is_eager=True)
@click.option(
    "--data", type=OperandSpec(), required=True,
    help="The sizes of the data (2x3x4), a .npy file, or - for one on standard input.",
)  # fmt: skip
@click.option(
    "--indices", type=OperandSpec(), help="The sizes of the indices (5), a .npy file, or -."
)
@click.option(
    "--values", type=ValuesOrFile(),
    help="The indices themselves: 0,2,2,7, a .npy file, or -.",
)  # fmt: skip
@click.option(
    "--updates", type=OperandSpec(),
    help="The sizes of the updates, a .npy file, or -; by default the shape that fits.",
)  # fmt: skip
@click.option("--axis", type=Integer(), help="The axis that is indexed, by default 0.")
@click.option(
    "--batch-dims", type=Integer(),
    help="The number of leading dimensions that data and indices share, by default 0.",
)  # fmt: skip
@shared.dtype
@click.option(
    "--index-dtype", default="int64", show_default=True, callback=shared.named_dtype,
    help="The dtype of the indices.",
)  # fmt: skip
@shared.mode
@shared.negative
@shared.fill_value
@shared.reduction
@shared.exclude_self
@click.option(
    "--svg", "svg_file", type=FILE, metavar="FILE",
    help="Write a picture of the call to a file, or to standard output with -.",
)  # fmt: skip
@click.option(
    "--floor", is_flag=True,
    help="Also measure how fast this machine reads memory, and estimate the least time.",
)  # fmt: skip
@shared.device
def explain(
    operator: Operator, svg_file: str | None, floor: bool, device: str, **options: Any
) -> None:
    """Explain a call to OP: its result, algorithm, number of bytes, loops and a picture.

    OP is gather, gather-elements, gather-nd, scatter-slices, scatter-elements or scatter-nd. The
    picture shows the indices from --values or a file, and an example otherwise. With --device cuda
    the report names the kernels that a GPU would run; only --floor needs a GPU.

    Example: gatherum explain gather --data 2x3x4 --indices 5 --axis 1 --svg gather.svg

    Example: gatherum explain scatter-nd --data 6 --values 0,2,2,5 --reduction add
    """
    from gatherum._inspection.explanations import explained

    if floor and svg_file == DASH:
        raise click.UsageError(f"--svg {DASH} prints the picture alone, so it takes no --floor.")
    _check_picture(svg_file, options)
    operands, attributes = _operands(operator, options), _attributes(operator, options)
    explanation = explained(operator, operands, attributes, device)
    if svg_file == DASH:
        click.echo(explanation.svg(), nl=False)
        return
    _show(explanation)
    if floor:
        click.echo(f"\n{_floor(explanation)}")
    if svg_file is not None:
        explanation.save(svg_file)
        click.echo(f"\nPicture: {svg_file}")


def _show(explanation: Explanation) -> None:
    """Print an explanation and its picture, for the width and colours of the terminal."""
    width, report = 80, str(explanation)
    shown = bool(sys.stdout and sys.stdout.isatty())
    if shown:
        width = shutil.get_terminal_size().columns
        report = "\n".join(part for line in report.splitlines() for part in _wrapped(line, width))
    picture = explanation.text(width, colours=shown and "NO_COLOR" not in os.environ)
    click.echo(f"{report}\n\n{picture}")


def _wrapped(line: str, width: int) -> list[str]:
    """Wrap a line at spaces, and return the resulting lines. A comment remains a comment."""
    indent = line[: len(line) - len(line.lstrip())]
    code, mark, comment = line.partition("# ")
    if not mark or len(line) <= width:
        return _filled(line, width, "", f"{indent}    ") or [line]
    lines = _filled(code.rstrip(), width, "", f"{indent}    ")
    margin = f"{indent}{'    ' if lines else ''}# "
    return lines + _filled(comment, width, margin, margin)


def _filled(text: str, width: int, first_prefix: str, next_prefix: str) -> list[str]:
    """Split a string into lines of at most `width` characters, including the prefixes."""
    return textwrap.wrap(
        text, max(width, 20), initial_indent=first_prefix, subsequent_indent=next_prefix,
        break_long_words=False, break_on_hyphens=False, replace_whitespace=False,
    )  # fmt: skip


def _floor(explanation: Explanation) -> str:
    try:
        return explanation.floor_line()
    except RuntimeError as why:  # no device answers, or its driver fails
        raise OSError(str(why)) from why


def _check_picture(svg_file: str | None, options: dict[str, Any]) -> None:
    """Raise ValueError if the file is not a picture or is an operand, OSError without a folder."""
    if svg_file is None or svg_file == DASH:
        return
    for name in ("data", "indices", "values", "updates"):
        file = options[name].filename if isinstance(options[name], np.memmap) else None
        if file is not None and Path(svg_file).exists() and Path(svg_file).samefile(file):
            raise ValueError(f"explain: the picture {svg_file} is the same file as --{name}")
    if not svg_file.lower().endswith(".svg"):
        raise errors.not_a_picture(svg_file)
    check_folder(svg_file)


def _attributes(operator: Operator, options: dict[str, Any]) -> dict[str, Any]:
    name = operator.attribute
    other = "axis" if name == "batch_dims" else "batch_dims"
    if options[other] is not None:
        takes = f"{shared.flag(name)}, not {shared.flag(other)}"
        raise click.UsageError(f"{operator.command} takes {takes}.")
    attributes = {key: options[key] for key in ("mode", "negative")}
    attributes[name] = options[name] or 0
    if operator.scatters:
        return attributes | shared.fold_keywords(options["reduction"], options["exclude_self"])
    shared.check_fill_value(options["mode"])
    return attributes | {"fill_value": options["fill_value"]}


def _operands(operator: Operator, options: dict[str, Any]) -> tuple[Any, Any, Any]:
    """Return the operands: arrays, or shapes and dtypes. The updates of a gather are None."""
    data_spec, updates = options["data"], options["updates"]
    dtype = data_spec.dtype if isinstance(data_spec, np.ndarray) else options["dtype"]
    data, indices = _spec(data_spec, dtype), _indices(operator, options)
    if not operator.scatters:
        for name in ("updates", "reduction", "exclude_self"):
            if isinstance(options[name], np.ndarray) or options[name] not in (None, "none", False):
                raise click.UsageError(f"{operator.command} takes no {shared.flag(name)}.")
        return data, indices, None
    if updates is None:  # the shape that fits without broadcasting
        first, second = (
            operand.shape if isinstance(operand, np.ndarray) else operand[0]
            for operand in (data, indices)
        )
        axis = operator.resolve(first, second, options[operator.attribute] or 0)
        updates = operator.moved_shape(first, second, axis)
    return data, indices, _spec(updates, dtype)


def _spec(operand: Any, dtype: np.dtype[Any]) -> Any:
    return operand if isinstance(operand, np.ndarray) else (operand, dtype)


def _indices(operator: Operator, options: dict[str, Any]) -> Any:
    values, shape, dtype = options["values"], options["indices"], options["index_dtype"]
    if values is None:
        if shape is None:
            raise click.UsageError("Missing option '--indices' (or '--values').")
        return _spec(shape, dtype)
    if isinstance(shape, np.ndarray):
        raise click.UsageError("--values and a file of --indices exclude each other.")
    if not isinstance(values, np.ndarray):
        try:
            values = np.array(values, dtype)
        except OverflowError:
            raise click.UsageError(f"--values must fit into --index-dtype {dtype}.") from None
    if shape is None:
        return values.reshape(-1, 1) if operator.takes_tuples and values.ndim == 1 else values
    if prod(shape) != values.size:
        raise ValueError(
            f"explain: --values must be {prod(shape)} numbers for indices of shape {shape}, "
            f"got {values.size}"
        )
    return values.reshape(shape)
