"""The six functions on JAX's arrays: one line each."""

from __future__ import annotations

from typing import Any

from jax import Array
from numpy.typing import ArrayLike

from .. import errors
from ..names import ModeName, ReductionName
from .operands import normalise
from .ops import bind


def gather(
    data: Array | ArrayLike,
    indices: Array | ArrayLike,
    axis: int = 0,
    *,
    mode: ModeName = "raise",
    negative: bool = True,
    fill_value: object = 0,
) -> Array:
    """Take slices of an array along one axis, by their numbers: see `gatherum.gather`."""
    return _run("gather", data, indices, None, axis, "none", True, mode, negative, fill_value)


def gather_elements(
    data: Array | ArrayLike,
    indices: Array | ArrayLike,
    axis: int = 0,
    *,
    mode: ModeName = "raise",
    negative: bool = True,
    fill_value: object = 0,
) -> Array:
    """Take one element of an array for every index: see `gatherum.gather_elements`."""
    return _run(
        "gather_elements", data, indices, None, axis, "none", True, mode, negative, fill_value
    )


def gather_nd(
    data: Array | ArrayLike,
    indices: Array | ArrayLike,
    batch_dims: int = 0,
    *,
    mode: ModeName = "raise",
    negative: bool = True,
    fill_value: object = 0,
) -> Array:
    """Take elements or slices of an array by tuples of indices: see `gatherum.gather_nd`."""
    return _run(
        "gather_nd", data, indices, None, batch_dims, "none", True, mode, negative, fill_value
    )


def scatter_slices(
    data: Array | ArrayLike,
    indices: Array | ArrayLike,
    updates: Array | ArrayLike,
    axis: int = 0,
    *,
    reduction: ReductionName = "none",
    include_self: bool = True,
    mode: ModeName = "raise",
    negative: bool = True,
) -> Array:
    """Write slices along one axis, by their numbers: see `gatherum.scatter_slices`."""
    return _run(
        "scatter_slices", data, indices, updates, axis, reduction, include_self, mode, negative, 0
    )


def scatter_elements(
    data: Array | ArrayLike,
    indices: Array | ArrayLike,
    updates: Array | ArrayLike,
    axis: int = 0,
    *,
    reduction: ReductionName = "none",
    include_self: bool = True,
    mode: ModeName = "raise",
    negative: bool = True,
) -> Array:
    """Write one element for every index: see `gatherum.scatter_elements`."""
    return _run(
        "scatter_elements", data, indices, updates, axis, reduction, include_self, mode, negative, 0
    )


def scatter_nd(
    data: Array | ArrayLike,
    indices: Array | ArrayLike,
    updates: Array | ArrayLike,
    batch_dims: int = 0,
    *,
    reduction: ReductionName = "none",
    include_self: bool = True,
    mode: ModeName = "raise",
    negative: bool = True,
) -> Array:
    """Write elements or slices by tuples of indices: see `gatherum.scatter_nd`."""
    return _run(
        "scatter_nd", data, indices, updates, batch_dims, reduction, include_self, mode, negative, 0
    )


def _run(op: str, *given: Any) -> Array:
    call, operands = normalise(op, *given)
    result: Array = bind(call, *operands)
    return result


def room(op: str, *arguments: Any) -> Array:
    """Take the arguments of a functional call on JAX's arrays."""
    *given, out = arguments
    if out is not None:
        raise errors.no_jax_out(op)
    return _run(op, *given)
