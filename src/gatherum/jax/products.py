"""The primitive that computes the product of the other values of each destination.

The core computes these products in one pass. Derivatives, batches of index lists, calls on several
devices and calls on CUDA devices use `derivatives.product_of_others` instead, which consists of
multiplications.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive
from jax.interpreters import batching, mlir

from gatherum._derivatives import derivatives
from gatherum._derivatives.array_ops import Destinations
from gatherum._model.arrays import AnyArray
from gatherum._model.call import Attributes
from gatherum._model.operators import inverse

from .batching import batch_first, batch_size
from .primitives import TARGET, call_attributes, planned_for, vary_alike

# Maps data, indices, updates and a gradient of ones to the gradients of data and updates.
# `unindexed` is the `Destinations` of the call without its indices.
OTHERS = Primitive("gatherum_others")
OTHERS.multiple_results = True


def product_of_others(destinations: Destinations, data: AnyArray, updates: AnyArray) -> AnyArray:
    """Return the product of the other values at the destination of each update.

    See `derivatives.product_of_others`.
    """
    unindexed = destinations._replace(indices=None)
    return _by_core(unindexed, destinations.indices, data, updates)


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _by_core(
    unindexed: Destinations, indices: AnyArray, data: AnyArray, updates: AnyArray
) -> AnyArray:
    operands = vary_alike((data, indices, updates, jnp.ones_like(data)))
    gradients = OTHERS.bind(*operands, unindexed=unindexed)
    return jnp.conj(gradients[1])


@_by_core.defjvp  # type: ignore[untyped-decorator]
def _by_core_jvp(unindexed: Destinations, primals: Any, tangents: Any) -> tuple[AnyArray, AnyArray]:
    indices, *values = primals
    composed = partial(_composed, unindexed, indices)
    _, tangent = jax.jvp(composed, tuple(values), tuple(tangents[1:]))
    return _by_core(unindexed, *primals), tangent


@partial(jax.jit, static_argnums=(0,))
def _composed(
    unindexed: Destinations, indices: AnyArray, data: AnyArray, updates: AnyArray
) -> AnyArray:
    destinations = unindexed._replace(indices=indices)
    return derivatives.product_of_others(destinations, data, updates)


def _in_jax(
    data: AnyArray, indices: AnyArray, updates: AnyArray, ones: AnyArray, *, unindexed: Destinations
) -> list[AnyArray]:
    products = _composed(unindexed, indices, data, updates)
    return [ones, jnp.conj(products)]  # the first is not used


def _call_of(unindexed: Destinations) -> Attributes:
    operator = unindexed.operator if unindexed.operator.scatters else inverse(unindexed.operator)
    return unindexed.attributes._replace(op=operator.name, reduction="mul")


def _abstract(data: Any, indices: Any, updates: Any, ones: Any, **_: Any) -> tuple[Any, Any]:
    return data.update(weak_type=False), updates.update(weak_type=False)


def _lower(ctx: Any, *operands: Any, unindexed: Destinations) -> Any:
    if getattr(ctx.module_context.axis_context, "num_devices", 1) > 1:
        return lower_composed(ctx, *operands, unindexed=unindexed)
    attributes = _call_of(unindexed)
    plan = planned_for(attributes, ctx.avals_in[:3])
    return jax.ffi.ffi_lowering(TARGET)(ctx, *operands, **call_attributes(attributes, plan))


def lower_composed(ctx: Any, *operands: Any, unindexed: Destinations) -> Any:
    """Lower to multiplications."""
    run = partial(_in_jax, unindexed=unindexed)
    return mlir.lower_fun(run, multiple_results=True)(ctx, *operands)


@lru_cache(maxsize=256)
def _compiled(unindexed: Destinations) -> Any:
    return jax.jit(partial(OTHERS.bind, unindexed=unindexed))


def _evaluate(*operands: AnyArray, unindexed: Destinations) -> Any:
    with jax.disable_jit(False):
        return _compiled(unindexed)(*operands)


def _batched(operands: Any, dims: Any, *, unindexed: Destinations) -> Any:
    size = batch_size(operands, dims)
    shares_index_list = not unindexed.operator.addressing.shares_front  # serves the whole batch
    if shares_index_list and dims[1] is not None:
        run = partial(_in_jax, unindexed=unindexed)
        return jax.vmap(run, dims)(*operands), (0, 0)
    data, indices, updates, ones = (
        batch_first(o, d, size) for o, d in zip(operands, dims, strict=True)
    )
    indices = operands[1] if shares_index_list else indices
    attributes = unindexed.attributes._replace(axis=unindexed.axis + 1)
    batched_call = unindexed._replace(shape=(size, *unindexed.shape), attributes=attributes)
    gradients = OTHERS.bind(data, indices, updates, ones, unindexed=batched_call)
    return gradients, (0, 0)


OTHERS.def_impl(_evaluate)
OTHERS.def_abstract_eval(_abstract)
batching.primitive_batchers[OTHERS] = _batched
mlir.register_lowering(OTHERS, _lower, platform="cpu")
mlir.register_lowering(OTHERS, lower_composed, platform="cuda")
