"""Replace torch's weighted counts, reductions of segments and sums of sparse elements."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import torch
from torch import Tensor

from .scatter_calls import Declined, scatter, totals


def _fold_of(word: str) -> tuple[str, float]:
    """Return the reduction for a word of ``segment_reduce``, and the value of an empty segment."""
    match word:
        case "sum" | "mean":  # means are divided later
            return "add", 0.0
        case "prod":
            return "mul", 1.0
        case "max":
            return "max", -inf
        case "min":
            return "min", inf
    raise Declined


def bincount(labels: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """Replace ``bincount`` with weights. Without weights, the order does not matter."""
    if weights is None or labels.dim() != 1 or weights.shape != labels.shape:
        raise Declined
    if not labels.numel() or labels.dtype.is_floating_point or labels.dtype is torch.bool:
        raise Declined
    if weights.is_complex() or minlength < 0:
        raise Declined
    least, most = labels.aminmax()
    if int(least) < 0:
        raise Declined
    if weights.dtype not in (torch.float32, torch.float64):
        weights = weights.to(torch.float64)
    return totals((max(int(most) + 1, minlength),), labels, weights)


def segment_reduce(
    data: Tensor, reduce: str, *, lengths: Tensor | None = None, indices: Tensor | None = None,
    offsets: Tensor | None = None, axis: int = 0, unsafe: bool = False, initial: Any = None,
) -> Tensor:  # fmt: skip
    """Replace ``segment_reduce`` of segments that all slices share."""
    reduction, empty = _fold_of(reduce)
    if axis or indices is not None or not data.is_floating_point():
        raise Declined
    if offsets is not None:
        if offsets.dim() != 1 or offsets.numel() < 2 or int(offsets[0]) != 0:
            raise Declined
        lengths = offsets.diff()
    if lengths is None or lengths.dim() != 1 or not lengths.numel() or not data.numel():
        raise Declined
    if bool((lengths < 0).any()) or int(lengths.sum()) != data.shape[0]:
        raise Declined
    segments = torch.repeat_interleave(lengths, output_size=data.shape[0])
    start = data.new_full((), empty if initial is None else initial)
    shape = (lengths.numel(), *data.shape[1:])
    result = scatter("scatter_slices", start.expand(shape), segments, data, 0, reduction)
    if reduce == "mean":
        counts = lengths.view(-1, *[1] * (data.dim() - 1)).to(data.dtype)
        if initial is not None:
            counts = counts.masked_fill(counts == 0, 1)
        result /= counts
        if initial is None:
            result = result.masked_fill_(counts == 0, nan)
    return result


def coalesce(data: Tensor) -> Tensor:
    """Replace ``_coalesce`` of sparse COO tensors."""
    indices, values = data._indices(), data._values()
    rank, count = indices.shape
    if count < 2 or not values.numel() or not rank:
        raise Declined
    sizes = data.shape[:rank]
    flat = indices[0]
    for dim in range(1, rank):
        flat = flat * sizes[dim] + indices[dim]
    keys, positions = torch.unique(flat, return_inverse=True)
    total = totals((keys.numel(), *values.shape[1:]), positions, values)
    columns: list[Tensor] = []
    for size in reversed(sizes):
        columns.insert(0, keys % size)
        keys = keys.div(size, rounding_mode="floor")
    return torch.sparse_coo_tensor(
        torch.stack(columns), total, data.shape, is_coalesced=True, check_invariants=False
    )
