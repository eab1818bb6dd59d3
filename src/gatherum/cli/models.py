"""``gatherum run`` executes the commands of DirectML's models on this processor."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from . import options as shared
from .command_group import commands
from .indices import LARGEST
from .streams import DASH, INPUT, read

if TYPE_CHECKING:
    from ..directml import FeatureLevel


@commands.command("run", short_help="Run a DxDispatch model.")
@click.argument("file", metavar="MODEL")
@shared.feature_level
def run_model(file: str, feature_level: FeatureLevel) -> None:
    """Execute the commands of MODEL, a JSON file as DirectML's DxDispatch reads it.

    A model's commands are dispatch, for gather and scatter operators, print, writeFile and compare.
    print and writeFile give the lines that DxDispatch gives; compare is known to this command
    alone. Exit status 1: a comparison fails, or the model is not valid and nothing was executed.
    Paths in the model are relative to its folder, or to the current one if MODEL is -.

    Example: gatherum run model.json
    """
    from ..directml.models import run_file, run_text
    from ..files.remote import refuse_url

    refuse_url(file, "a URL is not run; download it")
    try:
        if file == DASH:
            result = run_text(read("MODEL", LARGEST), "", feature_level)
        else:
            result = run_file(file, feature_level)
    except ValueError as error:
        raise ValueError(f"{INPUT if file == DASH else file}: {error}") from error
    result.write_files()
    click.echo("\n".join(result.lines), nl=bool(result.lines))
    if not result.equal:
        raise click.exceptions.Exit(1)
