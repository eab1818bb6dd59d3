"""The machine at hand: our times against its own limits and against the peers installed on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .command import main

__all__ = ["main"]


def __getattr__(name: str) -> object:
    """Import the command when it is asked for: ``python -m gatherum.bench.report`` does not."""
    if name == "main":
        from .command import main

        return main
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
