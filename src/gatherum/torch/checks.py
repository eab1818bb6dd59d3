"""Which values are tensors that the operators can read, and what to write for others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import _C, Tensor

from .. import arrays, errors, native
from . import sentences


def check_data(op: str, value: object) -> None:
    """Raise TypeError for `data` that is no tensor."""
    if not isinstance(value, Tensor):
        raise sentences.no_tensor(op, "data", _kind(value), "write torch.as_tensor(data)")


def check_out(op: str, value: object) -> None:
    """Raise TypeError for an `out` that is no tensor."""
    if value is not None and not isinstance(value, Tensor):
        raise sentences.no_tensor(op, "out", _kind(value), "write torch.as_tensor(out)")


def check_dense(op: str, operand: str, tensor: Tensor, device: torch.device) -> None:
    """Raise for a tensor that the core cannot read: sparse, or on another device."""
    if tensor.layout is not torch.strided or tensor.is_quantized:
        layout = str(tensor.layout).removeprefix("torch.")
        found = "quantized tensor" if tensor.is_quantized else f"tensor of layout {layout}"
        instead = "dequantize" if tensor.is_quantized else "to_dense"
        raise sentences.no_tensor(op, operand, found, f"write {operand}.{instead}()")
    if tensor.device != device:
        instead = f"write {operand}.to(data.device)"
        raise errors.other_device(op, operand, str(device), str(tensor.device), instead)


def check_storages(op: str, names: Sequence[str], operands: tuple[object, ...]) -> None:
    """Raise ValueError for a tensor with elements outside of its storage, which can be made smaller
    under it. Torch does not check that again, not even before it copies.
    """
    if torch.compiler.is_compiling():
        return
    if _C._are_functorch_transforms_active():
        operands = tuple(map(_innermost, operands))
    number = native.first_outside_storage(operands)
    if number >= 0:
        tensor: Any = operands[number]
        reach = sum((n - 1) * step for n, step in zip(tensor.shape, tensor.stride(), strict=True))
        needed = (tensor.storage_offset() + reach + 1) * tensor.element_size()
        held = tensor.untyped_storage().nbytes()
        raise sentences.outside_storage(op, names[number], held, needed)


def check_storage(op: str, operand: str, tensor: Tensor) -> None:
    """Raise ValueError for one tensor with elements outside of its storage."""
    check_storages(op, (operand,), (tensor,))


def _innermost(value: Any) -> Any:
    """Return the tensor that has the memory, without the wrappers of `torch.func`."""
    while isinstance(value, Tensor) and _C._functorch.is_functorch_wrapped_tensor(value):
        value = _C._functorch.get_unwrapped(value)
    return value


def _kind(value: object) -> str:
    found = arrays.foreign(type(value))
    return found.name if found else type(value).__name__
