"""The core's exp and log on JAX arrays, with derivatives.

They are bit-for-bit equal to `_derivatives.elementary` on NumPy arrays; XLA's own functions differ
from processor to processor. A compiled function calls the core's handlers, and can be exported. So
does an eager call on a CUDA device.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from gatherum._derivatives import elementary
from gatherum._model.arrays import AnyArray

from .operands import is_on_cpu
from .primitives import TARGET


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _run_in_core(name: str, x: AnyArray) -> AnyArray:
    if is_on_cpu(x):
        function = elementary.exp if name == "exp" else elementary.log
        return jnp.asarray(function(np.asarray(x)))
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    call = jax.ffi.ffi_call(TARGET, shape, vmap_method="broadcast_all")
    return call(x, function=name)


@_run_in_core.defjvp  # type: ignore[untyped-decorator]
def _run_in_core_jvp(name: str, primals: Any, tangents: Any) -> tuple[AnyArray, AnyArray]:
    (x,), (change,) = primals, tangents
    result = _run_in_core(name, x)
    return result, change * result if name == "exp" else change / x


def exp(x: AnyArray) -> AnyArray:
    """Return e to the power of each item, bit-for-bit equal to the result for a NumPy array."""
    return _run_in_core("exp", x)


def log(x: AnyArray) -> AnyArray:
    """Return the logarithm of each item, bit-for-bit equal to the result for a NumPy array."""
    return _run_in_core("log", x)
