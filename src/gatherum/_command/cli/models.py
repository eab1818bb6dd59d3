"""The command ``gatherum run``, which executes the commands of DirectML's models on the CPU."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from . import options as shared
from .checks import ONNX
from .command_group import commands
from .indices import LARGEST
from .streams import DASH, INPUT, read_input

if TYPE_CHECKING:
    from gatherum.directml import FeatureLevel


@commands.command("run", short_help="Run a DxDispatch model.")
@click.argument("file", metavar="MODEL")
@shared.feature_level
@click.option(
    "--output", type=click.Path(file_okay=False), default="", metavar="DIR",
    help="The folder for the files of writeFile, by default the current one.",
)  # fmt: skip
def run_model(file: str, feature_level: FeatureLevel, output: str) -> None:
    """Execute the commands of MODEL, a JSON file in the format of DirectML's DxDispatch.

    A model's commands are dispatch (for gather and scatter operators), print, writeFile and
    compare. The commands `print` and `writeFile` produce the same output as in DxDispatch.
    DxDispatch has no `compare`. Exit status 1: a comparison fails, or the model is not valid and
    nothing was executed. Paths of initial values are relative to the model's folder, or to the
    current one if MODEL is -. writeFile writes only below the folder DIR and never replaces an
    input. Either all files are written or none.

    Example: gatherum run model.json
    """
    from gatherum.directml.models import run_file, run_text
    from gatherum.files.durable.file_sets import write_files
    from gatherum.files.remote import refuse_url

    refuse_url(file, "a URL is not run; download it")
    if file != DASH and _is_onnx(file):
        raise ValueError(
            f"{file} is an ONNX model; `run` takes DirectML's models in JSON. `gatherum check` "
            "checks an ONNX model, and onnx.reference or onnxruntime runs it"
        )
    if output == DASH:
        raise click.UsageError(f"DIR is a folder of files, which standard output ({DASH}) is not.")
    try:
        if file == DASH:
            result = run_text(read_input("MODEL", LARGEST), "", feature_level, output)
        else:
            result = run_file(file, feature_level, output)
    except ValueError as error:
        raise ValueError(f"{INPUT if file == DASH else file}: {error}") from error
    write_files({os.path.join(output, path): data for path, data in result.files.items()})
    click.echo("\n".join(result.lines), nl=bool(result.lines))
    if not result.equal:
        raise click.exceptions.Exit(1)


def _is_onnx(file: str) -> bool:
    """Return True for a file that begins like an ONNX model."""
    with open(file, "rb") as stream:
        return stream.read(1) == ONNX
