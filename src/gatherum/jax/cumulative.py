"""The primitive that computes cumulative functions of groups in the core, on the CPU.

Its operands are flat: values, groups and, for recurrences, factors.
`gatherum._derivatives.cumulative` defines the functions and their derivatives.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.interpreters import ad, batching, mlir

from gatherum._derivatives import cumulative
from gatherum._derivatives.cumulative import CumulativeValues
from gatherum._model.arrays import AnyArray
from gatherum.groups import errors

from .batching import Batched, batch_first, batch_size
from .namespace import CUMULATE, cumulation_of
from .primitives import TARGET


def _abstract(values: Any, *_: Any, function: str, group_count: int) -> Any:
    return values.update(weak_type=False)


@lru_cache(maxsize=256)
def _compiled(function: str, group_count: int) -> Any:
    return jax.jit(partial(CUMULATE.bind, function=function, group_count=group_count))


def _evaluate(*operands: AnyArray, function: str, group_count: int) -> AnyArray:
    with jax.disable_jit(False):
        return _compiled(function, group_count)(*operands)


def _lower(ctx: Any, *operands: Any, function: str, group_count: int) -> Any:
    count = np.array([group_count], np.int64)
    return jax.ffi.ffi_lowering(TARGET)(ctx, *operands, function=function, group_count=count)


def _refuse(ctx: Any, *_: Any, function: str, group_count: int) -> Any:
    device = ", ".join(ctx.module_context.platforms)
    instead = "jax.device_put(values, jax.devices('cpu')[0])"
    raise errors.cumulates_on_cpu(function, device, instead)


def _jvp(
    primals: Any, tangents: Any, *, function: str, group_count: int
) -> tuple[AnyArray, AnyArray]:
    values, groups, *rest = primals
    result = CUMULATE.bind(*primals, function=function, group_count=group_count)
    operands = CumulativeValues(values, rest[0] if rest else None, result)
    of_values, _, *of_rest = (None if type(t) is ad.Zero else t for t in tangents)
    where = cumulation_of(groups, group_count)
    of_factors = of_rest[0] if of_rest else None
    return result, cumulative.tangent(where, function, operands, of_values, of_factors)


def _transpose(
    cotangent: Any, values: Any, groups: AnyArray, *factors: Any, function: str, group_count: int
) -> list[Any]:
    unused = [None] * (1 + len(factors))
    if type(cotangent) is ad.Zero:
        return [ad.Zero(values.aval), *unused]
    where = cumulation_of(groups, group_count)
    return [where.transposed(function, cotangent, factors[0] if factors else None), *unused]


def _batched(operands: Any, dims: Any, *, function: str, group_count: int) -> Batched:
    """Run the batch as one call, in which the members share no group."""
    size = batch_size(operands, dims)
    pairs = zip(operands, dims, strict=True)
    values, groups, *factors = (batch_first(*pair, size) for pair in pairs)
    first_groups = group_count * jnp.arange(size, dtype=groups.dtype)[:, None]
    is_valid = (groups >= 0) & (groups < group_count)
    groups = jnp.where(is_valid, groups + first_groups, -1)
    if size * group_count > np.iinfo(groups.dtype).max:
        raise errors.too_many_cells("groups.transform", size * group_count)
    flat = (x.reshape(-1) for x in (values, groups, *factors))
    result = CUMULATE.bind(*flat, function=function, group_count=size * group_count)
    return result.reshape(values.shape), 0


CUMULATE.def_impl(_evaluate)
CUMULATE.def_abstract_eval(_abstract)
mlir.register_lowering(CUMULATE, _lower, platform="cpu")
mlir.register_lowering(CUMULATE, _refuse)
ad.primitive_jvps[CUMULATE] = _jvp
ad.primitive_transposes[CUMULATE] = _transpose
batching.primitive_batchers[CUMULATE] = _batched
