"""The five operators on NumPy arrays."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import plan as _plan  # noqa: F401  # gives the core its planner
from .native import call

T = TypeVar("T", bound=np.generic)


def gather(
    data: ArrayLike, indices: ArrayLike, axis: int = 0, *, mode: str = "raise",
    negative: bool = True, fill_value: object = 0, out: NDArray[Any] | None = None,
) -> NDArray[Any]:
    return call("gather", data, indices, None, axis, "none", True, mode, negative, fill_value, out)


def gather_elements(
    data: ArrayLike, indices: ArrayLike, axis: int = 0, *, mode: str = "raise",
    negative: bool = True, fill_value: object = 0, out: NDArray[Any] | None = None,
) -> NDArray[Any]:
    return call("gather_elements", data, indices, None, axis, "none", True, mode, negative, fill_value, out)


def gather_nd(
    data: ArrayLike, indices: ArrayLike, batch_dims: int = 0, *, mode: str = "raise",
    negative: bool = True, fill_value: object = 0, out: NDArray[Any] | None = None,
) -> NDArray[Any]:
    return call("gather_nd", data, indices, None, batch_dims, "none", True, mode, negative, fill_value, out)


def scatter_elements(
    data: ArrayLike, indices: ArrayLike, updates: ArrayLike, axis: int = 0,
    reduction: str = "none", *, include_self: bool = True, mode: str = "raise",
    negative: bool = True, out: NDArray[Any] | None = None,
) -> NDArray[Any]:
    return call("scatter_elements", data, indices, updates, axis, reduction, include_self, mode, negative, 0, out)


def scatter_nd(
    data: ArrayLike, indices: ArrayLike, updates: ArrayLike, reduction: str = "none",
    batch_dims: int = 0, *, include_self: bool = True, mode: str = "raise",
    negative: bool = True, out: NDArray[Any] | None = None,
) -> NDArray[Any]:
    return call("scatter_nd", data, indices, updates, batch_dims, reduction, include_self, mode, negative, 0, out)
