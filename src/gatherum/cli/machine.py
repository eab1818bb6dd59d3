"""Commands about this machine and this installation."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from ..config import show_config
from . import options as shared
from .group import commands
from .numbers import Integer


@commands.command()
@click.option(
    "--only",
    multiple=True,
    metavar="NAME",
    help="Run these workloads: names, parts of names or patterns.",
)
@click.option(
    "--peers",
    metavar="NAMES",
    help="Libraries to compare with, separated by commas; by default all that are installed.",
)
@click.option(
    "--scale",
    default=1.0,
    show_default=True,
    help="Size of the arrays, relative to the full workloads.",
)
@click.option(
    "--rounds", type=Integer(), default=7, show_default=True,
    help="Timed runs of each library, at most.",
)  # fmt: skip
@click.option("--json", "json_file", metavar="FILE", help="Write the report as JSON.")
def bench(
    only: tuple[str, ...],
    peers: str | None,
    scale: float,
    rounds: int,
    json_file: str | None,
) -> None:
    """Measure this machine, and compare with the libraries that are installed on it.

    Example: gatherum bench --scale 0.1 --peers numpy
    """
    from ..bench import main

    families = None if peers is None else peers.split(",")
    try:
        main(only or None, json_file, scale, rounds, families)
    except ValueError as option:  # a workload, peer, scale or number that it does not know
        raise click.UsageError(str(option)) from None


@commands.command()
def info() -> None:
    """Show the version, instruction set, threads, caches and optional parts.

    Example: gatherum info
    """
    show_config()


@commands.command()
@shared.device
def verify(device: str) -> None:
    """Compare digests of all answers with the published ones.

    There is a digest for every operator, dtype and reduction, computed from generated calls. The
    digests are the same on every machine, instruction set and number of threads, and on a CUDA
    device. Exit status 1 means that some differ; they are listed. This takes several seconds.

    Example: GATHERUM_NUM_THREADS=1 gatherum verify
    """
    from ..verify import verify as compare

    found = compare(device)
    click.echo(str(found))
    if not found.agrees:
        raise click.exceptions.Exit(1)


@commands.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print a completion script for SHELL.

    Example: eval "$(gatherum completion bash)"
    """
    found = get_completion_class(shell)
    if found is None:
        raise click.UsageError(f"click has no completion for {shell}.")
    click.echo(found(commands, {}, "gatherum", "_GATHERUM_COMPLETE").source())
