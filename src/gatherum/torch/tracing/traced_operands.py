"""Replace `operands` while Dynamo traces: Dynamo can trace Python, but not NumPy.

``gatherum::number`` inserts numbers into a graph. Its kernel converts and checks each number as in
an eager call: during tracing if the number is already known, and otherwise at run time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from gatherum._model import errors
from gatherum.torch import errors as torch_errors
from gatherum.torch import operands
from gatherum.torch.library.ops import LIBRARY
from gatherum.torch.library.symbolic_sizes import may_hold

_NUMBER = "(str op, Scalar value, *, ScalarType dtype, Device device) -> Tensor"
LIBRARY.define(f"number{_NUMBER}", tags=torch.Tag.pt2_compliant_tag)
LIBRARY.define(f"open_number{_NUMBER}", tags=torch.Tag.pt2_compliant_tag)


def as_indices(op: str, indices: Any, data: Tensor) -> Tensor:
    """Return `indices` as a tensor. An empty list does not determine the dtype."""
    if isinstance(indices, Tensor):
        return indices
    if _holds_tensors(indices):
        raise TypeError(_of_tensors(op, type(indices).__name__))
    if not isinstance(indices, (int, float, list, tuple, range, np.ndarray, np.generic)):
        raise errors.not_array_like(op, "indices", indices)
    tensor = torch.as_tensor(indices, device=data.device)
    listed = isinstance(indices, (list, tuple))
    return tensor.to(torch.int64) if listed and tensor.numel() == 0 else tensor


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def _of_tensors(op: str, sequence: str) -> str:
    """Return the message for a list that contains tensors. Dynamo cannot trace `for_tensors`."""
    with errors.for_tensors():
        return str(errors.holds_arrays(op, () if sequence == "tuple" else []))


def _holds_tensors(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(isinstance(item, Tensor) or _holds_tensors(item) for item in value)
    return False


def as_updates(op: str, updates: Any, data: Tensor) -> Tensor:
    """Return `updates`, which are a tensor or a single number, as a tensor."""
    if isinstance(updates, Tensor):
        return updates
    if not _is_scalar(updates):
        instead = "write torch.as_tensor(updates, dtype=data.dtype)"
        raise torch_errors.not_a_dense_tensor(op, "updates", type(updates).__name__, instead)
    scalar = _in_scalar(op, "updates", updates, data)
    return torch.ops.gatherum.number(op, scalar, dtype=data.dtype, device=data.device)


def as_fill(op: str, value: Any, data: Tensor) -> Any:
    """Return `fill_value` as a Python number. The kernels convert and check it."""
    if isinstance(value, Tensor) and value.shape == ():
        operands.check_fill_gradient(op, value)
        value = value.item()
    if not _is_scalar(value):
        raise errors.does_not_fit(op, "fill_value", _name(data), value)
    return _in_scalar(op, "fill_value", value, data)


def _is_scalar(value: Any) -> bool:
    return isinstance(value, (bool, int, float, complex)) and not isinstance(value, np.generic)


def _in_scalar(op: str, operand: str, value: Any, data: Tensor) -> Any:
    """Return a number that fits the ops' schemas, whose integers have 64 bits."""
    if not isinstance(value, int) or (may_hold(value >= -(2**63)) and may_hold(value < 2**64)):
        return value
    if not (data.is_floating_point() or data.is_complex()):
        raise errors.does_not_fit(op, operand, _name(data), value)
    if abs(value) >= 2**1024:
        raise errors.not_finite(op, operand, _name(data), value)
    return float(value)


def _name(data: Tensor) -> str:
    return str(data.dtype).removeprefix("torch.")


def _scalar(op: str, value: Any, *, dtype: torch.dtype, device: torch.device) -> Tensor:
    if operands.is_symbol(value):
        return torch.ops.gatherum.open_number(op, value, dtype=dtype, device=device)
    exact = operands.as_number(op, "updates", value, dtype)
    return torch.full((), exact, dtype=dtype, device=device)


def _fake_scalar(op: str, value: Any, *, dtype: torch.dtype, device: torch.device) -> Tensor:
    return torch.empty((), dtype=dtype, device=device)


LIBRARY.impl("number", _scalar, "CompositeImplicitAutograd")
LIBRARY.impl("open_number", _scalar, "CompositeExplicitAutograd")
torch.library.register_fake("gatherum::open_number", _fake_scalar, lib=LIBRARY)
