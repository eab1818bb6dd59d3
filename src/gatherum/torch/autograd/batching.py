"""Rules for ``torch.func.vmap``: a batch of calls to an op becomes one call, on views.

If data and indices share leading dimensions, the batch becomes another shared dimension. For other
operators, if all members share the indices, the batch becomes the leading dimension of the data.
Otherwise every index becomes a one-component index tuple, and the batch becomes a batch dimension.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import torch
from torch import Tensor

from gatherum._model.operators import OPERATORS, Operator
from gatherum.torch import errors as torch_errors
from gatherum.torch.checks import check_storages
from gatherum.torch.library.ops import (
    LIBRARY,
    forms,
    operand_names,
    overload,
    scatter_attributes,
)
from gatherum.torch.tracing.fakes import moved_shape

Batched: TypeAlias = tuple[Tensor, int]


def batch_first(tensor: Tensor, dim: int | None, batch_size: int) -> Tensor:
    """Move the batch to the front. Without a batch dimension, repeat the tensor without a copy."""
    return tensor.expand(batch_size, *tensor.shape) if dim is None else tensor.movedim(dim, 0)


def _member(tensor: Tensor, dim: int | None) -> Tensor:
    """Return the first member of the batch; only its shape is used."""
    return tensor if dim is None else tensor.select(dim, 0)


def shape_of_one(tensor: Tensor, dim: int | None) -> tuple[Any, ...]:
    """Return the shape of one member of the batch."""
    shape = tuple(tensor.shape)
    return shape if dim is None else shape[:dim] + shape[dim + 1 :]


def _gather(operator: Operator, info: Any, dims: Any, data: Tensor, indices: Tensor,
            *arguments: Any) -> Batched:  # fmt: skip
    batch_size, (data_dim, indices_dim), options = info.batch_size, dims[:2], arguments[1:]
    shapes = (shape_of_one(data, data_dim), shape_of_one(indices, indices_dim))
    axis = operator.resolve(*shapes, arguments[0] if arguments else 0)
    op = overload(operator.name)
    if operator.addressing.shares_front:
        data = batch_first(data, data_dim, batch_size)
        indices = batch_first(indices, indices_dim, batch_size)
        return op(data, indices, axis + 1, *options), 0
    if indices_dim is None:
        return op(data.movedim(data_dim, 0), indices, axis + 1, *options), 0
    indices = indices.movedim(indices_dim, 0)
    if data_dim is None:
        return op(data, indices, axis, *options), axis
    rows = data.movedim(data_dim, 0).movedim(axis + 1, 1)
    result = overload("gather_nd")(rows, indices.unsqueeze(-1), 1, *options)
    indices_rank = indices.dim() - 1
    return result.movedim(
        tuple(range(1, 1 + indices_rank)), tuple(range(1 + axis, 1 + axis + indices_rank))
    ), 0


def _scatter(operator: Operator, info: Any, dims: Any, data: Tensor, indices: Tensor,
             updates: Tensor, *arguments: Any) -> Batched:  # fmt: skip
    batch_size = info.batch_size
    data_dim, indices_dim, updates_dim = dims[:3]
    options = arguments[1:]
    members = _member(data, data_dim), _member(indices, indices_dim), _member(updates, updates_dim)
    axis, shape = moved_shape(scatter_attributes(operator.name, *arguments), *members)
    data = batch_first(data, data_dim, batch_size)
    updates = broadcast_updates(batch_first(updates, updates_dim, batch_size), shape)
    if operator.addressing.shares_front:
        indices = batch_first(indices, indices_dim, batch_size)
        return overload(operator.name)(data, indices, updates, axis + 1, *options), 0
    if indices_dim is None:
        return overload(operator.name)(data, indices, updates, axis + 1, *options), 0
    indices = indices.movedim(indices_dim, 0)
    indices_rank = indices.dim() - 1
    rows = data.movedim(axis + 1, 1)
    updates = updates.movedim(
        tuple(range(1 + axis, 1 + axis + indices_rank)), tuple(range(1, 1 + indices_rank))
    )
    result = overload("scatter_nd")(rows, indices.unsqueeze(-1), updates, 1, *options)
    return result.movedim(1, axis + 1), 0


def broadcast_updates(updates: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Broadcast each member of a batch of updates to the moved shape."""
    missing = len(shape) - (updates.dim() - 1)
    batch_size, member_shape = updates.shape[0], updates.shape[1:]
    return updates.reshape(batch_size, *(1,) * missing, *member_shape).expand(batch_size, *shape)


def _register(operator: Operator) -> None:
    names = operand_names(operator, operator.name)

    def run_batch(info: Any, dims: Any, *operands: Any) -> Batched:
        check_storages(operator.name, names, operands)
        return (_scatter if operator.scatters else _gather)(operator, info, dims, *operands)

    def refused(*_: Any) -> Any:
        raise torch_errors.out_of_vmap(operator.name)

    for name in forms(operator):
        rule = run_batch if name == operator.name else refused
        torch.library.register_vmap(f"gatherum::{name}", rule, lib=LIBRARY)


for _operator in OPERATORS.values():
    _register(_operator)
