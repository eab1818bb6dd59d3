"""Compute variances, deviations and centred values with one rule for all frameworks.

For floats, m is the exact mean rounded to float64, and ``d = x - m`` in float64. For integers, q is
the exact mean rounded down, and ``d = x - q`` is exact before its conversion to float64. The sum of
squares is the left fold of ``d * d``. For integers, ``s * s / n`` is subtracted, where s is the
left fold of d.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from gatherum._model.arrays import AnyArray
from gatherum._model.dtypes import AnyDType, accumulator_dtype

from .grouping import Grouping
from .rounding import rounded_root

Fold: TypeAlias = Callable[[AnyArray], AnyArray]

_LOW = (1 << 32) - 1  # the lower half of a 64-bit integer


def variance(
    takes_root: bool, values: AnyArray, grouping: Grouping, initial: AnyArray, ddof: int
) -> AnyArray:
    """Return the variance of each group, or its square root; `initial` for an empty group."""
    xp = grouping.xp

    def with_float64(values: AnyArray, grouping: Grouping, counts: AnyArray) -> AnyArray:
        differences = distances(values, grouping, counts, 0)
        total = sum_of_squares(
            differences, values, grouping, counts, lambda squares: group_sums(squares, grouping)
        )
        return _divided(takes_root, total, grouping, counts, initial, ddof)

    def without_float64(values: AnyArray, grouping: Grouping, counts: AnyArray) -> AnyArray:
        differences = _distances_without_float64(values, grouping, 0)
        spread = _quotient(
            group_sums(_squares(differences, grouping), grouping), grouping, counts - ddof
        )
        return xp.sqrt(spread) if takes_root else spread

    if squares_and_counts := grouping.squares_and_counts(values):
        return _from_squares(takes_root, *squares_and_counts, grouping, initial, ddof)
    with grouping.sharing_calls():
        counts = grouping.count()
        spread = xp.in_float64(with_float64, without_float64, values, grouping, counts)
    return _without_small_groups(spread, grouping, counts, initial, ddof)


def variance_skipping_nan(
    takes_root: bool, values: AnyArray, grouping: Grouping, initial: AnyArray, ddof: int
) -> AnyArray | None:
    """Return the variance of the values that are not NaN, or its square root. Return None if the
    framework does not compute it in one call.
    """
    squares_and_counts = grouping.squares_and_counts(values, skips_nan=True)
    return (
        None
        if squares_and_counts is None
        else _from_squares(takes_root, *squares_and_counts, grouping, initial, ddof)
    )


def _from_squares(
    takes_root: bool,
    squares: AnyArray,
    counts: AnyArray,
    grouping: Grouping,
    initial: AnyArray,
    ddof: int,
) -> AnyArray:
    spread = _divided(takes_root, squares, grouping, counts, initial, ddof)
    return _without_small_groups(spread, grouping, counts, initial, ddof)


def _divided(
    takes_root: bool,
    squares: AnyArray,
    grouping: Grouping,
    counts: AnyArray,
    initial: AnyArray,
    ddof: int,
) -> AnyArray:
    xp, spread = grouping.xp, _quotient(squares, grouping, counts - ddof)
    return (
        rounded_root(xp, spread, initial.dtype) if takes_root else xp.rounded(spread, initial.dtype)
    )


def _without_small_groups(
    spread: AnyArray, grouping: Grouping, counts: AnyArray, initial: AnyArray, ddof: int
) -> AnyArray:
    """Replace the spreads of groups without enough values."""
    spread = grouping.xp.replaced(spread, counts <= ddof, np.nan)
    return grouping.xp.replaced(spread, counts == 0, initial)


def centred(
    values: AnyArray, grouping: Grouping, target: Any, fill_value: float = np.nan
) -> AnyArray:
    """Subtract from each value the mean of its group; round once to a dtype. The mean of a value
    without a group is `fill_value`.
    """
    xp = grouping.xp

    def with_float64(values: AnyArray, grouping: Grouping, counts: AnyArray) -> AnyArray:
        return xp.rounded(
            _distances_from_mean(
                distances(values, grouping, counts, fill_value), values, grouping, counts
            ),
            target,
        )

    def without_float64(values: AnyArray, grouping: Grouping, counts: AnyArray) -> AnyArray:
        values = _in_working_dtype(values, grouping)
        means = grouping.gather(grouping.scatter(values, "fmean", grouping.zero(values)))
        return xp.subtract(values, means, means)

    with grouping.sharing_calls():
        return xp.in_float64(with_float64, without_float64, values, grouping, grouping.count())


def normalized(values: AnyArray, grouping: Grouping, target: Any) -> AnyArray:
    """Divide each centred value by the deviation of its group, and round once to a dtype. Values
    without a group become NaN.
    """
    xp = grouping.xp

    def over_deviation(
        differences: AnyArray, squares: AnyArray, grouping: Grouping, counts: AnyArray
    ) -> AnyArray:
        deviations = grouping.gather(xp.sqrt(_quotient(squares, grouping, counts)), np.nan)
        return xp.divide(differences, deviations, deviations)

    def with_float64(values: AnyArray, grouping: Grouping, counts: AnyArray) -> AnyArray:
        differences = distances(values, grouping, counts)
        squared = +differences
        squares = sum_of_squares(
            squared, values, grouping, counts, lambda squares: group_sums(squares, grouping)
        )
        differences = _distances_from_mean(differences, values, grouping, counts)
        return xp.rounded(over_deviation(differences, squares, grouping, counts), target)

    def without_float64(values: AnyArray, grouping: Grouping, counts: AnyArray) -> AnyArray:
        differences = _distances_without_float64(values, grouping, np.nan)
        return over_deviation(
            differences, group_sums(differences * differences, grouping), grouping, counts
        )

    with grouping.sharing_calls():
        return xp.in_float64(with_float64, without_float64, values, grouping, grouping.count())


def sum_of_squares(
    differences: AnyArray, values: AnyArray, grouping: Grouping, counts: AnyArray, fold: Fold
) -> AnyArray:
    """Return the sums of squared distances, in float64, using the memory of the distances. `fold`
    adds the values of each group.
    """
    if not _has_integers(values, grouping):
        return fold(_squares(differences, grouping))
    total = group_sums(differences, grouping)
    squares = fold(_squares(differences, grouping))
    xp = grouping.xp
    mean_square = _quotient(xp.multiply(total, total, total), grouping, counts)
    return xp.subtract(squares, mean_square, mean_square)


def distances(
    values: AnyArray, grouping: Grouping, counts: AnyArray, fill_value: float = np.nan
) -> AnyArray:
    """Return d of each value, as float64 or complex128. The mean of a value without a group is
    `fill_value`, a real number. Gradients of functions that leave such values out need a finite
    `fill_value`, because 0 * NaN is NaN.
    """
    xp, dtype = grouping.xp, grouping.xp.plan_dtype(values)
    if dtype.kind in "iu":
        return _integer_distances(values, grouping, counts, dtype)
    wide_values = xp.astype(
        values, xp.dtype(np.dtype(np.complex128 if dtype.kind == "c" else np.float64))
    )
    fill: Any = complex(fill_value, fill_value) if dtype.kind == "c" else fill_value
    means = grouping.gather(
        grouping.scatter(wide_values, "fmean", grouping.zero(wide_values)), fill
    )
    return xp.subtract(wide_values, means, means)


def _distances_from_mean(
    differences: AnyArray, values: AnyArray, grouping: Grouping, counts: AnyArray
) -> AnyArray:
    """Return distances from the mean: for integers, `away` (distances from q) minus its mean."""
    if not _has_integers(values, grouping):
        return differences
    means = grouping.gather(_quotient(group_sums(differences, grouping), grouping, counts), np.nan)
    return grouping.xp.subtract(differences, means, means)


def group_sums(values: AnyArray, grouping: Grouping) -> AnyArray:
    """Return the left fold of the values of each group, or 0 for an empty group."""
    return grouping.scatter(values, "add", grouping.zero(values))


def _integer_distances(
    values: AnyArray, grouping: Grouping, counts: AnyArray, dtype: AnyDType
) -> AnyArray:
    """Return x - q for integers. Sums have 64 bits, so the upper and the lower 32 bits of 64-bit
    integers are added separately.
    """
    xp = grouping.xp
    int64, float64 = xp.dtype(np.dtype(np.int64)), xp.dtype(np.dtype(np.float64))
    integers, n = xp.astype(values, int64), xp.astype(_at_least_1(counts, grouping), int64)
    if dtype.itemsize < 8:
        return xp.astype(integers - grouping.gather(group_sums(integers, grouping) // n), float64)
    low, high = integers & _LOW, integers >> 32
    if dtype.kind == "u":
        high = high & _LOW
    of_low, of_high = group_sums(low, grouping), group_sums(high, grouping)
    # Long division with 16-bit digits.
    first = (of_high % n) << 16
    second = ((first % n) << 16) + of_low % n
    below = of_low // n + ((first // n) << 16) + second // n
    above = xp.astype(high - grouping.gather(of_high // n), float64)
    return above * 2.0**32 + xp.astype(low - grouping.gather(below), float64)


def _distances_without_float64(values: AnyArray, grouping: Grouping, fill_value: float) -> AnyArray:
    return centred(values, grouping, _in_working_dtype(values, grouping).dtype, fill_value)


def _in_working_dtype(values: AnyArray, grouping: Grouping) -> AnyArray:
    """Convert floats to the dtype of derivatives in frameworks without float64."""
    dtype: Any = grouping.xp.plan_dtype(values)
    return grouping.xp.astype(values, grouping.xp.dtype(accumulator_dtype(dtype, "mean")))


def _has_integers(values: AnyArray, grouping: Grouping) -> bool:
    return grouping.xp.plan_dtype(values).kind in "iu"


def _squares(differences: AnyArray, grouping: Grouping) -> AnyArray:
    """Return the squared distances, in place; ``abs(d)**2`` for complex numbers."""
    xp = grouping.xp
    if xp.plan_dtype(differences).kind != "c":
        return xp.multiply(differences, differences, differences)
    real, imaginary = differences.real, differences.imag
    return xp.add(xp.multiply(real, real, real), xp.multiply(imaginary, imaginary, imaginary))


def _quotient(total: AnyArray, grouping: Grouping, counts: AnyArray) -> AnyArray:
    """Divide totals by the numbers of values, at least 1."""
    return grouping.xp.divide(
        total, grouping.xp.astype(_at_least_1(counts, grouping), total.dtype), total
    )


def _at_least_1(counts: AnyArray, grouping: Grouping) -> AnyArray:
    return grouping.xp.where(counts > 0, counts, 1)
