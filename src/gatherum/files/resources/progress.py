"""Progress bars and lines."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from .stats import ProgressDisplay, amounts_text, size_text

if TYPE_CHECKING:
    from rich.console import Console

PAUSE = 1.0  # seconds between two lines


@contextmanager
def progress_shown(shown: bool, label: str) -> Iterator[ProgressDisplay | None]:
    """Yield a function of the bytes done and expected that shows a bar, or None for no bar.

    `label` names the call. Without `rich`, or in a notebook without ipywidgets, which `rich` needs
    for a bar, the function prints a line each second.
    """
    if not shown or sys.stderr is None:  # standard error is closed
        yield None
        return
    try:
        from rich.console import Console
    except ImportError:  # without rich, print a line each second
        yield Lines(label)
        return
    console = Console(stderr=True)
    if console.is_jupyter and find_spec("ipywidgets") is None:
        lines = Lines(label, end="\r")
        yield lines
        lines.close()
        return
    with bar(console, label) as display:
        yield display


@contextmanager
def bar(console: Console, label: str) -> Iterator[ProgressDisplay]:
    """Yield the function that updates a `rich` bar."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[amounts]}")
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as progress:
        yield Bar(progress, progress.add_task(label, total=None, amounts=""), label)


class Bar(ProgressDisplay):
    """A `rich` bar with the label of the call, its phase, the bytes and their rate."""

    def __init__(self, progress: Any, task: Any, label: str) -> None:
        self._progress, self._task, self._label = progress, task, label

    def __call__(self, done: int, expected: int) -> None:
        """Show the progress."""
        self._progress.update(self._task, completed=done, total=expected)
        speed = self._progress.tasks[0].speed
        rate = f", {size_text(int(speed))}/s" if speed else ""
        self._progress.update(self._task, amounts=amounts_text(done, expected) + rate)

    def phase(self, name: str) -> None:
        """Show the name of the phase."""
        self._progress.update(self._task, description=f"{self._label}: {name}")


class Lines(ProgressDisplay):
    """Lines of text on standard error, one each second and one at the end.

    With a carriage return as the `end`, each line replaces the previous one.
    """

    def __init__(self, label: str, end: str = "\n") -> None:
        self._label, self._phase, self._end = label, "moving", end
        self._last, self._written = time.monotonic(), 0

    def __call__(self, done: int, expected: int) -> None:
        """Show the progress if a second has passed, or at the end."""
        time_now = time.monotonic()
        if time_now - self._last < PAUSE and done < expected:
            return
        self._last = time_now
        line = f"{self._label}: {self._phase}, {amounts_text(done, expected)}"
        print(line.ljust(self._written), end=self._end, file=sys.stderr, flush=True)
        self._written = len(line) if self._end == "\r" else 0

    def phase(self, name: str) -> None:
        """Show the name of the phase in the next line."""
        self._phase = name

    def close(self) -> None:
        """End a line that the next one would have replaced."""
        if self._written:
            print(file=sys.stderr, flush=True)
