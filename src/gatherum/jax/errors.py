"""Errors that only calls on JAX arrays raise; `_model.errors` has the shared ones."""

from typing import Any

import numpy as np

from gatherum._model.errors import Shape


def no_jax_out(op: str) -> TypeError:
    return TypeError(f"{op}: `out` must be None for JAX arrays, which nothing can write to")


def no_jax_platform(op: str, platform: str) -> NotImplementedError:
    if platform in ("cuda", "gpu"):
        why = "XLA cannot call the kernels of gatherum.cuda yet"
    else:
        why = "gatherum has no kernels for it"
    return NotImplementedError(
        f"{op}: JAX arrays must be on the CPU, got {platform}, and {why}; write "
        "jax.device_put(data, jax.devices('cpu')[0])"
    )


def explicit_shards(op: str, operand: str, spec: object) -> TypeError:
    return TypeError(
        f"{op}: `{operand}` must not be sharded along explicit axes of a mesh, got {spec}; call it "
        "in jax.shard_map, or through jax.sharding.auto_axes"
    )


def several_devices(op: str, version: str) -> NotImplementedError:
    return NotImplementedError(
        f"{op}: arrays on several devices need JAX 0.7 or later, and this is {version}; put them "
        "on one device by jax.device_put"
    )


def needs_x64(op: str, operand: str, found: np.dtype[Any], known: np.dtype[Any]) -> TypeError:
    return TypeError(
        f"{op}: `{operand}` must fit in {known}, the widest that JAX has without jax_enable_x64, "
        f"got {found}"
    )


def not_one_item(op: str, operand: str, shape: Shape) -> ValueError:
    return ValueError(f"{op}: `{operand}` must be one item, of shape (), got shape {shape}")


def symbolic_shape(op: str, operand: str, shape: object) -> TypeError:
    return TypeError(f"{op}: `{operand}` must have sizes that are numbers, got {shape}")


def unknown_size(op: str, operand: str) -> TypeError:
    return TypeError(
        f"{op}: `size` must be given where JAX traces a call, because the values of `{operand}` "
        "are not known there"
    )
