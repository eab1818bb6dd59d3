"""Print a plan's loop nest as pseudo-code, with its extents and steps."""

from __future__ import annotations

import itertools

from gatherum import _core
from gatherum._model.call import Call
from gatherum._model.dtypes import value_of
from gatherum._model.modes import FILLING, MOVING
from gatherum._model.nests import Nest
from gatherum._plans.plans import Plan

_NAMES = "ijklmnpqrstu"
_CHECKED = "xyz"


def loop_lines(plan: Plan) -> list[str]:
    """Format the loops that a plan runs; offsets and steps are in bytes."""
    call, nest = plan.call, plan.nest
    scatters = call.updates is not None
    lines = []
    if scatters and call.out != call.data:  # otherwise the output may be the data array
        lines.append("out = a copy of data")
    if nest.block == 0:
        return [*lines, "# nothing moves: a dimension is empty"]
    names = _names(nest)
    depth = 0
    for i, loop in enumerate(nest.loops):
        if loop.extent != 1:
            lines.append(f"{'    ' * depth}for {names[i]} in range({loop.extent}):")
            depth += 1
        if i == nest.line:
            for c, component in enumerate(nest.components):
                offset = _offset(names, [loop.index for loop in nest.loops], nest, component.offset)
                load = f"check(indices[{offset}], {component.size})"
                lines.append(f"{'    ' * depth}{_name(c)} = {load}")
    lines.append("    " * depth + _move(call, nest, names))
    return lines


def _names(nest: Nest) -> list[str]:
    """Name the loops; loops of extent 1 have no name."""
    names = itertools.chain(_NAMES, (f"i{n}" for n in itertools.count()))
    return [next(names) if loop.extent != 1 else "" for loop in nest.loops]


def index_check(call: Call) -> str:
    """Describe how `check` handles an index."""
    low = "-n" if call.negative and call.indices.dtype.kind == "i" else "0"
    wraps = ", counted from the end below 0" if low == "-n" else ""
    if call.mode in MOVING:
        otherwise = MOVING[call.mode].result
    elif call.mode in FILLING:
        otherwise = "fill_value is stored" if call.updates is None else "the update is dropped"
    else:
        otherwise = "an IndexError"
    return f"check(x, n): x in [{low}, n){wraps}; else {otherwise}"


def _name(component: int) -> str:
    return _CHECKED[component] if component < len(_CHECKED) else f"x{component}"


def _offset(names: list[str], steps: list[int], nest: Nest, start: int = 0) -> str:
    """Format an offset as a sum of loop variables times their steps."""
    terms = [
        f"{step}*{name}"
        for name, step, loop in zip(names, steps, nest.loops, strict=True)
        if step and loop.extent != 1
    ]
    terms += [str(start)] if start or not terms else []
    return " + ".join(terms).replace("+ -", "- ")


def _address(names: list[str], nest: Nest) -> str:
    base_offset = _offset(names, [loop.data for loop in nest.loops], nest)
    picked = [f"{component.stride}*{_name(c)}" for c, component in enumerate(nest.components)]
    terms = ([] if base_offset == "0" and picked else [base_offset]) + picked
    return " + ".join(terms).replace("+ -", "- ")


def _move(call: Call, nest: Nest, names: list[str]) -> str:
    """Format the statement inside all loops."""
    moved_address = _offset(names, [loop.moved for loop in nest.loops], nest)
    address = _address(names, nest)
    size = f"{nest.block} bytes"
    if call.updates is None:
        return f"out[{moved_address}] = data[{address}]  # {size}"
    if call.reduction == "none":
        return f"out[{address}] = updates[{moved_address}]  # {size}, the last one stays"
    folded = f"{call.reduction}(out[{address}], updates[{moved_address}])"
    return f"out[{address}] = {folded}  # {_fold(call, size)}"


def _fold(call: Call, size: str) -> str:
    remarks = [size]
    if not call.include_self:
        remarks.append("the first update takes the old value's place")
    value, reduction = value_of(call.data.dtype), _core.Reduction[call.reduction]
    total = _core.sum_type(value, reduction)
    if call.data.dtype.kind not in "iu" and total != value:
        remarks.append(f"folded in {total.name} and rounded once")
    if _core.is_exact(reduction):
        divided = ", divided by the count," if _core.divides(reduction) else ""
        remarks.append(f"summed without rounding{divided} and rounded once")
    elif _core.divides(reduction):
        remarks.append("summed, and divided by the count at the end")
    accumulates = call.attributes.fold.needs_accumulator(call.data.dtype)
    remarks.extend(["in accumulators"] if accumulates and len(remarks) == 1 else [])
    return ", ".join(remarks)
