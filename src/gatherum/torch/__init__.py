"""The six operators on PyTorch's tensors, with gradients; ``torch.ops.gatherum`` behind them.

This package alone imports torch. `gatherum.gather(tensor, ...)` and the other five come here, too.
"""

from . import versions

versions.check()  # before anything uses what it looks for

# ruff: noqa: E402  # imports behind the check
from .. import arrays
from . import batching, gradients, memory  # noqa: F401  # they register their kernels
from .api import (
    gather,
    gather_elements,
    gather_nd,
    room,
    scatter_elements,
    scatter_nd,
    scatter_slices,
)

__all__ = [
    "gather",
    "gather_elements",
    "gather_nd",
    "scatter_elements",
    "scatter_nd",
    "scatter_slices",
]

arrays.register("torch", room)
memory.open_exchange()
