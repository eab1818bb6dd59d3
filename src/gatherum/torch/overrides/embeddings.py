"""Override torch's embedding bags, and the gradients of embeddings."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from .scatter_calls import INDEX_DTYPES, Constant, Declined, Ordered, Scatter, run, sums_of_rows

SUM, MEAN, MAX = 0, 1, 2  # torch's numbers of modes


def embedding_dense_backward(
    gradient: Tensor, indices: Tensor, size: int, padding: int, scale_by_frequency: bool
) -> Scatter | Tensor:
    """Override ``embedding_dense_backward``, which ignores invalid indices."""
    if indices.dtype not in INDEX_DTYPES or not indices.numel():
        raise Declined
    if gradient.shape[:-1] != indices.shape:
        raise Declined
    call = sums_of_rows(
        (size, gradient.shape[-1]),
        indices,
        gradient,
        mode="drop",
        zeroed_row=_padding_row(padding, size),
    )
    if not scale_by_frequency:
        return call
    shares = _shares(indices, size, gradient.dtype).unsqueeze(-1)
    return run(call._replace(updates=gradient * shares))


def _padding_row(padding: int, size: int) -> int:
    """Return the row of the padding index, which is ignored, or -1 if there is none."""
    return padding if padding < size else -1


def _counts(indices: Tensor, size: int) -> Tensor:
    """Return the number of times that each index occurs."""
    one = torch.ones((), dtype=torch.int64, device=indices.device)
    return run(sums_of_rows((size,), indices, one))


def _shares(indices: Tensor, size: int, dtype: torch.dtype) -> Tensor:
    """Return the reciprocal of the number of times that each index occurs."""
    occurrences = _counts(indices, size).take(indices.to(torch.int64))
    return occurrences.to(torch.float64).reciprocal_().to(dtype)


class Bags(NamedTuple):
    """The sums or means of bags of rows, with torch's arguments."""

    weight: Tensor
    indices: Tensor
    offsets: Tensor
    scales: Tensor | None
    mean: bool
    last_offset: bool
    padding: int


def embedding_bag(
    weight: Tensor, indices: Tensor, offsets: Tensor, scale_by_frequency: bool = False,
    mode: int = SUM, sparse: bool = False, scales: Tensor | None = None,
    last_offset: bool = False, padding: int = -1,
) -> Bags:  # fmt: skip
    """Override ``_embedding_bag`` for sums and means.

    A maximum has no order. On the CPU, torch adds float32 and float64 in order.
    """
    is_ordered_by_torch = (
        weight.dtype in (torch.float32, torch.float64) and weight.device.type == "cpu"
    )
    if mode == MAX or (mode == SUM and scales is None and is_ordered_by_torch):
        raise Ordered
    if indices.dim() != 1 or offsets.dim() != 1 or weight.dim() != 2:
        raise Declined
    if indices.dtype is not offsets.dtype or indices.dtype not in INDEX_DTYPES:
        raise Declined
    if not weight.is_floating_point():
        raise Declined
    if scales is not None and (mode != SUM or scales.dtype != weight.dtype):
        raise Declined
    if not indices.numel() or not weight.numel() or offsets.numel() < 1 + last_offset:
        raise Declined
    return Bags(weight, indices, offsets, scales, mode == MEAN, last_offset, padding)


def run_bags(call: Bags) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the four tensors of torch's ``_embedding_bag``."""
    weight, indices, ends, scales, is_mean, last_offset, padding = call
    index_count = indices.numel()
    if not last_offset:
        ends = torch.cat([ends, ends.new_full((1,), index_count)])
    sizes = ends.diff()
    if int(ends[0]) != 0 or int(ends[-1]) != index_count or bool((sizes < 0).any()):
        raise Declined
    bags = torch.repeat_interleave(sizes, output_size=index_count)
    row_numbers, bag_of_row = indices, bags
    if padding >= 0:
        is_kept = indices != padding
        row_numbers, bag_of_row = indices[is_kept], bags[is_kept]
        scales = scales if scales is None else scales[is_kept]
        sizes = _counts(bag_of_row, sizes.numel()).to(ends.dtype)
    shape = sizes.numel(), weight.shape[1]
    output = run(sums_of_rows(shape, bag_of_row, weight, update_rows=row_numbers, factors=scales))
    if is_mean:
        output /= sizes.clamp(min=1).to(torch.float32).unsqueeze(1)
    return output, bags, sizes, sizes


def embedding_bag_dense_backward(
    gradient: Tensor, indices: Tensor, bags: Tensor, sizes: Tensor, maxima: Tensor, size: int,
    scale_by_frequency: bool, mode: int, scales: Tensor | None, padding: int = -1,
) -> Scatter | Tensor:  # fmt: skip
    """Override ``_embedding_bag_dense_backward``."""
    if not indices.numel() or not gradient.numel():
        raise Declined
    if mode == MAX:
        return _of_maxima(gradient, sizes, maxima, size)
    if bags.numel() != indices.numel():
        raise Declined
    call = sums_of_rows(
        (size, gradient.shape[1]), indices, gradient, update_rows=bags, factors=scales,
        divisors=sizes if mode == MEAN else None, zeroed_row=_padding_row(padding, size),
    )  # fmt: skip
    if not scale_by_frequency:
        return call
    shares = _shares(indices, size, gradient.dtype)
    return run(call._replace(factors=shares if scales is None else scales * shares))


def _of_maxima(gradient: Tensor, bag_sizes: Tensor, maxima: Tensor, row_count: int) -> Tensor:
    """Add the gradient of each maximum to the element that has the maximum."""
    if bool((is_nonempty := bag_sizes > 0).all()):
        positions, updates = maxima, gradient
    else:
        positions, updates = maxima[is_nonempty], gradient[is_nonempty]
    if not positions.numel():
        return gradient.new_zeros((row_count, gradient.shape[1]))
    zeros = Constant(0, (row_count, gradient.shape[1]))
    return run(Scatter("scatter_elements", zeros, positions, updates, 0, "add"))
