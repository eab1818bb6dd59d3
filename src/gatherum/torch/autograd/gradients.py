"""Autograd kernels of each op, which follow the rules of `gatherum._derivatives.derivatives`.

Two kinds of functions record calls. The functions of plain calls (`_PlainGather`, `_PlainSum`)
record calls to the core on plain tensors, without the dispatcher. `_DispatchedGather` records calls
that the dispatcher passes to the Autograd kernels. `_Scatter` records both kinds.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, TypeAlias

import torch
from torch import Tensor

from gatherum._derivatives import derivatives
from gatherum._derivatives.array_ops import Destinations
from gatherum._derivatives.derivatives import ScatterValues
from gatherum._model.call import Attributes, FoldRule
from gatherum._model.callers import caller_of
from gatherum._model.modes import MODES
from gatherum._model.operators import OPERATORS, Operator, inverse
from gatherum._plans import index_errors, sharing
from gatherum._system import native
from gatherum.torch import errors as torch_errors
from gatherum.torch import namespace, private, shared_results
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
from .recording import (
    has_tangent,
    may_have_tangents,
    recording,
    run_below_autograd,
    run_below_this_level,
    run_or_record,
    without_tangent,
)

is_traced = torch.compiler.is_dynamo_compiling
_Attributes: TypeAlias = tuple[str, int, str, bool]  # operator, axis, mode and `negative`
_NO_FOLD = FoldRule()
# The mode of the calls that compute derivatives, for each mode of the call.
_MODE_OF_DERIVATIVES = {mode: "drop" if mode == "fill" else mode for mode in MODES}
_INVERSE = {name: inverse(operator).name for name, operator in OPERATORS.items()}


def _graph_key(ctx: Any) -> tuple[Any, ...]:
    """Return the key that distinguishes graphs of compiled autograd."""
    return getattr(ctx, "call", None) or ctx.attributes, *ctx.shape


_Call: Any = private.recorded_function(_graph_key)


class _DispatchedGather(_Call):  # type: ignore[misc]
    """A dispatched gather. Its gradient is a scatter that sums into the data's shape."""

    @staticmethod
    def forward(
        ctx: Any, keyset: Any, operator: Operator, data: Tensor, indices: Tensor, *arguments: Any
    ) -> Any:
        _save(ctx, gather_attributes(operator.name, *arguments), data, indices)
        ctx.unused = (None,) * (1 + len(arguments))
        return run_below_this_level(overload(operator.name), keyset, data, indices, *arguments)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor | None) -> Any:
        if gradient is None:
            return None, None, None, *ctx.unused
        destinations, _ = _destinations_and_values(ctx)
        with _resumed(ctx):
            return None, None, destinations.sum_updates(gradient), *ctx.unused

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        with recording():
            destinations, _ = _destinations_and_values(ctx)
            return destinations.gather(tangents[2])


class _PlainCall(_Call):  # type: ignore[misc]
    """A call on plain tensors, usually with a plan that the core has cached.

    There are no transforms or tangents. The code is minimal because it dominates the time of a
    small call.
    """

    @staticmethod
    def destinations(ctx: Any) -> Destinations:
        """Return the destinations of the call."""
        op, axis, mode, negative = ctx.call
        ctx.attributes = Attributes(op, axis, mode=mode, negative=negative)
        return _destinations_and_values(ctx)[0]


class _PlainGather(_PlainCall):
    """A gather of plain tensors; see `record`. Its gradient is a scatter into zeros."""

    @staticmethod
    def forward(ctx: Any, data: Tensor, indices: Tensor, call: _Attributes) -> Any:
        ctx.save_for_backward(indices)
        ctx.set_materialize_grads(False)
        ctx.shape, ctx.call, ctx.shared = data.shape, call, sharing.current()
        op, axis, mode, negative = call
        return native.run_on_tensors(op, data, indices, None, (axis, *_NO_FOLD, mode, negative))

    @staticmethod
    def backward(ctx: Any, gradient: Tensor | None) -> Any:
        if gradient is None:
            return None, None, None
        of_data = None
        if not is_traced():
            op, axis, mode, negative = ctx.call
            of_data = native.scatter_into_zeros(
                _INVERSE[op], ctx.shape, ctx.saved_tensors[0], gradient,
                axis, "add", True, _MODE_OF_DERIVATIVES[mode], negative, False,
            )  # fmt: skip
        if of_data is None:
            with _resumed(ctx):
                of_data = _PlainCall.destinations(ctx).sum_updates(gradient)
        return of_data, None, None


class _PlainSum(_PlainCall):
    """A scatter of sums into zeros; see `record_total`. Its gradient is a gather."""

    @staticmethod
    def forward(
        ctx: Any, updates: Tensor, indices: Tensor, result: tuple[Tensor, _Attributes]
    ) -> Any:
        total, ctx.call = result
        ctx.save_for_backward(indices)
        ctx.set_materialize_grads(False)
        ctx.shape = total.shape
        return total

    @staticmethod
    def backward(ctx: Any, gradient: Tensor | None) -> Any:
        if gradient is None:
            return None, None, None
        of_updates = None
        if not is_traced():
            op, axis, mode, negative = ctx.call
            operands = _INVERSE[op], gradient, ctx.saved_tensors[0], None
            of_updates = native.run_if_plain(*operands, (axis, *_NO_FOLD, mode, negative))
        if of_updates is None:
            of_updates = _PlainCall.destinations(ctx).gather(gradient)
        return of_updates, None, None


class _Scatter(_Call):  # type: ignore[misc]
    """A scatter, differentiated by the rule of its reduction.

    `keyset` is None for a call on plain tensors; see `record`.
    """

    @staticmethod
    def forward(
        ctx: Any, keyset: Any, operator: Operator, data: Tensor, indices: Tensor,
        updates: Tensor, *arguments: Any,
    ) -> Any:  # fmt: skip
        attributes = scatter_attributes(operator.name, *arguments)
        operands: tuple[Any, ...] = (data, indices, updates, *arguments)
        if keyset is None:
            result = native.run_on_tensors(operator.name, data, indices, updates, arguments)
        else:
            result = run_below_this_level(overload(operator.name), keyset, *operands)
        linear = derivatives.derivative_rule(attributes.reduction).is_linear
        values = () if linear else (data, updates, result)
        _save(ctx, attributes, data, indices, *values)
        ctx.updates_shape = updates.shape
        ctx.unused = (None,) * len(arguments)
        return result

    @staticmethod
    def backward(ctx: Any, gradient: Tensor | None) -> Any:
        if gradient is None:
            return None, None, None, None, None, *ctx.unused
        destinations, values = _destinations_and_values(ctx)
        _, _, needs_data, _, needs_updates = ctx.needs_input_grad[:5]
        needed = needs_data, needs_updates
        is_transformed = private.transforms_active()
        on_cpu = gradient.device.type == "cpu"
        runs_in_core = (
            on_cpu and not is_transformed and fused_gradients.is_preferred(destinations, needed)
        )
        differentiate = fused_gradients.gradients_of if runs_in_core else derivatives.cotangents
        with namespace.float_mode(), shared_results.sharing_gradients(ctx.shared):
            of_data, of_updates = differentiate(destinations, values, gradient, needed)
            if of_updates is not None:
                of_updates = namespace.sum_to(of_updates, ctx.updates_shape)
        return None, None, of_data, None, of_updates, *ctx.unused

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        with recording(), namespace.float_mode():
            destinations, values = _destinations_and_values(ctx)
            if private.transforms_active():
                # Use the values without the tangents of this level.
                values = values and ScatterValues(*map(without_tangent, values))
            return derivatives.tangent(destinations, values, tangents[2], tangents[4])


def _save(ctx: Any, attributes: Attributes, data: Tensor, indices: Tensor, *values: Tensor) -> None:
    """Save the inputs of the derivatives. Save tensors where torch can track them."""
    ctx.save_for_backward(indices, *values)
    ctx.set_materialize_grads(False)  # with infinite factors, zeros would give NaN
    if may_have_tangents() or private.transforms_active():
        ctx.save_for_forward(indices, *values)
    ctx.attributes, ctx.shape = attributes, tuple(data.shape)
    ctx.shared = shared_results.current(data)


def _resumed(ctx: Any) -> AbstractContextManager[Any]:
    """Return a context in which the calls for a gradient share results with the composition."""
    return nullcontext() if ctx.shared is None else shared_results.sharing_gradients(ctx.shared)


def _destinations_and_values(ctx: Any) -> tuple[Destinations, Any]:
    indices, *values = ctx.saved_tensors
    names = ("indices", "data", "updates", "result")
    if not torch.compiler.is_compiling():
        check_storages(ctx.attributes.op, names, (indices, *values))
    return _destinations(indices, ctx.attributes, ctx.shape), ScatterValues(
        *values
    ) if values else None


def _mode_of_derivatives(mode: str, indices: Tensor) -> str:
    """Return the mode of the calls that compute derivatives, for indices that have been checked."""
    if mode == "raise" and indices.is_cuda:
        return "drop"  # another check would wait for the device
    return _MODE_OF_DERIVATIVES[mode]


def _destinations(indices: Tensor, attributes: Attributes, shape: tuple[int, ...]) -> Destinations:
    """Return the destinations of a call whose indices have already been checked."""
    mode = _mode_of_derivatives(attributes.mode, indices)
    axis = attributes.operator.resolve(shape, tuple(indices.shape), attributes.axis)
    return Destinations(namespace, attributes._replace(axis=axis, mode=mode), indices, shape)


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


def record(op: str, data: Tensor, indices: Tensor, updates: Tensor | None, *arguments: Any) -> Any:
    """Run a call on plain tensors that requires a gradient.

    Transforms, modes and subclasses are absent, so torch's dispatcher is not needed. The dispatcher
    would take ten times as long and then call this function.
    """
    if updates is None:
        axis, _, _, mode, negative = arguments
        return _PlainGather.apply(data, indices, (op, axis, mode, negative))
    return _Scatter.apply(None, OPERATORS[op], data, indices, updates, *arguments)


def record_total(
    result: Tensor, updates: Tensor, indices: Tensor, op: str, axis: int, mode: str, negative: bool
) -> Any:
    """Attach a gradient to a scatter of sums into zeros, for plain tensors."""
    mode = _mode_of_derivatives(mode, indices)
    return _PlainSum.apply(updates, indices, (result, (op, axis, mode, negative)))


def _recording_kernel(operator: Operator) -> Callable[..., Any]:
    """Return the Autograd kernel of an operator's functional form."""
    op, names = overload(operator.name), operand_names(operator, operator.name)
    function = _Scatter if operator.scatters else _DispatchedGather

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
    call = operator.name, data, indices, updates, attributes.positional
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
        operand = 0 if name.endswith("_") else 3 if operator.scatters else 2
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
