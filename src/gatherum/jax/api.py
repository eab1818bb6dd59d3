"""The six functions on JAX's arrays: one line each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from numpy.typing import ArrayLike

from .. import errors
from ..names import ModeName, ReductionName
from ..operators import GATHERS
from .operands import is_jax, normalise
from .ops import Tracer, bind, eager
from .partials import Places


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


def _run(
    op: str, data: Any, indices: Any, updates: Any, axis: Any, reduction: Any, include_self: Any,
    mode: Any, negative: Any, fill_value: Any,
) -> Array:  # fmt: skip
    # Values that are equal need not mean the same: 1 is no boolean, -0.0 is another item than 0.
    plain = type(axis) is type(fill_value) is int and type(mode) is type(reduction) is str
    if plain and type(include_self) is type(negative) is bool and type(data) in _concrete:
        key = (op, axis, reduction, include_self, mode, negative, fill_value)
        if (run := _known.get(key)) is not None and type(indices) in _concrete:
            if type(updates) in _concrete:
                return run(data, indices, updates)
            if updates is None and op in GATHERS:
                return run(data, indices)
    given = axis, reduction, include_self, mode, negative, fill_value
    call, arrays = normalise(op, data, indices, updates, *given)
    if not any(isinstance(array, Tracer) for array in arrays):
        _concrete.update(type(array) for array in arrays if isinstance(array, jax.Array))
        if plain and not call.fill and len(_known) < _KNOWN_MOST:
            _known[(op, *given)] = eager(call)
    result: Array = bind(call, *arrays)
    if not (call.fills and is_jax(fill_value)):
        return result
    # An item that is computed: it has derivatives, and a batch has one for each member.
    valid = Places.of(call, arrays[0].shape, arrays[1]).valid()
    return jnp.where(valid, result, fill_value.astype(result.dtype))


def room(
    op: str, data: Any, indices: Any, updates: Any, axis: Any, reduction: Any, include_self: Any,
    mode: Any, negative: Any, fill_value: Any, out: Any,
) -> Array:  # fmt: skip
    """Take the arguments of a functional call on JAX's arrays."""
    if out is not None:
        raise errors.no_jax_out(op)
    return _run(
        op, data, indices, updates, axis, reduction, include_self, mode, negative, fill_value
    )
