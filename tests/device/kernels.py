"""Finds the kernels that the steps of `first` launch by planning their calls. Nothing runs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

import hypothesis.strategies as st
import numpy as np
from hypothesis import HealthCheck, given, settings

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

import first_calls

from cases import CASES
from gatherum import cuda
from gatherum._command import verify_cases
from gatherum._model.dtypes import is_reducible
from gatherum._model.reductions import FOLDS
from gatherum.cuda import explain
from gatherum.cuda.device import Kernel
from strategies import DATA_DTYPES, OPERATORS, calls

Planned: TypeAlias = tuple[str, tuple[Any, ...], dict[str, Any]]
# Attributes that do not affect launches, or that plans do not accept.
NO_PART_OF_A_PLAN = {"fill_value", "out"}
REFUSED = IndexError, NotImplementedError, TypeError, ValueError
DRAWN = settings(
    max_examples=600,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)


def needed() -> list[Kernel]:
    """Return the kernels without repetitions."""
    kernels = {Kernel.of("pattern"): None}  # which depends on a fill value
    for call in planned_calls():
        kernels |= dict.fromkeys(launched(*call))
    return list(kernels)


def launched(op: str, operands: tuple[Any, ...], attributes: dict[str, Any]) -> list[Kernel]:
    """Return the kernels of a call on device arrays, or none if the call raises."""
    options = {name: value for name, value in attributes.items() if name not in NO_PART_OF_A_PLAN}
    try:
        return explain.list_launches(cuda.plan(op, *map(on_device, operands), **options)).kernels
    except REFUSED:
        return []


def on_device(operand: Any) -> Any:
    """Return an array in C order and in the device's byte order."""
    if not isinstance(operand, np.ndarray):
        return operand
    return operand.astype(operand.dtype.newbyteorder("="), order="C", copy=False)


def planned_calls() -> Iterator[Planned]:
    """Yield the calls of all steps."""
    yield from first_calls.operands().values()
    for case in CASES:
        operands = (case.data, case.indices, case.updates)[: 2 if case.updates is None else 3]
        yield case.op, operands, dict(case.attributes)
    for op, name, reduction in verify_cases.case_rows():
        if (dtype := verify_cases.dtype_named(name)) is not None:
            for some in (verify_cases.small_calls, verify_cases.large_calls):
                yield from (
                    (c.op, c.operands, c.attributes) for c in some(op, dtype, reduction)
                )  # fmt: skip
    yield from drawn_calls()
    yield from large_calls()


def drawn_calls() -> list[Planned]:
    """Return calls that the property tests might draw."""
    planned: list[Planned] = []

    @DRAWN
    @given(st.data(), st.sampled_from(OPERATORS))
    def draw(data: Any, op: str) -> None:
        call = data.draw(calls([op], data_dtypes=DATA_DTYPES))
        planned.append((call.op, call.args, call.kwargs))

    draw()
    return planned


def large_calls() -> Iterator[Planned]:
    """Yield calls of the benchmark, and of tests with many updates, by their shapes."""
    n, index = 1 << 20, ((1 << 20,), "i8")
    rows = ((n, 128), "f4")
    for mode in ("raise", "drop", "clip"):
        options = {"mode": mode}
        yield "gather", (rows, index), options
        yield "gather", (((1 << 31, 2), "i1"), index), options
        yield "gather_elements", (((n, 64), "f4"), ((n, 64), "i8")), {**options, "axis": 1}
        yield "scatter_nd", (rows, ((n, 1), "i8"), rows), options
        for dtype in ("f2", "f4", "f8", "c8", "i4", "u8"):
            operands = ((n,), dtype), index, ((n,), dtype)
            yield "scatter_slices", operands, options
            for reduction in FOLDS:
                if is_reducible(np.dtype(dtype), reduction):
                    yield "scatter_slices", operands, {**options, "reduction": reduction}
                    yield "scatter_slices", operands, {
                        **options, "reduction": reduction, "include_self": False,
                    }  # fmt: skip
        add = {**options, "reduction": "add"}
        square = (1 << 13, 1 << 13)
        lines = (square, "f4"), (square, "i8"), (square, "f4")
        yield "scatter_elements", lines, {**options, "axis": 1}
        yield "scatter_slices", (((256,), "i8"), index, ((n,), "i8")), add
        yield "scatter_slices", (((n, 64), "f4"), index, ((n, 64), "f4")), add
        yield "scatter_slices", (((1 << 31, 2), "i1"), index, ((n, 2), "i1")), add
