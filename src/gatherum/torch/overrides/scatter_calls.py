"""Run one scatter below autograd, for the kernels that replace those of torch."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gatherum._model.call import Attributes
from gatherum._system import native
from gatherum.torch import dlpack, private

INDEX_DTYPES = (torch.int64, torch.int32)  # of torch's own operators


class Declined(Exception):
    """Signal that torch's kernel must run a call."""


class Invalid(Declined):
    """Signal that torch's kernel will raise its error for a call."""


def unchanged(data: Tensor, out: Tensor | None) -> Tensor:
    """Return the result of a call that changes nothing."""
    return data.clone(memory_format=torch.contiguous_format) if out is None else out


def _on_device(attributes: Attributes, *operands: Any) -> Tensor:
    """Run one scatter on CUDA tensors. The first call imports `gatherum.cuda`."""
    from gatherum.torch import cuda

    if torch.cuda.is_current_stream_capturing():  # a graph cannot wait for a check
        attributes = attributes._replace(mode="drop")
    return cuda.run(attributes, *operands)


def _as_plain(tensor: Tensor) -> Tensor:
    return tensor if type(tensor) is Tensor else tensor.as_subclass(Tensor)


def scatter(
    op: str,
    data: Tensor,
    indices: Tensor,
    updates: Tensor,
    axis: int = 0,
    reduction: str = "none",
    *,
    include_self: bool = True,
    negative: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Run a scatter of `gatherum` in the memory of the tensors, unrecorded by autograd.

    `out` is None or `data`.
    """
    # The core reads only plain tensors; a subclass shares the memory of its plain tensor.
    data, indices, updates = map(_as_plain, (data, indices, updates))
    target = None if out is None else data
    if private.exchange is not None and not data.is_cuda:
        call = op, data, indices, updates, (axis, reduction, include_self, "raise", negative)
        result: Tensor = native.run_on_tensors(*call, None, target)
    else:
        run = _on_device if data.is_cuda else dlpack.run
        attributes = Attributes(op, axis, reduction, include_self, negative=negative)
        result = run(attributes, data, indices, updates, 0, target)
    return result if out is None else out


def totals(shape: tuple[int, ...], indices: Tensor, updates: Tensor, axis: int = 0) -> Tensor:
    """Return the sums of rows with the same index. Other rows are zeros."""
    zeros = updates.new_zeros(()).expand(shape)
    return scatter("scatter_slices", zeros, indices, updates, axis, "add")
