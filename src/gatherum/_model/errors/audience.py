"""Choose whether error messages give advice for NumPy, PyTorch or the command line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar

_READER: ContextVar[str] = ContextVar("_READER", default="numpy")


@contextmanager
def _for_reader(reader: str) -> Iterator[None]:
    token = _READER.set(reader)
    try:
        yield
    finally:
        _READER.reset(token)


def for_tensors() -> AbstractContextManager[None]:
    """Let messages give advice for PyTorch instead of NumPy."""
    return _for_reader("torch")


def for_command() -> AbstractContextManager[None]:
    """Let messages name command-line options instead of Python arguments."""
    return _for_reader("command")


def advice(of_numpy: str, of_torch: str) -> str:
    """Return the advice for the current reader."""
    return of_torch if _READER.get() == "torch" else of_numpy


def hint(text: str) -> str:
    """Format advice about Python code, to append to a message; "" for command-line users."""
    return f"; {text}" if text and _READER.get() != "command" else ""


def command_hint(text: str) -> str:
    """Format advice for command-line users, to append to a message; "" for other users."""
    return f"; {text}" if _READER.get() == "command" else ""


def argument(name: str) -> str:
    """Return the name of an argument: its Python name in backticks, or its flag."""
    return option(name) if _READER.get() == "command" else f"`{name}`"


def option(python: str) -> str:
    """Return the code that sets an option, such as ``resume=True``, or its flag."""
    if _READER.get() != "command":
        return python
    name, _, value = python.partition("=")
    return f"--{'no-' if value == 'False' else ''}{name.replace('_', '-')}"
