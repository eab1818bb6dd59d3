"""Convert and check the operands of functions over groups, and describe their tensors."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from gatherum._arguments import array_likes, conversion
from gatherum._model import errors
from gatherum._model.dtypes import AnyDType
from gatherum.groups import namespace as of_numpy

from . import checks, dtypes, operands, private
from .library import symbolic_sizes


def as_values(op: str, operand: str, value: Any) -> Tensor:
    """Return values, or raise TypeError unless they are a dense tensor of a supported dtype."""
    checks.check_container(op, operand, value)
    checks.check_dense(op, operand, value, value.device)
    if not torch.compiler.is_compiling():
        checks.check_storage(op, operand, value)
    dtypes.code_of(op, operand, value.dtype)
    return cast(Tensor, value)


def as_groups(op: str, operand: str, value: Any, values: Tensor) -> Tensor:
    """Return groups as a tensor on the device of the values."""
    if not isinstance(value, Tensor) and torch.compiler.is_compiling():
        value = torch.as_tensor(value, device=values.device)
    elif not isinstance(value, Tensor):
        array_likes.check_items(op, operand, value)
        with errors.for_tensors():
            value = operands.as_indices(op, value, values, operand)
    checks.check_dense(op, operand, value, values.device)
    if not torch.compiler.is_compiling():
        checks.check_storage(op, operand, value)
    dtypes.code_of(op, operand, value.dtype)
    return cast(Tensor, value)


def as_operand(op: str, operand: str, value: Any, values: Tensor) -> Tensor:
    """Return an operand as a tensor on the device of the values."""
    if not isinstance(value, Tensor):
        array = conversion.as_array(op, operand, value)
        value = operands.as_tensor(op, operand, array, values)
    return as_values(op, operand, value)


def as_dtype(op: str, operand: str, value: Any) -> AnyDType:
    """Return the dtype that an argument names, as plans use it."""
    if not isinstance(value, torch.dtype):
        numpy_dtype = of_numpy.as_dtype(op, operand, value)
        if dtypes.of_name(numpy_dtype.name) is None:
            raise errors.not_a_dtype(op, operand, value)
        return numpy_dtype
    return dtypes.plan_dtype(op, operand, value)


def plan_dtype(x: Tensor) -> AnyDType:
    """Return the dtype of a tensor, as plans use it."""
    return dtypes.plan_dtype("", "", x.dtype)


def dtype(plan_dtype: AnyDType) -> torch.dtype:
    """Return torch's dtype for a dtype of plans."""
    result = dtypes.of_plan(plan_dtype)
    assert result is not None, plan_dtype
    return result


def item(op: str, plan_dtype: AnyDType, value: object, like: Tensor) -> Tensor:
    """Return a value as a tensor without dimensions."""
    target = dtype(plan_dtype)
    if target.itemsize == 1 and target.is_floating_point:  # torch has another NaN
        code = operands.fill_item(op, value, target)[0]
        return torch.full((), code, dtype=torch.uint8, device=like.device).view(target)
    scalar = operands.as_fill(op, value, torch.empty(0, dtype=target, device="cpu"))
    return torch.full((), scalar, dtype=target, device=like.device)


def to_numpy(x: Tensor) -> np.ndarray[Any, Any] | None:
    """Return a tensor as an array. Return None if its values are not known."""
    if torch.compiler.is_compiling() or x.is_meta or checks.is_batched(x):
        return None
    tensor = x.detach().cpu()
    # Inside a transform of `torch.func`, every tensor that an operation returns is a wrapper.
    in_transform = private.transforms_active()
    array: np.ndarray[Any, Any] = (
        np.from_dlpack(checks.innermost(tensor)) if in_transform else tensor.numpy()
    )
    return array


def size_of(op: str, operand: str, groups: Tensor) -> int:
    """Return the number of groups: one more than the largest number in `groups`."""
    checks.check_values(op, operand, groups, "give `size`")
    signed = comparable(groups)
    traced = torch.compiler.is_compiling() or symbolic_sizes.is_scripted()
    if groups.dtype is torch.uint64 and not traced:
        wrapped = signed[signed < 0]  # from 2**63 on
        if wrapped.numel():
            return int(wrapped.max()) + 2**64 + 1
    return symbolic_sizes.least_size(signed)


def comparable(x: Tensor) -> Tensor:
    """Return a tensor in a dtype that torch can compare: wide unsigned integers as int64."""
    return x.to(torch.int64) if x.dtype in dtypes.WIDE_UNSIGNED else x
