"""Map torch dtypes to the dtypes of plans and of the core."""

from __future__ import annotations

from typing import Any

import torch
from numpy.typing import NDArray

from gatherum._core import DType
from gatherum._model import dtypes
from gatherum._model.dtype_rows import ROWS, spellings
from gatherum._model.dtypes import AnyDType, is_reducible
from gatherum._model.errors import frameworks as framework_errors

# Few torch functions support complex32.
ABSENT = frozenset((
    "complex32", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "longdouble", "clongdouble",
))  # fmt: skip
WIDE_UNSIGNED = (torch.uint16, torch.uint32, torch.uint64)  # torch cannot compare these
_CODES = {
    getattr(torch, text): DType[name]
    for name, text in spellings("torch", {}, ABSENT).items()
    if hasattr(torch, text)  # older versions lack some
}
_SUMMED = {
    torch_dtype
    for torch_dtype, code in _CODES.items()
    if is_reducible(dtypes.dtype_of(code), "add")
}
_BY_NAME = {code.name: torch_dtype for torch_dtype, code in _CODES.items()}
# The dtypes of plans, except those that a package may register with NumPy later.
_OF_NUMPY = {
    torch_dtype: dtypes.dtype_of(code)
    for torch_dtype, code in _CODES.items()
    if ROWS[code.name].is_of_numpy
}
_OF_PLAN = {dtype: torch_dtype for torch_dtype, dtype in _OF_NUMPY.items()}


def code_of(op: str, operand: str, dtype: torch.dtype) -> DType:
    """Return the core's code for a dtype. Raise TypeError for packed, quantized and complex32
    dtypes.
    """
    try:
        return _CODES[dtype]
    except KeyError:
        raise framework_errors.no_whole_items(op, operand, "torch", dtype) from None


def plan_dtype(op: str, operand: str, dtype: torch.dtype) -> AnyDType:
    """Return the dtype that plans use, or raise TypeError."""
    numpy_dtype = _OF_NUMPY.get(dtype)
    return dtypes.dtype_of(code_of(op, operand, dtype)) if numpy_dtype is None else numpy_dtype


def is_of_numpy(dtype: torch.dtype) -> bool:
    """Return True for a dtype that is defined by NumPy itself, not by a package that extends it."""
    return dtype in _OF_NUMPY


def bits(dtype: torch.dtype) -> torch.dtype:
    """Return the unsigned integer dtype of the same width."""
    return torch.uint8 if dtype.itemsize == 1 else torch.uint16


def as_array(tensor: torch.Tensor) -> NDArray[Any]:
    """View a CPU tensor as an array. A tensor whose dtype NumPy lacks is viewed as bits."""
    plain = tensor.detach()
    if not is_of_numpy(plain.dtype):
        plain = plain.view(bits(plain.dtype))
    array: NDArray[Any] = plain.numpy()
    return array


def signed(dtype: torch.dtype) -> torch.dtype:
    """Return the signed integer dtype of the same width."""
    integers: torch.dtype = getattr(torch, f"int{8 * dtype.itemsize}")
    return integers


def of_name(name: str) -> torch.dtype | None:
    """Return the torch dtype for a NumPy dtype name, including the bfloat16 of ml_dtypes."""
    return _BY_NAME.get(name)


def of_plan(dtype: AnyDType) -> torch.dtype | None:
    """Return the torch dtype for a dtype of plans."""
    torch_dtype = _OF_PLAN.get(dtype)
    return of_name(dtype.name) if torch_dtype is None else torch_dtype


def has_sums(dtype: torch.dtype) -> bool:
    """Return True if items can be added. 8-bit dtypes other than integers can only be copied."""
    return dtype in _SUMMED


def derivative_dtype(dtype: torch.dtype) -> torch.dtype:
    """Return the dtype in which gradients are computed: float32 for narrower floats."""
    return torch.float32 if dtype.is_floating_point and dtype.itemsize < 4 else dtype
