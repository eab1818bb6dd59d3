"""Cases in the form of WebNN's tests in web-platform-tests.

WebNN clamps out-of-bounds indices. It has no reductions and no empty dimensions, requires equal
sizes in the dimensions other than the axis, and does not define which of several updates wins.
Calls that do not follow these rules are omitted.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from gatherum._model.arrays import NumpyArray
from gatherum._model.operators import OPERATORS

from .call_facts import (
    INDEX,
    case_record,
    has_size,
    is_finite,
    is_portable,
    moved_shape,
    reduction,
    share_destination,
    write_json,
)
from .case import Case, RuleCall

_NAMES = {
    "gather": "gather", "gather_elements": "gatherElements", "gather_nd": "gatherND",
    "scatter_elements": "scatterElements", "scatter_nd": "scatterND",
}  # fmt: skip
_DATA = ("float32", "float16", "int32", "uint32", "int64", "uint64", "int8", "uint8")
_INDICES = ("int32", "uint32", "int64")


def adapt(call: RuleCall, **_: object) -> RuleCall | None:
    """Return the call with WebNN's rule for indices, if WebNN supports it."""
    if call.operator not in _NAMES or not is_portable(call) or call.attributes.get("batch_dims"):
        return None
    data, indices = call.operands["data"], call.operands["indices"]
    if data.dtype.name not in _DATA or indices.dtype.name not in _INDICES:
        return None
    scalar = call.operator == "gather" and indices.ndim == 0
    if not (scalar or has_size(call)) or not is_finite(call) or reduction(call) != "none":
        return None
    if OPERATORS[call.operator].addressing.shares_back and not _is_equal_off_the_axis(call):
        return None
    clamped = call._replace(attributes={**call.attributes, "mode": "clip"})
    updates = call.operands.get("updates")
    if updates is not None and (updates.shape != moved_shape(call) or share_destination(clamped)):
        return None
    return clamped


def _is_equal_off_the_axis(call: RuleCall) -> bool:
    """Whether the indices of an elements operator have the data's sizes, except on the axis."""
    axis = call.attributes.get("axis", 0)
    data, indices = (list(call.operands[name].shape) for name in ("data", "indices"))
    data[axis] = indices[axis]
    return data == indices


def write(cases: Iterator[Case], folder: str, _: int | None) -> int:
    """Write a file of tests for each operator, and an index."""
    tests: dict[str, list[dict[str, Any]]] = defaultdict(list)
    rows = []
    for case in cases:
        tests[case.operator].append(_test(case))
        rows.append(case_record(case))
    for operator, records in tests.items():
        write_json(folder, f"{operator}.json", {"tests": records})
    write_json(folder, INDEX, rows)
    return len(rows)


def _test(case: Case) -> dict[str, Any]:
    name, operator = _NAMES[case.operator], OPERATORS[case.operator]
    names = {key: key if key != "data" else "input" for key in case.operands}
    arguments: list[dict[str, Any]] = [{names[key]: key} for key in case.operands]
    if not operator.takes_tuples:
        axis = case.attributes.get("axis", 0) % case.operands["data"].ndim
        arguments.append({"options": {"axis": axis}})
    assert case.expected is not None
    return {
        "name": f"{name} {case.rule}: {case.name}",
        "graph": {
            "inputs": {key: _tensor(array) for key, array in case.operands.items()},
            "operators": [{"name": name, "arguments": arguments, "outputs": "output"}],
            "expectedOutputs": {"output": _tensor(case.expected)},
        },
    }


def _tensor(array: NumpyArray) -> dict[str, Any]:
    descriptor = {"shape": list(array.shape), "dataType": array.dtype.name}
    return {"data": array.ravel().tolist(), "descriptor": descriptor}
