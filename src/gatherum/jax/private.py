"""Find undocumented parts of JAX that divide calls among devices, and supply what old JAX lacks.

Tested with JAX 0.5 and 0.10. If a name or a field is missing, calls on sharded arrays are not
divided: every device makes the whole call. With JAX before 0.7, such calls raise
NotImplementedError: these versions report errors on several devices late, and JAX 0.6 then
terminates the process. Names with an underscore are not used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import jax
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from gatherum._system import private_names

_WHOLE = "every device makes the whole call"
NAMES = {
    "jax.sharding.AxisType": _WHOLE,
    "jax.experimental.custom_partitioning.ArrayMapping": _WHOLE,
    "jax.experimental.custom_partitioning.SdyShardingRule": _WHOLE,
    "jax.experimental.custom_partitioning.custom_partitioning": _WHOLE,
}
AxisType: Any
ArrayMapping: Any
SdyShardingRule: Any
custom_partitioning: Any
AxisType, ArrayMapping, SdyShardingRule, custom_partitioning = map(private_names.find_name, NAMES)
is_old = jax.__version_info__ < (0, 7)
divides = None not in (AxisType, ArrayMapping, SdyShardingRule, custom_partitioning)


if jax.__version_info__ < (0, 5, 3):  # a barrier has no derivatives; later versions define these
    (_equation,) = jax.make_jaxpr(jax.lax.optimization_barrier)(0).eqns
    ad.deflinear2(
        _equation.primitive,
        lambda cotangents, *_: jax.lax.optimization_barrier(
            [*map(ad.instantiate_zeros, cotangents)]
        ),
    )


def in_wide_types(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a function, to run while JAX has 64-bit arrays, even without jax_enable_x64."""

    def run(*operands: Any) -> Any:
        # A new array is traced only in a compiled function.
        hides = narrows() and isinstance(jax.numpy.zeros(1, bool), jax.core.Tracer)
        with _wide_types():
            if not hides:
                return function(*operands)
            closed, results = jax.make_jaxpr(function, return_shape=True)(*operands)
        flat = _WIDE_CALL.bind(*jax.tree.leaves(operands), closed=closed)
        return jax.tree.unflatten(jax.tree.structure(results), flat)

    return run


def narrows() -> bool:
    """Return True if JAX narrows 64-bit parts of compiled functions when it transforms them."""
    return jax.__version_info__ < (0, 7, 2) and not jax.config.jax_enable_x64


# It hides such a part from transforms, and runs it while JAX has 64-bit arrays.
_WIDE_CALL = Primitive("gatherum_wide_call")
_WIDE_CALL.multiple_results = True
_WIDE_CALL.def_abstract_eval(lambda *_, closed: closed.out_avals)


def _evaluate(*operands: Any, closed: Any) -> Any:
    with _wide_types():
        return jax.core.eval_jaxpr(closed.jaxpr, closed.consts, *operands)


def _lower(*operands: Any, closed: Any) -> Any:
    with _wide_types():
        return mlir.lower_fun(_evaluate)(*operands, closed=closed)


def _batch(operands: Any, axes: Any, closed: Any) -> Any:
    batched = jax.vmap(partial(_evaluate, closed=closed), axes)
    return in_wide_types(batched)(*operands), [0] * len(closed.out_avals)


mlir.register_lowering(_WIDE_CALL, _lower)
batching.primitive_batchers[_WIDE_CALL] = _batch


def _wide_types() -> Any:
    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(True)
    from jax.experimental import enable_x64

    return enable_x64()


def device_count(ctx: Any) -> int:
    """Return the number of devices that a lowering is for."""
    return int(getattr(getattr(ctx.module_context, "axis_context", None), "num_devices", 1))


def is_for_export(ctx: Any) -> bool:
    """Return True if a lowering is, or may be, for other processes."""
    return bool(getattr(ctx.module_context.lowering_parameters, "for_export", True))


def devices_of(platform: str) -> tuple[Any, ...]:
    """Return the devices of a platform. For a lowering for CUDA, these are the default devices."""
    return tuple(jax.devices("cpu" if platform == "cpu" else None))


def with_devices(ctx: Any, mesh: Any, platform: str) -> Any:
    """Return a context with the mesh and its devices, or None if `ctx` has no such fields.

    Only the number of devices matters here; they are assigned elsewhere.
    """
    context = ctx.module_context
    devices = devices_of(platform)[: mesh.size]
    try:
        where = replace(context.axis_context, device_assignment=devices, abstract_mesh=mesh)
        return ctx.replace(module_context=context.replace(axis_context=where))
    except (AttributeError, TypeError):
        return None
