"""The six functions on JAX's arrays: one line each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
from jax import Array
from numpy.typing import ArrayLike

from .. import errors
from ..names import ModeName, ReductionName
from .operands import normalise
from .ops import Tracer, bind, eager


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


# What eager calls on arrays of JAX were found to be, by their attributes; and the types of such
# arrays, which tracers do not have.
_known: dict[tuple[object, ...], Callable[..., Array]] = {}
_concrete: set[type] = set()
_KNOWN_MOST = 1024


def _run(op: str, *given: Any) -> Array:
    data, indices, updates, *attributes = given
    operands = (data, indices) if updates is None else (data, indices, updates)
    key = (op, *attributes)
    # Values that are equal need not mean the same: 1 is no boolean, -0.0 is another item than 0.
    if _concrete.issuperset(map(type, operands)) and tuple(map(type, attributes)) == _KINDS:
        if (run := _known.get(key)) is not None:
            return run(*operands)
        call, arrays = normalise(op, *given)
        if not call.fill and len(_known) < _KNOWN_MOST:
            _known[key] = eager(call)
        return bind(call, *arrays)
    call, arrays = normalise(op, *given)
    _concrete.update(type(one) for one in arrays if _is_concrete(one))
    return bind(call, *arrays)


# Of axis, reduction, include_self, mode, negative, fill_value.
_KINDS = (int, str, bool, str, bool, int)


def _is_concrete(array: object) -> bool:
    return isinstance(array, jax.Array) and not isinstance(array, Tracer)


def room(op: str, *arguments: Any) -> Array:
    """Take the arguments of a functional call on JAX's arrays."""
    *given, out = arguments
    if out is not None:
        raise errors.no_jax_out(op)
    return _run(op, *given)
