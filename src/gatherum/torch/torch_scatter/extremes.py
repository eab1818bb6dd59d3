"""Maxima and minima with argmax and argmin in one core pass: ``gatherum::extremes``.

The op has no derivative and no rule for `torch.func`; see `is_supported`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from gatherum._derivatives.array_ops import Destinations
from gatherum._model import callers, errors
from gatherum._model.call import Call, FoldRule
from gatherum._plans.plans import build_once
from gatherum._system import native
from gatherum.torch import addresses, private
from gatherum.torch.checks import check_storages
from gatherum.torch.library import symbolic_sizes
from gatherum.torch.library.ops import (
    CALLER,
    LIBRARY,
    SCATTER_ATTRIBUTES,
    overload,
    scatter_attributes,
)
from gatherum.torch.tracing.fakes import moved_shape

NAME = "extremes"
_SCHEMA = (
    f"(str scatter, Tensor data, Tensor indices, Tensor updates, {SCATTER_ATTRIBUTES}, "
    f"SymInt none, {CALLER}) -> (Tensor, Tensor)"
)


def is_supported(src: Tensor) -> bool:
    """Return True if the core's pass supports the call: CPU memory and no transforms."""
    is_watched = (
        private.transforms_active() or private.in_forward_mode() or symbolic_sizes.is_scripted()
    )
    return src.device.type == "cpu" and not is_watched


def values_and_positions(
    destinations: Destinations, data: Tensor, updates: Tensor, fold: FoldRule, no_position: int
) -> tuple[Tensor, Tensor]:
    """Return the maxima or minima, and the number of the first update equal to each.

    `no_position` is used as the number if the old value is the maximum or minimum, or if a
    destination has no updates.
    """
    attributes = destinations.attributes.with_fold(fold)
    operands = data, destinations.indices, updates
    result: tuple[Tensor, Tensor] = overload(NAME)(
        attributes.op, *operands, *attributes.positional, no_position, attributes.caller
    )
    return result


def _on_cpu(
    scatter: str,
    data: Tensor,
    indices: Tensor,
    updates: Tensor,
    axis: int,
    reduction: str,
    include_self: bool,
    mode: str,
    negative: bool,
    no_position: int,
    caller: str = "",
) -> tuple[Tensor, Tensor]:
    options = axis, reduction, include_self, mode, negative
    operands = {"data": data, "indices": indices, "updates": updates}
    check_storages(scatter, tuple(operands), tuple(operands.values()))
    specs = [addresses.spec_of(scatter, name, tensor) for name, tensor in operands.items()]
    with callers.naming(caller), errors.for_tensors():
        attributes = scatter_attributes(scatter, *options)._replace(caller=caller)
        plan = build_once(Call(attributes, *specs))
    values = _new(plan.shape, data.dtype)
    positions = _new(plan.shape, torch.int64)

    def view_named(name: str, tensor: Tensor) -> Any:
        return addresses.view_of(scatter, name, tensor)

    views = view_named("data", data), view_named("indices", indices), view_named("updates", updates)
    outputs = view_named("out", values), view_named("positions", positions)
    native.extremes(plan, *views, *outputs, no_position, False)
    return values, positions


def _new(shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """Return a tensor in the core's memory. A large one uses cached huge pages."""
    memory = native.new_result(np.dtype(f"i{dtype.itemsize}"), shape)
    return torch.from_numpy(memory).view(dtype)


def _fake(
    scatter: str,
    data: Tensor,
    indices: Tensor,
    updates: Tensor,
    axis: int,
    reduction: str,
    include_self: bool,
    mode: str,
    negative: bool,
    no_position: int,
    caller: str = "",
) -> tuple[Tensor, Tensor]:
    options = axis, reduction, include_self, mode, negative
    with callers.naming(caller):
        moved_shape(scatter_attributes(scatter, *options), data, indices, updates)
    return data.new_empty(data.shape), data.new_empty(data.shape, dtype=torch.int64)


LIBRARY.define(NAME + _SCHEMA)
LIBRARY.impl(NAME, _on_cpu, "CPU")
torch.library.register_fake(f"gatherum::{NAME}", _fake, lib=LIBRARY)
