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

from .scatter_calls import INDEX_DTYPES, Declined, Invalid, Ordered, Scatter, lifted, run

WORDS = frozenset(("prod", "mean", "amax", "amin"))  # of ``index_reduce``


def _slices(
    data: Tensor, dim: int, index: Tensor, source: Tensor, reduction: str,
    include_self: bool = True, factors: Any = None,
) -> Scatter:  # fmt: skip
    """Write the slices of `source` into the slices of `data` that a vector of indices selects."""
    if index.dtype not in INDEX_DTYPES or data.dtype is not source.dtype:
        raise Declined
    if index.dim() > 1 or source.dim() != data.dim():
        raise Declined
    data, index, source = lifted(data, index, source)
    expected = list(data.shape)
    expected[dim] = index.shape[0]
    if list(source.shape) != expected:
        raise Declined
    return Scatter(
        "scatter_slices", data, index, source, dim, reduction, include_self, factors=factors
    )


def index_add(data: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1) -> Scatter:
    """Override ``index_add``."""
    if alpha == 1:
        return _slices(data, dim, index, source, "add")
    if data.dtype is torch.bool or torch.result_type(source, alpha) is not source.dtype:
        raise Declined
    torch.full((), alpha, dtype=source.dtype)  # raises torch's error for a number beyond the dtype
    return _slices(data, dim, index, source, "add", factors=alpha)


def index_copy(data: Tensor, dim: int, index: Tensor, source: Tensor) -> Scatter:
    """Override ``index_copy``. If an index occurs more than once, its last slice is stored."""
    if index.dtype is not torch.int64:
        raise Declined
    return _slices(data, dim, index, source, "none")


def index_reduce(
    data: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *,
    include_self: bool = True,
) -> Scatter:  # fmt: skip
    """Override ``index_reduce``."""
    integer_mean = reduce == "mean" and not data.is_floating_point()
    if reduce not in WORDS or integer_mean:
        raise Declined
    whole = data.dim() > 1 and include_self  # torch then calls operators on whole slices
    if not whole and (data.dtype is torch.bool or data.is_complex()):
        raise Declined
    return _slices(data, dim, index, source, ALIASES.get(reduce, reduce), include_self)


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
    named = [(dim, index) for dim, index in enumerate(indices) if index is not None]
    reduction = "add" if accumulate else "none"
    if sum(_width(index) for index in indices) > data.dim():
        raise Invalid
    if len(named) == 1 and named[0][1].dtype is torch.bool:  # a mask has no duplicates
        raise Ordered
    if values.dtype is not data.dtype or not named:
        raise Declined
    if len(named) > 1:
        return _several(data, indices, values, reduction)
    dim, index = named[0]
    if index.dtype not in INDEX_DTYPES:
        raise Declined
    if not index.numel():
        raise Ordered
    operands = data, _placed(index, data), _placed(values, data), dim, reduction
    return Scatter("scatter_slices", *operands, negative=True)


def _width(index: Tensor | None) -> int:
    """Return the number of dimensions that an index selects from."""
    return index.dim() if index is not None and index.dtype is torch.bool else 1


def _placed(tensor: Tensor, data: Tensor) -> Tensor:
    """Return a tensor on the data's device, if torch also moves it there."""
    return tensor if tensor.device == data.device else tensor.to(data.device)


def _integer_indices(data: Tensor, indices: Sequence[Tensor | None]) -> list[tuple[int, Tensor]]:
    """Return the indexed dimensions with integer indices.

    A mask becomes one index for each of its dimensions.
    """
    result: list[tuple[int, Tensor]] = []
    dim = 0
    for index in indices:
        width = 1
        if index is None:
            pass
        elif index.dtype is torch.bool:
            width = index.dim()
            if not width or index.shape != data.shape[dim : dim + width]:
                raise Declined
            positions_by_dim = _placed(index, data).nonzero().unbind(1)
            result += [(dim + i, positions) for i, positions in enumerate(positions_by_dim)]
        elif index.dtype in INDEX_DTYPES:
            result.append((dim, _placed(index, data)))
        else:
            raise Declined
        dim += width
    return result


def _several(
    data: Tensor, indices: Sequence[Tensor | None], values: Tensor, reduction: str
) -> Scatter:
    """Write to several indexed dimensions, as a scatter of tuples."""
    integer_indices = _integer_indices(data, indices)
    dims = [dim for dim, _ in integer_indices]
    components = torch.broadcast_tensors(*(index for _, index in integer_indices))
    rank, others = components[0].dim(), [dim for dim in range(data.dim()) if dim not in dims]
    shape = [data.shape[dim] for dim in others]
    adjacent = dims[-1] - dims[0] == len(dims) - 1
    front = dims[0] if adjacent else 0  # the dimensions that torch leaves in front of the index's
    whole = [*shape[:front], *components[0].shape, *shape[front:]]
    if not prod(whole):
        raise Declined
    order = [*range(front, front + rank), *range(front), *range(front + rank, len(whole))]
    updates = _placed(values, data).expand(whole).permute(order)
    permuted = data.permute(*dims, *others)
    return Scatter("scatter_nd", permuted, tuple(components), updates, 0, reduction, negative=True)
