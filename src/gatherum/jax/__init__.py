"""The six operators on JAX arrays: eager, inside ``jax.jit``, with derivatives and ``jax.vmap``.

Only this package imports JAX. `gatherum.gather` and the other operators call it for JAX arrays.
"""

# This package imports only cuda, groups and the packages below them. Start with primitives.py.

from gatherum._exports.help_signatures import plain_help
from gatherum._frameworks import registry
from gatherum._frameworks.framework_functions import publish

from . import batching, cumulative, gradients, sharding  # noqa: F401  # importing them registers rules
from .adapter import FUNCTIONS, JaxAdapter
from .primitives import RECORDABLE_TARGET, TARGET

__all__ = [
    "RECORDABLE_TARGET",
    "TARGET",
    "gather",
    "gather_elements",
    "gather_nd",
    "scatter_elements",
    "scatter_nd",
    "scatter_slices",
]

gather = FUNCTIONS.gather
gather_elements = FUNCTIONS.gather_elements
gather_nd = FUNCTIONS.gather_nd
scatter_slices = FUNCTIONS.scatter_slices
scatter_elements = FUNCTIONS.scatter_elements
scatter_nd = FUNCTIONS.scatter_nd

registry.register(JaxAdapter())
publish(globals(), FUNCTIONS.named)
plain_help(globals())


def __dir__() -> list[str]:
    return list(__all__)
