"""The named cases, through every entry point that takes arrays."""

import numpy as np
import pytest

import gatherum
from cases import CASES, cases_of
from gatherum import reference
from strategies import OPERATORS, same_bits


def operands(case):
    return [case.data, case.indices, *([] if case.updates is None else [case.updates])]


def test_every_operator_has_cases():
    assert {case.op for case in CASES} == set(OPERATORS)
    assert min(len(cases_of(op)) for op in OPERATORS) >= 10
    names = [str(case) for case in CASES]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_functions(case):
    assert same_bits(case.run(gatherum), case.expected)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_oracle(case):
    assert same_bits(case.run(reference), case.expected)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_out(case):
    out = np.empty_like(case.expected, order="F")
    assert case.run(gatherum, out=out) is out
    assert same_bits(out, case.expected)


@pytest.mark.parametrize("case", [case for case in CASES if case.updates is not None], ids=str)
def test_in_place(case):
    data = case.data.copy()
    result = getattr(gatherum, case.op)(
        data, case.indices, case.updates, **case.attributes, out=data
    )
    assert result is data
    assert same_bits(data, case.expected)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_plan_runs_twice(case):
    attributes = dict(case.attributes)
    fill_value = attributes.pop("fill_value", 0)
    plan = gatherum.plan(case.op, *operands(case), **attributes)
    assert plan.shape == case.expected.shape
    for _ in range(2):
        result = plan.run(*operands(case), fill_value=fill_value)
        assert same_bits(result, case.expected)


SIGNED = [case for case in CASES if case.indices.dtype == np.int64 and case.indices.size]


@pytest.mark.parametrize("case", SIGNED, ids=str)
def test_indices_as_lists(case):
    arguments = [case.data, case.indices.tolist(), *operands(case)[2:]]
    assert same_bits(getattr(gatherum, case.op)(*arguments, **case.attributes), case.expected)
