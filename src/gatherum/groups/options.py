"""The functions that a call to `reduce` names, and the arguments that only some functions take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import prod

import numpy as np

from gatherum._arguments import plain_values, weak_values
from gatherum._model.errors import Shape
from gatherum._model.shape_limits import MAX_BYTES

from . import cumulative, errors, order_statistics
from .functions import FUNCTIONS, REDUCES, TAKERS, TRANSFORMS
from .rows import FunctionRow, TransformRow

# The functions' names in other libraries, for messages.
ALIASES = {
    "add": "sum", "mul": "prod", "multiply": "prod", "product": "prod", "amax": "max",
    "maximum": "max", "amin": "min", "minimum": "min", "len": "count", "average": "mean",
    "idxmax": "argmax", "idxmin": "argmin", "center": "centre", "percentile": "quantile",
}  # fmt: skip
ALIASES |= {f"nan{alias}": f"nan{name}" for alias, name in ALIASES.items()}
# Above this number of groups, a result must not be more than _SPARSE times as large as the array of
# groups.
_MANY_GROUPS, _SPARSE = 1 << 20, 16


def names_of(
    op: str, func: object, aliases: dict[str, str], choices: Sequence[str] = REDUCES
) -> tuple[str, ...]:
    """Return the names of one function or of a list of functions."""
    names = tuple(func) if isinstance(func, (list, tuple)) else (func,)
    if not names:
        raise errors.no_function(op, func)
    for name in names:
        if not isinstance(name, str) or name not in choices:
            raise errors.unknown_function(op, name, choices, aliases, TRANSFORMS)
    return tuple(map(str, names))


def check_taken(op: str, names: Sequence[str], argument: str, value: object) -> None:
    """Raise ValueError if an argument is given and a function does not accept it."""
    if value is None:
        return
    takers = TAKERS[argument]
    for name in names:
        if FUNCTIONS[name].name not in takers:
            raise errors.not_taken(op, argument, name, takers)


def as_q(op: str, names: Sequence[str], q: object) -> float | tuple[float, ...] | None:
    """Return the probabilities of quantiles as Python floats, or None if no function uses them."""
    if not any("q" in FUNCTIONS[name].takes for name in names):
        check_taken(op, names, "q", q)
        return None
    quantiles = (
        np.asarray(q) if weak_values.is_weak(q) or isinstance(q, np.generic | np.ndarray) else q
    )
    if (
        not isinstance(quantiles, np.ndarray)
        or quantiles.dtype.kind not in "fiu"
        or quantiles.ndim > 1
    ):
        raise errors.not_quantiles(op, q)
    numbers = quantiles.astype(np.float64)
    if not ((numbers >= 0) & (numbers <= 1)).all():
        raise errors.not_quantiles(op, q)
    return tuple(numbers.tolist()) if numbers.ndim else float(numbers)


def row_with_q(row: FunctionRow, q: float | tuple[float, ...], method: str) -> FunctionRow:
    """Return the row of `quantile` for one or several probabilities, and a method."""
    interpolates = method in order_statistics.INTERPOLATES
    result = row.result if interpolates else FUNCTIONS["mode"].result
    return replace(row, compose=partial(order_statistics.quantile, q, method), result=result)


def row_with_rank(row: TransformRow, method: str) -> TransformRow:
    """Return the row of `rank` for a method. Only the ranks of "average" are not integers."""
    result = row.result if method == "average" else TRANSFORMS["cumcount"].result
    return replace(row, compose=partial(cumulative.rank, method), result=result)


def keywords_for(name: str, keywords: dict[str, object]) -> dict[str, object]:
    """Return the keywords for one function of a list: `q` belongs to quantiles only."""
    if "q" in FUNCTIONS[name].takes:
        return keywords
    return {key: value for key, value in keywords.items() if key != "q"}


def check_dense(op: str, size: int, shape: Shape) -> None:
    """Raise ValueError if the largest group number is much larger than the number of entries."""
    if (
        type(size) is int and size > _MANY_GROUPS and size > _SPARSE * prod(shape)
    ):  # no symbol of a graph
        raise errors.sparse_groups(op, size, prod(shape))


def as_ddof(op: str, value: object) -> int:
    """Convert `ddof` to an int of at most 64 bits, because no group can have more values."""
    return min(plain_values.as_size(op, "ddof", value), MAX_BYTES)
