"""The functions of JAX that `gatherum.places.Namespace` names and describes."""

from __future__ import annotations

import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..call import Attributes
from ..places import Places
from . import dtypes
from .primitives import Array, bind
from .products import product_of_others  # noqa: F401  # one of these functions

Shape = tuple[int, ...]

where = jnp.where
isnan = jnp.isnan
maximum = jnp.maximum
conj = jnp.conj
reshape = jnp.reshape
broadcast_to = jnp.broadcast_to
stack = jnp.stack
roll = jnp.roll
flip = jnp.flip
stop_gradient = jax.lax.stop_gradient
wide = dtypes.wide
has_sums = dtypes.folds


def astype(x: Array, dtype: Any) -> Array:
    return x.astype(dtype)


def unstack(x: Array, axis: int) -> tuple[Array, ...]:
    return tuple(jnp.unstack(x, axis=axis))


def argsort(x: Array) -> Array:
    return jnp.argsort(x, stable=True)


def arange(start: int, stop: int, like: Array) -> Array:
    return jnp.arange(start, stop, dtype=counting(stop))


def full(shape: Shape, value: int, dtype: Any, like: Array) -> Array:
    return jnp.full(shape, value, dtype)


def sum_to(x: Array, shape: Shape) -> Array:
    if x.shape == shape:
        return x
    before = x.ndim - len(shape)
    along = [before + d for d, n in enumerate(shape) if n != x.shape[before + d]]
    return jnp.sum(x, axis=(*range(before), *along), dtype=x.dtype).reshape(shape)


def truth() -> Any:
    return np.dtype(np.bool_)


def counting(most: int) -> Any:
    return np.dtype(np.int32 if most < 2**31 - 1 else np.int64)


def gather(attributes: Attributes, data: Array, indices: Array, fill_value: int = 0) -> Array:
    fill = np.asarray(fill_value, data.dtype).tobytes() if fill_value else b""
    return bind(attributes._replace(fill=fill), data, indices)


def scatter(attributes: Attributes, data: Array, indices: Array, updates: Array) -> Array:
    return bind(attributes, data, indices, updates)


def places(attributes: Attributes, shape: Shape, indices: Array) -> Places:
    """Return the places of a call on data of a shape."""
    axis = attributes.operator.resolve(tuple(shape), tuple(indices.shape), attributes.axis)
    resolved = attributes._replace(axis=axis, fill=b"")
    return Places(sys.modules[__name__], resolved, indices, tuple(shape))
