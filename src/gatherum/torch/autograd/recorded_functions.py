"""The autograd functions that record calls, by the rules of `gatherum._derivatives.derivatives`.

`_PlainGather`, `_PlainScatter` and `_PlainSum` record calls of the core on plain tensors, without
the dispatcher. `_DispatchedGather` and `_DispatchedScatter` record calls that the dispatcher passes
to the Autograd kernels of `autograd_kernels.py`.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeAlias

import torch
from torch import Tensor

from gatherum._derivatives import derivatives
from gatherum._derivatives.array_ops import Destinations
from gatherum._derivatives.derivatives import ScatterValues
from gatherum._model.call import Attributes, FoldRule
from gatherum._model.modes import MODES, mode_after_check
from gatherum._model.operators import OPERATORS, Operator, inverse
from gatherum._system import native
from gatherum.torch import namespace, private, shared_results
from gatherum.torch.checks import check_storages
from gatherum.torch.library.ops import gather_attributes, overload, scatter_attributes

from . import fused_gradients
from .recording import may_have_tangents, recording, run_below_this_level, without_tangent

is_traced = torch.compiler.is_dynamo_compiling
_Attributes: TypeAlias = tuple[str, int, str, bool]  # operator, axis, mode and `negative`
_NO_FOLD = FoldRule()
# The mode of the calls that compute derivatives, for each mode of the call.
_WITHOUT_FILL = {mode: "drop" if mode == "fill" else mode for mode in MODES}
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
        ctx.shape, ctx.call = data.shape, call
        op, axis, mode, negative = call
        return native.run_on_tensors(
            op, data, indices, None, axis, *_NO_FOLD, mode, negative, None, None
        )  # fmt: skip

    @staticmethod
    def backward(ctx: Any, gradient: Tensor | None) -> Any:
        if gradient is None:
            return None, None, None
        of_data = None
        if not is_traced():
            op, axis, mode, negative = ctx.call
            of_data = native.scatter_into_zeros(
                _INVERSE[op], ctx.shape, ctx.saved_tensors[0], gradient,
                axis, "add", True, _WITHOUT_FILL[mode], negative, False,
            )  # fmt: skip
        if of_data is None:
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
            of_updates = native.run_if_plain(*operands, axis, *_NO_FOLD, mode, negative, None, None)
        if of_updates is None:
            of_updates = _PlainCall.destinations(ctx).gather(gradient)
        return of_updates, None, None


class _PlainScatter(_Call):  # type: ignore[misc]
    """A scatter of plain tensors; see `record`. Its reduction has the rule of its derivatives."""

    @staticmethod
    def forward(
        ctx: Any, operator: Operator, data: Tensor, indices: Tensor, updates: Tensor,
        *arguments: Any,
    ) -> Any:  # fmt: skip
        call: Any = operator.name, data, indices, updates, *arguments, None, None
        result = native.run_on_tensors(*call)
        _save_scatter(ctx, operator, result, data, indices, updates, *arguments)
        return result

    @staticmethod
    def backward(ctx: Any, gradient: Tensor | None) -> Any:
        return None, *_scatter_gradients(ctx, gradient, ctx.needs_input_grad[1:4])


class _DispatchedScatter(_Call):  # type: ignore[misc]
    """A dispatched scatter. Its reduction has the rule of its derivatives."""

    @staticmethod
    def forward(ctx: Any, keyset: Any, operator: Operator, *operands: Any) -> Any:
        result = run_below_this_level(overload(operator.name), keyset, *operands)
        _save_scatter(ctx, operator, result, *operands)
        return result

    @staticmethod
    def backward(ctx: Any, gradient: Tensor | None) -> Any:
        return None, None, *_scatter_gradients(ctx, gradient, ctx.needs_input_grad[2:5])

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        with recording(), namespace.float_mode():
            destinations, values = _destinations_and_values(ctx)
            if private.transforms_active():
                # Use the values without the tangents of this level.
                values = values and ScatterValues(*map(without_tangent, values))
            return derivatives.tangent(destinations, values, tangents[2], tangents[4])


def dispatched_function(operator: Operator) -> Any:
    """Return the autograd function of an operator's calls that the dispatcher passes."""
    return _DispatchedScatter if operator.scatters else _DispatchedGather


def _save_scatter(
    ctx: Any, operator: Operator, result: Any, data: Tensor, indices: Tensor, updates: Tensor,
    *arguments: Any,
) -> None:  # fmt: skip
    attributes = scatter_attributes(operator.name, *arguments)
    linear = derivatives.derivative_rule(attributes.reduction).is_linear
    values = () if linear else (data, updates, result)
    _save(ctx, attributes, data, indices, *values)
    ctx.updates_shape = updates.shape
    ctx.unused = (None,) * len(arguments)


def _scatter_gradients(
    ctx: Any, gradient: Tensor | None, needs_operands: tuple[bool, ...]
) -> tuple[Tensor | None, ...]:
    """Return the gradients of data, indices and updates, and None for the other arguments."""
    if gradient is None:
        return None, None, None, *ctx.unused
    needed = needs_operands[0], needs_operands[2]
    destinations, values = _destinations_and_values(ctx)
    runs_in_core = (
        gradient.device.type == "cpu"
        and not private.transforms_active()
        and fused_gradients.is_preferred(destinations, needed)
    )
    differentiate = fused_gradients.gradients_of if runs_in_core else derivatives.cotangents
    with namespace.float_mode(), shared_results.sharing_gradients(ctx.shared):
        of_data, of_updates = differentiate(destinations, values, gradient, needed)
        if of_updates is not None:
            of_updates = namespace.sum_to(of_updates, ctx.updates_shape)
    return of_data, None, of_updates, *ctx.unused


def _save(ctx: Any, attributes: Attributes, data: Tensor, indices: Tensor, *values: Tensor) -> None:
    """Save the inputs of the derivatives. torch tracks the tensors that it saves."""
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


def _mode_of_gradient(mode: str, indices: Tensor) -> str:
    """Return the mode of the calls that compute derivatives, for indices that have been checked."""
    return _WITHOUT_FILL[mode_after_check(mode) if indices.is_cuda else mode]


def _destinations(indices: Tensor, attributes: Attributes, shape: tuple[int, ...]) -> Destinations:
    """Return the destinations of a call whose indices have already been checked."""
    mode = _mode_of_gradient(attributes.mode, indices)
    axis = attributes.operator.resolve(shape, tuple(indices.shape), attributes.axis)
    return Destinations(namespace, attributes._replace(axis=axis, mode=mode), indices, shape)


def record(op: str, data: Tensor, indices: Tensor, updates: Tensor | None, *arguments: Any) -> Any:
    """Run a call on plain tensors that requires a gradient.

    Transforms, modes and subclasses are absent, so torch's dispatcher is not needed. The dispatcher
    would take ten times as long and then call this function.
    """
    if updates is None:
        axis, _, _, mode, negative = arguments
        return _PlainGather.apply(data, indices, (op, axis, mode, negative))
    return _PlainScatter.apply(OPERATORS[op], data, indices, updates, *arguments)


def record_total(
    result: Tensor, updates: Tensor, indices: Tensor, op: str, axis: int, mode: str, negative: bool
) -> Any:
    """Attach a gradient to a scatter of sums into zeros, for plain tensors."""
    mode = _mode_of_gradient(mode, indices)
    return _PlainSum.apply(updates, indices, (result, (op, axis, mode, negative)))
