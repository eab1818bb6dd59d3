"""ONNX Runtime: a model of one node, operands and result bound in place."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from gatherum._model.operators import OPERATORS

from ..cases import Case
from . import Methods

ort: Any = import_module("onnxruntime")
onnx: Any = import_module("onnx")

OPSET = 18
NAMES = ("data", "indices", "updates")


def methods(case: Case) -> Methods:
    """Return ONNX Runtime's methods for a case."""
    calls: dict[str, Any] = {str(OPERATORS[case.op].onnx): _bound_call(case)}
    flat = case.op == "scatter_nd" and case.data.ndim == 1
    if flat:  # the same call without a race on duplicates
        calls["ScatterElements"] = _bound_call(
            Case("scatter_elements", case.data, case.indices[:, 0], case.updates, 0, case.reduction)
        )
    return calls


def _bound_call(case: Case) -> Any:
    session = ort.InferenceSession(
        _model(case).SerializeToString(), providers=["CPUExecutionProvider"]
    )
    binding = session.io_binding()
    for name, array in zip(NAMES, case.arrays, strict=False):
        binding.bind_ortvalue_input(name, ort.OrtValue.ortvalue_from_numpy(array))

    def run() -> Any:
        binding.bind_output("result", "cpu")  # a fresh result, from the runtime's arena
        session.run_with_iobinding(binding)
        result = binding.get_outputs()[0]
        binding.clear_binding_outputs()
        return result

    return run


def _model(case: Case) -> Any:
    helper = onnx.helper
    tensor_types = [helper.np_dtype_to_tensor_dtype(array.dtype) for array in case.arrays]
    inputs = [
        helper.make_tensor_value_info(name, tensor_type, array.shape)
        for name, tensor_type, array in zip(NAMES, tensor_types, case.arrays, strict=False)
    ]
    output = helper.make_tensor_value_info("result", tensor_types[0], case.result_shape)
    node = helper.make_node(
        OPERATORS[case.op].onnx, [value.name for value in inputs], ["result"], **case.arguments
    )
    graph = helper.make_graph([node], case.op, inputs, [output])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)
