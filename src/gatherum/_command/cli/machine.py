"""Commands that report on this installation."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from gatherum._functions.settings import show_config

from . import options as shared
from .command_group import commands


@commands.command(short_help="Show the version and optional parts.")
def info() -> None:
    """Show the version, instruction set, threads, caches and optional parts.

    Example: gatherum info
    """
    show_config()


@commands.command(short_help="Compare digests with the published ones.")
@shared.device
def verify(device: str) -> None:
    """Compare digests of all results with the published ones.

    There is a digest for every operator, dtype and reduction, computed from generated calls. The
    digests are the same on every machine, instruction set and number of threads, and on a CUDA
    device. Exit status 1 means that some differ; they are listed. This takes several seconds.

    Example: GATHERUM_NUM_THREADS=1 gatherum verify
    """
    from gatherum._command.verify import verify as compare

    verification = compare(device)
    click.echo(str(verification))
    if not verification.agrees:
        raise click.exceptions.Exit(1)


@commands.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print a completion script for SHELL.

    Example: eval "$(gatherum completion bash)"
    """
    completion_class = get_completion_class(shell)
    if completion_class is None:
        raise click.UsageError(f"click has no completion for {shell}.")
    click.echo(completion_class(commands, {}, "gatherum", "_GATHERUM_COMPLETE").source())
