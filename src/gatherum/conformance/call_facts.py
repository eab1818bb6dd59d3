"""Properties of calls that targets query, such as duplicate destinations and order dependence."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np

from gatherum._model.call import Attributes, FoldRule
from gatherum._model.operators import OPERATORS

from .case import Case, RuleCall, run_oracle

INDEX = "cases.json"


def is_portable(call: RuleCall) -> bool:
    """Whether the call uses the defaults of all attributes that only this package has."""
    usual, ignored = Attributes(call.operator).keywords, {"axis", "batch_dims", "reduction"}
    attributes = call.attributes
    return all(attributes.get(name, usual[name]) == usual[name] for name in usual.keys() - ignored)


def moved_shape(call: RuleCall) -> tuple[int, ...]:
    """Return the shape of a gather's result, or of updates that do not broadcast."""
    operator = OPERATORS[call.operator]
    data, indices = call.operands["data"].shape, call.operands["indices"].shape
    axis = call.attributes.get(operator.attribute, 0)
    return operator.moved_shape(data, indices, operator.resolve(data, indices, axis))


def reduction(call: RuleCall) -> str:
    """Return the reduction of a call, "none" by default."""
    name: str = call.attributes.get("reduction", "none")
    return name


def share_destination(call: RuleCall) -> bool:
    """Whether two updates have the same destination. An invalid index also yields True."""
    data, updates = call.operands["data"], call.operands.get("updates")
    if updates is None:
        return False
    ones = np.ones(updates.shape, np.int64)
    operands = {**call.operands, "data": np.zeros(data.shape, np.int64), "updates": ones}
    counts, _ = run_oracle(
        RuleCall(call.operator, {**call.attributes, **FoldRule("add")._asdict()}, operands)
    )
    return counts is None or bool((counts > 1).any())


def depends_on_order(call: RuleCall) -> bool:
    """Whether reversing the updates changes the result."""
    backward = dict(call.operands)
    for name in ("indices", "updates"):
        backward[name] = np.flip(backward[name], 0)
    result, _ = run_oracle(call)
    reversed_result, _ = run_oracle(call._replace(operands=backward))
    return (
        result is None or reversed_result is None or result.tobytes() != reversed_result.tobytes()
    )


def is_finite(call: RuleCall) -> bool:
    """Whether all operands are finite, so that JSON can represent them."""
    with np.errstate(all="ignore"):
        return all(bool(np.isfinite(array).all()) for array in call.operands.values())


def has_size(call: RuleCall) -> bool:
    """Whether all operands have at least one dimension and one element."""
    return all(array.ndim and array.size for array in call.operands.values())


def case_record(case: Case, **more: Any) -> dict[str, Any]:
    """Return the entry of a case in an index of cases."""
    record = {"name": case.name, "operator": case.operator, "attributes": dict(case.attributes)}
    record |= {"rule": case.rule, "source": case.source}
    return record | ({"error": case.error} if case.error else {}) | more


def write_json(folder: str, name: str, value: object) -> None:
    """Write a JSON file: a case, or the index of cases."""
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        json.dump(value, file, indent=1)
        file.write("\n")
