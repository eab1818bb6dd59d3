"""Tensors as operands, and the memory of tensors whose dtype NumPy lacks, such as bfloat16."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatherum._model.call import ArraySpec
from gatherum.files.formats.dtypes import is_added, number_type


def is_tensor(value: object) -> bool:
    """Return True for a PyTorch tensor, without importing PyTorch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def bytes_of(tensor: Any) -> NDArray[np.uint8] | None:
    """Return the bytes of a contiguous tensor in CPU memory, or None for anything else."""
    torch = sys.modules.get("torch")
    if torch is None or not is_tensor(tensor) or tensor.requires_grad:
        return None
    if tensor.device.type != "cpu" or not tensor.is_contiguous():
        return None
    tensor_bytes: NDArray[np.uint8] = tensor.reshape(-1).view(torch.uint8).numpy()
    return tensor_bytes


def array_of(tensor: Any, spec: ArraySpec) -> NDArray[Any] | None:
    """Return the values of a tensor as an array of an ml_dtypes dtype or of named bytes.

    Return None for NumPy dtypes, for memory that NumPy cannot read, and for anything other than a
    tensor.
    """
    if not is_tensor(tensor):
        return None
    if isinstance(spec.dtype, np.dtype) and not is_added(spec.dtype):
        return None
    items = bytes_of(tensor.detach().contiguous())
    return None if items is None else items.view(number_type(spec.dtype.name)).reshape(spec.shape)
