"""Maxima and minima with argmax and argmin in one core pass: ``gatherum::extremes``.

The op has no derivative and no rule for `torch.func`; see `applies`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from gatherum._derivatives.array_ops import Destinations
from gatherum._model import errors
from gatherum._model.call import Call, FoldRule
from gatherum._plans import index_errors
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


def applies(src: Tensor) -> bool:
    """Return True if the core's pass supports the call: CPU memory and no transforms."""
    watched = (
        private.transforms_active() or private.in_forward_mode() or symbolic_sizes.is_scripted()
    )
    return src.device.type == "cpu" and not watched


def call(destinations: Destinations, data: Tensor, updates: Tensor, fold: FoldRule, none: int
         ) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Return the maxima or minima, and the number of the first update equal to each.

    `none` is the number if the old value is the maximum or minimum, or a destination has no
    updates.
    """
    attributes = destinations.attributes.with_fold(fold)
    operands = data, destinations.indices, updates
    result: tuple[Tensor, Tensor] = overload(NAME)(
        attributes.op, *operands, *attributes.positional, none, attributes.caller
    )
    return result


def _on_cpu(scatter: str, data: Tensor, indices: Tensor, updates: Tensor, *arguments: Any
            ) -> tuple[Tensor, Tensor]:  # fmt: skip
    options, caller = _split(arguments)
    none = arguments[len(options)]
    operands = {"data": data, "indices": indices, "updates": updates}
    check_storages(scatter, tuple(operands), tuple(operands.values()))
    specs = [addresses.spec_of(scatter, name, tensor) for name, tensor in operands.items()]
    with index_errors.naming(caller), errors.for_tensors():
        attributes = scatter_attributes(scatter, *options)._replace(caller=caller)
        plan = build_once(Call(attributes, *specs))
    values = _new(plan.shape, data.dtype)
    positions = _new(plan.shape, torch.int64)

    def at(name: str, tensor: Tensor) -> Any:
        return addresses.view(scatter, name, tensor)

    views = at("data", data), at("indices", indices), at("updates", updates)
    native.extremes(plan, *views, at("out", values), at("positions", positions), none, False)
    return values, positions


def _split(arguments: tuple[Any, ...]) -> tuple[tuple[Any, ...], str]:
    """Return the attributes of the scatter and its caller."""
    return arguments[:5], arguments[6] if len(arguments) > 6 else ""


def _new(shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """Return a tensor in the core's memory. A large one uses cached huge pages."""
    memory = native.new_result(np.dtype(f"i{dtype.itemsize}"), shape)
    return torch.from_numpy(memory).view(dtype)


def _shapes(scatter: str, data: Tensor, indices: Tensor, updates: Tensor, *arguments: Any
            ) -> tuple[Tensor, Tensor]:  # fmt: skip
    options, caller = _split(arguments)
    with index_errors.naming(caller):
        moved_shape(scatter_attributes(scatter, *options), data, indices, updates)
    return data.new_empty(data.shape), data.new_empty(data.shape, dtype=torch.int64)


LIBRARY.define(NAME + _SCHEMA)
LIBRARY.impl(NAME, _on_cpu, "CPU")
torch.library.register_fake(f"gatherum::{NAME}", _shapes, lib=LIBRARY)
