"""Cases as ONNX's own backend tests: a model and the values of its inputs and outputs.

ONNX leaves open which of several updates stays, in which order floats are added and how halves are
rounded meanwhile, and what NaN does in a maximum: such calls are left out. ScatterND with invalid
indices is left out, too: its text expects valid ones, but does not say that others are an error.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from gatherum.dtypes import accumulator_dtype
from gatherum.operators import OPERATORS
from gatherum.reductions import known_to_onnx

from .call_facts import (
    INDEX,
    case_record,
    is_portable,
    meet,
    moved_shape,
    order_shows,
    reduction,
    write_json,
)
from .case import Array, Case, RuleCall, answer

NEWEST = 18  # the opset of the newest of the five operators
_FIRST = {"Gather": 1, "GatherElements": 11, "GatherND": 11, "ScatterElements": 11, "ScatterND": 11}
_BATCHES = 12  # the first opset whose GatherND has batch_dims
_FROM_END = 11  # the first one with negative indices
_REFUSES = ("ScatterElements",)  # the scatters whose text says that an index outside is an error


def adapt(call: RuleCall, *, opset: int | None = None, **_: object) -> RuleCall | None:
    """Return the call if ONNX has it and says what it gives."""
    version = opset or NEWEST
    if not is_portable(call) or not _is_known(call, version):
        return None
    if "updates" not in call.operands:
        return call
    fold, meets = reduction(call), meet(call)
    if fold not in known_to_onnx(version) or call.operands["updates"].shape != moved_shape(call):
        return None
    if answer(call)[1] == "IndexError":
        return call if OPERATORS[call.operator].onnx in _REFUSES else None
    settled = fold != "none" and _is_settled(call, call.operands["data"].dtype)
    return call if settled or not meets else None


def _is_known(call: RuleCall, opset: int) -> bool:
    """Whether the opset has the operator with such indices."""
    row, indices = OPERATORS[call.operator], call.operands["indices"]
    if row.onnx is None or opset < _FIRST[row.onnx]:
        return False
    if call.attributes.get("batch_dims", 0) and (row.onnx != "GatherND" or opset < _BATCHES):
        return False
    if indices.dtype not in (np.int32, np.int64) or (opset < _FROM_END and (indices < 0).any()):
        return False
    return not row.tuples or 0 not in indices.shape[-1:]


def _is_settled(call: RuleCall, dtype: np.dtype[Any]) -> bool:
    """Whether ONNX settles the result of updates that meet."""
    if dtype.kind not in "fc":
        return True
    if np.isnan(call.operands["updates"]).any() or order_shows(call):
        return False
    return accumulator_dtype(dtype, reduction(call)) == dtype


def write(cases: Iterator[Case], folder: str, opset: int | None) -> int:
    """Write a folder for each case as ONNX's test runner loads it, and an index.

    It loads what is in ``cases``. A call that must be refused has no outputs, and lies in
    ``errors``.
    """
    import onnx

    version, rows = opset or NEWEST, []
    for case in cases:
        here = os.path.join(folder, "errors" if case.error else "cases", f"test_{case.name}")
        data_set = os.path.join(here, "test_data_set_0")
        os.makedirs(data_set, exist_ok=True)
        onnx.save(_model(case, version), os.path.join(here, "model.onnx"))
        for number, (name, array) in enumerate(case.operands.items()):
            _save(array, name, os.path.join(data_set, f"input_{number}.pb"))
        if case.expected is not None:
            _save(case.expected, "output", os.path.join(data_set, "output_0.pb"))
        rows.append(case_record(case, opset=version))
    write_json(folder, INDEX, rows)
    return len(rows)


def _model(case: Case, opset: int) -> Any:
    from onnx import helper

    name = str(OPERATORS[case.operator].onnx)
    values = {
        key: helper.np_dtype_to_tensor_dtype(array.dtype) for key, array in case.operands.items()
    }
    inputs = [
        helper.make_tensor_value_info(key, kind, case.operands[key].shape)
        for key, kind in values.items()
    ]
    shape = None if case.expected is None else case.expected.shape
    output = helper.make_tensor_value_info("output", values["data"], shape)
    how = {key: value for key, value in case.attributes.items() if key in _ATTRIBUTES}
    node = helper.make_node(name, list(case.operands), ["output"], **how)
    graph = helper.make_graph([node], case.name, inputs, [output])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    made.ir_version = min(made.ir_version, 8)  # which every runtime reads
    return made


_ATTRIBUTES = ("axis", "batch_dims", "reduction")


def _save(array: Array, name: str, path: str) -> None:
    from onnx import numpy_helper

    with open(path, "wb") as file:
        file.write(numpy_helper.from_array(array, name).SerializeToString())
