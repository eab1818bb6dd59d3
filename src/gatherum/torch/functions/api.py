"""The six functions on tensors, which call the core.

Calls that the core declines, and calls in a traced graph, are checked here and run by the ops.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Never

import torch
from torch import Tensor

from gatherum._arguments import plain_values
from gatherum._arguments.checks import check_range
from gatherum._exports.help_signatures import plain_signatures
from gatherum._frameworks.operator_functions import function_of
from gatherum._model import errors
from gatherum._model.call import Attributes
from gatherum._model.call_types import ReductionName
from gatherum._model.modes import ModeName
from gatherum._model.operators import OPERATORS
from gatherum._system.native import dispatch_call as call_core
from gatherum.torch import checks, operands
from gatherum.torch.tracing import traced_operands

_ops = torch.ops.gatherum


def gather(
    data: Tensor,
    indices: Any,
    axis: int = 0,
    *,
    mode: ModeName = "raise",
    negative: bool = True,
    fill_value: Any = 0,
    out: Tensor | None = None,
    **unknown: Never,
) -> Tensor:
    """Take slices of a tensor along one axis, by index."""
    if unknown:
        raise errors.unknown_argument("gather", unknown)
    if _traces("gather", data):
        more = "none", True, mode, negative, fill_value, out
        return _traced("gather", data, indices, None, axis, *more)
    return call_core(
        "gather", data, indices, None, axis, "none", True, mode, negative, fill_value, out
    )


def gather_elements(
    data: Tensor,
    indices: Any,
    axis: int = 0,
    *,
    mode: ModeName = "raise",
    negative: bool = True,
    fill_value: Any = 0,
    out: Tensor | None = None,
    **unknown: Never,
) -> Tensor:
    """Take one element of a tensor for every index."""
    if unknown:
        raise errors.unknown_argument("gather_elements", unknown)
    if _traces("gather_elements", data):
        more = "none", True, mode, negative, fill_value, out
        return _traced("gather_elements", data, indices, None, axis, *more)
    return call_core(
        "gather_elements", data, indices, None, axis, "none", True, mode, negative, fill_value, out
    )


def gather_nd(
    data: Tensor,
    indices: Any,
    batch_dims: int = 0,
    *,
    mode: ModeName = "raise",
    negative: bool = True,
    fill_value: Any = 0,
    out: Tensor | None = None,
    **unknown: Never,
) -> Tensor:
    """Take elements or slices of a tensor by tuples of indices."""
    if unknown:
        raise errors.unknown_argument("gather_nd", unknown, has_axis=False)
    if _traces("gather_nd", data):
        more = "none", True, mode, negative, fill_value, out
        return _traced("gather_nd", data, indices, None, batch_dims, *more)
    return call_core(
        "gather_nd", data, indices, None, batch_dims, "none", True, mode, negative, fill_value, out
    )


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
    **unknown: Never,
) -> Tensor:
    """Write slices to a tensor along one axis, by index: the inverse of `gather`."""
    if unknown:
        raise errors.unknown_argument("scatter_slices", unknown)
    more = axis, reduction, include_self, mode, negative
    if _traces("scatter_slices", data):
        return _traced("scatter_slices", data, indices, updates, *more, 0, out)
    return call_core("scatter_slices", data, indices, updates, *more, 0, out)


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
    **unknown: Never,
) -> Tensor:
    """Write one element to a tensor for every index: the inverse of `gather_elements`."""
    if unknown:
        raise errors.unknown_argument("scatter_elements", unknown)
    more = axis, reduction, include_self, mode, negative
    if _traces("scatter_elements", data):
        return _traced("scatter_elements", data, indices, updates, *more, 0, out)
    return call_core("scatter_elements", data, indices, updates, *more, 0, out)


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
    **unknown: Never,
) -> Tensor:
    """Write elements or slices to a tensor by tuples of indices: the inverse of `gather_nd`."""
    if unknown:
        raise errors.unknown_argument("scatter_nd", unknown, has_axis=False)
    more = batch_dims, reduction, include_self, mode, negative
    if _traces("scatter_nd", data):
        return _traced("scatter_nd", data, indices, updates, *more, 0, out)
    return call_core("scatter_nd", data, indices, updates, *more, 0, out)


for _name in OPERATORS:
    plain_signatures(globals().get(_name))


def named(op: str) -> Callable[..., Tensor]:
    """Return the function of an operator that is not defined above, from its table row."""
    operator = OPERATORS[op]
    like: Any = scatter_slices if operator.scatters else gather
    return function_of(operator, like, _run)


def _run(op: str, data: Tensor, *call: Any) -> Tensor:
    run = _traced if _traces(op, data) else call_core
    result: Tensor = run(op, data, *call)
    return result


def _traces(op: str, data: object) -> bool:
    """Return True while a graph is traced, because tracing cannot follow the core.

    Raise an error if the data are not a tensor.
    """
    checks.check_data_tensor(op, data)
    return bool(torch.compiler.is_compiling())


def _traced(
    op: str, data: Tensor, indices: Any, updates: Any, axis: Any, reduction: Any,
    include_self: Any, mode: Any, negative: Any, fill_value: Any, out: Any,
) -> Tensor:  # fmt: skip
    """Run a call while a graph is traced. Dynamo does not support changed error messages."""
    attributes = plain_values.as_attributes(op, axis, reduction, include_self, mode, negative)
    if torch.compiler.is_dynamo_compiling():
        return call(attributes, data, indices, updates, fill_value, out)
    with errors.for_tensors():
        return call(attributes, data, indices, updates, fill_value, out)


def _through_ops(
    attributes: Attributes,
    tensors: tuple[Tensor, ...],
    options: tuple[Any, ...],
    out: Tensor | None,
) -> Tensor:
    op = attributes.op
    if out is None:
        return getattr(_ops, op)(*tensors, *options)
    if operands.is_indirect(out):
        checks.check_storage(op, "out", out)
        return out.copy_(getattr(_ops, op)(*tensors, *options))
    if attributes.operator.scatters and out is tensors[0]:
        getattr(_ops, f"{op}_")(*tensors, *options)
    else:
        getattr(_ops, f"{op}_out")(*tensors, out, *options)
    return out


def _check(op: str, data: Tensor, indices: Tensor, updates: Tensor | None, out: Tensor | None
           ) -> None:  # fmt: skip
    named = (("data", data), ("indices", indices), ("updates", updates), ("out", out))
    for name, tensor in named:
        if tensor is not None:
            checks.check_dense(op, name, tensor, data.device)
    if torch.is_inference_mode_enabled():  # otherwise the ops' autograd kernels check this
        names = ("data", "indices", "updates", "out")
        checks.check_storages(op, names, (data, indices, updates, out))


def call(
    attributes: Attributes, data: Tensor, indices: Any, updates: Any, fill_value: Any, out: Any
) -> Tensor:
    """Run a call by the custom ops, after the required checks."""
    op, operator, traced = attributes.op, attributes.operator, torch.compiler.is_dynamo_compiling()
    checks.check_out_tensor(op, out)
    converter: Any = traced_operands if traced else operands
    indices = converter.as_indices(op, indices, data)
    if not traced:  # in a traced graph, the fake kernels check operands
        _check(op, data, indices, None, out)
    check_range(operator, data.shape, indices.shape, attributes.axis)
    if operator.scatters:
        updates = converter.as_updates(op, updates, data)
        if not traced:
            _check(op, data, indices, updates, out)
        return _through_ops(attributes, (data, indices, updates), attributes.positional, out)
    fill = converter.as_fill(op, fill_value, data) if attributes.fills else 0
    options = attributes.axis, attributes.mode, attributes.negative, fill
    return _through_ops(attributes, (data, indices), options, out)
