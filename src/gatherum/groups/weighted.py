"""Weighted sums, means, variances and standard deviations, composed of the operators.

A sum is the left fold of ``w * x``, with each product rounded once in the accumulation dtype. A
mean is this sum divided by the left fold of ``w``. A variance is, in float64, the weighted mean of
``d * d``, where d is the distance of a value from the weighted mean. Complex values are computed by
parts, because weights are real.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gatherum._model.arrays import AnyArray
from gatherum._model.dtypes import accumulator_dtype

from .dtypes import working_dtype
from .grouping import Grouping
from .rounding import rounded_root
from .spreads import group_sums


def weighted_sum(
    weights: AnyArray, values: AnyArray, grouping: Grouping, initial: AnyArray, ddof: int
) -> AnyArray:
    """Return the weighted sum of each group."""
    xp = grouping.xp
    dtype: Any = xp.plan_dtype(values)
    unsigned = dtype.kind == "u" and dtype.itemsize > 1  # torch multiplies only signed ones
    target = np.dtype(np.int64) if unsigned else accumulator_dtype(dtype, "add")
    weights_of_target = _as_real(weights, grouping, target)
    wide = _converted(values, grouping, target)
    with grouping.sharing_calls():
        total, counts = _weighted_sums(weights_of_target, wide, grouping), grouping.count()
    convert = xp.astype if dtype.kind in "biu" else xp.rounded
    result = convert(total, initial.dtype)
    return xp.replaced(result, counts == 0, initial)


def weighted_mean(
    weights: AnyArray, values: AnyArray, grouping: Grouping, initial: AnyArray, ddof: int
) -> AnyArray:
    """Return the weighted mean of each group."""
    xp, target = grouping.xp, working_dtype(grouping.xp.plan_dtype(values))
    weights_of_target = _as_real(weights, grouping, target)
    wide = _converted(values, grouping, target)
    weight = _broadcast_weights(weights_of_target, values, grouping)
    with grouping.sharing_calls():
        total = _weighted_sums(weights_of_target, wide, grouping)
        divisor = group_sums(weight, grouping)
        counts = grouping.count()
    mean = _by_parts(grouping, lambda part: xp.divide(part, divisor, None), total)
    return xp.replaced(xp.rounded(mean, initial.dtype), counts == 0, initial)


def weighted_variance(
    takes_root: bool,
    weights: AnyArray,
    values: AnyArray,
    grouping: Grouping,
    initial: AnyArray,
    ddof: int,
) -> AnyArray:
    """Return the weighted variance of each group, or its square root."""
    xp, target = grouping.xp, initial.dtype

    def variance(values_and_weights: Any, grouping: Grouping, in_float64: bool) -> AnyArray:
        values, weights = values_and_weights
        values_dtype: Any = xp.plan_dtype(values)
        double = np.complex128 if values_dtype.kind == "c" else np.float64
        dtype = np.dtype(double) if in_float64 else accumulator_dtype(values_dtype, "mean")
        weights_of_target = _as_real(weights, grouping, dtype)
        converted = _converted(values, grouping, dtype)
        weight = _broadcast_weights(weights_of_target, values, grouping)
        divisor, squares = group_sums(weight, grouping), None
        for part in (converted.real, converted.imag) if values_dtype.kind == "c" else (converted,):
            mean = xp.divide(
                group_sums(xp.multiply(part, weights_of_target, None), grouping), divisor, None
            )
            distances = xp.subtract(part, grouping.gather(mean), None)
            square = xp.multiply(distances, distances, None)
            squares = square if squares is None else xp.add(squares, square)
        return xp.divide(
            group_sums(xp.multiply(squares, weights_of_target, None), grouping), divisor, None
        )

    def with_float64(values_and_weights: Any, grouping: Grouping, counts: AnyArray) -> AnyArray:
        result = variance(values_and_weights, grouping, True)
        return rounded_root(xp, result, target) if takes_root else xp.rounded(result, target)

    def without_float64(values_and_weights: Any, grouping: Grouping, counts: AnyArray) -> AnyArray:
        result = variance(values_and_weights, grouping, False)
        return xp.sqrt(result) if takes_root else result

    with grouping.sharing_calls():
        counts = grouping.count()
        result = xp.in_float64(with_float64, without_float64, (values, weights), grouping, counts)
    return xp.replaced(result, counts == 0, initial)


def _weighted_sums(weights: AnyArray, values: AnyArray, grouping: Grouping) -> AnyArray:
    """Return the left fold of the products of each group, in the dtype of the values."""
    multiply = grouping.xp.multiply
    products = _by_parts(grouping, lambda part: multiply(part, weights, None), values)
    return group_sums(products, grouping)


def _by_parts(
    grouping: Grouping, function: Callable[[AnyArray], AnyArray], x: AnyArray
) -> AnyArray:
    """Apply a function of real numbers to both parts of complex numbers."""
    if grouping.xp.plan_dtype(x).kind != "c":
        return function(x)
    return grouping.xp.complex_of(function(x.real), function(x.imag))


def _broadcast_weights(weights: AnyArray, values: AnyArray, grouping: Grouping) -> AnyArray:
    return grouping.xp.broadcast_to(weights, tuple(values.shape))


def _converted(x: AnyArray, grouping: Grouping, target: Any) -> AnyArray:
    dtype = grouping.xp.plan_dtype(x)
    return (
        grouping.xp.astype(x, grouping.xp.dtype(target))
        if dtype.kind != "c" or target.kind == "c"
        else x
    )


def _as_real(weights: AnyArray, grouping: Grouping, target: Any) -> AnyArray:
    """Convert weights to the real dtype that corresponds to a dtype."""
    real = np.dtype(f"f{target.itemsize // 2}") if target.kind == "c" else target
    return grouping.xp.astype(weights, grouping.xp.dtype(real))
