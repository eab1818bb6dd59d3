"""The Autograd kernels of each op: of its functional form, and of the forms that write."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from gatherum._derivatives import derivatives
from gatherum._derivatives.derivatives import ScatterValues
from gatherum._model.callers import caller_of
from gatherum._model.operators import OPERATORS, Operator
from gatherum._plans import index_errors
from gatherum._system import native
from gatherum.torch import errors as torch_errors
from gatherum.torch import private, shared_results
from gatherum.torch.checks import check_changeable, check_storages, refuse_subclass
from gatherum.torch.dlpack import needs_fill_item
from gatherum.torch.library.ops import (
    LIBRARY,
    below,
    fill_of,
    forms,
    gather_attributes,
    operand_names,
    overload,
    scatter_attributes,
)

from . import fused_gradients
from .recorded_functions import dispatched_function
from .recording import has_tangent, run_below_autograd, run_or_record


def _recorded_gradients(
    keyset: Any, scatter: str, gradient: Tensor, data: Tensor, indices: Tensor, updates: Tensor,
    result: Tensor, *arguments: Any,
) -> Any:  # fmt: skip
    """Differentiate with torch operations if the gradients may be differentiated."""
    tensors = gradient, data, indices, updates, result
    is_recorded = torch.is_grad_enabled() and private.any_requires_grad(*tensors)
    if is_recorded or private.transforms_active() or has_tangent(tensors):
        destinations, needed = fused_gradients.destinations_of(scatter, data, indices, *arguments)
        values = ScatterValues(data, updates, result)
        gradients = derivatives.cotangents(destinations, values, gradient, needed)
        return tuple(
            gradient.new_empty(0) if of_operand is None else of_operand for of_operand in gradients
        )
    return run_below_autograd(overload(fused_gradients.NAME), keyset, scatter, *tensors, *arguments)


def _recording_kernel(operator: Operator) -> Callable[..., Any]:
    """Return the Autograd kernel of an operator's functional form."""
    op, names = overload(operator.name), operand_names(operator, operator.name)
    function = dispatched_function(operator)

    def kernel(keyset: Any, *operands: Any) -> Any:
        if (result := _run_if_plain(operator, *operands)) is not None:
            return result
        check_storages(operator.name, names, operands)
        try:
            return run_or_record(function, op, keyset, operands, operands, operator)
        except (RuntimeError, TypeError) as error:
            refuse_subclass(_caller_name(operator, operands[len(names) :]), names, operands, error)
            raise

    return kernel


def _caller_name(operator: Operator, arguments: tuple[Any, ...]) -> str:
    """Return the function name for error messages, from the op's arguments that are not tensors."""
    attributes = scatter_attributes if operator.scatters else gather_attributes
    caller = caller_of(attributes(operator.name, *arguments).caller)
    return caller.op if caller else operator.name


def _run_if_plain(
    operator: Operator, data: Tensor, indices: Tensor, *arguments: Any
) -> Tensor | None:
    """Return the result of a call on plain tensors, or None for any other call.

    This skips the kernels below, which take several times as long as a small call.
    """
    updates = arguments[0] if operator.scatters else None
    if operator.scatters:
        if shared_results.current(data) is not None and shared_results.shares_order(indices):
            return None  # the scatter uses the order that an earlier call has computed
        attributes = scatter_attributes(operator.name, *arguments[1:])
    else:
        attributes = gather_attributes(operator.name, *arguments)
        if needs_fill_item(attributes.mode, fill_of(arguments)):
            return None
    call = operator.name, data, indices, updates, *attributes.positional, None, None
    result: Tensor | None = index_errors.run_named(attributes.caller, native.run_if_plain, *call)
    return result


def _refusing_kernel(
    operator: Operator, name: str, next_kernel: Callable[..., Any]
) -> Callable[..., Any]:
    """Return the Autograd kernel of a writing form, which has no derivative."""
    names = operand_names(operator, name)

    def kernel(keyset: Any, *operands: Any) -> Any:
        check_storages(operator.name, names, operands)
        recorded = torch.is_grad_enabled() and private.any_requires_grad(*operands)
        if recorded or has_tangent(operands):
            raise torch_errors.out_of_gradients(operator.name)
        try:
            return next_kernel(keyset, *operands)
        except (RuntimeError, TypeError) as error:
            refuse_subclass(_caller_name(operator, operands[len(names) :]), names, operands, error)
            raise

    return kernel


def _counting_kernel(operator: Operator, name: str, operand: int) -> Callable[..., Any]:
    """Return the kernel that tracks the change of a tensor, because autograd may have saved it."""
    op = overload(name)
    changed_operand = operand_names(operator, name)[operand]

    def kernel(keyset: Any, *operands: Any) -> Any:
        check_changeable(operator.name, changed_operand, operands[operand])
        is_written = True
        try:
            if private.redispatches:
                return private.below_counting(op, keyset, operands)
            return below(op)(*operands)
        except (IndexError, TypeError, ValueError):
            is_written = not operator.scatters  # scatters raise before they write
            raise
        finally:
            if is_written:
                torch.autograd.graph.increment_version(operands[operand])

    return kernel


def _register(operator: Operator) -> None:
    for name in forms(operator):
        if name == operator.name:
            LIBRARY.impl(name, _recording_kernel(operator), "Autograd", with_keyset=True)
            continue
        operand = 0 if name.endswith("_") else operand_names(operator, name).index("out")
        counting_kernel = next_kernel = _counting_kernel(operator, name, operand)
        if private.redispatches:
            LIBRARY.impl(name, counting_kernel, "ADInplaceOrView", with_keyset=True)
            next_kernel = partial(run_below_autograd, overload(name))
        LIBRARY.impl(
            name, _refusing_kernel(operator, name, next_kernel), "Autograd", with_keyset=True
        )


for _operator in OPERATORS.values():
    _register(_operator)
LIBRARY.impl(fused_gradients.NAME, _recorded_gradients, "Autograd", with_keyset=True)
