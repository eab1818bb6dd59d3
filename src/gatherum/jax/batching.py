"""Rules for ``jax.vmap``: a batch of calls becomes one call with one more dimension."""

from __future__ import annotations

from typing import Any, TypeAlias

import jax.numpy as jnp
from jax.interpreters import batching

from gatherum._model.arrays import AnyArray
from gatherum._model.call import Attributes

from .primitives import GATHER, SCATTER, bind

Batched: TypeAlias = tuple[AnyArray, int]


def batch_first(array: AnyArray, dim: int | None, n: int) -> AnyArray:
    """Return an array with the batch dimension first; broadcast an array that is not batched."""
    if dim is None:
        return jnp.broadcast_to(array, (n, *array.shape))
    return jnp.moveaxis(array, dim, 0)


def _shape_of_one(array: AnyArray, dim: int | None) -> tuple[int, ...]:
    shape = tuple(array.shape)
    return shape if dim is None else shape[:dim] + shape[dim + 1 :]


def batch_size(operands: tuple[Any, ...], dims: tuple[int | None, ...]) -> int:
    """Return the size of the batch."""
    pairs = zip(operands, dims, strict=True)
    return next(int(array.shape[dim]) for array, dim in pairs if dim is not None)


def _resolved(
    attributes: Attributes, operands: tuple[Any, ...], dims: tuple[int | None, ...]
) -> Attributes:
    """Return the attributes of one member of the batch, with a nonnegative axis."""
    shapes = [
        _shape_of_one(*operand_dim) for operand_dim in zip(operands[:2], dims[:2], strict=True)
    ]
    axis = attributes.operator.resolve(shapes[0], shapes[1], attributes.axis)
    return attributes._replace(axis=axis)


def _gather(operands: Any, dims: Any, *, attributes: Attributes) -> Batched:
    n, attributes = batch_size(operands, dims), _resolved(attributes, operands, dims)
    (data, indices), (data_dim, indices_dim) = operands, dims
    if data_dim is None:
        return _gather_of_one(attributes, data, indices, indices_dim)
    axis = attributes.axis
    if attributes.operator.addressing.shares_front:
        operands_in_front = batch_first(data, data_dim, n), batch_first(indices, indices_dim, n)
        return bind(attributes._replace(axis=axis + 1), *operands_in_front), 0
    if indices_dim is None:
        return bind(attributes._replace(axis=axis + 1), batch_first(data, data_dim, n), indices), 0
    # Every index becomes a tuple of one index for gather_nd, with one batch dimension.
    rows = jnp.moveaxis(batch_first(data, data_dim, n), axis + 1, 1)
    tuples = batch_first(indices, indices_dim, n)[..., None]
    result = bind(attributes._replace(op="gather_nd", axis=1), rows, tuples)
    return _move_dimensions(result, 1, indices.ndim - 1, 1 + axis), 0


def _gather_of_one(attributes: Attributes, data: AnyArray, indices: AnyArray, dim: int) -> Batched:
    """Gather with batched indices from data that are not batched, without copies of the data."""
    addressing, axis = attributes.operator.addressing, attributes.axis
    # The batch dimension precedes the entries and follows the shared dimensions.
    batched = jnp.moveaxis(indices, dim, axis if addressing.shares_front else 0)
    if not addressing.shares_back:
        return bind(attributes, data, batched), axis
    # The axis may have any number of indices: concatenate the whole batch's indices.
    shape = batched.shape
    joined = shape[axis] * shape[axis + 1]
    result = bind(attributes, data, batched.reshape(*shape[:axis], joined, *shape[axis + 2 :]))
    return result.reshape(shape), axis


def _scatter(operands: Any, dims: Any, *, attributes: Attributes) -> Batched:
    n, attributes = batch_size(operands, dims), _resolved(attributes, operands, dims)
    (data, indices, updates), (data_dim, indices_dim, updates_dim) = operands, dims
    axis, rank = attributes.axis, data.ndim - (data_dim is not None)
    moved_shape = attributes.operator.moved_shape(
        _shape_of_one(data, data_dim), _shape_of_one(indices, indices_dim), axis
    )
    table = batch_first(data, data_dim, n)
    # The scatter itself broadcasts updates that are not batched.
    batched_updates = (
        batch_first(updates, updates_dim, n) if updates_dim is not None else updates[None]
    )
    batched_updates = batched_updates.reshape(
        batched_updates.shape[0],
        *(1,) * (len(moved_shape) - batched_updates.ndim + 1),
        *batched_updates.shape[1:],
    )
    if attributes.operator.addressing.shares_front:
        tuples = batch_first(indices, indices_dim, n)
        return bind(attributes._replace(axis=axis + 1), table, tuples, batched_updates), 0
    if indices_dim is None:
        return bind(attributes._replace(axis=axis + 1), table, indices, batched_updates), 0
    count = indices.ndim - 1
    rows, tuples = jnp.moveaxis(table, axis + 1, 1), batch_first(indices, indices_dim, n)[..., None]
    batched_updates = _move_dimensions(batched_updates, 1 + axis, count, 1)
    result = bind(attributes._replace(op="scatter_nd", axis=1), rows, tuples, batched_updates)
    return jnp.moveaxis(result, 1, axis + 1) if rank else result, 0


def _move_dimensions(array: AnyArray, first: int, count: int, target: int) -> AnyArray:
    """Move `count` adjacent dimensions from `first` to `target`."""
    return jnp.moveaxis(array, range(first, first + count), range(target, target + count))


batching.primitive_batchers[GATHER] = _gather
batching.primitive_batchers[SCATTER] = _scatter
