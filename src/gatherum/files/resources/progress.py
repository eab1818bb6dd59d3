"""Progress bars and lines."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from .stats import Progress, size_text

__all__ = ["progress_shown"]

PAUSE = 1.0  # seconds between two lines


@contextmanager
def progress_shown(shown: bool) -> Iterator[Progress | None]:
    """Yield a function that shows a bar, given the bytes moved and expected; or None.

    If `rich` is not installed, it prints a line each second instead.
    """
    if not shown or sys.stderr is None:  # standard error is closed
        yield None
        return
    try:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            TimeRemainingColumn,
            TransferSpeedColumn,
        )
        from rich.progress import (
            Progress as Bar,
        )
    except ImportError:  # without rich, print a line each second
        yield lines()
        return
    moved = BarColumn(), DownloadColumn(binary_units=True)
    columns = *moved, TransferSpeedColumn(), TimeRemainingColumn()
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("moved", total=None)
        yield lambda moved, expected: bar.update(task, completed=moved, total=expected)


def lines() -> Progress:
    """Return a function that writes a line to standard error, once a second and at the end."""
    last = time.monotonic()

    def line(moved: int, expected: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last < PAUSE and moved < expected:
            return
        last = now
        print(f"moved {size_text(moved)} of {size_text(expected)}", file=sys.stderr)

    return line
