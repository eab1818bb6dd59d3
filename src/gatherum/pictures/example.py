"""Make up indices for pictures of calls whose shapes alone are known."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..call import Call
from .roles import Form


def example_indices(s: Call, form: Form) -> NDArray[np.int64]:
    """Return indices for a small call: out of order, with a duplicate, with one from the end where
    the call takes it, and, where the mode says what becomes of it, with one out of bounds.
    """
    indices = np.zeros(form.indices, np.int64)
    signed = s.negative and s.indices.dtype.kind == "i"
    for number, where in enumerate(np.ndindex(form.entries)):
        if form.elements:
            line = sum(where) - where[form.axis]
            size = form.named[form.axis]
            indices[where] = _pick(where[form.axis], line, size, s.mode, signed)
        elif not form.tuples:
            indices[where] = _pick(number, 0, form.named[0], s.mode, signed)
        else:
            last = len(form.named) - 1
            for c, size in enumerate(form.named):
                mode, negative = (s.mode, signed) if c == last else ("raise", False)
                indices[(*where, c)] = _pick(number, c, size, mode, negative)
    return indices


def _pick(number: int, shift: int, size: int, mode: str, signed: bool) -> int:
    """Return the index at a place of the pattern: 2, 0, 2 again, the last, 1, 3, 5, ..."""
    if number == 1 and shift == 0 and mode != "raise":
        return size + 1
    if number == 3 and signed and size:
        return -1
    pattern = (2, 0, 2, size - 1, 1)
    value = pattern[number] if number < len(pattern) else 2 * number - 7
    return (value + shift) % size if size else 0
