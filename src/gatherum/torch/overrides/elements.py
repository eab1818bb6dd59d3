"""Override torch's scatters of elements: ``scatter``, ``scatter_add`` and ``scatter_reduce``."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gatherum._model.reductions import ALIASES

from .scatter_calls import (
    INDEX_DTYPES,
    Constant,
    Declined,
    Ordered,
    Scatter,
    check_number,
    run,
    with_one_dimension,
)

# The reductions that ``scatter_reduce`` and ``scatter`` accept.
REDUCE_WORDS = frozenset(("sum", "prod", "mean", "amax", "amin"))
SCATTER_WORDS = ("add", "multiply")


def _scatter_elements(
    data: Tensor, dim: int, index: Tensor, src: Tensor, reduction: str, include_self: bool = True
) -> Scatter | Tensor:
    """Write the elements of `src` that have an index."""
    if index.dtype not in INDEX_DTYPES or data.dtype is not src.dtype:
        raise Declined
    if not index.numel():  # torch does not compare its shape
        if data.device.type == "cpu":  # torch checks the other arguments, and writes nothing
            raise Ordered
        return data
    if not data.dim():
        data, index, src = with_one_dimension(data, index, src)
    rank, shape = data.dim(), index.shape
    if len(shape) != rank or src.dim() != rank:
        raise Declined
    if src.shape != shape:
        if any(n > m for n, m in zip(shape, src.shape, strict=True)):
            raise Declined
        src = src.as_strided(shape, src.stride())
    op = "scatter_elements"
    if rank > 1 and (vector := _repeated_vector(index, dim, data)) is not None:
        op, index = "scatter_slices", vector
    return Scatter(op, data, index, src, dim, reduction, include_self)


def _repeated_vector(index: Tensor, dim: int, data: Tensor) -> Tensor | None:
    """Return the vector that the index repeats, or None if it does not repeat a vector."""
    strides, shape = index.stride(), index.shape
    dim %= len(shape)
    for axis, step in enumerate(strides):
        if axis != dim and (shape[axis] != data.shape[axis] or (step and shape[axis] > 1)):
            return None
    return index.as_strided((shape[dim],), (strides[dim],))


def scatter(
    data: Tensor, dim: int, index: Tensor, src: Tensor, *, reduce: str = ""
) -> Scatter | Tensor:
    """Override ``scatter`` of a tensor. Without `reduce`, the last of several elements remains."""
    if reduce and reduce not in SCATTER_WORDS:
        raise Declined
    return _scatter_elements(
        data, dim, index, src, ALIASES.get(reduce, reduce) if reduce else "none"
    )


def scatter_value(
    data: Tensor, dim: int, index: Tensor, value: Any, *, reduce: str
) -> Scatter | Tensor:
    """Override ``scatter`` with a number as the source, and with `reduce`."""
    check_number(value, data.dtype)
    src = data.new_full((), value).expand(index.shape)
    call = scatter(data, dim, index, src, reduce=reduce)
    if isinstance(call, Scatter):
        return call._replace(updates=Constant(value, tuple(call.updates.shape)))
    return call


def scatter_add(data: Tensor, dim: int, index: Tensor, src: Tensor) -> Scatter | Tensor:
    """Override ``scatter_add``."""
    return _scatter_elements(data, dim, index, src, "add")


def scatter_reduce(
    data: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Scatter | Tensor:
    """Override ``scatter_reduce``."""
    if reduce not in REDUCE_WORDS:
        raise Declined
    reduction = ALIASES.get(reduce, reduce)
    call = _scatter_elements(data, dim, index, src, reduction, include_self)
    is_inexact = data.is_floating_point() or data.is_complex()
    if reduction == "mean" and not is_inexact and isinstance(call, Scatter):
        return _integer_mean(call)
    return call


def _integer_mean(call: Scatter) -> Tensor:
    """Divide sums by counts. The sums wrap around in the dtype, as in torch."""
    data, updates = call.data, call.updates
    assert isinstance(data, Tensor) and isinstance(updates, Tensor)
    if data.dtype is torch.bool:
        raise Declined
    total = run(call._replace(reduction="add"))
    initial, ones = torch.full_like(data, int(call.include_self)), torch.ones_like(updates)
    count = run(call._replace(data=initial, updates=ones, reduction="add", include_self=True))
    return total.div_(count.clamp_(min=1), rounding_mode="floor")
