"""Parameters of tests that run before a release, and a part of them in every run."""

from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

import pytest


def every(number: int, values: Iterable[Any]) -> list[Any]:
    """Mark all values with ``release``, except each `number`-th, which run every time."""
    marked = []
    for position, value in enumerate(values):
        parameters = value if isinstance(value, tuple) else (value,)
        marks = [] if position % number == 0 else [pytest.mark.release]
        marked.append(pytest.param(*parameters, marks=marks))
    return marked


def diagonal(number: int, rows: Sequence[Any], columns: Sequence[Any]) -> list[Any]:
    """Mark all pairs with ``release``, except those whose positions add up to a multiple.

    Each row then runs with different columns. If `number` is at most the number of columns, each
    row runs at least once, and if it is at most the number of rows, each column.
    """
    pairs = []
    for (i, row), (j, column) in product(enumerate(rows), enumerate(columns)):
        marks = [] if (i + j) % number == 0 else [pytest.mark.release]
        pairs.append(pytest.param(row, column, marks=marks))
    return pairs
