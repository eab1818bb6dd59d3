"""Replace torch's scatters of elements: ``scatter``, ``scatter_add`` and ``scatter_reduce``."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gatherum._model.reductions import ALIASES

from .scatter_calls import INDEX_DTYPES, Declined, unchanged
from .scatter_calls import scatter as run

# The words of ``scatter_reduce`` and of ``scatter``.
WORDS, SCATTER_WORDS = frozenset(("sum", "prod", "mean", "amax", "amin")), ("add", "multiply")


def _elements(
    data: Tensor, dim: int, index: Tensor, src: Tensor, reduction: str,
    include_self: bool = True, out: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Write the elements of `src` that have an index."""
    rank, shape = data.dim(), index.shape
    if index.dtype not in INDEX_DTYPES or data.dtype is not src.dtype:
        raise Declined
    if not index.numel():  # torch does not compare its shape
        if data.device.type == "cpu":  # torch checks the other arguments, and writes nothing
            raise Declined
        return unchanged(data, out)
    if not rank:
        return _lifted(data, dim, index, src, reduction, include_self, out)
    if len(shape) != rank or src.dim() != rank:
        raise Declined
    if src.shape != shape:
        if any(n > m for n, m in zip(shape, src.shape, strict=True)):
            raise Declined
        src = src.as_strided(shape, src.stride())
    if rank > 1 and (vector := _vector(index, dim, data)) is not None:
        return run("scatter_slices", data, vector, src, dim, reduction,
                   include_self=include_self, out=out)  # fmt: skip
    return run(
        "scatter_elements", data, index, src, dim, reduction, include_self=include_self, out=out
    )


def _lifted(
    data: Tensor, dim: int, index: Tensor, src: Tensor, reduction: str, include_self: bool,
    out: Tensor | None,
) -> Tensor:  # fmt: skip
    """Run a call on data without dimensions, which torch treats as a vector of one element."""
    data, index, src = (
        tensor.view(1) if not tensor.dim() else tensor for tensor in (data, index, src)
    )
    out = None if out is None else data
    return _elements(data, dim, index, src, reduction, include_self, out).view(())


def _vector(index: Tensor, dim: int, data: Tensor) -> Tensor | None:
    """Return the vector that the index repeats, or None if it does not repeat a vector."""
    strides, shape = index.stride(), index.shape
    dim %= len(shape)
    for axis, step in enumerate(strides):
        if axis != dim and (shape[axis] != data.shape[axis] or (step and shape[axis] > 1)):
            return None
    return index.as_strided((shape[dim],), (strides[dim],))


def scatter(
    data: Tensor, dim: int, index: Tensor, src: Tensor, *, reduce: str = "",
    out: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Replace ``scatter`` of a tensor. Without `reduce`, the last of several elements is stored."""
    if reduce and reduce not in SCATTER_WORDS:
        raise Declined
    reduction = ALIASES.get(reduce, reduce) if reduce else "none"
    return _elements(data, dim, index, src, reduction, out=out)


def scatter_value(
    data: Tensor, dim: int, index: Tensor, value: Any, *, reduce: str, out: Tensor | None = None
) -> Tensor:
    """Replace ``scatter`` of a number with `reduce`."""
    src = data.new_full((), value).expand(index.shape)
    return scatter(data, dim, index, src, reduce=reduce, out=out)


def scatter_add(
    data: Tensor, dim: int, index: Tensor, src: Tensor, *, out: Tensor | None = None
) -> Tensor:
    """Replace ``scatter_add``."""
    return _elements(data, dim, index, src, "add", out=out)


def scatter_reduce(
    data: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *,
    include_self: bool = True, out: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Replace ``scatter_reduce``."""
    if reduce not in WORDS:
        raise Declined
    reduction = ALIASES.get(reduce, reduce)
    if reduction == "mean" and not data.is_floating_point() and not data.is_complex():
        mean = _integer_mean(data, dim, index, src, include_self)
        return mean if out is None else out.copy_(mean)
    return _elements(data, dim, index, src, reduction, include_self, out)


def _integer_mean(data: Tensor, dim: int, index: Tensor, src: Tensor, include_self: bool
                  ) -> Tensor:  # fmt: skip
    """Divide sums by counts. The sums wrap around in the dtype, as in torch."""
    if data.dtype is torch.bool:
        raise Declined
    total = _elements(data, dim, index, src, "add", include_self)
    start = torch.full_like(data, int(include_self))
    count = _elements(start, dim, index, torch.ones_like(src), "add")
    return total.div_(count.clamp_(min=1), rounding_mode="floor")
