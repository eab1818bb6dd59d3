"""Formats of values in error messages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

Shape = tuple[int, ...]


def choices(values: Iterable[str]) -> str:
    """Format the allowed values of an argument."""
    return ", ".join(repr(value) for value in values)


def short(value: object) -> str:
    """Format a value in one short line: an array as its dtype and shape, other values truncated."""
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} {value.shape}"
    if isinstance(value, int) and value.bit_length() > 4096:  # Python may not be able to format it
        return f"an integer of {value.bit_length()} bits"
    shown_items = value[:60] if isinstance(value, (list, tuple)) else value
    text = " ".join(repr(shown_items).split())
    return text if len(text) <= 60 else text[:57] + "..."


def indexed(operand: str, position: Sequence[object]) -> str:
    """Format the position of an item of an operand."""
    return f"{operand}[{', '.join(map(str, position))}]" if position else operand
