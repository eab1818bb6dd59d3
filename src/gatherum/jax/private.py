"""Find the undocumented parts of JAX that this package uses to divide calls among devices.

Tested with JAX 0.5 and 0.10. If a name or a field is missing, calls on sharded arrays are not
divided: every device makes the whole call. With JAX before 0.7, such calls raise
NotImplementedError: these versions report errors on several devices late, and JAX 0.6 then
terminates the process. Names with an underscore are not used.
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
    """Return a context in which JAX has 64-bit arrays, even without jax_enable_x64."""
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
