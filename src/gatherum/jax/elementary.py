"""exp and log of the core on arrays of JAX, with derivatives.

They have the bits of NumPy's calls (see `gatherum.elementary`), where XLA's own differ from
processor to processor. In a compiled function they are callbacks of Python: the core has no handler
for them that XLA could call by itself. So a function with them runs where it was compiled, and
cannot be exported.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from .. import elementary
from .primitives import Array, Tracer


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _computed(name: str, x: Array) -> Array:
    if not isinstance(x, Tracer):
        return jnp.asarray(_on_host(name, x))
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    return jax.pure_callback(partial(_on_host, name), shape, x, vmap_method="expand_dims")


@_computed.defjvp  # type: ignore[untyped-decorator]
def _computed_jvp(name: str, primals: Any, tangents: Any) -> tuple[Array, Array]:
    (x,), (change,) = primals, tangents
    found = _computed(name, x)
    return found, change * found if name == "exp" else change / x


def _on_host(name: str, x: Any) -> NDArray[Any]:
    return elementary.exp(np.asarray(x)) if name == "exp" else elementary.log(np.asarray(x))


def exp(x: Array) -> Array:
    """Return e to the power of each item, of the bits that NumPy's calls have."""
    return _computed("exp", x)


def log(x: Array) -> Array:
    """Return the natural logarithm of each item, of the bits that NumPy's calls have."""
    return _computed("log", x)
