"""Convert a caller's operands to tensors; `data` determines the dtype and the device."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gatherum._arguments import conversion, weak_values
from gatherum._model import errors
from gatherum._model.dtypes import is_index
from gatherum._model.errors import frameworks as framework_errors
from gatherum._model.narrow_floats import Rounded
from gatherum._model.operators import OPERATORS

from . import dtypes, private
from . import errors as torch_errors
from .checks import check_container, check_plain_tensor, check_storage, check_values, is_batched


def is_indirect(tensor: Tensor) -> bool:
    """Return True if only torch can write to a tensor.

    Its memory holds conjugates or negatives of the values, or ``torch.func.functionalize`` tracks
    writes. In a traced graph, torch handles these cases itself.
    """
    if torch.compiler.is_compiling():
        return False
    return bool(tensor.is_conj() or tensor.is_neg() or private.is_functional(tensor))


def as_indices(op: str, value: object, data: Tensor, operand: str = "indices") -> Tensor:
    """Return `indices` as a tensor on the data's device. NumPy's rules convert arrays and lists."""
    if isinstance(value, Tensor):
        return value
    check_container(op, operand, value)
    if has_symbols(value):
        return torch.as_tensor(value, device=data.device)
    array = conversion.as_indices(op, value, operand)
    if not is_index(array.dtype):
        tuples = op in OPERATORS and OPERATORS[op].takes_tuples
        raise errors.not_an_index_dtype(op, array.dtype, tuples, operand)
    return as_tensor(op, operand, array, data)


def as_updates(op: str, value: object, data: Tensor) -> Tensor:
    """Return `updates` as a tensor on the data's device. Python numbers adopt the data's dtype."""
    if isinstance(value, Tensor):
        return value
    check_container(op, "updates", value)
    plan_dtype = dtypes.plan_dtype(op, "data", data.dtype)
    if is_symbol(value):
        return torch.ops.gatherum.number(op, value, dtype=data.dtype, device=data.device)
    if weak_values.is_weak(value) and not dtypes.is_of_numpy(data.dtype):
        rounded = weak_values.as_narrow(op, "updates", value, plan_dtype)
        if torch.jit.is_tracing():  # it cannot view another dtype
            tensor = torch.from_numpy(np.asarray(rounded.values)).to(data.dtype)
        else:
            tensor = torch.from_numpy(rounded.codes).view(data.dtype)
        return _moved(op, "updates", tensor, data)
    return as_tensor(op, "updates", conversion.as_updates(op, value, plan_dtype), data)


def is_symbol(value: object) -> bool:
    """Return True for a number that a graph computes at run time."""
    return isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool))


def has_symbols(value: object) -> bool:
    """Return True for a list that contains numbers computed by a graph."""
    if isinstance(value, (list, tuple)):
        return any(map(has_symbols, value))
    return is_symbol(value)


def check_fill_gradient(op: str, value: Tensor) -> None:
    """Raise ValueError if `fill_value` requires a gradient."""
    if value.requires_grad and torch.is_grad_enabled():
        raise torch_errors.fill_needs_gradient(op)


def as_fill(op: str, value: object, data: Tensor) -> Any:
    """Return `fill_value` as a Python number that the data's dtype represents exactly."""
    check_container(op, "fill_value", value)
    if isinstance(value, Tensor):
        value = _scalar_in(op, value, data.dtype)
    if is_symbol(value):
        return value
    if conversion.is_integer_zero(value):
        return 0
    if dtypes.is_of_numpy(data.dtype):
        return _fill(op, value, data.dtype).item()
    return _narrow_fill(op, value, data.dtype).values.item()


def _scalar_in(op: str, fill: Tensor, dtype: torch.dtype) -> Any:
    """Return the number in a tensor that is used as `fill_value`."""
    check_plain_tensor(op, "fill_value", fill)
    check_storage(op, "fill_value", fill)
    if is_batched(fill):
        raise torch_errors.fill_of_batch(op)
    check_values(op, "fill_value", fill, "write a number")
    if fill.shape != ():
        raise errors.does_not_fit(op, "fill_value", dtypes.plan_dtype(op, "data", dtype), fill)
    check_fill_gradient(op, fill)
    return fill.item()


def as_number(op: str, operand: str, value: object, dtype: torch.dtype) -> Any:
    """Convert a Python number to one that the dtype represents exactly."""
    plan_dtype = dtypes.plan_dtype(op, "data", dtype)
    if dtypes.is_of_numpy(dtype):
        return conversion.as_updates(op, value, plan_dtype, operand).item()
    return weak_values.as_narrow(op, operand, value, plan_dtype).values.item()


def fill_item(op: str, value: object, dtype: torch.dtype) -> bytes:
    """Return `fill_value` as the bytes of one item of a dtype, or raise ValueError."""
    if dtypes.is_of_numpy(dtype):
        return _fill(op, value, dtype).tobytes()
    return _narrow_fill(op, value, dtype).codes.tobytes()


def _fill(op: str, value: object, dtype: torch.dtype) -> NDArray[Any]:
    return conversion.fill_item(op, dtypes.plan_dtype(op, "data", dtype), value)


def _narrow_fill(op: str, value: object, dtype: torch.dtype) -> Rounded:
    """Return `fill_value` in a dtype that NumPy lacks. Typed values must convert exactly."""
    plan_dtype = dtypes.plan_dtype(op, "data", dtype)
    fill = weak_values.as_narrow(op, "fill_value", scalar := _python_scalar(value), plan_dtype)
    if scalar is not value and not np.array_equal(fill.values, np.asarray(scalar), equal_nan=True):
        raise errors.does_not_fit(
            op, "fill_value", plan_dtype, value, isinstance(value, np.inexact)
        )
    return fill


def _python_scalar(value: object) -> object:
    """Return a NumPy scalar as a Python number, and any other value unchanged."""
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
        return value.item()
    return value


def as_tensor(op: str, operand: str, array: NDArray[Any], data: Tensor) -> Tensor:
    """Return an array as a tensor that shares its memory, or as a copy if torch cannot share it."""
    dtype = dtypes.of_name(array.dtype.name)
    if dtype is None:
        raise framework_errors.no_whole_items(op, operand, "torch", array.dtype)
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    if array.dtype.kind in "iu":
        array = array.view(array.dtype.str)  # of C types with equal width, torch knows only one
    if not array.flags.writeable or any(step < 0 for step in array.strides):
        array = array.copy()
    if not dtypes.is_of_numpy(dtype):
        array = array.view(f"u{array.itemsize}")
    try:
        tensor = torch.from_numpy(array)
    except ValueError:  # strides are not multiples of the item size
        tensor = torch.from_numpy(array.copy())
    if tensor.dtype != dtype:  # torch.jit.trace cannot view the same dtype
        tensor = tensor.view(dtype)
    return _moved(op, operand, tensor, data)


def _moved(op: str, operand: str, tensor: Tensor, data: Tensor) -> Tensor:
    """Return a tensor on the data's device.

    While a CUDA graph is being captured, raise an error, because a replay would not have the
    values.
    """
    if data.is_cuda and torch.cuda.is_current_stream_capturing():
        raise framework_errors.copy_in_capture(op, operand)
    return tensor.to(data.device)
