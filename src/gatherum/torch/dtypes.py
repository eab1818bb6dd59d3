"""Which dtypes of torch the operators take, and what the core calls them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch

from .. import errors


@dataclass(frozen=True, slots=True)
class TorchDType:
    """A dtype that NumPy itself lacks, with what a plan asks of one."""

    name: str
    itemsize: int
    kind: str = "V"
    char: str = "V"
    isnative: bool = True
    hasobject: bool = False
    names: None = None

    def __str__(self) -> str:
        return self.name


PlanDType: TypeAlias = np.dtype[Any] | TorchDType

_SHARED = (
    "bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64",
    "float16", "float32", "float64", "complex64", "complex128",
)  # fmt: skip
_OURS = (
    "bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz",
    "float8_e8m0fnu",
)  # fmt: skip
_PLANNED: dict[torch.dtype, PlanDType] = {
    getattr(torch, name): np.dtype(name) for name in _SHARED
} | {
    kind: TorchDType(name, kind.itemsize)
    for name in _OURS
    if (kind := getattr(torch, name, None)) is not None
}
_BY_NAME = {str(planned): kind for kind, planned in _PLANNED.items()}
_WIDTHS = {1: torch.uint8, 2: torch.uint16}


def planned(op: str, operand: str, dtype: torch.dtype) -> PlanDType:
    """Return what plans call a dtype, or raise TypeError for one that has no items of whole bytes
    with one meaning: packed, quantized, complex32.
    """
    try:
        return _PLANNED[dtype]
    except KeyError:
        raise errors.no_tensor_dtype(op, operand, str(dtype)) from None


def carrier(dtype: torch.dtype) -> torch.dtype:
    """Return the dtype as which NumPy can see items: the same, or unsigned integers as wide."""
    found = _PLANNED[dtype]
    return _WIDTHS[found.itemsize] if isinstance(found, TorchDType) else dtype


def of_array(dtype: np.dtype[Any]) -> torch.dtype | None:
    """Return torch's dtype of the same name as a NumPy array's, bfloat16 of ml_dtypes included."""
    return _BY_NAME.get(dtype.name)


def folds(dtype: torch.dtype) -> bool:
    """Whether sums are defined for the dtype: not for those of 8 bits that only move."""
    found = _PLANNED[dtype]
    return not isinstance(found, TorchDType) or found.name == "bfloat16"


def wide(dtype: torch.dtype) -> torch.dtype:
    """Return the dtype in which gradients of a dtype are computed: float32 for narrower floats."""
    return torch.float32 if dtype.is_floating_point and dtype.itemsize < 4 else dtype
