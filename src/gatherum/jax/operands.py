"""Convert the operands of a call to arrays that JAX accepts; `data` determines the dtype."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from gatherum._arguments import conversion
from gatherum._frameworks import registry
from gatherum._model import errors
from gatherum._model.arrays import AnyArray
from gatherum._model.call import OPERAND_NAMES, Attributes
from gatherum._model.dtypes import is_index

from . import dtypes
from . import errors as jax_errors
from .primitives import Tracer, plan_of, spec_of


def normalize(
    attributes: Attributes, data: object, indices: object, updates: object, fill_value: object
) -> tuple[Attributes, tuple[AnyArray, ...]]:
    """Return the attributes with the fill value, and the operands, checked as for NumPy arrays."""
    op = attributes.op
    named = {"data": data, "indices": indices, "updates": updates}
    registry.check_one_framework(op, named | {"fill_value": fill_value})
    operands, specs = conversion.as_operands(attributes, (data, indices, updates), is_jax, spec_of)
    plan_of(attributes, *specs)
    item = b""
    if attributes.fills and is_jax(fill_value):
        _check_fill(op, operands[0].dtype, fill_value)
    elif attributes.fills:
        item = conversion.fill_item(op, operands[0].dtype, fill_value).tobytes()
    if any(item):
        attributes = attributes._replace(fill=item)
    return attributes, tuple(
        as_jax_dtype(op, *operand) for operand in zip(OPERAND_NAMES, operands, strict=False)
    )


def is_jax(value: Any) -> bool:
    """Return True for a JAX array or a tracer."""
    return isinstance(value, jax.Array)


def is_on_cpu(value: Any) -> bool:
    """Return False for a JAX array on another device, and for a tracer."""
    if isinstance(value, Tracer):
        return False
    return not is_jax(value) or all(device.platform == "cpu" for device in value.devices())


def is_on_cuda(value: Any) -> bool:
    """Return True for a JAX array on CUDA devices, and False for a tracer."""
    if not is_jax(value) or isinstance(value, Tracer):
        return False
    return all(
        device.platform == "gpu" and "rocm" not in device.client.platform_version.lower()
        for device in value.devices()
    )


def _check_fill(op: str, dtype: Any, fill_value: Any) -> None:
    """Raise an error unless an array is one item of the data's dtype, or a traced Python number."""
    if fill_value.shape != ():
        raise jax_errors.not_one_item(op, "fill_value", fill_value.shape)
    fill_dtype = jnp.result_type(dtype, fill_value) if fill_value.weak_type else fill_value.dtype
    if fill_dtype != dtype:
        raise errors.other_dtype(op, "fill_value", dtype, fill_value.dtype)


def as_jax_dtype(op: str, operand: str, array: Any) -> AnyArray:
    """Convert an array to a dtype that JAX has.

    Without x64, 64-bit integers must fit in 32 bits, and other 64-bit arrays must be empty.
    """
    if is_jax(array):
        return array
    native: NDArray[Any] = array.astype(array.dtype.newbyteorder("="), copy=False)
    jax_dtype = dtypes.canonical(native.dtype)
    if jax_dtype == native.dtype:
        return native
    if is_index(jax_dtype) and native.size:
        limits = np.iinfo(jax_dtype)
        fits = limits.min <= int(native.min()) and int(native.max()) <= limits.max
    else:
        fits = native.size == 0
    if not fits:
        raise jax_errors.needs_x64(op, operand, native.dtype, jax_dtype)
    return native.astype(jax_dtype)
