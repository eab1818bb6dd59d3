"""Write cases as models for DirectML's DxDispatch: initial values, and one operator.

The model prints the output and compares it with the expected output. The command ``compare`` is an
addition of gatherum; DxDispatch does not have it.

DirectML has no reductions, and does not define out-of-bounds indices or which of several updates
wins. Such calls are omitted, as are calls that the feature level does not support.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from gatherum import directml
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
from .case import Case, RuleCall, run_oracle

_LEAST_RANK = 4  # supported by every feature level
_BINDINGS = {"data": "InputTensor", "indices": "IndicesTensor", "updates": "UpdatesTensor"}


def adapt(call: RuleCall, *, feature_level: str | None = None, **_: object) -> RuleCall | None:
    """Return the call if DirectML supports it at this feature level."""
    if not is_portable(call) or reduction(call) != "none" or not OPERATORS[call.operator].directml:
        return None
    if not has_size(call) or not is_finite(call):
        return None
    updates = call.operands.get("updates")
    if updates is not None and (updates.shape != moved_shape(call) or share_destination(call)):
        return None
    indices = call.operands["indices"]
    if indices.dtype.kind == "i" and (indices >= 0).all():  # for older levels
        call = call._replace(operands={**call.operands, "indices": indices.astype(np.uint32)})
    desc = _desc(call)
    if desc is None or run_oracle(call)[1]:
        return None
    level = directml.FeatureLevel.of(feature_level or max(directml.FeatureLevel))
    return None if directml.check(desc, level) else call


def _desc(call: RuleCall) -> directml.OperatorDesc | None:
    """Return the operator desc; None if DirectML does not support the dtype or shape."""
    data, indices = call.operands["data"], call.operands["indices"]
    ranks = [array.ndim for array in call.operands.values()]
    rank = max(_LEAST_RANK, *ranks, len(moved_shape(call)))
    try:
        tensors = {
            name: directml.BufferTensorDesc(
                array.dtype.name, (1,) * (rank - array.ndim) + array.shape
            )
            for name, array in call.operands.items()
        }
    except (TypeError, ValueError):
        return None
    axis = call.attributes.get("axis", 0) % data.ndim + rank - data.ndim
    counts = data.ndim, indices.ndim
    desc_class, more = {
        "gather": (directml.GatherOperatorDesc, (axis, indices.ndim)),
        "gather_elements": (directml.GatherElementsOperatorDesc, (axis,)),
        "gather_nd": (directml.GatherNdOperatorDesc, counts),
        "scatter_elements": (directml.ScatterOperatorDesc, (axis,)),
        "scatter_nd": (directml.ScatterNdOperatorDesc, counts),
    }[call.operator]
    if batch := call.attributes.get("batch_dims", 0):
        if call.operator != "gather_nd":
            return None
        desc_class, more = directml.GatherNd1OperatorDesc, (*counts, batch)
    make_desc: Any = desc_class
    try:
        desc: directml.OperatorDesc = make_desc(
            *tensors.values(), None, *more
        ).with_inferred_output()
    except ValueError:
        return None
    return desc


def write(cases: Iterator[Case], folder: str, _: int | None) -> int:
    """Write the model ``NAME.json`` for each case, and an index with the expected values."""
    rows = []
    for case in cases:
        assert case.expected is not None
        write_json(folder, f"{case.name}.json", _model(case))
        rows.append(case_record(case, expected=case.expected.ravel().tolist()))
    write_json(folder, INDEX, rows)
    return len(rows)


def _model(case: Case) -> dict[str, Any]:
    desc = _desc(RuleCall(case.operator, case.attributes, case.operands))
    assert desc is not None and case.expected is not None
    resources = {name: _values(array) for name, array in case.operands.items()}
    size = case.expected.size
    resources["output"] = _values(case.expected) | {
        "initialValues": {"valueCount": size, "value": 0}
    }
    resources["expected"] = _values(case.expected)
    bindings = {_BINDINGS[name]: name for name in case.operands} | {"OutputTensor": "output"}
    return {
        "resources": resources,
        "dispatchables": {case.name: directml.to_json(desc)},
        "commands": [
            {"type": "dispatch", "dispatchable": case.name, "bindings": bindings},
            {"type": "print", "resource": "output"},
            {"type": "compare", "resource": "output", "expected": "expected"},
        ],
    }


def _values(array: NumpyArray) -> dict[str, Any]:
    data_type = directml.BufferTensorDesc(array.dtype.name, (1,)).data_type.name
    return {"initialValuesDataType": data_type, "initialValues": array.ravel().tolist()}
