"""Run the six operators lazily on Dask arrays, with the same bits as on NumPy arrays.

Only this package imports Dask. `gatherum.gather` and the other operators call it for Dask arrays.
"""

# This package imports only files, jax, torch and the packages below them. Start with
# lazy_calls.py.

from gatherum._exports.help_signatures import plain_help
from gatherum._frameworks import registry
from gatherum._frameworks.framework_functions import publish

from .adapter import FUNCTIONS, DaskAdapter
from .files import from_file
from .stores import scatter_elements_into, scatter_nd_into, scatter_slices_into

__all__ = [
    "from_file",
    "gather",
    "gather_elements",
    "gather_nd",
    "scatter_elements",
    "scatter_elements_into",
    "scatter_nd",
    "scatter_nd_into",
    "scatter_slices",
    "scatter_slices_into",
]

gather = FUNCTIONS.gather
gather_elements = FUNCTIONS.gather_elements
gather_nd = FUNCTIONS.gather_nd
scatter_slices = FUNCTIONS.scatter_slices
scatter_elements = FUNCTIONS.scatter_elements
scatter_nd = FUNCTIONS.scatter_nd

registry.register(DaskAdapter())
publish(globals(), FUNCTIONS.named)
plain_help(globals())


def __dir__() -> list[str]:
    return list(__all__)
