"""Cases in the form of ONNX's backend tests: a model and the values of its inputs and outputs.

ONNX does not define which of several updates wins, the order of floating-point additions, the
intermediate rounding of float16, or NaN in a maximum; such calls are omitted. ScatterND calls with
invalid indices are also omitted, because the ONNX text does not define such indices as an error.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from gatherum._model import errors
from gatherum._model.arrays import NumpyArray
from gatherum._model.dtype_rows import ROWS, has_arithmetic
from gatherum._model.dtypes import accumulator_dtype
from gatherum._model.operators import OPERATORS, Operator
from gatherum._model.reductions import known_to_onnx

from .call_facts import (
    INDEX,
    case_record,
    depends_on_order,
    is_portable,
    moved_shape,
    reduction,
    share_destination,
    write_json,
)
from .case import Case, RuleCall, run_oracle

NEWEST = 18  # the opset of the newest of the five operators
_LATEST = 28  # the newest opset to assume if the package onnx is not installed
_FIRST = {"Gather": 1, "GatherElements": 11, "GatherND": 11, "ScatterElements": 11, "ScatterND": 11}
_BATCHES = 12  # the first opset whose GatherND has batch_dims
_FROM_END = 11  # the first opset with negative indices
_REFUSES = ("ScatterElements",)  # the scatters for which ONNX defines an invalid index as an error
# ONNX supports all of these dtypes.
_DATA = frozenset(row.name for row in ROWS.values() if row.is_of_numpy and has_arithmetic(row.name))


def check_opset(opset: int, rows: Sequence[Operator]) -> None:
    """Raise ValueError unless the opset exists and contains one of the operators."""
    newest = _newest_opset()
    if not 1 <= opset <= newest:
        raise errors.out_of_range("vectors", "opset", opset, 1, newest + 1)
    first_opsets = {row.name: _FIRST[row.onnx] for row in rows if row.onnx}
    if first_opsets and opset < min(first_opsets.values()):
        names = ", ".join(first_opsets)
        raise ValueError(
            f"vectors: `opset` must be at least {min(first_opsets.values())} for {names}, "
            f"got {opset}"
        )


def _newest_opset() -> int:
    try:
        from onnx import defs
    except ImportError:
        return _LATEST
    return int(defs.onnx_opset_version())


def adapt(call: RuleCall, *, opset: int | None = None, **_: object) -> RuleCall | None:
    """Return the call if ONNX supports it and defines its result."""
    version = opset or NEWEST
    if not is_portable(call) or not _is_known(call, version):
        return None
    if "updates" not in call.operands:
        return call
    fold, meets = reduction(call), share_destination(call)
    if fold not in known_to_onnx(version) or call.operands["updates"].shape != moved_shape(call):
        return None
    if run_oracle(call)[1] == "IndexError":
        return call if OPERATORS[call.operator].onnx in _REFUSES else None
    settled = fold != "none" and _is_settled(call, call.operands["data"].dtype)
    return call if settled or not meets else None


def _is_known(call: RuleCall, opset: int) -> bool:
    """Whether the opset supports the operator with these dtypes, indices and batch dimensions."""
    operator, indices = OPERATORS[call.operator], call.operands["indices"]
    if operator.onnx is None or opset < _FIRST[operator.onnx]:
        return False
    if call.attributes.get("batch_dims", 0) and (operator.onnx != "GatherND" or opset < _BATCHES):
        return False
    if indices.dtype != np.int64 and (indices.dtype != np.int32 or operator.takes_tuples):
        return False
    if call.operands["data"].dtype.name not in _DATA or (opset < _FROM_END and (indices < 0).any()):
        return False
    return not operator.takes_tuples or 0 not in indices.shape[-1:]


def _is_settled(call: RuleCall, dtype: np.dtype[Any]) -> bool:
    """Whether ONNX defines the result of updates with the same destination."""
    if dtype.kind not in "fc":
        return True
    if np.isnan(call.operands["updates"]).any() or depends_on_order(call):
        return False
    return accumulator_dtype(dtype, reduction(call)) == dtype


def write(cases: Iterator[Case], folder: str, opset: int | None) -> int:
    """Write a folder for each case in the layout of ONNX's test runner, and an index.

    The runner loads every folder as a test with outputs. Therefore, the model and the inputs of a
    call that must raise an error are written to the parent folder.
    """
    import onnx

    version, rows = opset or NEWEST, []
    for case in cases:
        files = _files(case)
        for path in (files["model"], *files["inputs"]):
            os.makedirs(os.path.dirname(os.path.join(folder, path)), exist_ok=True)
        onnx.save(_model(case, version), os.path.join(folder, files["model"]))
        for path, (name, array) in zip(files["inputs"], case.operands.items(), strict=True):
            _save(array, name, os.path.join(folder, path))
        if case.expected is not None:
            _save(case.expected, "output", os.path.join(folder, files["output"]))
        rows.append(case_record(case, opset=version, **files))
    write_json(folder, INDEX, rows)
    return len(rows)


def _files(case: Case) -> dict[str, Any]:
    """Return the paths of a case's files, relative to the parent folder."""
    ordinals = range(len(case.operands))
    if case.error:
        name = f"refused_{case.name}"
        inputs = [f"{name}_input_{i}.pb" for i in ordinals]
        return {"model": f"{name}.onnx", "inputs": inputs}
    folder = f"test_{case.name}"
    inputs = [f"{folder}/test_data_set_0/input_{i}.pb" for i in ordinals]
    output = f"{folder}/test_data_set_0/output_0.pb"
    return {"model": f"{folder}/model.onnx", "inputs": inputs, "output": output}


def _model(case: Case, opset: int) -> Any:
    from onnx import helper

    operator = OPERATORS[case.operator]
    element_types = {
        key: helper.np_dtype_to_tensor_dtype(array.dtype) for key, array in case.operands.items()
    }
    inputs = [
        helper.make_tensor_value_info(key, element_type, case.operands[key].shape)
        for key, element_type in element_types.items()
    ]
    call = RuleCall(case.operator, case.attributes, case.operands)
    shape = case.operands["data"].shape if operator.scatters else moved_shape(call)
    output = helper.make_tensor_value_info("output", element_types["data"], shape)
    attributes = {key: value for key, value in case.attributes.items() if key in _ATTRIBUTES}
    node = helper.make_node(str(operator.onnx), list(case.operands), ["output"], **attributes)
    graph = helper.make_graph([node], case.name, inputs, [output])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    model.ir_version = min(model.ir_version, 8)  # supported by every runtime
    return model


_ATTRIBUTES = ("axis", "batch_dims", "reduction")


def _save(array: NumpyArray, name: str, path: str) -> None:
    from onnx import numpy_helper

    with open(path, "wb") as file:
        file.write(numpy_helper.from_array(array, name).SerializeToString())
