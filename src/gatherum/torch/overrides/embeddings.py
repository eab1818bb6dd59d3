"""Replace torch's embedding bags, and the gradients of embeddings."""

from __future__ import annotations

import torch
from torch import Tensor

from .scatter_calls import INDEX_DTYPES, Declined, scatter, totals

SUM, MEAN, MAX = 0, 1, 2  # torch's numbers of modes
_FEW = 1 << 18  # up to this number of elements, two steps are faster than one aggregation


def _counts(indices: Tensor, size: int) -> Tensor:
    """Return the number of times that each index occurs."""
    unit = torch.ones((), dtype=torch.int64, device=indices.device)
    return totals((size,), indices, unit)


def embedding_dense_backward(
    gradient: Tensor, indices: Tensor, size: int, padding: int, scale_by_frequency: bool
) -> Tensor:
    """Replace ``embedding_dense_backward``."""
    if indices.dtype not in INDEX_DTYPES or not indices.numel():
        raise Declined
    if gradient.shape[:-1] != indices.shape:
        raise Declined
    if scale_by_frequency:
        gradient = gradient * _shares(indices, size, gradient.dtype).unsqueeze(-1)
    total = totals((size, gradient.shape[-1]), indices, gradient)
    if padding >= 0:
        total[padding].zero_()
    return total


def _shares(indices: Tensor, size: int, dtype: torch.dtype) -> Tensor:
    """Return one over the number of times that each index occurs."""
    times = _counts(indices, size).take(indices.to(torch.int64))
    return times.to(torch.float64).reciprocal_().to(dtype)


def embedding_bag(
    weight: Tensor, indices: Tensor, offsets: Tensor, scale_by_frequency: bool = False,
    mode: int = SUM, sparse: bool = False, scales: Tensor | None = None,
    last_offset: bool = False, padding: int = -1,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """Replace ``_embedding_bag`` for sums and means. Return torch's four tensors.

    A maximum has no order.
    """
    if mode == MAX or _is_in_order(weight, mode, scales):
        raise Declined
    if indices.dim() != 1 or offsets.dim() != 1 or weight.dim() != 2:
        raise Declined
    if indices.dtype is not offsets.dtype or indices.dtype not in INDEX_DTYPES:
        raise Declined
    if not weight.is_floating_point() or (scales is not None and scales.dtype != weight.dtype):
        raise Declined
    edges = indices.numel()
    ends = offsets if last_offset else torch.cat([offsets, offsets.new_full((1,), edges)])
    if not edges or not weight.numel() or ends.numel() < 2:
        raise Declined
    sizes = ends.diff()
    if int(ends[0]) != 0 or int(ends[-1]) != edges or bool((sizes < 0).any()):
        raise Declined
    bags = torch.repeat_interleave(sizes, output_size=edges)
    taken, bag_of_row = indices, bags
    if padding >= 0:
        kept = indices != padding
        taken, bag_of_row = indices[kept], bags[kept]
        scales = scales if scales is None else scales[kept]
        sizes = _counts(bag_of_row, sizes.numel()).to(offsets.dtype)
    output = _aggregated(weight, taken, bag_of_row, sizes.numel(), scales)
    if mode == MEAN:
        output /= sizes.clamp(min=1).to(torch.float32).unsqueeze(1)
    return output, bags, sizes, sizes


def _is_in_order(weight: Tensor, mode: int, scales: Tensor | None) -> bool:
    """Return True if torch's kernel adds the rows of each bag in order, and rounds each sum."""
    exact = weight.dtype in (torch.float32, torch.float64)
    return mode == SUM and scales is None and exact and weight.device.type == "cpu"


def _aggregated(
    rows: Tensor, taken: Tensor, bag_numbers: Tensor, size: int, scales: Tensor | None
) -> Tensor:
    """Return the sums of the selected rows, each multiplied by its scale and rounded once."""
    few = taken.numel() * rows.shape[1] <= _FEW and not rows.is_cuda
    if few or (scales is not None and rows.element_size() < 4):
        terms = rows.index_select(0, taken)
        if scales is not None:
            terms.mul_(scales.unsqueeze(1))
        return totals((size, rows.shape[1]), bag_numbers, terms)
    options = size, "add", scales, "raise", False, ""
    total: Tensor = torch.ops.gatherum.aggregate(rows, taken, bag_numbers, *options)
    return total


def embedding_bag_dense_backward(
    gradient: Tensor, indices: Tensor, bags: Tensor, sizes: Tensor, maxima: Tensor, size: int,
    scale_by_frequency: bool, mode: int, scales: Tensor | None, padding: int = -1,
) -> Tensor:  # fmt: skip
    """Replace ``_embedding_bag_dense_backward``."""
    if not indices.numel() or not gradient.numel():
        raise Declined
    if mode == MAX:
        return _of_maxima(gradient, sizes, maxima, size)
    if bags.numel() != indices.numel():
        raise Declined
    if mode == MEAN:
        gradient = gradient / sizes.clamp(min=1).to(torch.float32).unsqueeze(1).to(gradient.dtype)
    if scale_by_frequency:
        shares = _shares(indices, size, gradient.dtype)
        scales = shares if scales is None else scales * shares
    total = _aggregated(gradient, bags, indices, size, scales)
    if padding >= 0:
        total[padding].zero_()
    return total


def _of_maxima(gradient: Tensor, sizes: Tensor, maxima: Tensor, size: int) -> Tensor:
    """Add the gradient of each maximum to the element that has the maximum."""
    if bool((filled := sizes > 0).all()):
        positions, updates = maxima, gradient
    else:
        positions, updates = maxima[filled], gradient[filled]
    zeros = gradient.new_zeros((size, gradient.shape[1]))
    if not positions.numel():
        return zeros
    return scatter("scatter_elements", zeros, positions, updates, 0, "add", out=zeros)
