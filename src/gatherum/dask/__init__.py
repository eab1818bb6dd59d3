"""The six operators on Dask's arrays: lazily, in any chunks, with the bits of NumPy's calls.

This package alone imports Dask. `gatherum.gather(array, ...)` and the other five come here, too.
"""

from .. import frameworks
from ..help_signatures import plain_help
from .api import (
    gather,
    gather_elements,
    gather_nd,
    room,
    scatter_elements,
    scatter_nd,
    scatter_slices,
    tell,
)
from .files import from_file
from .operands import look
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

frameworks.register("dask", room, look, tell)
plain_help(globals())


def __dir__() -> list[str]:
    return list(__all__)
