"""A call of the core on the memory of dense CPU tensors: nothing is copied."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .. import errors, native
from . import dtypes
from .operands import fill_item


def check_dense(op: str, operand: str, tensor: Tensor, device: torch.device) -> None:
    """Raise for a tensor that the core cannot read: sparse, or on another device."""
    if tensor.layout is not torch.strided or tensor.is_quantized:
        layout = str(tensor.layout).removeprefix("torch.")
        found = "quantized tensor" if tensor.is_quantized else f"tensor of layout {layout}"
        instead = "dequantize" if tensor.is_quantized else "to_dense"
        raise errors.no_tensor(op, operand, found, f"write {operand}.{instead}()")
    if tensor.device != device:
        raise errors.other_device(op, operand, str(device), str(tensor.device))


def run(
    op: str,
    data: Tensor,
    indices: Tensor,
    updates: Tensor | None,
    axis: int,
    reduction: str,
    include_self: bool,
    mode: str,
    negative: bool,
    fill: Any,
    out: Tensor | None,
) -> Tensor:
    """Run one call on dense CPU tensors, and return the result, or `out`."""
    result = out

    def allocate(shape: tuple[int, ...]) -> int:
        nonlocal result
        result = torch.empty(shape, dtype=data.dtype)
        return int(result.data_ptr())

    named = (("data", data), ("indices", indices), ("updates", updates), ("out", out))
    of, to, by, into = (None if t is None else _view(op, name, t) for name, t in named)
    attributes = axis, reduction, include_self, mode, negative
    fills = mode in ("fill", "drop") and not (isinstance(fill, int) and fill == 0)
    item = fill_item(op, fill, data.dtype) if fills else None
    native.call_on_views(op, of, to, by, *attributes, item, into, allocate)
    if result is None:
        raise AssertionError("the core asks for memory where there is no `out`")
    return result


def _view(op: str, operand: str, tensor: Tensor) -> native.View:
    code, item = dtypes.code_of(op, operand, tensor.dtype), tensor.element_size()
    strides = tuple(step * item for step in tensor.stride())
    return native.View(tensor.data_ptr(), tuple(tensor.shape), strides, code)
