"""Replace torch's writes of slices: ``index_add`` and others, ``put_``, and indexed assignment.

A function has the parameters of torch's operator and `out`, which is None or the tensor to change.
It raises `Declined`, or any error before it writes, for a call that torch's kernel must run.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import torch
from torch import Tensor

from gatherum._model.reductions import ALIASES

from .scatter_calls import INDEX_DTYPES, Declined, Invalid, scatter

WORDS = frozenset(("prod", "mean", "amax", "amin"))  # of ``index_reduce``


def _slices(
    data: Tensor, dim: int, index: Tensor, source: Tensor, reduction: str,
    include_self: bool = True, out: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Write the slices of `source` into the slices of `data` that a vector of indices selects."""
    if index.dtype not in INDEX_DTYPES or data.dtype is not source.dtype:
        raise Declined
    if index.dim() != 1 or not data.dim():
        return _lifted(data, dim, index, source, reduction, include_self, out)
    expected = list(data.shape)
    expected[dim] = index.shape[0]
    if list(source.shape) != expected:
        raise Declined
    return scatter(
        "scatter_slices", data, index, source, dim, reduction, include_self=include_self, out=out
    )


def _lifted(
    data: Tensor, dim: int, index: Tensor, source: Tensor, reduction: str, include_self: bool,
    out: Tensor | None,
) -> Tensor:  # fmt: skip
    """Run a call with operands without dimensions, which torch treats as vectors of one element."""
    if index.dim() > 1 or source.dim() != data.dim():
        raise Declined
    if not data.dim():
        data, source = data.view(1), source.view(1)
        out = None if out is None else data
        lifted = _slices(data, dim, index.view(-1), source, reduction, include_self, out)
        return lifted.view(())
    return _slices(data, dim, index.view(1), source, reduction, include_self, out)


def index_add(
    data: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1,
    out: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Replace ``index_add``."""
    if alpha != 1:
        if data.dtype is torch.bool:
            raise Declined
        source = source * alpha
    return _slices(data, dim, index, source, "add", out=out)


def index_copy(
    data: Tensor, dim: int, index: Tensor, source: Tensor, *, out: Tensor | None = None
) -> Tensor:
    """Replace ``index_copy``. If an index occurs more than once, its last slice is stored."""
    if index.dtype is not torch.int64:
        raise Declined
    return _slices(data, dim, index, source, "none", out=out)


def index_reduce(
    data: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *,
    include_self: bool = True, out: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Replace ``index_reduce``."""
    integer_mean = reduce == "mean" and not data.is_floating_point()
    if reduce not in WORDS or integer_mean:
        raise Declined
    return _slices(data, dim, index, source, ALIASES.get(reduce, reduce), include_self, out)


def put(data: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """Replace ``put_``, which numbers the elements of a tensor in row-major order."""
    if index.dtype is not torch.int64 or data.dtype is not source.dtype:
        raise Invalid
    if index.numel() != source.numel():
        raise Invalid
    flat = data.view(-1) if data.is_contiguous() else data.reshape(-1)
    scatter("scatter_slices", flat, index.reshape(-1), source.reshape(-1), 0,
            "add" if accumulate else "none", negative=True, out=flat)  # fmt: skip
    return data if data.is_contiguous() else data.copy_(flat.view(data.shape))


def index_put(
    data: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False,
    unsafe: bool = False,
) -> Tensor:  # fmt: skip
    """Replace ``_index_put_impl_``, which assigns to ``data[indices]`` or adds to it."""
    named = [(dim, index) for dim, index in enumerate(indices) if index is not None]
    reduction = "add" if accumulate else "none"
    if values.dtype is not data.dtype:
        raise Declined
    if len(named) == 1 and named[0][1].dtype in INDEX_DTYPES:
        dim, index = named[0]
        if index.numel():
            index, values = _placed(index, data), _placed(values, data)
            return scatter(
                "scatter_slices", data, index, values, dim, reduction, negative=True, out=data
            )
        raise Declined
    if len(named) < 2:  # a mask has no duplicates
        raise Declined
    return _several(data, indices, values, reduction)


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
            result.append((dim, _placed(index, data).to(torch.int64)))
        else:
            raise Declined
        dim += width
    return result


def _several(data: Tensor, indices: Sequence[Tensor | None], values: Tensor, reduction: str
             ) -> Tensor:  # fmt: skip
    """Write to several indexed dimensions, as a scatter of tuples."""
    integer_indices = _integer_indices(data, indices)
    dims = [dim for dim, _ in integer_indices]
    tuples = torch.stack(torch.broadcast_tensors(*(index for _, index in integer_indices)), -1)
    others = [dim for dim in range(data.dim()) if dim not in dims]
    rank, shape = tuples.dim() - 1, [data.shape[dim] for dim in others]
    adjacent = dims[-1] - dims[0] == len(dims) - 1
    front = dims[0] if adjacent else 0  # the dimensions that torch leaves in front of the index's
    whole = [*shape[:front], *tuples.shape[:-1], *shape[front:]]
    if not prod(whole):
        raise Declined
    order = [*range(front, front + rank), *range(front), *range(front + rank, len(whole))]
    updates = _placed(values, data).expand(whole).permute(order)
    moved = data.permute(*dims, *others)
    scatter("scatter_nd", moved, tuples, updates, 0, reduction, negative=True, out=moved)
    return data
