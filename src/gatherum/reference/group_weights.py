"""Weighted sums, means, variances and deviations of one group, as plain loops."""

from typing import Any

import numpy as np

from .group_numbers import as_dtype, fold_of, number_of, real_dtype, root_of, rounded, wide_dtype
from .items import Array, DType, Items
from .reductions import HALVES, INTEGERS

WEIGHTED = ("sum", "mean", "var", "std")
CONVERTED = (*WEIGHTED, "prod")


def common_dtype(values: DType, weights: DType) -> DType:
    """Return NumPy's common dtype, where bfloat16 is promoted like float16."""
    if values == weights:
        return values
    names = {values.name, weights.name}
    half = np.dtype(np.float16)
    values_dtype, weights_dtype = (
        half if dtype_of_operand.name == "bfloat16" else dtype_of_operand
        for dtype_of_operand in (values, weights)
    )
    if values_dtype == weights_dtype:  # float16 and bfloat16
        return np.dtype(np.float32)
    result = np.promote_types(values_dtype, weights_dtype)
    return np.dtype("bfloat16") if result == half and "bfloat16" in names else result


def with_weights(values: Array, weights: Any, axis: int, dtype: DType | None) -> tuple[Array, Any]:
    """Return the values and a weight for each, in one dtype."""
    floats = values.dtype.kind in "fc" or values.dtype.name in HALVES
    scales = np.asarray(weights)
    if isinstance(weights, list) and floats:
        scales = scales.astype(real_dtype(dtype or values.dtype))
    if scales.dtype.kind == "c":
        raise TypeError("groups.reduce: `weights` must be real")
    if scales.shape not in (values.shape, values.shape[axis : axis + 1 or None]):
        raise ValueError(f"groups.reduce: got `weights` of shape {scales.shape}")
    if scales.ndim < values.ndim:
        trailing = (1,) * (values.ndim - 1 - axis % values.ndim)
        scales = np.broadcast_to(scales.reshape(-1, *trailing), values.shape)
    target = dtype or common_dtype(values.dtype, scales.dtype)
    with np.errstate(all="ignore"):
        weights = as_dtype("weights", scales, real_dtype(target))
        return as_dtype("values", values, target), weights


def weighted(name: str, items: Items, scales: list[Any], dtype: DType) -> bytes:
    """Return the result of one group with at least one value."""
    with np.errstate(all="ignore"):
        if name in ("var", "std"):
            return _spread(items, scales, dtype, name == "std").tobytes()
        if name == "sum" and dtype.kind in "biu":
            products = [
                number_of(item, dtype, dtype) * w for item, w in zip(items, scales, strict=True)
            ]
            return np.asarray(fold_of(products, dtype, "add")).tobytes()
        wide = wide_dtype(dtype)
        total = _products(items, scales, dtype, wide)
        if name == "sum":
            return rounded(total, dtype).tobytes()
        real = real_dtype(wide)
        total_weight = fold_of([w.astype(real) for w in scales], real, "add")
        result = np.dtype(np.float64) if dtype.name in INTEGERS else dtype
        if dtype.kind == "c":
            mean = np.empty((), wide)
            mean.real, mean.imag = total.real / total_weight, total.imag / total_weight
            return rounded(mean, result).tobytes()
        return rounded(total / total_weight, result).tobytes()


def _products(items: Items, scales: list[Any], dtype: DType, wide: DType) -> Any:
    """Return the left fold of the products of weights and values, by parts for complex numbers."""
    real = real_dtype(wide)
    terms = [number_of(item, dtype, wide) for item in items]
    parts = [[n.real for n in terms], [n.imag for n in terms]]
    folds = [
        fold_of(
            [x.astype(real) * w.astype(real) for x, w in zip(part, scales, strict=True)],
            real,
            "add",
        )
        for part in (parts if dtype.kind == "c" else parts[:1])
    ]
    if dtype.kind != "c":
        return folds[0]
    total = np.empty((), wide)
    total.real, total.imag = folds
    return total


def _spread(items: Items, scales: list[Any], dtype: DType, root: bool) -> Array:
    """Return the weighted mean of the squared distances from the weighted mean, in float64."""
    double = np.dtype(np.float64)
    wide = np.dtype(np.complex128) if dtype.kind == "c" else double
    terms = [number_of(item, dtype, wide) for item in items]
    weights = [w.astype(double) for w in scales]
    total_weight = fold_of(weights, double, "add")

    def mean_of(numbers: list[Any]) -> Any:
        products = [x * w for x, w in zip(numbers, weights, strict=True)]
        return fold_of(products, double, "add") / total_weight

    squares = [double.type(0)] * len(items)
    for i, part in enumerate(("real", "imag")[: 2 if dtype.kind == "c" else 1]):
        numbers = [np.float64(getattr(value, part)) for value in terms]
        mean = mean_of(numbers)
        distances = [x - mean for x in numbers]
        squares = [d * d if i == 0 else s + d * d for s, d in zip(squares, distances, strict=True)]
    spread = mean_of(squares)
    result = double if dtype.name in INTEGERS else real_dtype(dtype)
    if root and not spread > 0:  # weights can be negative
        spread = np.sqrt(spread)
    elif root:
        spread = root_of(spread, result)
    return rounded(spread, result)
