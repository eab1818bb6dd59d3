"""Rules of ``jax.vmap``: each primitive on a batch is one call along one more dimension."""

from __future__ import annotations

from typing import Any, TypeAlias

import jax.numpy as jnp
from jax.interpreters import batching

from gatherum._model.call import Attributes

from .primitives import GATHER, SCATTER, Array, bind

Batched: TypeAlias = tuple[Array, int]


def front(array: Array, dim: int | None, n: int) -> Array:
    """Return an array with the batch in front, repeated where it has none."""
    if dim is None:
        return jnp.broadcast_to(array, (n, *array.shape))
    return jnp.moveaxis(array, dim, 0)


def _shape_of_one(array: Array, dim: int | None) -> tuple[int, ...]:
    shape = tuple(array.shape)
    return shape if dim is None else shape[:dim] + shape[dim + 1 :]


def batch_size(operands: tuple[Any, ...], dims: tuple[int | None, ...]) -> int:
    """Return how many members a batch has."""
    found = zip(operands, dims, strict=True)
    return next(int(array.shape[dim]) for array, dim in found if dim is not None)


def _resolved(
    attributes: Attributes, operands: tuple[Any, ...], dims: tuple[int | None, ...]
) -> Attributes:
    """Return the call with its axis counted from the front, of one member of the batch."""
    shapes = [_shape_of_one(*each) for each in zip(operands[:2], dims[:2], strict=True)]
    axis = attributes.operator.resolve(shapes[0], shapes[1], attributes.axis)
    return attributes._replace(axis=axis)


def _gather(operands: Any, dims: Any, *, attributes: Attributes) -> Batched:
    n, attributes = batch_size(operands, dims), _resolved(attributes, operands, dims)
    (data, indices), (of_data, of_indices) = operands, dims
    if of_data is None:
        return _gather_of_one(attributes, data, indices, of_indices)
    axis = attributes.axis
    if attributes.operator.addressing.shares_front:
        both = front(data, of_data, n), front(indices, of_indices, n)
        return bind(attributes._replace(axis=axis + 1), *both), 0
    if of_indices is None:
        return bind(attributes._replace(axis=axis + 1), front(data, of_data, n), indices), 0
    # Every index becomes a tuple of one, with a batch dimension.
    rows = jnp.moveaxis(front(data, of_data, n), axis + 1, 1)
    tuples = front(indices, of_indices, n)[..., None]
    found = bind(attributes._replace(op="gather_nd", axis=1), rows, tuples)
    return _moved(found, 1, indices.ndim - 1, 1 + axis), 0


def _gather_of_one(attributes: Attributes, data: Array, indices: Array, dim: int) -> Batched:
    """Gather with many indices from one array, of which no copies are made."""
    addressing, axis = attributes.operator.addressing, attributes.axis
    # In front of the entries, behind the dimensions that data and indices have in common.
    beside = jnp.moveaxis(indices, dim, axis if addressing.shares_front else 0)
    if not addressing.shares_back:
        return bind(attributes, data, beside), axis
    # Along the axis there may be any number of indices: those of the whole batch, one by one.
    shape = beside.shape
    joined = shape[axis] * shape[axis + 1]
    found = bind(attributes, data, beside.reshape(*shape[:axis], joined, *shape[axis + 2 :]))
    return found.reshape(shape), axis


def _scatter(operands: Any, dims: Any, *, attributes: Attributes) -> Batched:
    n, attributes = batch_size(operands, dims), _resolved(attributes, operands, dims)
    (data, indices, updates), (of_data, of_indices, of_updates) = operands, dims
    axis, rank = attributes.axis, data.ndim - (of_data is not None)
    moved = attributes.operator.moved(
        _shape_of_one(data, of_data), _shape_of_one(indices, of_indices), axis
    )
    table = front(data, of_data, n)
    # Updates that all have in common are repeated by the scatter itself.
    lead = front(updates, of_updates, n) if of_updates is not None else updates[None]
    lead = lead.reshape(lead.shape[0], *(1,) * (len(moved) - lead.ndim + 1), *lead.shape[1:])
    if attributes.operator.addressing.shares_front:
        tuples = front(indices, of_indices, n)
        return bind(attributes._replace(axis=axis + 1), table, tuples, lead), 0
    if of_indices is None:
        return bind(attributes._replace(axis=axis + 1), table, indices, lead), 0
    count = indices.ndim - 1
    rows, tuples = jnp.moveaxis(table, axis + 1, 1), front(indices, of_indices, n)[..., None]
    lead = _moved(lead, 1 + axis, count, 1)
    found = bind(attributes._replace(op="scatter_nd", axis=1), rows, tuples, lead)
    return jnp.moveaxis(found, 1, axis + 1) if rank else found, 0


def _moved(array: Array, first: int, count: int, to: int) -> Array:
    """Move some neighbouring dimensions to where they belong."""
    return jnp.moveaxis(array, range(first, first + count), range(to, to + count))


batching.primitive_batchers[GATHER] = _gather
batching.primitive_batchers[SCATTER] = _scatter
