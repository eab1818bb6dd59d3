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


def _sum(weights: Array, values: Array, grouping: Grouping, initial: Array, ddof: int) -> Array:
    """Return the weighted sum of each group."""
    xp = grouping.xp
    dtype: Any = xp.plan_dtype(values)
    unsigned = dtype.kind == "u" and dtype.itemsize > 1  # torch multiplies only signed ones
    target = np.dtype(np.int64) if unsigned else accumulator_dtype(dtype, "add")
    scale, wide = _real(weights, grouping, target), _converted(values, grouping, target)
    with grouping.sharing():
        total, counts = _total(scale, wide, grouping), grouping.count()
    convert = xp.astype if dtype.kind in "biu" else xp.rounded
    result = convert(total, initial.dtype)
    return xp.replaced(result, counts == 0, initial)


def _mean(weights: Array, values: Array, grouping: Grouping, initial: Array, ddof: int) -> Array:
    """Return the weighted mean of each group."""
    xp, target = grouping.xp, working_dtype(grouping.xp.plan_dtype(values))
    scale, wide = _real(weights, grouping, target), _converted(values, grouping, target)
    weight = _whole(scale, values, grouping)
    with grouping.sharing():
        total, divisor = _total(scale, wide, grouping), added(weight, grouping)
        counts = grouping.count()
    mean = _by_parts(grouping, lambda part: xp.divide(part, divisor, None), total)
    return xp.replaced(xp.rounded(mean, initial.dtype), counts == 0, initial)


def _variance(
    root: bool, weights: Array, values: Array, grouping: Grouping, initial: Array, ddof: int
) -> Array:
    """Return the weighted variance of each group, or its square root."""
    xp, target = grouping.xp, initial.dtype

    def variance(pair: Any, grouping: Grouping, wide: bool) -> Array:
        values, weights = pair
        values_dtype: Any = xp.plan_dtype(values)
        double = np.complex128 if values_dtype.kind == "c" else np.float64
        dtype = np.dtype(double) if wide else accumulator_dtype(values_dtype, "mean")
        scale, converted = _real(weights, grouping, dtype), _converted(values, grouping, dtype)
        weight = _whole(scale, values, grouping)
        divisor, squares = added(weight, grouping), None
        for part in (converted.real, converted.imag) if values_dtype.kind == "c" else (converted,):
            mean = xp.divide(added(xp.multiply(part, scale, None), grouping), divisor, None)
            away = xp.subtract(part, grouping.gather(mean), None)
            square = xp.multiply(away, away, None)
            squares = square if squares is None else xp.add(squares, square)
        return xp.divide(added(xp.multiply(squares, scale, None), grouping), divisor, None)

    def wide(pair: Any, grouping: Grouping, counts: Array) -> Array:
        result = variance(pair, grouping, True)
        return rounded_root(xp, result, target) if root else xp.rounded(result, target)

    def narrow(pair: Any, grouping: Grouping, counts: Array) -> Array:
        result = variance(pair, grouping, False)
        return xp.sqrt(result) if root else result

    with grouping.sharing():
        counts = grouping.count()
        result = xp.in_float64(wide, narrow, (values, weights), grouping, counts)
    return xp.replaced(result, counts == 0, initial)


def _total(weights: Array, values: Array, grouping: Grouping) -> Array:
    """Return the left fold of the products of each group, in the dtype of the values."""
    multiply = grouping.xp.multiply
    products = _by_parts(grouping, lambda part: multiply(part, weights, None), values)
    return added(products, grouping)


def _by_parts(grouping: Grouping, function: Callable[[Array], Array], x: Array) -> Array:
    """Apply a function of real numbers to both parts of complex numbers."""
    if grouping.xp.plan_dtype(x).kind != "c":
        return function(x)
    return grouping.xp.complex_of(function(x.real), function(x.imag))


def _whole(weights: Array, values: Array, grouping: Grouping) -> Array:
    return grouping.xp.broadcast_to(weights, tuple(values.shape))


def _converted(x: Array, grouping: Grouping, target: Any) -> Array:
    dtype = grouping.xp.plan_dtype(x)
    return (
        grouping.xp.astype(x, grouping.xp.dtype(target))
        if dtype.kind != "c" or target.kind == "c"
        else x
    )


def _real(weights: Array, grouping: Grouping, target: Any) -> Array:
    """Convert weights to the real dtype of a dtype."""
    real = np.dtype(f"f{target.itemsize // 2}") if target.kind == "c" else target
    return grouping.xp.astype(weights, grouping.xp.dtype(real))
