"""Walks operator x level x data type x index type x dimension count.

The expectation is written here a second time, in another form than the package's table, so an error
would have to be made twice to go unnoticed.
"""

from itertools import product

import pytest

from gatherum.directml import (
    BufferTensorDesc,
    FeatureLevel,
    GatherElementsOperatorDesc,
    GatherNd1OperatorDesc,
    GatherNdOperatorDesc,
    GatherOperatorDesc,
    ScatterNdOperatorDesc,
    ScatterOperatorDesc,
    TensorDataType,
    check,
)
from samples import every

pytestmark = pytest.mark.slow

LEVELS = [
    "1_0",
    "2_0",
    "2_1",
    "3_0",
    "3_1",
    "4_0",
    "4_1",
    "5_0",
    "5_1",
    "5_2",
    "6_0",
    "6_1",
    "6_2",
    "6_3",
    "6_4",
]
BEGINS = {
    "GATHER": "1_0",
    "GATHER_ELEMENTS": "2_1",
    "GATHER_ND": "2_1",
    "GATHER_ND1": "3_0",
    "SCATTER": "2_0",
    "SCATTER_ND": "2_1",
}
TYPE_BEGINS = {
    "FLOAT32": "1_0",
    "FLOAT16": "1_0",
    **dict.fromkeys(("INT32", "INT16", "INT8", "UINT32", "UINT16", "UINT8"), "2_1"),
    **dict.fromkeys(("FLOAT64", "INT64", "UINT64"), "4_1"),
}
TYPE_SAMPLE = ("FLOAT32", "INT32", "UINT64")
INDEX_TYPE_BEGINS = {"UINT32": "1_0", "INT64": "3_0", "INT32": "3_0", "UINT64": "3_0"}
DIMENSION_COUNT_BEGINS = {4: "1_0", **dict.fromkeys((1, 2, 3, 5, 6, 7, 8), "3_0")}


def accepted(operator, level, data_type, index_type, d):
    begins = (
        BEGINS[operator],
        TYPE_BEGINS.get(data_type),
        INDEX_TYPE_BEGINS.get(index_type),
        DIMENSION_COUNT_BEGINS.get(d),
    )
    return all(b is not None and LEVELS.index(b) <= LEVELS.index(level) for b in begins)


def valid_desc(operator, data_type, index_type, d):
    """Return a desc with valid sizes for any number of dimensions; without dimensions for 0."""

    def tensor(*trailing, element_type=data_type):
        return BufferTensorDesc(element_type, ((1,) * d + trailing)[len(trailing) :] if d else ())

    four, two = tensor(4), tensor(2)
    indices = tensor(2, element_type=index_type)
    tuples = tensor(*((2, 1) if d > 1 else (1,)), element_type=index_type)
    picked = tensor(2) if d > 1 else tensor(1)
    axis, q = max(d - 1, 0), 2 if d > 1 else 1
    return {
        "GATHER": lambda: GatherOperatorDesc(four, indices, two, axis, 1),
        "GATHER_ELEMENTS": lambda: GatherElementsOperatorDesc(four, indices, two, axis),
        "GATHER_ND": lambda: GatherNdOperatorDesc(four, tuples, picked, 1, q),
        "GATHER_ND1": lambda: GatherNd1OperatorDesc(four, tuples, picked, 1, q, 0),
        "SCATTER": lambda: ScatterOperatorDesc(four, indices, two, four, axis),
        "SCATTER_ND": lambda: ScatterNdOperatorDesc(four, tuples, picked, four, 1, q),
    }[operator]()


def test_every_level_is_walked():
    assert [str(level) for level in FeatureLevel] == LEVELS


@pytest.mark.parametrize("operator", every(2, BEGINS))
def test_check_accepts_exactly_the_table(operator):
    wrong = []
    acceptances = 0
    types = TensorDataType.__members__
    levels = [(name, FeatureLevel(name)) for name in LEVELS]
    # Tensors of few data types suffice to reject an index type that no level accepts.
    for data_type, index_type in product(types, types):
        if index_type not in INDEX_TYPE_BEGINS and data_type not in TYPE_SAMPLE:
            continue
        for d in range(10):
            desc = valid_desc(operator, data_type, index_type, d)
            for name, level in levels:
                accepts = check(desc, level) == []
                acceptances += accepts
                if accepts != accepted(operator, name, data_type, index_type, d):
                    wrong.append((name, data_type, index_type, d, accepts))
    assert wrong == []
    later = {"GATHER_ND1": 0, "GATHER_ELEMENTS": 8, "GATHER_ND": 8, "SCATTER_ND": 8}
    before_3_0 = later.get(operator, {"GATHER": 2 + 2 + 8, "SCATTER": 2 + 8}.get(operator))
    assert acceptances == before_3_0 + 3 * 8 * 4 * 8 + 9 * 11 * 4 * 8


@pytest.mark.parametrize("operator", BEGINS)
def test_levels_only_add(operator):
    for data_type in TYPE_BEGINS:
        for d in (3, 4):
            desc = valid_desc(operator, data_type, "UINT32", d)
            answers = [check(desc, level) == [] for level in FeatureLevel]
            assert answers == sorted(answers)


@pytest.mark.parametrize("operator", BEGINS)
@pytest.mark.parametrize("data_type", TYPE_BEGINS)
def test_a_rejection_names_the_first_level_that_accepts(operator, data_type):
    desc = valid_desc(operator, data_type, "UINT32", 4)
    first = max(BEGINS[operator], TYPE_BEGINS[data_type])
    rejecting = [level for level in FeatureLevel if check(desc, level)]
    assert [str(level) for level in rejecting] == LEVELS[: LEVELS.index(first)]
    for level in rejecting:
        named = {str(violation.first_level) for violation in check(desc, level)}
        assert max(named) == first
