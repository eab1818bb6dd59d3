"""Weighted sums, means, variances and standard deviations, composed of the operators.

A sum is the left fold of ``w * x``, each product rounded once in the accumulation dtype. A mean is
this sum divided by the left fold of ``w``. A variance is, in float64, the weighted mean of
``d * d``, where d is the distance of a value from the weighted mean. Complex values are computed by
parts, because weights are real.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from gatherum._derivatives.array_ops import Array
from gatherum._model.dtypes import accumulator_dtype

from .dtypes import transformed_dtype, working_dtype
from .grouping import Grouping
from .rounding import rounded_root
from .rows import FunctionRow
from .spreads import added


def row_with(row: FunctionRow, weights: Array) -> FunctionRow:
    """Return the row of a function with weights, which broadcast to the values."""
    if row.name == "sum":
        return replace(row, compose=partial(_sum, weights))
    if row.name == "mean":
        return replace(row, compose=partial(_mean, weights), result=transformed_dtype)
    return replace(row, compose=partial(_variance, row.name == "std", weights))


def _sum(weights: Array, values: Array, by: Grouping, start: Array, ddof: int) -> Array:
    xp = by.xp
    kind: Any = xp.kind(values)
    unsigned = kind.kind == "u" and kind.itemsize > 1  # torch multiplies only signed ones
    to = np.dtype(np.int64) if unsigned else accumulator_dtype(kind, "add")
    total = _total(_real(weights, by, to), _converted(values, by, to), by)
    result = xp.astype(total, start.dtype) if kind.kind in "biu" else xp.rounded(total, start.dtype)
    return xp.replaced(result, by.count() == 0, start)


def _mean(weights: Array, values: Array, by: Grouping, start: Array, ddof: int) -> Array:
    xp, to = by.xp, working_dtype(by.xp.kind(values))
    scale, wide = _real(weights, by, to), _converted(values, by, to)
    weight = _whole(scale, values, by)
    total, divisor = _total(scale, wide, by), added(weight, by)
    mean = _by_parts(by, lambda part: xp.divide(part, divisor, None), total)
    return xp.replaced(xp.rounded(mean, start.dtype), by.count() == 0, start)


def _variance(
    root: bool, weights: Array, values: Array, by: Grouping, start: Array, ddof: int
) -> Array:
    xp, to = by.xp, start.dtype

    def spread(pair: Any, by: Grouping, wide: bool) -> Array:
        values, weights = pair
        kind: Any = xp.kind(values)
        double = np.complex128 if kind.kind == "c" else np.float64
        dtype = np.dtype(double) if wide else accumulator_dtype(kind, "mean")
        scale, numbers = _real(weights, by, dtype), _converted(values, by, dtype)
        weight = _whole(scale, values, by)
        divisor, squares = added(weight, by), None
        for part in (numbers.real, numbers.imag) if kind.kind == "c" else (numbers,):
            mean = xp.divide(added(xp.multiply(part, scale, None), by), divisor, None)
            away = xp.subtract(part, by.gather(mean, np.nan), None)
            square = xp.multiply(away, away, None)
            squares = square if squares is None else xp.add(squares, square)
        return xp.divide(added(xp.multiply(squares, scale, None), by), divisor, None)

    def wide(pair: Any, by: Grouping, counts: Array) -> Array:
        square = spread(pair, by, True)
        return rounded_root(xp, square, to) if root else xp.rounded(square, to)

    def narrow(pair: Any, by: Grouping, counts: Array) -> Array:
        square = spread(pair, by, False)
        return xp.sqrt(square) if root else square

    counts = by.count()
    result = xp.in_float64(wide, narrow, (values, weights), by, counts)
    return xp.replaced(result, counts == 0, start)


def _total(weights: Array, values: Array, by: Grouping) -> Array:
    """Return the left fold of the products of each group, in the dtype of the values."""
    multiply = by.xp.multiply
    products = _by_parts(by, lambda part: multiply(part, weights, None), values)
    return added(products, by)


def _by_parts(by: Grouping, function: Callable[[Array], Array], x: Array) -> Array:
    """Apply a function of real numbers to both parts of complex numbers."""
    if by.xp.kind(x).kind != "c":
        return function(x)
    return by.xp.complex_of(function(x.real), function(x.imag))


def _whole(weights: Array, values: Array, by: Grouping) -> Array:
    return by.xp.broadcast_to(weights, tuple(values.shape))


def _converted(x: Array, by: Grouping, to: Any) -> Array:
    kind = by.xp.kind(x)
    return by.xp.astype(x, by.xp.dtype(to)) if kind.kind != "c" or to.kind == "c" else x


def _real(weights: Array, by: Grouping, to: Any) -> Array:
    """Convert weights to the real dtype of a dtype."""
    real = np.dtype(f"f{to.itemsize // 2}") if to.kind == "c" else to
    return by.xp.astype(weights, by.xp.dtype(real))
