"""Sums, means, maxima and minima of decimal numbers, against the oracle."""

from decimal import Decimal

import numpy as np
import pytest

import gatherum
from gatherum.groups.decimal_numbers import decimals_in
from gatherum.reference import groups as reference

FUNCTIONS = ["sum", "mean", "max", "min", "count"]
LARGEST = 10**38 - 1


def _text(results):
    return {name: [str(number) for number in array.flat] for name, array in results.items()}


CASES = {
    "cents": ([Decimal("0.10"), Decimal("19.99"), Decimal("-5.01")], [0, 1, 1]),
    "digits that differ": ([Decimal("1.5"), Decimal("2E+3"), Decimal("-0.125"), 7], [0, 1, 0, 1]),
    "an integer first": ([2, Decimal("0.5")], [0, 0]),
    "halves": ([Decimal(x) for x in ("0.1", "0.2", "-0.1", "-0.2")], [0, 0, 1, 1]),
    "largest": ([Decimal(x) for x in (LARGEST, LARGEST, LARGEST - 1, -LARGEST)], [0, 0, 0, 1]),
    "more than 64 bits in all": ([Decimal(2**62)] * 4, [0] * 4),
    "two dimensions": ([[Decimal("1.5"), Decimal(2)], [Decimal(3), Decimal("4.25")]], [0, 0]),
    "a group for each": ([[Decimal("1.5"), Decimal(2)]], [[0, 0]]),
}


@pytest.mark.parametrize("name", CASES)
def test_cases(name):
    values, groups = CASES[name]
    for operand in (values, np.array(values, object)):
        results = gatherum.groups.reduce(operand, groups, func=FUNCTIONS)
        assert _text(results) == _text(reference.reduce(values, groups, func=FUNCTIONS))


def test_empty_groups_and_modes():
    values, groups = [Decimal("1.5"), Decimal("2.5"), Decimal(9)], [0, -2, 7]
    for options in ({"mode": "drop"}, {"mode": "clip"}, {"mode": "wrap", "negative": True}):
        options |= {"size": 4, "func": ["sum", "mean"], "fill_value": Decimal("-1")}
        results = gatherum.groups.reduce(values, groups, **options)
        assert _text(results) == _text(reference.reduce(values, groups, **options))
    assert [str(x) for x in gatherum.groups.reduce(values[:1], [1])] == ["0.0", "1.5"]


@pytest.mark.frameworks
def test_columns():
    arrow, polars = pytest.importorskip("pyarrow"), pytest.importorskip("polars")
    pandas = pytest.importorskip("pandas")
    numbers = [Decimal(x) for x in ("9.99", "0.10", "-0.20", "12345678901234567890.55")]
    column = arrow.array(numbers, arrow.decimal128(38, 2))
    columns = [
        column, column[:0], column[1:3], arrow.chunked_array([column[2:], column[:1]]),
        arrow.array(numbers[:3], arrow.decimal256(50, 3)), polars.Series(numbers[:3]),
        pandas.Series(numbers), pandas.Series(column, dtype=pandas.ArrowDtype(column.type)),
    ]  # fmt: skip
    for values in columns:
        exact = np.asarray(values).tolist()
        assert decimals_in("op", values) is not None
        totals = gatherum.groups.reduce(values, [0] * len(exact), 1)
        assert totals.tolist() == [sum(exact)]
    with pytest.raises(TypeError, match="must be without nulls, got a pyarrow"):
        gatherum.groups.reduce(arrow.array([Decimal(1), None]), [0, 0])
