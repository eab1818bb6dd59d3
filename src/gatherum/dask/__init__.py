"""The six operators on Dask's arrays: lazily, in any chunks, with the bits of NumPy's calls.

This package alone imports Dask. `gatherum.gather(array, ...)` and the other five come here, too.
"""

from .. import arrays
from ..surface import plain_help
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
from .operands import look

__all__ = [
    "gather",
    "gather_elements",
    "gather_nd",
    "scatter_elements",
    "scatter_nd",
    "scatter_slices",
]

arrays.register("dask", room, look, tell)
plain_help(globals())


def __dir__() -> list[str]:
    return list(__all__)
