"""``gatherum run`` executes the commands of DirectML's models on this processor."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from . import options as shared
from .group import commands

if TYPE_CHECKING:
    from ..directml import FeatureLevel


@commands.command("run")
@click.argument("file", metavar="MODEL")
@shared.feature_level
def run_model(file: str, feature_level: FeatureLevel) -> None:
    """Execute the commands of MODEL, a JSON file as DirectML's DxDispatch reads it.

    The commands are dispatch, for gather and scatter operators, print and writeFile, whose lines
    are as that tool prints them, and compare, which only this command has. Exit status 1: a
    comparison fails, or the model is not as it should be, and then nothing was executed.

    Example: gatherum run model.json
    """
    from ..directml.models import run_file
    from ..files.remote import refuse_url

    refuse_url(file, "a URL is not run; download it")
    try:
        result = run_file(file, feature_level)
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from error
    result.write_files()
    click.echo("\n".join(result.lines), nl=bool(result.lines))
    if not result.equal:
        raise click.exceptions.Exit(1)
