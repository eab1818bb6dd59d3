"""Messages give their readers advice for NumPy, for PyTorch, or options of the command."""

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
    """Let messages name options of the command, and no Python."""
    return _for_reader("command")


def advice(of_numpy: str, of_torch: str) -> str:
    """Return advice for the readers that there are."""
    return of_torch if _READER.get() == "torch" else of_numpy


def hint(advice: str) -> str:
    """Return advice to write Python, behind a message; none for readers of the command."""
    return f"; {advice}" if advice and _READER.get() != "command" else ""


def for_commands(advice: str) -> str:
    """Return advice behind a message for readers of the command; none for others."""
    return f"; {advice}" if _READER.get() == "command" else ""


def argument(name: str) -> str:
    """Return what an argument is called: as Python has it, in backticks, or a flag."""
    return option(name) if _READER.get() == "command" else f"`{name}`"


def option(python: str) -> str:
    """Return how to set an option: as Python has it, such as ``resume=True``, or as a flag."""
    if _READER.get() != "command":
        return python
    name, _, value = python.partition("=")
    return f"--{'no-' if value == 'False' else ''}{name.replace('_', '-')}"
