"""Call the core with the addresses of CPU tensors, for torch versions without tensor exchange."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from gatherum._model.call import ArraySpec
from gatherum._model.dtypes import AnyDType
from gatherum._system import native

from . import dtypes


def run(op: str, data: Tensor, indices: Tensor, updates: Tensor | None, attributes: tuple[Any, ...],
        item: bytes | None, out: Tensor | None) -> Tensor:  # fmt: skip
    """Run one call on dense CPU tensors that are within their storages."""
    results: list[Tensor] = []

    def allocate(shape: tuple[int, ...]) -> int:
        results.append(torch.empty(shape, dtype=data.dtype))
        return int(results[0].data_ptr())

    views = (
        view_of(op, "data", data),
        view_of(op, "indices", indices),
        view_of(op, "updates", updates),
    )
    options: Any = *attributes, item, view_of(op, "out", out), allocate
    native.run_on_views(op, *views, *options)
    return results[0] if out is None else out


def spec_of(op: str, operand: str, tensor: Tensor) -> ArraySpec:
    """Return the spec of a tensor. Raise TypeError for a dtype that plans do not support."""
    dtype = dtypes.plan_dtype(op, operand, tensor.dtype)
    return _spec(tensor.shape, dtype, tensor.stride())


@lru_cache(maxsize=1024)
def _spec(shape: tuple[int, ...], dtype: AnyDType, steps: tuple[int, ...]) -> ArraySpec:
    return ArraySpec(tuple(shape), dtype, tuple(step * dtype.itemsize for step in steps))


def view_of(op: str, operand: str, tensor: Tensor | None) -> native.View | None:
    """Return the memory of a tensor for the core. Return None for None."""
    if tensor is None:
        return None
    strides = tuple(step * tensor.element_size() for step in tensor.stride())
    code = dtypes.code_of(op, operand, tensor.dtype)
    return native.View(tensor.data_ptr(), tuple(tensor.shape), strides, code)


def end_in_storage(tensor: Tensor) -> int:
    """Return the byte offset at which a tensor ends within its storage."""
    last_offset = sum((n - 1) * step for n, step in zip(tensor.shape, tensor.stride(), strict=True))
    end: int = (tensor.storage_offset() + last_offset + 1) * tensor.element_size()
    return end


def first_outside_storage(operands: tuple[Any, ...]) -> int:
    """Return the number of the first tensor that extends past the end of its storage, or -1.

    Calls do not read tensors without a plain storage.
    """
    for i, tensor in enumerate(operands):
        if type(tensor) not in (Tensor, torch.nn.Parameter) or tensor.layout is not torch.strided:
            continue
        if 0 in tensor.shape:
            continue
        try:
            nbytes = tensor.untyped_storage().nbytes()
        except (NotImplementedError, RuntimeError):  # a wrapper of torch.func
            continue
        if end_in_storage(tensor) > nbytes:
            return i
    return -1
