"""Rules of ``torch.func.vmap``: a batch of calls of an op becomes one call, on views.

If data and indices share leading dimensions, the batch becomes another shared dimension. For other
operators, if all members share the indices, the batch becomes the leading dimension of the data.
Otherwise every index becomes a tuple of one component, with a batch dimension.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import torch
from torch import Tensor

from gatherum._model.operators import OPERATORS, Operator
from gatherum.torch import errors as torch_errors
from gatherum.torch.checks import check_storages
from gatherum.torch.library.ops import LIBRARY, forms, overload, scatter_attributes
from gatherum.torch.tracing.fakes import moved_shape

Batched: TypeAlias = tuple[Tensor, int]


def front(tensor: Tensor, dim: int | None, n: int) -> Tensor:
    """Move the batch to the front. Without a batch dimension, repeat the tensor without a copy."""
    return tensor.expand(n, *tensor.shape) if dim is None else tensor.movedim(dim, 0)


def _one(tensor: Tensor, dim: int | None) -> Tensor:
    """Return a member of the batch, for its shape."""
    return tensor if dim is None else tensor.select(dim, 0)


def shape_of_one(tensor: Tensor, dim: int | None) -> tuple[Any, ...]:
    """Return the shape of one member of the batch."""
    shape = tuple(tensor.shape)
    return shape if dim is None else shape[:dim] + shape[dim + 1 :]


def _gather(operator: Operator, info: Any, dims: Any, data: Tensor, indices: Tensor,
            *arguments: Any) -> Batched:  # fmt: skip
    n, (of_data, of_indices), more = info.batch_size, dims[:2], arguments[1:]
    shapes = (shape_of_one(data, of_data), shape_of_one(indices, of_indices))
    axis = operator.resolve(*shapes, arguments[0] if arguments else 0)
    op = overload(operator.name)
    if operator.addressing.shares_front:
        data, indices = front(data, of_data, n), front(indices, of_indices, n)
        return op(data, indices, axis + 1, *more), 0
    if of_indices is None:
        return op(data.movedim(of_data, 0), indices, axis + 1, *more), 0
    indices = indices.movedim(of_indices, 0)
    if of_data is None:
        return op(data, indices, axis, *more), axis
    rows = data.movedim(of_data, 0).movedim(axis + 1, 1)
    result = overload("gather_nd")(rows, indices.unsqueeze(-1), 1, *more)
    q = indices.dim() - 1
    return result.movedim(tuple(range(1, 1 + q)), tuple(range(1 + axis, 1 + axis + q))), 0


def _scatter(operator: Operator, info: Any, dims: Any, data: Tensor, indices: Tensor,
             updates: Tensor, *arguments: Any) -> Batched:  # fmt: skip
    n, (of_data, of_indices, of_updates), more = info.batch_size, dims[:3], arguments[1:]
    single_shapes = _one(data, of_data), _one(indices, of_indices), _one(updates, of_updates)
    axis, shape = moved_shape(scatter_attributes(operator.name, *arguments), *single_shapes)
    data = front(data, of_data, n)
    updates = stretched(front(updates, of_updates, n), shape)
    if operator.addressing.shares_front:
        indices = front(indices, of_indices, n)
        return overload(operator.name)(data, indices, updates, axis + 1, *more), 0
    if of_indices is None:
        return overload(operator.name)(data, indices, updates, axis + 1, *more), 0
    indices = indices.movedim(of_indices, 0)
    q = indices.dim() - 1
    rows = data.movedim(axis + 1, 1)
    updates = updates.movedim(tuple(range(1 + axis, 1 + axis + q)), tuple(range(1, 1 + q)))
    done = overload("scatter_nd")(rows, indices.unsqueeze(-1), updates, 1, *more)
    return done.movedim(1, axis + 1), 0


def stretched(updates: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Broadcast the updates of a batch, behind the batch dimension, to the moved shape."""
    missing = len(shape) - (updates.dim() - 1)
    n, own = updates.shape[0], updates.shape[1:]
    return updates.reshape(n, *(1,) * missing, *own).expand(n, *shape)


def _register(operator: Operator) -> None:
    names = ("data", "indices", "updates") if operator.scatters else ("data", "indices")

    def run_batch(info: Any, dims: Any, *operands: Any) -> Batched:
        check_storages(operator.name, names, operands)
        return (_scatter if operator.scatters else _gather)(operator, info, dims, *operands)

    def refused(*_: Any) -> Any:
        raise torch_errors.out_of_vmap(operator.name)

    for name in forms(operator):
        chosen = run_batch if name == operator.name else refused
        torch.library.register_vmap(f"gatherum::{name}", chosen, lib=LIBRARY)


for _operator in OPERATORS.values():
    _register(_operator)
