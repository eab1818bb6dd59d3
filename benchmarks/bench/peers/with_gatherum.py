"""Our own package: the same call into fresh, recycled and given memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import gatherum
from gatherum import clear_output_cache, operators

from ..cases import Case
from . import Methods

OPERATORS: dict[str, Callable[..., Any]] = {
    name: getattr(gatherum, name) for name in operators.OPERATORS
}

# What goes before a timed call, untimed. The order counts: the result of "fresh" is dropped, and
# its memory serves "recycled".
BEFORE = {"fresh": clear_output_cache}


def methods(case: Case) -> Methods:
    """Return our call into fresh memory, into recycled memory, and with ``out=``."""
    operator, operands, arguments = OPERATORS[case.op], case.arrays, case.arguments
    out = np.empty(case.result_shape, case.data.dtype)
    return {
        "fresh": lambda: operator(*operands, **arguments),
        "recycled": lambda: operator(*operands, **arguments),
        "out": lambda: operator(*operands, **arguments, out=out),
    }
