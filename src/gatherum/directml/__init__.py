"""DirectML's gather and scatter operators on any machine, as DirectML documents them.

An operator descriptor has one `BufferTensorDesc` for each tensor. `check` lists the reasons why a
feature level does not accept a descriptor. `Device` compiles a descriptor to the plan that the
functions of `gatherum` run, and dispatches the compiled operator on flat byte buffers.
"""

# This package imports only dask and the packages below it. Start with descs.py.

from gatherum._exports.help_signatures import plain_help

from .check import check
from .descs import (
    GatherElementsOperatorDesc,
    GatherNd1OperatorDesc,
    GatherNdOperatorDesc,
    GatherOperatorDesc,
    OperatorDesc,
    ScatterElementsOperatorDesc,
    ScatterNdOperatorDesc,
    ScatterOperatorDesc,
)
from .device import CompiledOperator, Device
from .dxdispatch import from_json, to_json
from .report import CheckReport, check_file, check_text
from .sizes import calc_buffer_tensor_size, helper_buffer_tensor_size
from .tensors import BufferTensorDesc
from .types import FeatureLevel, TensorDataType, TensorFlags
from .violations import Violation

__all__ = [
    "BufferTensorDesc",
    "CheckReport",
    "CompiledOperator",
    "Device",
    "FeatureLevel",
    "GatherElementsOperatorDesc",
    "GatherNd1OperatorDesc",
    "GatherNdOperatorDesc",
    "GatherOperatorDesc",
    "OperatorDesc",
    "ScatterElementsOperatorDesc",
    "ScatterNdOperatorDesc",
    "ScatterOperatorDesc",
    "TensorDataType",
    "TensorFlags",
    "Violation",
    "calc_buffer_tensor_size",
    "check",
    "check_file",
    "check_text",
    "from_json",
    "helper_buffer_tensor_size",
    "to_json",
]

plain_help(globals())


def __dir__() -> list[str]:
    return list(__all__)
