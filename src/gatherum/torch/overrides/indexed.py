"""Override torch's writes of slices: ``index_add`` and others, ``put_``, and indexed assignment.

A function has the parameters of torch's operator, except ``out``. It returns a `Scatter`, or the
result. For a call that torch's kernel must run, it raises `Declined`, or any error before it
writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import torch
from torch import Tensor

from gatherum._model.reductions import ALIASES

from .scatter_calls import (
    INDEX_DTYPES,
    Declined,
    Invalid,
    Ordered,
    Scatter,
    check_number,
    run,
    with_one_dimension,
)

REDUCE_WORDS = frozenset(("prod", "mean", "amax", "amin"))  # of ``index_reduce``


def _scatter_slices(
    data: Tensor, dim: int, index: Tensor, source: Tensor, reduction: str,
    include_self: bool = True, factors: Any = None,
) -> Scatter:  # fmt: skip
    """Write the slices of `source` into the slices of `data` that a vector of indices selects."""
    if index.dtype not in INDEX_DTYPES or data.dtype is not source.dtype:
        raise Declined
    if index.dim() > 1 or source.dim() != data.dim():
        raise Declined
    data, index, source = with_one_dimension(data, index, source)
    expected_shape = list(data.shape)
    expected_shape[dim] = index.shape[0]
    if list(source.shape) != expected_shape:
        raise Declined
    return Scatter(
        "scatter_slices", data, index, source, dim, reduction, include_self, factors=factors
    )


def index_add(data: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1) -> Scatter:
    """Override ``index_add``."""
    if alpha == 1:
        return _scatter_slices(data, dim, index, source, "add")
    if data.dtype is torch.bool or torch.result_type(source, alpha) is not source.dtype:
        raise Declined
    check_number(alpha, source.dtype)
    return _scatter_slices(data, dim, index, source, "add", factors=alpha)


def index_copy(data: Tensor, dim: int, index: Tensor, source: Tensor) -> Scatter:
    """Override ``index_copy``. If an index occurs more than once, its last slice is stored."""
    if index.dtype is not torch.int64:
        raise Declined
    return _scatter_slices(data, dim, index, source, "none")


def index_reduce(
    data: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *,
    include_self: bool = True,
) -> Scatter:  # fmt: skip
    """Override ``index_reduce``."""
    is_integer_mean = reduce == "mean" and not data.is_floating_point()
    if reduce not in REDUCE_WORDS or is_integer_mean:
        raise Declined
    torch_moves_slices = (
        data.dim() > 1 and include_self
    )  # torch then calls operators on whole slices
    if not torch_moves_slices and (data.dtype is torch.bool or data.is_complex()):
        raise Declined
    return _scatter_slices(data, dim, index, source, ALIASES.get(reduce, reduce), include_self)


def put(data: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Scatter | Tensor:
    """Override ``put_``, which numbers the elements of a tensor in row-major order."""
    if index.dtype is not torch.int64 or data.dtype is not source.dtype:
        raise Invalid
    if index.numel() != source.numel():
        raise Invalid
    flat = data.reshape(-1)
    operands = flat, index.reshape(-1), source.reshape(-1), 0, "add" if accumulate else "none"
    call = Scatter("scatter_slices", *operands, negative=True)
    return call if data.is_contiguous() else data.copy_(run(call, flat).view(data.shape))


def index_put(
    data: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False,
    unsafe: bool = False,
) -> Scatter:  # fmt: skip
    """Override ``_index_put_impl_``, which assigns to ``data[indices]`` or adds to it."""
    indexed_dims = [(dim, index) for dim, index in enumerate(indices) if index is not None]
    reduction = "add" if accumulate else "none"
    if sum(_indexed_dim_count(index) for index in indices) > data.dim():
        raise Invalid
    is_mask = len(indexed_dims) == 1 and indexed_dims[0][1].dtype is torch.bool
    if is_mask:  # it has no duplicates
        raise Ordered
    if values.dtype is not data.dtype or not indexed_dims:
        raise Declined
    if len(indexed_dims) > 1:
        return _scatter_tuples(data, indices, values, reduction)
    dim, index = indexed_dims[0]
    if index.dtype not in INDEX_DTYPES:
        raise Declined
    if not index.numel():
        raise Ordered
    operands = data, _on_device_of(index, data), _on_device_of(values, data), dim, reduction
    return Scatter("scatter_slices", *operands, negative=True)


def _indexed_dim_count(index: Tensor | None) -> int:
    """Return the number of dimensions that an index selects from."""
    return index.dim() if index is not None and index.dtype is torch.bool else 1


def _on_device_of(tensor: Tensor, data: Tensor) -> Tensor:
    """Return a tensor on the data's device, to which torch also moves it."""
    return tensor if tensor.device == data.device else tensor.to(data.device)


def _integer_indices(data: Tensor, indices: Sequence[Tensor | None]) -> list[tuple[int, Tensor]]:
    """Return the indexed dimensions with integer indices.

    A mask becomes one index for each of its dimensions.
    """
    result: list[tuple[int, Tensor]] = []
    dim = 0
    for index in indices:
        dim_count = 1
        if index is None:
            pass
        elif index.dtype is torch.bool:
            dim_count = index.dim()
            if not dim_count or index.shape != data.shape[dim : dim + dim_count]:
                raise Declined
            positions_by_dim = _on_device_of(index, data).nonzero().unbind(1)
            result += [(dim + i, positions) for i, positions in enumerate(positions_by_dim)]
        elif index.dtype in INDEX_DTYPES:
            result.append((dim, _on_device_of(index, data)))
        else:
            raise Declined
        dim += dim_count
    return result


def _scatter_tuples(
    data: Tensor, indices: Sequence[Tensor | None], values: Tensor, reduction: str
) -> Scatter:
    """Write to several indexed dimensions, as a scatter of tuples."""
    integer_indices = _integer_indices(data, indices)
    dims = [dim for dim, _ in integer_indices]
    components = torch.broadcast_tensors(*(index for _, index in integer_indices))
    index_rank = components[0].dim()
    other_dims = [dim for dim in range(data.dim()) if dim not in dims]
    other_sizes = [data.shape[dim] for dim in other_dims]
    are_adjacent = dims[-1] - dims[0] == len(dims) - 1
    # The dimensions that torch leaves in front of the dimensions of the indices.
    dims_in_front = dims[0] if are_adjacent else 0
    moved_shape = [*other_sizes[:dims_in_front], *components[0].shape, *other_sizes[dims_in_front:]]
    if not prod(moved_shape):
        raise Declined
    index_dims_first = [
        *range(dims_in_front, dims_in_front + index_rank),
        *range(dims_in_front),
        *range(dims_in_front + index_rank, len(moved_shape)),
    ]
    updates = _on_device_of(values, data).expand(moved_shape).permute(index_dims_first)
    data_dims_first = data.permute(*dims, *other_dims)
    return Scatter(
        "scatter_nd", data_dims_first, tuple(components), updates, 0, reduction, negative=True
    )
