"""Gradients of products, maxima and minima in one core pass: ``gatherum::gradients``.

The op is not differentiable. If a derivative is recorded, its Autograd kernel computes the same
values with `gatherum._derivatives.derivatives`, which torch differentiates.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gatherum._core import Gradient, Reduction, gradient_of
from gatherum._derivatives.array_ops import Destinations
from gatherum._derivatives.derivatives import ScatterValues
from gatherum._model.reductions import REDUCTIONS
from gatherum._system import native
from gatherum.torch import dtypes, namespace, private
from gatherum.torch.library.ops import (
    LIBRARY,
    SCATTER_ATTRIBUTES,
    overload,
    scatter_attributes,
    with_below,
)

NAME = "gradients"
# Properties of the core's reductions as plain values, because traced graphs cannot call the core.
_KERNELS = {name: gradient_of(Reduction[name]) for name in REDUCTIONS}
_HAS_GRADIENTS = frozenset(
    name for name, gradient in _KERNELS.items() if gradient is not Gradient.none
)
_PRODUCTS = frozenset(name for name, gradient in _KERNELS.items() if gradient is Gradient.product)
_SCHEMA = (
    "(str scatter, Tensor gradient, Tensor data, Tensor indices, Tensor updates, "
    f"Tensor result, {SCATTER_ATTRIBUTES}, bool of_data, bool of_updates) -> (Tensor, Tensor)"
)


def is_preferred(destinations: Destinations, needed: tuple[bool, bool]) -> bool:
    """Return True if the core's pass supports the gradients and is faster.

    The pass groups the updates by destination. For maxima and minima of single items, this costs
    more than it saves.
    """
    reduction, include_self = destinations.attributes.fold
    needs_data, needs_updates = needed
    saves_time = reduction in _PRODUCTS or len(destinations.moved_shape()) > len(
        destinations.addressed().moved_shape()
    )
    computes_any = needs_updates or (needs_data and include_self)
    return (
        private.exchange is not None and reduction in _HAS_GRADIENTS and saves_time and computes_any
    )


def gradients_of(
    destinations: Destinations, values: ScatterValues, gradient: Tensor, needed: tuple[bool, bool]
) -> tuple[Tensor | None, Tensor | None]:
    """Return the gradients of data and updates, with None for one that is not requested.

    The gradient of updates has the moved shape.
    """
    data, updates, result = values
    op, options = destinations.attributes.op, destinations.attributes.positional
    gradients = overload(NAME)(
        op, gradient, data, destinations.indices, updates, result, *options, *needed
    )
    of_data, of_updates = (
        of_operand if is_needed else None
        for of_operand, is_needed in zip(gradients, needed, strict=True)
    )
    return of_data, of_updates


def destinations_of(
    scatter: str, data: Tensor, indices: Tensor, *arguments: Any
) -> tuple[Destinations, tuple[bool, bool]]:
    """Return the op's destinations, and which gradients are requested."""
    *options, needs_data, needs_updates = arguments
    attributes = scatter_attributes(scatter, *options)
    destinations = Destinations(namespace, attributes, indices, tuple(data.shape))
    return destinations, (needs_data, needs_updates)


def _on_cpu(scatter: str, gradient: Tensor, data: Tensor, indices: Tensor, updates: Tensor,
            result: Tensor, *arguments: Any) -> tuple[Tensor, ...]:  # fmt: skip
    destinations, needed = destinations_of(scatter, data, indices, *arguments)
    reduction, include_self = destinations.attributes.fold
    moved_shape = destinations.moved_shape()
    is_product = reduction in _PRODUCTS
    dtype = gradient.dtype
    # The factors of products stay in the accumulation dtype.
    computed_dtype = dtypes.derivative_dtype(dtype) if is_product else dtype

    def contiguous(tensor: Tensor) -> Tensor:
        return tensor.to(computed_dtype).contiguous()

    gradients = native.differentiate(
        scatter, contiguous(gradient), contiguous(data) if include_self else None, indices,
        contiguous(updates.expand(moved_shape)), None if is_product else contiguous(result),
        *destinations.attributes.positional, *needed,
    )  # fmt: skip
    return tuple(
        gradient.new_empty(0) if of_operand is None else of_operand.to(dtype)
        for of_operand in gradients
    )


def _fake(scatter: str, gradient: Tensor, data: Tensor, indices: Tensor, updates: Tensor,
            result: Tensor, *arguments: Any) -> tuple[Tensor, Tensor]:  # fmt: skip
    destinations, (needs_data, needs_updates) = destinations_of(scatter, data, indices, *arguments)
    moved_shape = destinations.moved_shape()
    return (
        gradient.new_empty(data.shape if needs_data else (0,)),
        gradient.new_empty(moved_shape if needs_updates else (0,)),
    )


for _name in with_below(NAME):
    LIBRARY.define(_name + _SCHEMA)
    LIBRARY.impl(_name, _on_cpu, "CPU")
    torch.library.register_fake(f"gatherum::{_name}", _fake, lib=LIBRARY)
