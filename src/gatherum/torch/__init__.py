"""Run the six operators on PyTorch tensors with gradients, through ``torch.ops.gatherum``.

Only this package imports torch. `gatherum.gather(tensor, ...)` and the other five functions also
dispatch here.
"""

from . import private

private.check_version()  # before any use of names that older versions lack

# ruff: noqa: E402  # imports behind the check
from gatherum._frameworks import registry
from gatherum._frameworks.framework_functions import publish
from gatherum.torch.functions.api import (
    gather,
    gather_elements,
    gather_nd,
    scatter_elements,
    scatter_nd,
    scatter_slices,
)
from gatherum.torch.functions.tensor_calls import generated_function
from gatherum.torch.tracing.onnx_export import onnx_translations

from . import dlpack  # they register kernels
from .adapter import TorchAdapter
from .autograd import (  # noqa: F401  # two of them register kernels
    autograd_kernels,
    batching,
    recorded_functions,
)
from .functions import cumulative, elementary, groups  # noqa: F401  # they register kernels
from .overrides import is_reproducible, reproducible, set_reproducible
from .torch_scatter import (
    gather_csr,
    scatter,
    scatter_add,
    scatter_max,
    scatter_mean,
    scatter_min,
    scatter_mul,
    scatter_sum,
    segment_csr,
    softmax,  # noqa: F401  # they register kernels
)

__all__ = [
    "gather",
    "gather_csr",
    "gather_elements",
    "gather_nd",
    "is_reproducible",
    "onnx_translations",
    "reproducible",
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
    "set_reproducible",
]

registry.register(TorchAdapter())
publish(globals(), generated_function)
dlpack.open_exchange(recorded_functions.record, recorded_functions.record_total)
