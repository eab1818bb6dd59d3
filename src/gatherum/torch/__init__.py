"""The six operators on PyTorch's tensors, with gradients; ``torch.ops.gatherum`` behind them.

This package alone imports torch. `gatherum.gather(tensor, ...)` and the other five come here, too.
"""

from . import versions

versions.check()  # before anything uses what it looks for

# ruff: noqa: E402  # imports behind the check
from .. import arrays
from . import batching, gradients, memory  # noqa: F401  # the first two register their kernels
from .api import (
    gather,
    gather_elements,
    gather_nd,
    room,
    scatter_elements,
    scatter_nd,
    scatter_slices,
)
from .segments import (
    gather_csr,
    scatter,
    scatter_add,
    scatter_max,
    scatter_mean,
    scatter_min,
    scatter_mul,
    scatter_sum,
    segment_csr,
)
from .translations import onnx_translations

__all__ = [
    "gather",
    "gather_csr",
    "gather_elements",
    "gather_nd",
    "onnx_translations",
    "scatter",
    "scatter_add",
    "scatter_elements",
    "scatter_max",
    "scatter_mean",
    "scatter_min",
    "scatter_mul",
    "scatter_nd",
    "scatter_slices",
    "scatter_sum",
    "segment_csr",
]

arrays.register("torch", room, memory.look, on_cuda=memory.is_on_cuda)
memory.open_exchange(gradients.record)
