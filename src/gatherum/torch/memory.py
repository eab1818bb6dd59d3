"""A call of the core on the memory of dense CPU tensors: nothing is copied, plans are kept."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from .. import errors, native
from ..plan import Plan, build
from ..signature import Array, Operand, Signature
from . import dtypes
from .dtypes import TorchDType, planned


def _array(tensor: Tensor) -> Array:
    """See a tensor's memory as an array; items that NumPy lacks as unsigned integers as wide."""
    array: Array = tensor.detach().view(dtypes.carrier(tensor.dtype)).numpy()
    return array


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
    operands = {"data": data, "indices": indices, "updates": updates, "out": out}
    kinds = {name: planned(op, name, t.dtype) for name, t in operands.items() if t is not None}
    attributes = axis, reduction, include_self, mode, negative
    arrays: list[Any] = [None if t is None else _array(t) for t in operands.values()]
    given = fill_item(op, data.dtype, fill) if mode in ("fill", "drop") else 0
    of, to, by, into = arrays
    if any(isinstance(kind, TorchDType) for kind in kinds.values()):
        looks = tuple(_look(kinds.get(name), a) for name, a in zip(operands, arrays, strict=True))
        result = native.run(_plan(op, looks, attributes), of, to, by, given, into)
    else:
        result = native.call(op, of, to, by, *attributes, given, into)
    return torch.from_numpy(result).view(data.dtype) if out is None else out


def _look(kind: Any, array: Array | None) -> Any:
    return None if array is None else (kind, array.dtype, array.shape, array.strides)


@lru_cache(maxsize=1024)
def _plan(op: str, looks: tuple[Any, ...], attributes: tuple[Any, ...]) -> Plan:
    """Return a plan for items that NumPy lacks, to be run on unsigned integers as wide."""
    real: list[Any] = [look and Operand(look[2], look[0], look[3]) for look in looks]
    given: tuple[Any, ...] = (*real[:3], *attributes, real[3])
    plan = build(Signature(op, *given))
    seen = [look and Operand(look[2], look[1], look[3]) for look in looks]
    s = plan.signature
    carried = replace(s, data=seen[0], indices=seen[1], updates=seen[2], out=seen[3])
    return replace(plan, signature=carried)


def fill_item(op: str, dtype: torch.dtype, value: Any) -> Any:
    """Return what missing items take, as an item of the array that stands for the tensor."""
    kind = planned(op, "data", dtype)
    if not isinstance(kind, TorchDType):
        return value
    item = torch.tensor(value, dtype=torch.float64).to(dtype)
    return item.view(dtypes.carrier(dtype)).numpy()[()]
