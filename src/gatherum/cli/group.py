"""The command's group: every command ends in one line and an exit status, whatever happens."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

import click

from ..version import __version__

INTERRUPTED = 130
# What wrong data, files or settings raise; anything else is a mistake of this package.
DATA_ERRORS = (TypeError, ValueError, IndexError, OSError, MemoryError, ImportError)


class Commands(click.Group):
    """A group whose commands end in one line, whatever happens."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command, and turn what it raises into a line and an exit status."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise _stop("interrupted", INTERRUPTED) from None
        except BrokenPipeError:
            # Whoever reads the output has seen enough; Python's own last flush must not complain.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise click.exceptions.Exit(1) from None
        except (click.ClickException, click.exceptions.Exit):
            raise
        except DATA_ERRORS as error:
            raise _stop(_sentence(error), 1) from error
        except Exception as error:
            text = f"internal error, please report it: {type(error).__name__}: {error}"
            raise _stop(text, 1) from error


def _stop(text: str, status: int) -> click.exceptions.Exit:
    click.echo(f"gatherum: {' '.join(text.split())}", err=True)
    return click.exceptions.Exit(status)


def _sentence(error: BaseException) -> str:
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror}"
    if isinstance(error, MemoryError):
        return f"not enough memory: {error}" if str(error) else "not enough memory"
    return str(error) or type(error).__name__


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command line.

    Parameters
    ----------
    arguments : sequence of str, optional
        Default: those of the process.

    Returns
    -------
    int
        The exit status.
    """
    try:
        status = commands.main(
            None if arguments is None else list(arguments),
            prog_name="gatherum",
            standalone_mode=False,
        )
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx else "gatherum"
        return _stop(f"{error.format_message()} See {path} --help.", 2).exit_code
    return status if isinstance(status, int) else 0


@click.group(
    cls=Commands, no_args_is_help=False, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(__version__, message="%(prog)s %(version)s")
def commands() -> None:
    """Gather and scatter on arrays in files.

    A file is x.npy, x.npz:name, model.safetensors:tensor, x.h5:dataset or a Zarr directory; tables
    are also read from x.parquet:column. Results appear only when they are complete. Exit status: 0
    success, 1 wrong data, 2 wrong usage.

    Example: gatherum gather table.npy rows.npy -o picked.npy
    """
