"""Errors that only calls on JAX arrays raise; `_model.errors` contains the shared ones."""

from typing import Any

import numpy as np

from gatherum._model.errors import Shape


def no_jax_out(op: str) -> TypeError:
    return TypeError(f"{op}: `out` must be None for JAX arrays, which nothing can write to")


def no_jax_platform(op: str, platform: str) -> NotImplementedError:
    return NotImplementedError(
        f"{op}: JAX arrays must be on the CPU or on a CUDA device, got {platform}, and gatherum "
        "has no kernels for it; write jax.device_put(data, jax.devices('cpu')[0])"
    )


def no_sort_on_device(op: str, reduction: str, why: object) -> NotImplementedError:
    return NotImplementedError(
        f"{op}: on a CUDA device, this call with reduction {reduction!r} sorts its updates by "
        f"destination, and cuda.compute cannot be imported ({why}); write pip install "
        "'cuda-cccl[minimal-cu13]>=1.1', or jax.device_put(data, jax.devices('cpu')[0])"
    )


def other_program(op: str) -> ValueError:
    return ValueError(
        f"{op}: the description of the call does not match its program; another version of "
        "gatherum has exported it"
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


def needs_x64(op: str, operand: str, found: np.dtype[Any], converted: np.dtype[Any]) -> TypeError:
    return TypeError(
        f"{op}: `{operand}` must fit in {converted}, the widest that JAX has without "
        f"jax_enable_x64, got {found}"
    )


def not_one_item(op: str, operand: str, shape: Shape) -> ValueError:
    return ValueError(f"{op}: `{operand}` must be one item, of shape (), got shape {shape}")


def symbolic_shape(op: str, operand: str, shape: object) -> TypeError:
    return TypeError(f"{op}: `{operand}` must have sizes that are numbers, got {shape}")


def traced_size(op: str, operand: str) -> TypeError:
    return TypeError(
        f"{op}: `size` must be given where JAX traces a call, because the values of `{operand}` "
        "are not known there"
    )
