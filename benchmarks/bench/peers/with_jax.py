"""JAX on the CPU: compiled functions of arrays that are already on the device."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from ..cases import Case
from ..jobs import Job
from . import Methods

jax: Any = import_module("jax")
jnp: Any = import_module("jax.numpy")
jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_enable_x64", True)  # the indices are int64

TRUSTING = "promise_in_bounds"


def methods(case: Case) -> Methods:
    """Return JAX's methods for a case: with the default mode, and without index checks."""
    operands = [jax.device_put(array) for array in case.arrays]
    calls: Methods = {}
    for mode in (None, TRUSTING):
        name, function = _function(case, mode)
        label = name if mode is None else f"{name}, {mode}"
        calls[label] = _finished(jax.jit(function), operands)
    return calls


def _finished(function: Callable[..., Any], operands: list[Any]) -> Callable[[], Any]:
    return lambda: function(*operands).block_until_ready()


def _function(case: Case, mode: str | None) -> tuple[str, Callable[..., Any]]:
    axis, reduction = case.axis, case.reduction
    if case.op == "gather" and mode is None:
        return "jnp.take", lambda data, indices: jnp.take(data, indices, axis)
    if case.op == "gather":
        before = (slice(None),) * axis
        return "data.at[].get", lambda data, indices: data.at[(*before, indices)].get(mode=mode)
    if case.op == "gather_elements":
        return "jnp.take_along_axis", lambda data, indices: jnp.take_along_axis(
            data, indices, axis, mode=mode
        )
    if case.op == "gather_nd":
        return "data.at[].get", lambda data, indices: data.at[tuple(indices.T)].get(mode=mode)
    method = {"none": "set", "add": "add", "max": "max"}[reduction]

    def scatter(data: Any, indices: Any, updates: Any) -> Any:
        place = tuple(indices.T)
        if case.op == "scatter_elements":
            own = tuple(jnp.ogrid[tuple(slice(n) for n in indices.shape)])
            place = own[:axis] + (indices,) + own[axis + 1 :]
        return getattr(data.at[place], method)(updates, mode=mode)

    return f"data.at[].{method}", scatter


def _messages(job: Job) -> Methods:
    segment = getattr(jax.ops, f"segment_{job.func}")
    operands = [jax.device_put(job[name]) for name in ("table", "sources", "targets")]

    def fold(table: Any, sources: Any, targets: Any) -> Any:
        return segment(table[sources], targets, job.size)

    return {f"jax.ops.segment_{job.func}": _finished(jax.jit(fold), operands)}


JOBS = {"messages": _messages, "maxima": _messages}
