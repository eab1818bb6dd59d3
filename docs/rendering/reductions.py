"""Render the table of reductions and dtypes from the tables in the package."""

import ml_dtypes  # noqa: F401  # registers bfloat16 with NumPy
import numpy as np

from gatherum._model.dtypes import Value, is_reducible
from gatherum._model.reductions import FOLDS

from .tables import table


def render() -> str:
    """Return a table with one row for all dtypes that support the same reductions."""
    alike: dict[tuple[bool, ...], list[str]] = {}
    for value in Value:
        if value is not Value.none:
            name = value.name.lower()
            defined = tuple(is_reducible(np.dtype(name), one) for one in FOLDS)
            alike.setdefault(defined, []).append(name)
    rows = [
        [", ".join(names), *("yes" if yes else "" for yes in defined)]
        for defined, names in alike.items()
    ]
    return table(("dtype", *(f"`{one}`" for one in FOLDS)), rows)
