"""Run the six operators on arrays in the memory of an NVIDIA GPU, bit-for-bit as on the CPU.

Accepts PyTorch tensors, CuPy arrays, and any array that implements `__cuda_array_interface__` or
`__dlpack__`. `gatherum.gather(array, ...)` and the other five functions also dispatch here. Only
this package imports CuPy or CUDA libraries, and only when a call needs them.
"""

# This package imports only _functions and the packages below it. Start with device_calls.py.

from gatherum._exports.help_signatures import plain_help
from gatherum._frameworks import registry
from gatherum._frameworks.framework_functions import publish
from gatherum._plans.plans import add_device

from .adapter import FUNCTIONS, CudaAdapter
from .array_protocols import DeviceArray
from .driver import is_available
from .explain import describe, plan

__all__ = [
    "DeviceArray",
    "gather",
    "gather_elements",
    "gather_nd",
    "is_available",
    "plan",
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

for _framework in ("cupy", registry.CUDA.name):
    registry.register(CudaAdapter(_framework))
add_device("cuda", describe)
publish(globals(), FUNCTIONS.named)
plain_help(globals())


def __dir__() -> list[str]:
    return list(__all__)
