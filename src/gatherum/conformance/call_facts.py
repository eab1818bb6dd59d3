"""What targets ask of a call: whether updates meet, and whether their order shows."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np

from gatherum._model.call import Attributes, FoldRule
from gatherum._model.operators import OPERATORS

from .case import Case, RuleCall, answer

INDEX = "cases.json"


def is_portable(call: RuleCall) -> bool:
    """Whether the call has no mode, sign rule or start that only this package has."""
    usual, free = Attributes(call.operator).keywords, {"axis", "batch_dims", "reduction"}
    how = call.attributes
    return all(how.get(name, usual[name]) == usual[name] for name in usual.keys() - free)


def moved_shape(call: RuleCall) -> tuple[int, ...]:
    """Return the shape of a gather's result, or of updates that do not broadcast."""
    row = OPERATORS[call.operator]
    data, indices = call.operands["data"].shape, call.operands["indices"].shape
    given = call.attributes.get(row.attribute, 0)
    return row.moved(data, indices, row.resolve(data, indices, given))


def reduction(call: RuleCall) -> str:
    """Return how updates combine."""
    found: str = call.attributes.get("reduction", "none")
    return found


def meet(call: RuleCall) -> bool:
    """Whether two updates go to the same place, or it is not known because an index is wrong."""
    data, updates = call.operands["data"], call.operands.get("updates")
    if updates is None:
        return False
    ones = np.ones(updates.shape, np.int64)
    operands = {**call.operands, "data": np.zeros(data.shape, np.int64), "updates": ones}
    counts, _ = answer(
        RuleCall(call.operator, {**call.attributes, **FoldRule("add")._asdict()}, operands)
    )
    return counts is None or bool((counts > 1).any())


def order_shows(call: RuleCall) -> bool:
    """Whether another order of the updates, the opposite one, has another result."""
    backward = dict(call.operands)
    for name in ("indices", "updates"):
        backward[name] = np.flip(backward[name], 0)
    result, _ = answer(call)
    other, _ = answer(call._replace(operands=backward))
    return result is None or other is None or result.tobytes() != other.tobytes()


def is_finite(call: RuleCall) -> bool:
    """Whether JSON can write every number."""
    with np.errstate(all="ignore"):
        return all(bool(np.isfinite(array).all()) for array in call.operands.values())


def has_size(call: RuleCall) -> bool:
    """Whether no dimension is empty and no operand a scalar."""
    return all(array.ndim and array.size for array in call.operands.values())


def case_record(case: Case, **more: Any) -> dict[str, Any]:
    """Return what an index of cases says of one."""
    shown = {"name": case.name, "operator": case.operator, "attributes": dict(case.attributes)}
    shown |= {"rule": case.rule, "source": case.source}
    return shown | ({"error": case.error} if case.error else {}) | more


def write_json(folder: str, name: str, value: object) -> None:
    """Write a file of JSON: a case, or the index of cases."""
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        json.dump(value, file, indent=1)
        file.write("\n")
