"""The six functions on tensors: their arguments are checked here, and the ops called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .. import arguments, errors
from ..names import ModeName, ReductionName
from ..native import entry
from ..operators import OPERATORS
from . import checks, operands, sentences

_ops = torch.ops.gatherum

# The core's own doors: plain tensors end there, and others come back here, to `room`.
_gather_slices: Callable[..., Tensor] = entry("gather", False)
_gather_elements: Callable[..., Tensor] = entry("gather_elements", False)
_gather_nd: Callable[..., Tensor] = entry("gather_nd", False)
_scatter_slices: Callable[..., Tensor] = entry("scatter_slices", True)
_scatter_elements: Callable[..., Tensor] = entry("scatter_elements", True)
_scatter_nd: Callable[..., Tensor] = entry("scatter_nd", True)


def gather(
    data: Tensor,
    indices: Any,
    axis: int = 0,
    *,
    mode: ModeName = "raise",
    negative: bool = True,
    fill_value: Any = 0,
    out: Tensor | None = None,
) -> Tensor:
    """Take slices of a tensor along one axis, by their numbers."""
    if _goes_through("gather", data):
        return _through_gather("gather", data, indices, axis, mode, negative, fill_value, out)
    return _gather_slices(data, indices, axis, mode, negative, fill_value, out)


def gather_elements(
    data: Tensor,
    indices: Any,
    axis: int = 0,
    *,
    mode: ModeName = "raise",
    negative: bool = True,
    fill_value: Any = 0,
    out: Tensor | None = None,
) -> Tensor:
    """Take one element of a tensor for every index."""
    if _goes_through("gather_elements", data):
        return _through_gather(
            "gather_elements", data, indices, axis, mode, negative, fill_value, out
        )
    return _gather_elements(data, indices, axis, mode, negative, fill_value, out)


def gather_nd(
    data: Tensor,
    indices: Any,
    batch_dims: int = 0,
    *,
    mode: ModeName = "raise",
    negative: bool = True,
    fill_value: Any = 0,
    out: Tensor | None = None,
) -> Tensor:
    """Take elements or slices of a tensor by tuples of indices."""
    if _goes_through("gather_nd", data):
        return _through_gather(
            "gather_nd", data, indices, batch_dims, mode, negative, fill_value, out
        )
    return _gather_nd(data, indices, batch_dims, mode, negative, fill_value, out)


def scatter_slices(
    data: Tensor,
    indices: Any,
    updates: Any,
    axis: int = 0,
    *,
    reduction: ReductionName = "none",
    include_self: bool = True,
    mode: ModeName = "raise",
    negative: bool = True,
    out: Tensor | None = None,
) -> Tensor:
    """Write slices to a tensor along one axis, by their numbers: the inverse of `gather`."""
    more = axis, reduction, include_self, mode, negative, out
    if _goes_through("scatter_slices", data):
        return _through_scatter("scatter_slices", data, indices, updates, *more)
    return _scatter_slices(data, indices, updates, *more)


def scatter_elements(
    data: Tensor,
    indices: Any,
    updates: Any,
    axis: int = 0,
    *,
    reduction: ReductionName = "none",
    include_self: bool = True,
    mode: ModeName = "raise",
    negative: bool = True,
    out: Tensor | None = None,
) -> Tensor:
    """Write one element to a tensor for every index: the inverse of `gather_elements`."""
    more = axis, reduction, include_self, mode, negative, out
    if _goes_through("scatter_elements", data):
        return _through_scatter("scatter_elements", data, indices, updates, *more)
    return _scatter_elements(data, indices, updates, *more)


def scatter_nd(
    data: Tensor,
    indices: Any,
    updates: Any,
    batch_dims: int = 0,
    *,
    reduction: ReductionName = "none",
    include_self: bool = True,
    mode: ModeName = "raise",
    negative: bool = True,
    out: Tensor | None = None,
) -> Tensor:
    """Write elements or slices to a tensor by tuples of indices: the inverse of `gather_nd`."""
    more = batch_dims, reduction, include_self, mode, negative, out
    if _goes_through("scatter_nd", data):
        return _through_scatter("scatter_nd", data, indices, updates, *more)
    return _scatter_nd(data, indices, updates, *more)


def _goes_through(op: str, data: object) -> bool:
    """Whether a call goes straight to the dispatcher: where a graph is traced, which does not see
    into the core. Raises where the data are no tensor.
    """
    checks.check_data(op, data)
    return bool(torch.compiler.is_compiling())


def _through_gather(op: str, data: Any, indices: Any, axis: Any, mode: Any, negative: Any,
            fill_value: Any, out: Any) -> Tensor:  # fmt: skip
    if torch.compiler.is_compiling():
        indices = _traced_indices(indices)
        given = fill_value
    else:
        checks.check_out(op, out)
        indices = operands.as_indices(op, indices, data)
        _check(op, data, indices, None, out)
        given = operands.as_fill(op, fill_value, data) if mode in ("fill", "drop") else 0
    if out is None:
        return getattr(_ops, op)(data, indices, axis, mode, negative, given)
    if operands.is_indirect(out):
        checks.check_storage(op, "out", out)
        return out.copy_(getattr(_ops, op)(data, indices, axis, mode, negative, given))
    getattr(_ops, f"{op}_out")(data, indices, out, axis, mode, negative, given)
    return out


def _through_scatter(op: str, data: Any, indices: Any, updates: Any, axis: Any, reduction: Any,
             include_self: Any, mode: Any, negative: Any, out: Any) -> Tensor:  # fmt: skip
    if torch.compiler.is_compiling():
        indices, updates = _traced_indices(indices), _traced_updates(op, data, updates)
    else:
        checks.check_out(op, out)
        indices = operands.as_indices(op, indices, data)
        updates = operands.as_updates(op, updates, data)
        _check(op, data, indices, updates, out)
    attributes = axis, reduction, include_self, mode, negative
    if out is None:
        return getattr(_ops, op)(data, indices, updates, *attributes)
    if operands.is_indirect(out):
        checks.check_storage(op, "out", out)
        return out.copy_(getattr(_ops, op)(data, indices, updates, *attributes))
    if out is data:
        getattr(_ops, f"{op}_")(data, indices, updates, *attributes)
    else:
        getattr(_ops, f"{op}_out")(data, indices, updates, out, *attributes)
    return out


def _traced_indices(indices: Any) -> Tensor:
    """Return `indices` while a graph is traced; an empty list says nothing of its dtype."""
    if isinstance(indices, Tensor):
        return indices
    found = torch.as_tensor(indices)
    return found if found.numel() else found.to(torch.int64)


def _traced_updates(op: str, data: Tensor, updates: Any) -> Tensor:
    """Return `updates` while a graph is traced. A number must be of the data's kind, or of a lower
    one; torch refuses those that do not fit. Lists and arrays would be converted unchecked.
    """
    if isinstance(updates, Tensor):
        return updates
    if not isinstance(updates, (bool, int, float, complex)):
        instead = "write torch.as_tensor(updates, dtype=data.dtype)"
        raise sentences.no_tensor(op, "updates", type(updates).__name__, instead)
    if _rank(torch.as_tensor(updates).dtype) > _rank(data.dtype):
        raise errors.loses_kind(op, "updates", data.dtype, "of its kind", updates)
    return torch.full((), updates, dtype=data.dtype, device=data.device)


def _rank(dtype: torch.dtype) -> int:
    """Return how far a kind of number reaches: bool < int < float < complex."""
    if dtype.is_complex:
        return 3
    if dtype.is_floating_point:
        return 2
    return 0 if dtype == torch.bool else 1


def _check(op: str, data: Tensor, indices: Tensor, updates: Tensor | None, out: Tensor | None
           ) -> None:  # fmt: skip
    named = (("data", data), ("indices", indices), ("updates", updates), ("out", out))
    for name, tensor in named:
        if tensor is not None:
            checks.check_dense(op, name, tensor, data.device)
    if torch.is_inference_mode_enabled():  # else autograd's kernels of the ops check that
        names = ("data", "indices", "updates", "out")
        checks.check_storages(op, names, (data, indices, updates, out))


def room(op: str, data: Any, indices: Any, updates: Any, axis: Any, reduction: Any,
         include_self: Any, mode: Any, negative: Any, fill_value: Any, out: Any
         ) -> Any:  # fmt: skip
    """Take a call whose data come from torch, and that is more than one on plain memory."""
    with errors.for_tensors():
        return _call(op, data, indices, updates, axis, reduction, include_self, mode, negative,
                     fill_value, out)  # fmt: skip


def _call(op: str, data: Any, indices: Any, updates: Any, axis: Any, reduction: Any,
          include_self: Any, mode: Any, negative: Any, fill_value: Any, out: Any
          ) -> Any:  # fmt: skip
    if not isinstance(data, Tensor):  # a type of torch's that is no tensor
        checks.check_container(op, "data", data)
        return arguments.normalise(op, data, indices, updates, axis, reduction, include_self, mode,
                                   negative, fill_value, out)  # fmt: skip
    if OPERATORS[op].scatters:
        return _through_scatter(op, data, indices, updates, axis, reduction, include_self, mode,
                                negative, out)  # fmt: skip
    return _through_gather(op, data, indices, axis, mode, negative, fill_value, out)
