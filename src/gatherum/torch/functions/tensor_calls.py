"""Check calls that the core declines or a graph traces, and run them through the ops.

The functions of `api` call the core directly, or `run_traced` while a graph is traced.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from gatherum._arguments import plain_values
from gatherum._arguments.checks import check_range
from gatherum._frameworks.framework_functions import function_of
from gatherum._functions import gathers, scatters
from gatherum._model import errors
from gatherum._model.call import OPERAND_NAMES, Attributes
from gatherum._model.operators import OPERATORS
from gatherum._system.native import dispatch_call as call_core
from gatherum.torch import checks, operands
from gatherum.torch.tracing import traced_operands

_ops = torch.ops.gatherum


def generated_function(op: str) -> Callable[..., Tensor]:
    """Return the function of an operator that `api` does not define, from its table row."""
    operator = OPERATORS[op]
    like: Any = scatters.scatter_slices if operator.scatters else gathers.gather
    return function_of(operator, like, _run)


def _run(op: str, data: Tensor, *call: Any) -> Tensor:
    run = run_traced if is_traced(op, data) else call_core
    result: Tensor = run(op, data, *call)
    return result


def is_traced(op: str, data: object) -> bool:
    """Return True while a graph is traced, because tracing cannot follow the core.

    Raise an error if the data are not a tensor.
    """
    checks.check_data_tensor(op, data)
    return bool(torch.compiler.is_compiling())


def run_traced(
    op: str, data: Tensor, indices: Any, updates: Any, axis: Any, reduction: Any,
    include_self: Any, mode: Any, negative: Any, fill_value: Any, out: Any,
) -> Tensor:  # fmt: skip
    """Run a call while a graph is traced. Dynamo does not support changed error messages."""
    attributes = plain_values.as_attributes(op, axis, reduction, include_self, mode, negative)
    if torch.compiler.is_dynamo_compiling():
        return call(attributes, data, indices, updates, fill_value, out)
    with errors.for_tensors():
        return call(attributes, data, indices, updates, fill_value, out)


def _run_op(
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


def _check_tensors(
    op: str, data: Tensor, indices: Tensor, updates: Tensor | None, out: Tensor | None
) -> None:
    tensors = data, indices, updates, out
    for name, tensor in zip(OPERAND_NAMES, tensors, strict=True):
        if tensor is not None:
            checks.check_dense(op, name, tensor, data.device)
    if torch.is_inference_mode_enabled():  # otherwise the ops' autograd kernels check this
        checks.check_storages(op, OPERAND_NAMES, tensors)


def call(
    attributes: Attributes, data: Tensor, indices: Any, updates: Any, fill_value: Any, out: Any
) -> Tensor:
    """Run a call through the custom ops, after the required checks."""
    op, operator, traced = attributes.op, attributes.operator, torch.compiler.is_dynamo_compiling()
    checks.check_out_tensor(op, out)
    converter: Any = traced_operands if traced else operands
    indices = converter.as_indices(op, indices, data)
    if not traced:  # in a traced graph, the fake kernels check operands
        _check_tensors(op, data, indices, None, out)
    check_range(operator, data.shape, indices.shape, attributes.axis)
    if operator.scatters:
        updates = converter.as_updates(op, updates, data)
        if not traced:
            _check_tensors(op, data, indices, updates, out)
        return _run_op(attributes, (data, indices, updates), attributes.positional, out)
    fill = converter.as_fill(op, fill_value, data) if attributes.fills else 0
    options = attributes.axis, attributes.mode, attributes.negative, fill
    return _run_op(attributes, (data, indices), options, out)
