"""From what a caller passes to tensors: `data` decides the dtype and the device."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .. import arguments, arrays, errors
from ..dtypes import is_index
from ..operators import OPERATORS
from . import dtypes, sentences


def check_data(op: str, value: object) -> None:
    """Raise TypeError for `data` that is no tensor."""
    if not isinstance(value, Tensor):
        raise sentences.no_tensor(op, "data", _kind(value), "write torch.as_tensor(data)")


def check_out(op: str, value: object) -> None:
    """Raise TypeError for an `out` that is no tensor."""
    if value is not None and not isinstance(value, Tensor):
        raise sentences.no_tensor(op, "out", _kind(value), "write torch.as_tensor(out)")


def is_indirect(tensor: Tensor) -> bool:
    """Whether only torch can write to a tensor: its memory holds conjugates or negatives of the
    values, or ``torch.func.functionalize`` counts what is written. In a graph that is traced torch
    sees to that itself.
    """
    if torch.compiler.is_compiling():
        return False
    return bool(tensor.is_conj() or tensor.is_neg() or torch._is_functional_tensor(tensor))


def _kind(value: object) -> str:
    found = arrays.foreign(type(value))
    return found.name if found else type(value).__name__


def as_indices(op: str, value: object, data: Tensor) -> Tensor:
    """Return `indices` as a tensor where the data is; arrays and lists by the rules of NumPy's."""
    if isinstance(value, Tensor):
        return value
    array = arguments.as_indices(op, value)
    if not is_index(array.dtype):
        raise errors.not_an_index_dtype(op, array.dtype, OPERATORS[op].tuples)
    return _as_tensor(op, "indices", array, data)


def as_updates(op: str, value: object, data: Tensor) -> Tensor:
    """Return `updates` as a tensor where the data is; Python's numbers take the data's dtype."""
    if isinstance(value, Tensor):
        return value
    kind = dtypes.planned(op, "data", data.dtype)
    weak = isinstance(value, (bool, int, float, complex, list, tuple))
    if weak and not isinstance(value, np.generic) and not dtypes.is_of_numpy(data.dtype):
        return _moved(op, "updates", _rounded(op, "updates", value, data.dtype), data)
    return _as_tensor(op, "updates", arguments.as_updates(op, value, kind), data)


def as_fill(op: str, value: object, data: Tensor) -> Any:
    """Return `fill_value` as a number of Python that the data's dtype holds exactly."""
    if isinstance(value, Tensor) and value.shape == ():
        if value.requires_grad and torch.is_grad_enabled():
            raise sentences.fill_needs_gradient(op)
        value = value.item()
    return _fill(op, value, data.dtype).item()


def fill_item(op: str, value: object, dtype: torch.dtype) -> bytes:
    """Return `fill_value` as the bytes of one item of a dtype, or raise ValueError."""
    item = _fill(op, value, dtype)
    if not dtypes.is_of_numpy(dtype):
        item = torch.from_numpy(item).to(dtype).view(dtypes.bits(dtype)).numpy()
    return item.tobytes()


def _fill(op: str, value: object, dtype: torch.dtype) -> NDArray[Any]:
    """Return `fill_value` as an item: of float64 for dtypes that NumPy lacks."""
    if dtypes.is_of_numpy(dtype):
        return arguments.fill_item(op, dtypes.planned(op, "data", dtype), value)
    item: NDArray[np.float64] = _rounded(op, "fill_value", value, dtype).double().numpy()
    return item


def _rounded(op: str, operand: str, value: object, dtype: torch.dtype) -> Tensor:
    """Round numbers to a dtype that NumPy lacks, to the nearest, and see that they have one."""
    exact = arguments.as_updates(op, value, np.dtype(np.float64))
    rounded: Tensor = torch.from_numpy(_to_odd(exact)).to(dtype)
    planned, limits = dtypes.planned(op, "data", dtype), torch.finfo(dtype)
    back, finite = rounded.double().numpy(), np.isfinite(exact)
    if not (np.isfinite(back) | ~finite).all() or (np.abs(exact[finite]) >= 2 * limits.max).any():
        raise errors.not_finite(op, operand, planned, value)
    with np.errstate(all="ignore"):
        low = np.ldexp(0.5, np.frexp(exact)[1])  # the power of 2 below
        half = np.maximum(low, limits.smallest_normal) * limits.eps / 2
        near = np.where(finite, np.abs(back - exact) <= half, ~np.isfinite(back))
    if not near.all():  # a conversion that stops at the largest number, or has no sign
        raise errors.does_not_fit(op, operand, planned, value)
    return rounded


def _to_odd(exact: NDArray[np.float64]) -> NDArray[np.float32]:
    """Round to float32 so that rounding again, to fewer bits, gives what one rounding would.

    What lies between two numbers goes to the one whose last bit is 1.
    """
    with np.errstate(all="ignore"):
        near = np.atleast_1d(exact).astype(np.float32)
        off = near.astype(np.float64) - np.atleast_1d(exact)
    bits = near.view(np.int32)
    even = (off != 0) & np.isfinite(near) & (bits & 1 == 0)
    # One step towards the exact value; the magnitude of either sign grows with the bits.
    away = (off < 0) == (np.atleast_1d(exact) > 0)
    bits[even] += np.where(away, 1, -1)[even].astype(np.int32)
    return near.reshape(exact.shape)


def _as_tensor(op: str, operand: str, array: NDArray[Any], data: Tensor) -> Tensor:
    """Return an array as a tensor of the same memory, or a copy where torch cannot see it."""
    dtype = dtypes.of_name(array.dtype.name)
    if dtype is None:
        raise errors.no_whole_items(op, operand, "torch", array.dtype)
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    if not array.flags.writeable or any(step < 0 for step in array.strides):
        array = array.copy()
    if not dtypes.is_of_numpy(dtype):
        array = array.view(f"u{array.itemsize}")
    try:
        tensor = torch.from_numpy(array)
    except ValueError:  # strides that are no multiple of the item size
        tensor = torch.from_numpy(array.copy())
    return _moved(op, operand, tensor.view(dtype), data)


def _moved(op: str, operand: str, tensor: Tensor, data: Tensor) -> Tensor:
    """Return a tensor where the data is; a CUDA graph would repeat the copy without its values."""
    if data.is_cuda and torch.cuda.is_current_stream_capturing():
        raise errors.copy_in_capture(op, operand)
    return tensor.to(data.device)
