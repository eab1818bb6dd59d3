"""Derivatives of the two primitives: tangents, and for what is linear in its operands transposes.

Every rule is made of calls of the same primitives, so that they hold to any order, forward and
backward.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax.numpy as jnp
from jax.interpreters import ad

from . import dtypes, partials
from .ops import GATHER, SCATTER, Array, Call, bind
from .partials import Places

_LINEAR = ("none", "add", "mean")


def _gather_tangent(tangent: Array, _: Array, indices: Array, *, call: Call) -> Array:
    """Gather the tangents; what is filled has none."""
    return bind(replace(call, fill=b""), tangent, indices)


def _gather_transpose(cotangent: Any, data: Any, indices: Array, *, call: Call) -> list[Any]:
    """Add up what has been taken from each place."""
    if type(cotangent) is ad.Zero:
        return [ad.Zero(data.aval), None]
    return [Places.of(call, data.aval.shape, indices).total(cotangent), None]


def _scatter_jvp(primals: Any, tangents: Any, *, call: Call) -> tuple[Array, Array]:
    data, indices, updates = primals
    result = bind(call, data, indices, updates)
    of_data = _instantiated(tangents[0], data.shape, data.dtype)
    of_updates = _instantiated(tangents[2], (), data.dtype)
    if call.reduction in _LINEAR:
        return result, bind(call, of_data, indices, of_updates)
    places = Places.of(call, data.shape, indices)
    wide = dtypes.wide(data.dtype)
    moved = of_data.astype(wide), of_updates.astype(wide)
    if call.reduction == "mul":
        operands = data.astype(wide), updates.astype(wide)
        tangent = partials.product(places, call.include_self, operands, moved)
    else:
        tangent = partials.extreme(places, call.include_self, (data, updates), result, moved)
    return result, tangent.astype(data.dtype)


def _instantiated(tangent: Any, shape: tuple[int, ...], dtype: Any) -> Array:
    """Return a tangent as an array; zeros where there is none."""
    return jnp.zeros(shape, dtype) if type(tangent) is ad.Zero else tangent


def _scatter_transpose(
    cotangent: Any, data: Any, indices: Array, updates: Any, *, call: Call
) -> list[Any]:
    """Send what comes back to the operands that are linear here."""
    to_data, to_updates = ad.is_undefined_primal(data), ad.is_undefined_primal(updates)
    if type(cotangent) is ad.Zero:
        return [
            ad.Zero(data.aval) if to_data else None, None,
            ad.Zero(updates.aval) if to_updates else None,
        ]  # fmt: skip
    places = Places.of(call, cotangent.shape, indices)
    replaces = call.reduction == "none" or not call.include_self
    shared = _over_counts(places, call, cotangent) if call.reduction == "mean" else cotangent
    of_data = of_updates = None
    if to_data:
        of_data = places.emptied(shared) if replaces else shared
    if to_updates:
        moved = places.take(shared)
        if call.reduction == "none":
            moved = jnp.where(places.staying(), moved, jnp.zeros((), moved.dtype))
        of_updates = _summed(moved, updates.aval.shape)
    return [of_data, None, of_updates]


def _over_counts(places: Places, call: Call, cotangent: Array) -> Array:
    """Divide by how many values a mean has been taken of."""
    counts = places.counts()
    counts = counts + 1 if call.include_self else jnp.maximum(counts, 1)
    wide = cotangent.astype(dtypes.wide(cotangent.dtype))
    return (wide / counts.astype(wide.real.dtype)).astype(cotangent.dtype)


def _summed(moved: Array, shape: tuple[int, ...]) -> Array:
    """Sum over the dimensions along which updates of a smaller shape were repeated."""
    if moved.shape == shape:
        return moved
    before = moved.ndim - len(shape)
    along = [before + d for d, n in enumerate(shape) if n != moved.shape[before + d]]
    summed = jnp.sum(moved, axis=(*range(before), *along), dtype=moved.dtype)
    return summed.reshape(shape)


ad.defjvp(GATHER, _gather_tangent, None)
ad.primitive_transposes[GATHER] = _gather_transpose
ad.primitive_jvps[SCATTER] = _scatter_jvp
ad.primitive_transposes[SCATTER] = _scatter_transpose
