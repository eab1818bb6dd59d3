"""Delay Ctrl-C until a block of code has finished."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Delay a Ctrl-C until the block is done, so that the block is not left half-done.

    After the block, the program's handler runs, or the signal is ignored if the program ignores it.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before is None:
        yield  # signals do not reach other threads, and a handler in C cannot be restored
        return
    signals: list[int] = []

    def hold(signal_number: int, frame: FrameType | None) -> None:
        signals.append(signal_number)

    signal.signal(signal.SIGINT, hold)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if signals:
        signal.raise_signal(signal.SIGINT)
