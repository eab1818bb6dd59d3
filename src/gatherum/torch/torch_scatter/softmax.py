"""Compute softmax and log_softmax over groups in one op, on CPU tensors.

The op is bit-for-bit equal to the composition, but its steps reuse memory. For the derivatives, the
op saves only its result. Let s(x) be the sum of each group, broadcast back to the values of the
group. The derivatives are ``y * (g - s(g * y))`` for softmax, and ``g - exp(y) * s(g)`` for
log_softmax.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from gatherum._derivatives.array_ops import ADD, Destinations
from gatherum._model.call import Attributes
from gatherum.groups import functions
from gatherum.groups import namespace as arrays
from gatherum.groups.grouping import Grouping
from gatherum.torch import namespace, private, shared_results
from gatherum.torch.autograd.recording import (
    recording,
    requires_recording,
    run_below_autograd,
    run_below_this_level,
)
from gatherum.torch.checks import check_storages
from gatherum.torch.library.ops import CALLER, LIBRARY, overload, with_below

NAME = namespace.SOFTMAX


def _destinations(
    xp: Any, values: Any, indices: Any, size: int, op: str, axis: int, mode: str, negative: bool,
    caller: str = "",
) -> Destinations:  # fmt: skip
    shape = (*values.shape[:axis], size, *values.shape[axis + 1 :])
    attributes = Attributes(op, axis, mode=mode, negative=negative, caller=caller)
    return Destinations(xp, attributes, indices, shape)


def _on_cpu(values: Tensor, indices: Tensor, name: str, size: int, *options: Any) -> Tensor:
    check_storages(name, ("values", "groups"), (values, indices))
    table, entries = values.detach().resolve_neg().numpy(), indices.detach().numpy()
    grouping = Grouping(
        name, "groups", None, _destinations(arrays, table, entries, size, *options), options[1]
    )
    with np.errstate(all="ignore"), grouping.float_mode():
        return torch.from_numpy(functions.TRANSFORMS[name].compose(table, grouping, table.dtype))


def _on_cuda(values: Tensor, indices: Tensor, name: str, size: int, *options: Any) -> Tensor:
    destinations = _destinations(namespace, values, indices, size, *options)
    grouping = Grouping(name, "groups", None, destinations, options[1])
    result: Tensor = functions.TRANSFORMS[name].compose(values, grouping, values.dtype)
    return result


def _fake(values: Tensor, *_: Any) -> Tensor:
    return torch.empty_like(values, memory_format=torch.contiguous_format)


_Function: Any = private.recorded_function(lambda ctx: ctx.call)


class _Softmax(_Function):  # type: ignore[misc]
    """One call, of which only the result is saved."""

    @staticmethod
    def forward(
        ctx: Any, keyset: Any, values: Tensor, indices: Tensor, name: str, *options: Any
    ) -> Tensor:
        with shared_results.sharing_calls() as ctx.shared:
            call = values, indices, name, *options
            result: Tensor = run_below_this_level(overload(NAME), keyset, *call)
        ctx.save_for_backward(result, indices)
        ctx.save_for_forward(result, indices)
        ctx.set_materialize_grads(False)
        ctx.call = name, *options
        return result

    @staticmethod
    def backward(ctx: Any, gradient: Tensor | None) -> Any:
        change = None if gradient is None else _apply_derivative(ctx, gradient, transposes=True)
        return None, change, *(None,) * (1 + len(ctx.call))

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        with recording():
            return _apply_derivative(ctx, tangents[1], transposes=False)


def _apply_derivative(ctx: Any, tangent: Tensor, transposes: bool) -> Tensor:
    """Return the derivative applied to `tangent`, or its transpose if `transposes`."""
    result, indices = ctx.saved_tensors
    name, size, *options = ctx.call
    destinations = _destinations(namespace, result, indices, size, *options)
    with namespace.float_mode(), shared_results.sharing_gradients(ctx.shared):
        if name == "softmax":
            return result * (tangent - _sums_of_groups(destinations, tangent * result))
        shares = namespace.exp(result)
        if transposes:
            return tangent - shares * _sums_of_groups(destinations, tangent)
        return tangent - _sums_of_groups(destinations, shares * tangent)


def _sums_of_groups(destinations: Destinations, values: Tensor) -> Tensor:
    """Return, for each value, the sum of its group."""
    zero = values.new_zeros(()).expand(destinations.shape)
    sums: Tensor = destinations.gather(destinations.scatter(zero, values, ADD))
    return sums


def _run_autograd(keyset: Any, *call: Any) -> Any:
    if not requires_recording(call[:1]):
        return run_below_autograd(overload(NAME), keyset, *call)
    return _Softmax.apply(keyset, *call)


_SCHEMA = (
    "(Tensor values, Tensor groups, str function, SymInt size, str scatter, int axis, str bounds, "
    f"bool negative, {CALLER}) -> Tensor"
)
for _name in with_below(NAME):
    LIBRARY.define(_name + _SCHEMA, tags=torch.Tag.pt2_compliant_tag)
    LIBRARY.impl(_name, _on_cpu, "CPU")
    LIBRARY.impl(_name, _on_cuda, "CUDA")
    torch.library.register_fake(f"gatherum::{_name}", _fake, lib=LIBRARY)
LIBRARY.impl(NAME, _run_autograd, "Autograd", with_keyset=True)
