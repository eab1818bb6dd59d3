"""Cumulative functions of groups in the core: ``torch.ops.gatherum.cumulate``, for CPU tensors.

All tensors are flat. `gatherum._derivatives.cumulative` defines the functions and their
derivatives.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gatherum._derivatives import cumulative
from gatherum._derivatives.cumulative import Cumulation, CumulativeValues
from gatherum._system import native
from gatherum.groups import errors
from gatherum.torch import dtypes, namespace, private
from gatherum.torch.autograd.batching import Batched, batch_first
from gatherum.torch.autograd.recording import (
    recording,
    run_below_this_level,
    run_or_record,
    without_tangent,
)
from gatherum.torch.checks import check_storages
from gatherum.torch.library.ops import LIBRARY, overload, with_below

NAME = namespace.CUMULATE


def _on_cpu(
    values: Tensor, groups: Tensor, group_count: int, factors: Tensor | None, function: str
) -> Tensor:
    operands = (values, groups) if factors is None else (values, groups, factors)
    check_storages(NAME, ("values", "groups", "factors"), operands)
    arrays = [dtypes.as_array(_plain(operand)) for operand in operands]
    result = torch.empty(values.shape, dtype=values.dtype)
    value, out = str(values.dtype).removeprefix("torch."), dtypes.as_array(result)
    scales = None if factors is None else arrays[2]
    native.cumulate(function, value, arrays[0], scales, arrays[1], group_count, out)
    return result


def _plain(x: Tensor) -> Tensor:
    return x.detach().resolve_neg().resolve_conj().contiguous()


def _refuse_device(values: Tensor, *call: Any) -> Tensor:
    raise errors.cumulates_on_cpu(call[-1], str(values.device), "values.cpu()")


def _fake(values: Tensor, *_: Any) -> Tensor:
    return torch.empty_like(values, memory_format=torch.contiguous_format)


_Function: Any = private.recorded_function(lambda ctx: (ctx.function, ctx.has_factors))


class _Cumulative(_Function):  # type: ignore[misc]
    """A cumulative function of values and factors."""

    @staticmethod
    def forward(
        ctx: Any, keyset: Any, values: Tensor, groups: Tensor, group_count: int,
        factors: Tensor | None, function: str,
    ) -> Tensor:  # fmt: skip
        call = values, groups, group_count, factors, function
        result: Tensor = run_below_this_level(overload(NAME), keyset, *call)
        saved = [groups, *([] if function == "add" else [values, result])]
        saved += [] if factors is None else [factors]
        ctx.save_for_backward(*saved)
        ctx.save_for_forward(*saved)
        ctx.set_materialize_grads(False)
        ctx.function, ctx.group_count, ctx.has_factors = function, group_count, factors is not None
        return result

    @staticmethod
    def backward(ctx: Any, gradient: Tensor | None) -> Any:
        if gradient is None:
            return (None,) * 6
        groups, operands = _groups_and_operands(ctx)
        needs_factors = ctx.needs_input_grad[4]
        with namespace.float_mode():
            of_values, of_factors = cumulative.cotangents(
                groups, ctx.function, operands, gradient, needs_factors
            )
        return None, of_values, None, None, of_factors, None

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        with recording(), namespace.float_mode():
            groups, operands = _groups_and_operands(ctx, private.transforms_active())
            return cumulative.tangent(groups, ctx.function, operands, tangents[1], tangents[4])


def _groups_and_operands(ctx: Any, drops_tangent: bool = False) -> tuple[Cumulation, Any]:
    groups, *operands = ctx.saved_tensors
    if drops_tangent:
        operands = [without_tangent(operand) for operand in operands]
    factors = operands.pop() if ctx.has_factors else None
    values, result = operands or (None, None)
    return Cumulation(namespace, groups, ctx.group_count), CumulativeValues(values, factors, result)


def _run_autograd(keyset: Any, *call: Any) -> Any:
    values, _, _, factors, _ = call
    operands = (values,) if factors is None else (values, factors)
    return run_or_record(_Cumulative, overload(NAME), keyset, call, operands)


def _run_batch(
    info: Any, dims: Any, values: Tensor, groups: Tensor, group_count: int,
    factors: Tensor | None, function: str,
) -> Batched:  # fmt: skip
    """Run the batch as one call, in which the members share no group."""
    size = info.batch_size
    values, groups = (batch_first(x, dims[i], size) for i, x in enumerate((values, groups)))
    if factors is not None:
        factors = batch_first(factors, dims[3], size).reshape(-1)
    first_groups = group_count * torch.arange(size, device=groups.device).unsqueeze(1)
    is_valid = (groups >= 0) & (groups < group_count)
    groups = torch.where(is_valid, groups + first_groups, -1)
    call = groups.reshape(-1), size * group_count, factors, function
    return overload(NAME)(values.reshape(-1), *call).reshape(values.shape), 0


for _name in with_below(NAME):
    LIBRARY.define(
        f"{_name}(Tensor values, Tensor groups, SymInt group_count, Tensor? factors, "
        "str function) -> Tensor",
        tags=torch.Tag.pt2_compliant_tag,
    )
    LIBRARY.impl(_name, _on_cpu, "CPU")
    LIBRARY.impl(_name, _refuse_device, "CompositeExplicitAutograd")
    torch.library.register_fake(f"gatherum::{_name}", _fake, lib=LIBRARY)
    torch.library.register_vmap(f"gatherum::{_name}", _run_batch, lib=LIBRARY)
LIBRARY.impl(NAME, _run_autograd, "Autograd", with_keyset=True)
