"""The functions that a call of `reduce` names, and the arguments that only some functions take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import prod
from typing import Any

import numpy as np

from gatherum._arguments import conversion
from gatherum._arguments.casting import has_nan
from gatherum._derivatives.array_ops import Array
from gatherum._model.dtypes import AnyDType
from gatherum._model.errors import Shape

from . import cumulative, errors, order_statistics
from .functions import FUNCTIONS, REDUCES, TRANSFORMS, FunctionRow, TransformRow
from .protocol import Arrays

# The functions that take an argument, without the nan forms.
TAKERS = {
    "weights": ("sum", "mean", "var", "std"),
    "dtype": ("sum", "prod", "mean", "var", "std"),
    "q": ("quantile",),
}
# From _MANY groups on, a result must not be more than _SPARSE times as large as the array of
# groups.
_MANY, _SPARSE = 1 << 20, 16


def names_of(op: str, func: object, aliases: dict[str, str]) -> tuple[str, ...]:
    """Return the names of one function or of a list of functions."""
    names = tuple(func) if isinstance(func, (list, tuple)) else (func,)
    if not names:
        raise errors.no_function(op, func)
    for name in names:
        if not isinstance(name, str) or name not in REDUCES:
            raise errors.unknown_function(op, name, REDUCES, aliases, TRANSFORMS)
    return tuple(map(str, names))


def plain(name: str) -> str:
    """Return the name of a function without the prefix ``nan``."""
    return name if name in FUNCTIONS else name.removeprefix("nan")


def check_taken(op: str, names: Sequence[str], argument: str, value: object) -> None:
    """Raise ValueError if an argument is given and a function does not take it."""
    takers = TAKERS[argument]
    for name in names:
        if value is not None and plain(name) not in takers:
            raise errors.not_taken(op, argument, name, takers)


def as_q(op: str, names: Sequence[str], q: object) -> float | tuple[float, ...] | None:
    """Return the numbers `q` as Python floats, or None if no function takes `q`."""
    if not any(plain(name) in TAKERS["q"] for name in names):
        if q is not None:
            check_taken(op, names, "q", q)
        return None
    number = np.asarray(q) if conversion.is_weak(q) or isinstance(q, np.generic | np.ndarray) else q
    if not isinstance(number, np.ndarray) or number.dtype.kind not in "fiu" or number.ndim > 1:
        raise errors.not_quantiles(op, q)
    wide = number.astype(np.float64)
    if not ((wide >= 0) & (wide <= 1)).all():
        raise errors.not_quantiles(op, q)
    return tuple(wide.tolist()) if wide.ndim else float(wide)


def row_with_q(row: FunctionRow, q: float | tuple[float, ...], method: str) -> FunctionRow:
    """Return the row of `quantile` for one number or several, and a method."""
    interpolates = method in order_statistics.INTERPOLATES
    result = row.result if interpolates else FUNCTIONS["mode"].result
    return replace(row, compose=partial(order_statistics.quantile, q, method), result=result)


def row_with_rank(row: TransformRow, method: str) -> TransformRow:
    """Return the row of `rank` for a method; all but the average rank are integers."""
    result = row.result if method == "average" else TRANSFORMS["cumcount"].result
    return replace(row, compose=partial(cumulative.rank, method), result=result)


def of_one(name: str, keywords: dict[str, Any]) -> dict[str, Any]:
    """Return the keywords for one function of a list: `q` belongs to quantiles only."""
    if plain(name) in TAKERS["q"]:
        return keywords
    return {key: value for key, value in keywords.items() if key != "q"}


def check_dense(op: str, size: int, shape: Shape) -> None:
    """Raise ValueError if the largest group number is much larger than the number of entries."""
    if type(size) is int and size > _MANY and size > _SPARSE * prod(shape):  # no symbol of a graph
        raise errors.sparse_groups(op, size, prod(shape))


def as_weights(
    op: str, xp: Arrays, value: object, values: Array, along: int, kind: AnyDType
) -> Array:
    """Return weights as an array of a rank that broadcasts to the values.

    Lists adopt the dtype of floating values, given by `kind`.
    """
    if conversion.is_weak(value) and has_nan(kind):
        real = np.dtype(f"f{kind.itemsize // 2}") if kind.kind == "c" else kind
        known = isinstance(real, np.dtype) and real.kind == "f"
        value = conversion.as_updates(op, value, real if known else np.dtype("f4"), "weights")
    weights = xp.as_operand(op, "weights", value, values)
    whole: Shape = tuple(values.shape)
    shape = tuple(weights.shape)
    if shape not in (whole, whole[along : along + 1]):
        raise errors.other_groups(op, whole[along], whole, shape, "weights")
    if xp.kind(weights).kind == "c":
        raise errors.not_real(op, "weights", xp.kind(weights))
    behind = (1,) * (len(whole) - along - 1)
    return xp.reshape(weights, (*shape, *behind)) if len(shape) < len(whole) else weights


def common_dtype(values: AnyDType, weights: AnyDType) -> AnyDType:
    """Return the dtype of products, as NumPy promotes; bfloat16 is promoted like float16.

    float16 with bfloat16 gives float32.
    """
    if values == weights:
        return values
    half = np.dtype(np.float16)
    one, other = (half if of.name == "bfloat16" else of for of in (values, weights))
    if not (isinstance(one, np.dtype) and isinstance(other, np.dtype)):
        return values  # not defined for these dtypes
    try:
        result: np.dtype[Any] = np.promote_types(one, other)
    except TypeError:
        return values
    if result != half:
        return result
    narrow = [of for of in (values, weights) if of.name == "bfloat16"]
    if narrow and half in (values, weights):
        return np.dtype(np.float32)
    return narrow[0] if narrow else result
