"""Parameters of tests that run before a release, and a part of them in every run."""

from collections.abc import Iterable
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
