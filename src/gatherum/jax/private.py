"""Finds what is used of JAX beyond what it documents: how XLA divides calls among devices.

Tested with JAX 0.5 and 0.10. Where a name or a field is missing, calls on sharded arrays are not
divided: every device makes the whole call. Before 0.7 such calls are refused: JAX reports errors on
several devices late there, and 0.6 ends the process. No name with an underscore is used.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax

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
is_old = tuple(map(int, jax.__version__.split(".")[:2])) < (0, 7)
divides = None not in (AxisType, ArrayMapping, SdyShardingRule, custom_partitioning)


def wide_types() -> Any:
    """Return a context in which arrays of 64 bits exist, with jax_enable_x64 or without."""
    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(True)
    from jax.experimental import enable_x64

    return enable_x64()


def device_count(ctx: Any) -> int:
    """Return how many devices a lowering is for."""
    return int(getattr(getattr(ctx.module_context, "axis_context", None), "num_devices", 1))


def is_for_export(ctx: Any) -> bool:
    """Whether a lowering is for other processes, or may be."""
    return bool(getattr(ctx.module_context.lowering_parameters, "for_export", True))


def with_devices(ctx: Any, mesh: Any) -> Any:
    """Return a context that names the mesh and its devices; None where it has no such fields.

    Which devices they are is said elsewhere; here it is their number that counts.
    """
    context = ctx.module_context
    devices = tuple(jax.devices("cpu"))[: mesh.size]
    try:
        where = replace(context.axis_context, device_assignment=devices, abstract_mesh=mesh)
        return ctx.replace(module_context=context.replace(axis_context=where))
    except (AttributeError, TypeError):
        return None
