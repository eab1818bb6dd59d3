"""The six operators on JAX's arrays: eager, inside ``jax.jit``, with derivatives and batches.

This package alone imports JAX. `gatherum.gather(array, ...)` and the other five come here, too.
"""

from .. import frameworks
from ..help_signatures import plain_help
from . import batching, gradients, operands, sharding  # noqa: F401  # three register rules
from .api import (
    gather,
    gather_elements,
    gather_nd,
    room,
    scatter_elements,
    scatter_nd,
    scatter_slices,
)
from .primitives import TARGET

__all__ = [
    "TARGET",
    "gather",
    "gather_elements",
    "gather_nd",
    "scatter_elements",
    "scatter_nd",
    "scatter_slices",
]

frameworks.register("jax", room, operands.look)
plain_help(globals())


def __dir__() -> list[str]:
    return list(__all__)
