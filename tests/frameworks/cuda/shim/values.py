"""Values of every kind for the kernels to move and to fold."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

__all__ = ["RNG", "values"]

RNG = np.random.default_rng(22)


def values(
    shape: tuple[int, ...], dtype: DTypeLike, rng: np.random.Generator = RNG
) -> NDArray[Any]:
    """Return values of every size, including special values and arbitrary bits."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        return np.frombuffer(rng.bytes(prod(shape) * dtype.itemsize), dtype).reshape(shape).copy()
    part = np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype
    parts = (*shape, dtype.itemsize // part.itemsize)
    values = rng.standard_normal(parts) * 10.0 ** rng.integers(-4, 5, parts)
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1e-40, 6e-8, 65504, 3e38, 5e-324]
    values = np.where(rng.random(parts) < 0.04, rng.choice(special, parts), values)
    with np.errstate(over="ignore"):
        values = values.astype(part)
    bits = np.frombuffer(rng.bytes(values.nbytes), part).reshape(parts)
    values = np.where(rng.random(parts) < 0.02, bits, values)
    return np.ascontiguousarray(values).view(dtype).reshape(shape)
