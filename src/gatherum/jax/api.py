"""The six functions on JAX's arrays: one line each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
from jax import Array
from numpy.typing import ArrayLike

from .. import conversion, native
from ..names import ModeName, OperatorName, ReductionName
from ..operators import GATHERS
from . import errors as jax_errors
from .namespace import places
from .operands import is_jax, normalise
from .primitives import Tracer, bind, direct, eager


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


_Given: TypeAlias = tuple[object, ...]
# What runs eager calls, by operator, type of the arrays and attributes. The core keeps the last one
# of each operator, and knows it again by its attributes being the same objects.
_Run: TypeAlias = Callable[..., Array]
_known: dict[tuple[object, ...], tuple[_Run | None, _Run]] = {}
_KNOWN_MOST = 1024


def _run_unknown(
    op: OperatorName, data: Any, indices: Any, updates: Any, *given: Any
) -> Array:  # fmt: skip
    operands = (data, indices) if op in GATHERS else (data, indices, updates)
    kinds = {type(operand) for operand in operands}
    if len(kinds) == 1 and _are_plain(given):
        kind = kinds.pop()
        if (known := _known.get((op, kind, *given))) is not None:
            native.remember_call(op, kind, *known, op not in GATHERS, given)
            return known[1](*operands)
    return _run_any(op, data, indices, updates, given)


# Takes a call's arguments by position, up to `fill_value`.
_run = native.entry_of_known_calls(_run_unknown)


def _are_plain(given: _Given) -> bool:
    """Whether equal attributes mean the same: True equals 1 and -0.0 equals 0, but are neither."""
    return tuple(map(type, given)) == (int, str, bool, str, bool, int)


def _run_any(op: OperatorName, data: Any, indices: Any, updates: Any, given: _Given) -> Array:
    fill_value: Any = given[-1]
    plain = conversion.as_attributes(op, *given[:-1])
    attributes, arrays = normalise(plain, data, indices, updates, fill_value)
    if _are_plain(given) and not attributes.fill and len(_known) < _KNOWN_MOST:
        for kind in {type(array) for array in arrays if isinstance(array, jax.Array)}:
            if not issubclass(kind, Tracer):
                _known[(op, kind, *given)] = direct(attributes), eager(attributes)
    result: Array = bind(attributes, *arrays)
    if not (attributes.fills and is_jax(fill_value)):
        return result
    # An item that is computed: it has derivatives, and a batch has one for each member.
    valid = places(attributes, arrays[0].shape, arrays[1]).arriving()
    return jnp.where(valid, result, fill_value.astype(result.dtype))


def room(
    op: OperatorName, data: Any, indices: Any, updates: Any, axis: Any, reduction: Any,
    include_self: Any, mode: Any, negative: Any, fill_value: Any, out: Any,
) -> Array:  # fmt: skip
    """Take the arguments of a functional call on JAX's arrays."""
    if out is not None:
        raise jax_errors.no_jax_out(op)
    return _run(
        op, data, indices, updates, axis, reduction, include_self, mode, negative, fill_value
    )
