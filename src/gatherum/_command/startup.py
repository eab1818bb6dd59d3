"""Start the command: prepare its streams and messages, and handle Ctrl-C during imports."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from types import FrameType
from typing import TextIO

__all__ = ["INTERRUPTED", "discard", "ends_at_once", "open_streams", "say"]

INTERRUPTED = 130  # exit status after Ctrl-C


def open_streams() -> None:
    """Open standard streams that are closed; otherwise other files would get their descriptors.

    If standard error is closed, text that is written to it is discarded. Writing to a closed
    standard output is an error.
    """
    if sys.stdin is None:
        sys.stdin = open(os.devnull)  # noqa: SIM115  # kept open
    if sys.stdout is None:
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w")
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115  # kept open
    if isinstance(sys.stdout, TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")  # a file name may contain any bytes


def say(text: str) -> None:
    """Write a line to standard error, if that is possible."""
    if sys.stderr is None:
        return
    try:
        print(f"gatherum: {text}", file=sys.stderr, flush=True)
    except OSError:  # the stream has no reader any more; the exit status reports the failure
        discard(sys.stderr)


def discard(stream: TextIO) -> None:
    """Discard the unwritten text of a stream; otherwise Python would print an error at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


@contextmanager
def ends_at_once() -> Iterator[None]:
    """Let a Ctrl-C end the process during imports, which may suppress the exception."""
    python_handler = signal.default_int_handler
    main = threading.current_thread() is threading.main_thread()
    if not (main and signal.getsignal(signal.SIGINT) is python_handler):
        yield
        return
    signal.signal(signal.SIGINT, _end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, python_handler)


def _end(_: int, __: FrameType | None) -> None:
    say("interrupted")
    os._exit(INTERRUPTED)
