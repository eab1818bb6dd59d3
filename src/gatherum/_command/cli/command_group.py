"""The command group. Every command ends with an exit status and at most one error line."""

from __future__ import annotations

import inspect
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from typing import Any, TextIO

import click

from gatherum._command.startup import INTERRUPTED, discard, say
from gatherum._model.errors.audience import for_command
from gatherum._model.operators import OPERATORS
from gatherum._system.regular_files import naming
from gatherum.version import __version__

# Wrong data, files or settings raise these; anything else is a bug in this package.
DATA_ERRORS = (TypeError, ValueError, IndexError, OSError, MemoryError, ImportError)
OUTPUT = "standard output"
OWN = ("reduce_file", "from_file")  # functions without a command of the same name


class Command(click.Command):
    """A command whose help keeps each example on one line, so that it can be pasted."""

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the help."""
        text = inspect.cleandoc(self.help or "")
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(re.sub("^Example: ", "\b\nExample: ", text, flags=re.MULTILINE))


class Commands(click.Group):
    """A group whose commands turn every exception into one line and an exit status."""

    command_class = Command

    def make_context(self, *arguments: Any, **more: Any) -> click.Context:
        """Parse the arguments of the group, such as those that print the help or the version."""
        with _ends_in_a_line():
            return super().make_context(*arguments, **more)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command. Turn an exception into a line and an exit status."""
        with _ends_in_a_line(ctx), for_command(), _warnings_in_lines():
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result


@contextmanager
def _ends_in_a_line(ctx: click.Context | None = None) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        raise _stop("interrupted", INTERRUPTED) from None
    except (click.ClickException, click.exceptions.Exit):
        raise
    except DATA_ERRORS as error:
        if isinstance(error, OSError) and error.filename == OUTPUT:
            discard(sys.stdout)
            if isinstance(error, BrokenPipeError):  # the reader of the output has stopped
                raise click.exceptions.Exit(1) from None
        raise _stop(_of_command(_message(error), ctx), 1) from error
    except Exception as error:
        text = f"internal error, please report it: {type(error).__name__}: {error}"
        raise _stop(text, 1) from error


@contextmanager
def _warnings_in_lines() -> Iterator[None]:
    """Print each warning of this package on one line."""
    with warnings.catch_warnings():
        warnings.filterwarnings("always", category=UserWarning, module="gatherum")
        shown = warnings.showwarning

        def say_or_show(
            message: Warning | str, category: type[Warning], filename: str, lineno: int,
            file: TextIO | None = None, line: str | None = None,
        ) -> None:  # fmt: skip
            if category is UserWarning:
                say(f"warning: {message}")
            else:
                shown(message, category, filename, lineno, file, line)

        warnings.showwarning = say_or_show
        yield


class Output:
    """Standard output. Its errors name it."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Write a text."""
        with naming(OUTPUT):
            return self.stream.write(text)

    def flush(self) -> None:
        """Flush the output."""
        with naming(OUTPUT):
            self.stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def _stop(text: str, status: int) -> click.exceptions.Exit:
    say(" ".join(text.split()))
    return click.exceptions.Exit(status)


def _of_command(text: str, ctx: click.Context | None) -> str:
    """Replace a function's name at the start of a message with the name of its command."""
    function, colon, message = text.partition(": ")
    if function in OPERATORS:
        function = OPERATORS[function].command
    elif function in OWN and ctx is not None and ctx.invoked_subcommand:
        function = ctx.invoked_subcommand
    return function + colon + message


def _message(error: BaseException) -> str:
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
        Default: the arguments of the process.

    Returns
    -------
    int
        The exit status.
    """
    try:
        with redirect_stdout(Output(sys.stdout)):
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

    An array is in x.npy, x.npz:name, model.safetensors:tensor, x.h5:dataset or a Zarr directory; a
    table may also be in x.parquet:column. Write - for standard input or output: an array in .npy
    format, or indices as text. An output file appears only when it is complete. Exit status: 0
    success, 1 wrong data, 2 wrong usage.

    Example: gatherum gather table.npy rows.npy -o picked.npy
    """
