"""Distances from the mean, variances and standard deviations of one group, as plain loops."""

from typing import Any

import numpy as np

from .group_numbers import fold_of, number_of, root_of, rounded
from .items import DType, Items
from .reductions import INTEGERS


def _distances(items: Items, dtype: DType) -> list[Any]:
    """Return the distance of each number from the exact mean, rounded to float64. For integers, the
    mean is rounded down.
    """
    if dtype.name in INTEGERS:
        integers = [int(number_of(item, dtype, dtype)) for item in items]
        least = sum(integers) // len(integers)
        return [np.float64(value - least) for value in integers]
    double = np.dtype(np.complex128 if dtype.kind == "c" else np.float64)
    values = [number_of(item, dtype, double) for item in items]
    mean = fold_of(values, double, "fmean")
    return [value - mean for value in values]


def centred(items: Items, dtype: DType) -> list[Any]:
    """Return the distance of each value from the mean of the group, in float64."""
    distances = _distances(items, dtype)
    if dtype.name not in INTEGERS:
        return distances
    mean = fold_of(distances, np.dtype(np.float64), "mean")
    return [distance - mean for distance in distances]


def variance(items: Items, dtype: DType, ddof: int) -> Any:
    """Return the left fold of squared distances, divided by the degrees of freedom, in float64."""
    double, distances = np.dtype(np.float64), _distances(items, dtype)
    squares = [distance.real * distance.real for distance in distances]
    if dtype.kind == "c":
        squares = [
            square + distance.imag * distance.imag
            for square, distance in zip(squares, distances, strict=True)
        ]
    total = fold_of(squares, double, "add")
    if dtype.name in INTEGERS:
        integer_sum = fold_of(distances, double, "add")
        total = total - integer_sum * integer_sum / np.float64(len(items))
    return total / np.float64(len(items) - ddof)


def spread(items: Items, dtype: DType, result: DType, ddof: int, root: bool) -> bytes:
    """Return the variance of the values, or its square root, in the dtype `result`."""
    if len(items) <= ddof:
        return rounded(np.nan, result).tobytes()
    with np.errstate(all="ignore"):
        square = variance(items, dtype, ddof)
        return rounded(root_of(square, result) if root else square, result).tobytes()
