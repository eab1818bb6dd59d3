"""The functions of torch that `gatherum.places.Namespace` names and describes."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor

from .. import derivatives, native
from ..call import Attributes
from . import dtypes
from .ops import overload
from .sizes import surely_holds

Shape = tuple[int, ...]

where = torch.where
isnan = torch.isnan
conj = torch.conj
reshape = torch.reshape
broadcast_to = Tensor.expand
stack = torch.stack
unstack = torch.unbind
roll = torch.roll
product_of_others = derivatives.product_of_others
flip = torch.flip
wide = dtypes.wide
has_sums = dtypes.has_sums


def maximum(x: Tensor, number: int) -> Tensor:
    return x.clamp(min=number)


def astype(x: Tensor, dtype: torch.dtype) -> Tensor:
    return x.to(dtype)


def argsort(x: Tensor) -> Tensor:
    return torch.argsort(x, stable=True)


def arange(start: int, stop: int, like: Tensor) -> Tensor:
    return torch.arange(start, stop, device=like.device)


def full(shape: Shape, value: int, dtype: torch.dtype, like: Tensor) -> Tensor:
    one = torch.full((), value, dtype=dtype, device=like.device)
    return one.expand(shape)  # one number in memory, read from everywhere


def sum_to(x: Tensor, shape: Shape) -> Tensor:
    """Do what `Tensor.sum_to_size` does, also where sizes are not known yet: those that may be
    equal are.
    """
    first = x.dim() - len(shape)
    over = list(range(first))
    for d, (n, wanted) in enumerate(zip(x.shape[first:], shape, strict=True), first):
        if surely_holds(wanted == 1) and not surely_holds(n == 1):
            over.append(d)
    if over:
        x = x.sum(over, keepdim=True)
    if first:
        x = x.view(x.shape[first:])
    symbols = any(isinstance(wanted, torch.SymInt) for wanted in shape)
    return x.expand(shape) if symbols else x


def stop_gradient(x: Tensor) -> Tensor:
    return x.detach()


def truth() -> torch.dtype:
    return torch.bool


def counting(most: int) -> torch.dtype:
    """Choose as few bytes as count that far, where sizes are numbers: counts are many."""
    if torch.compiler.is_compiling() or isinstance(most, torch.SymInt):
        return torch.int64
    return torch.int32 if most < 2**31 - 1 else torch.int64


def gather(attributes: Attributes, data: Tensor, indices: Tensor, fill_value: int = 0) -> Tensor:
    op, how = attributes.op, attributes.positional
    if _is_recorded(data):
        axis, mode, negative = attributes[1:4]
        return cast(Tensor, overload(op)(data, indices, axis, mode, negative, fill_value))
    return cast(Tensor, native.call(op, data, indices, None, *how, fill_value, None))


def scatter(attributes: Attributes, data: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    op, how = attributes.op, attributes.positional
    if _is_recorded(data, updates):
        return cast(Tensor, overload(op)(data, indices, updates, *how))
    return cast(Tensor, native.call(op, data, indices, updates, *how, 0, None))


def _is_recorded(*operands: Tensor) -> bool:
    """Return whether a call goes through torch's dispatcher, which takes several times as long as
    a small call.
    """
    recorded = torch.is_grad_enabled() and any(operand.requires_grad for operand in operands)
    return torch.compiler.is_compiling() or recorded
