"""Override torch's weighted counts, reductions of segments and sums of sparse elements."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import torch
from torch import Tensor

from gatherum._system import native

from .scatter_calls import INDEX_DTYPES, Constant, Declined, Ordered, Scatter, run, sums_of_rows


def _fold_of(word: str) -> tuple[str, float]:
    """Return the reduction for a name in ``segment_reduce``, and the value of an empty segment."""
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


def bincount(labels: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Scatter:
    """Override ``bincount`` with weights. Without weights, the order does not matter."""
    if weights is None:
        raise Ordered
    if labels.dim() != 1 or weights.shape != labels.shape:
        raise Declined
    if not labels.numel() or labels.dtype.is_floating_point or labels.dtype is torch.bool:
        raise Declined
    if weights.is_complex() or minlength < 0:
        raise Declined
    if weights.dtype not in (torch.float32, torch.float64):
        weights = weights.to(torch.float64)
    return Scatter("scatter_slices", minlength, labels, weights, 0, "add")


def segment_reduce(
    data: Tensor, reduce: str, *, lengths: Tensor | None = None, indices: Tensor | None = None,
    offsets: Tensor | None = None, axis: int = 0, unsafe: bool = False, initial: Any = None,
) -> Scatter | Tensor:  # fmt: skip
    """Override ``segment_reduce`` for segments that all slices share."""
    reduction, initial_value = _fold_of(reduce)
    lengths_or_offsets, segment_count, segments = lengths, 0, "lengths"
    if offsets is not None:
        lengths_or_offsets, segment_count, segments = offsets, -1, "offsets"
    if axis or indices is not None or not data.is_floating_point() or not data.numel():
        raise Declined
    if (
        lengths_or_offsets is None
        or lengths_or_offsets.dim() != 1
        or lengths_or_offsets.dtype not in INDEX_DTYPES
    ):
        raise Declined
    segment_count += lengths_or_offsets.numel()
    if segment_count < 1:
        raise Declined
    if initial is not None:
        initial_value = initial
    initial_values = Constant(initial_value, (segment_count, *data.shape[1:]))
    call = Scatter(
        "scatter_slices", initial_values, lengths_or_offsets, data, 0, reduction, segments=segments
    )
    if reduce != "mean":
        return call
    if initial is None:  # the mean of an empty segment is NaN
        return call._replace(
            data=initial_values._replace(value=nan), reduction="mean", include_self=False
        )
    lengths = lengths_or_offsets if segments == "lengths" else lengths_or_offsets.diff()
    counts = lengths.view(-1, *[1] * (data.dim() - 1)).to(data.dtype)
    return run(call).div_(counts.clamp_(min=1))


def coalesce_few(data: Tensor) -> Tensor | None:
    """Override ``_coalesce`` on the host for a few elements. Return None for other tensors."""
    shape = data.shape
    columns_and_sums = native.coalesce(data._indices(), data._values(), shape)
    return None if columns_and_sums is None else _coalesced(*columns_and_sums, shape)


def coalesce(data: Tensor) -> Tensor:
    """Override ``_coalesce`` for sparse COO tensors."""
    indices, values, shape = data._indices(), data._values(), data.shape
    rank, count = indices.shape
    if count < 2 or not values.numel() or not rank:
        raise Declined
    keys = indices[0]
    for dim in range(1, rank):
        keys = keys * shape[dim] + indices[dim]
    keys, positions = torch.unique(keys, return_inverse=True)
    zeros = indices.new_zeros(()).expand(rank, keys.numel())
    columns = run(Scatter("scatter_slices", zeros, positions, indices, axis=1))
    sums = run(sums_of_rows((keys.numel(), *values.shape[1:]), positions, values))
    return _coalesced(columns, sums, shape)


def _coalesced(columns: Tensor, sums: Tensor, shape: tuple[int, ...]) -> Tensor:
    return torch.sparse_coo_tensor(columns, sums, shape, is_coalesced=True, check_invariants=False)
