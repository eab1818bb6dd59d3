"""The errata of the published pages: printed values are rejected, corrected ones are accepted.

The numbers are those of docs/directml-errata.md.
"""

import re
from pathlib import Path

import numpy as np
import pytest

from gatherum.directml import (
    BufferTensorDesc,
    Device,
    FeatureLevel,
    GatherNd1OperatorDesc,
    GatherNdOperatorDesc,
    GatherOperatorDesc,
    ScatterElementsOperatorDesc,
    ScatterNdOperatorDesc,
    ScatterOperatorDesc,
    check,
)

from .page_examples import EXAMPLES, f32, u32

PAGE = Path(__file__).parents[2] / "docs" / "directml-errata.md"


def messages(desc, level="6_4"):
    return [violation.message for violation in check(desc, level)]


def example(name):
    (match,) = (example for example in EXAMPLES if example.name == name)
    return match


def test_01_gather_example_3_prints_two_index_dimensions_for_one():
    printed = GatherOperatorDesc(f32(3, 2), u32(1, 2), f32(3, 2), 1, 2)
    assert messages(printed) == [
        "GATHER: `InputTensor.Sizes` must start with 1 size of 1, as 1 of its dimensions must "
        "be cropped so that the indices fit, got {3,2}"
    ]
    with pytest.raises(ValueError, match=r"^GATHER: feature level 6_4 does not accept"):
        Device().compile(printed)
    # With both index dimensions, the formula would read rank 3 and other sizes.
    two = GatherOperatorDesc(f32(1, 3, 2), u32(1, 1, 2), None, 2, 2)
    assert two.infer_output_sizes() == (3, 1, 2)
    meant = example("gather_3_swap_columns")
    assert meant.desc.index_dimensions == 1
    np.testing.assert_array_equal(
        Device().compile(meant.desc)(*meant.arrays()), [[2, 1], [4, 3], [6, 5]]
    )


def test_02_gather_examples_4_and_5_name_the_axis_before_padding():
    titles = {"gather_4_nested_indices_columns": 1, "gather_5_nested_indices_rows": 0}
    for name, axis_in_title in titles.items():
        meant = example(name)
        assert meant.desc.axis == axis_in_title + 1
        data, indices, _ = meant.desc.tensors.values()
        titled = GatherOperatorDesc(data, indices, meant.desc.output_tensor, axis_in_title, 2)
        assert check(titled) != []
        result = Device().compile(meant.desc)(*meant.arrays())
        np.testing.assert_array_equal(result, meant.expected())


def test_03_gather_index_dimensions_range_includes_the_dimension_count():
    first = example("gather_1_1d_remapping").desc
    assert first.index_dimensions == first.indices_tensor.dimension_count == 1
    assert check(first) == []
    too_many = GatherOperatorDesc(f32(4), u32(5), f32(5), 0, 2)
    assert messages(too_many) == ["GATHER: `IndexDimensions` must be 0 to 1 (Axis + 1), got 2"]
    assert check(too_many)[0].rule == "DML_GATHER_OPERATOR_DESC, IndexDimensions; erratum 3"
    none = GatherOperatorDesc(f32(3, 2), u32(1, 1), None, 1, 0).with_inferred_output()
    assert none.output_tensor.sizes == (1, 3)
    result = Device().compile(none)([[1, 2], [3, 4], [5, 6]], [[1]])
    np.testing.assert_array_equal(result, [[2, 4, 6]])


def test_04_dimension_count_and_data_type_each_match():
    mixed = GatherOperatorDesc(f32(4), u32(5), BufferTensorDesc("FLOAT16", (1, 5)), 0, 1)
    assert messages(mixed) == [
        "GATHER: `OutputTensor.DataType` must equal InputTensor.DataType = FLOAT32, got FLOAT16",
        "GATHER: `OutputTensor.DimensionCount` must equal InputTensor.DimensionCount = 1, got 2",
    ]


def test_05_scatter_example_2_prints_the_sizes_of_its_input_wrongly():
    printed = ScatterOperatorDesc(f32(2, 3), u32(2, 3), f32(2, 3), f32(3, 3), 0)
    assert messages(printed) == ["SCATTER: `OutputTensor.Sizes` must be {2,3}, got {3,3}"]
    meant = example("scatter_2_2d")
    assert meant.desc.input_tensor.sizes == (3, 3)
    np.testing.assert_array_equal(
        Device().compile(meant.desc)(*meant.arrays()), [[20, 11, 0], [10, 0, 22], [0, 21, 12]]
    )


def test_06_scatter_example_1_relies_on_the_last_write():
    meant = example("scatter_1_1d")
    compiled = Device().compile(meant.desc)
    np.testing.assert_array_equal(compiled(*meant.arrays()), [8, 6, 2, 7, 4])
    report = compiled.index_report(meant.arrays()[1])
    assert (report.entries, report.invalid, report.duplicates) == (4, 0, 1)
    assert report.first_duplicate is not None


def test_07_scatter_begins_at_2_0_and_not_as_documented():
    tensor, indices = f32(1, 1, 1, 5), u32(1, 1, 1, 5)
    desc = ScatterOperatorDesc(tensor, indices, tensor, tensor, 3)
    (violation,) = check(desc, "1_0")
    assert violation.message == (
        "SCATTER: `Type` must be an operator of feature level 1_0, got DML_OPERATOR_SCATTER; "
        "first accepted at 2_0 (DML_SCATTER_OPERATOR_DESC claims 1_0, which its header "
        "contradicts)"
    )
    assert violation.rule == (
        "DirectML.h, DML_TARGET_VERSION 0x2000; DirectML feature level history; erratum 7"
    )
    assert violation.first_level is FeatureLevel.LEVEL_2_0
    assert check(desc, "2_0") == []


def test_08_scatter_undoes_gather_elements_not_gather():
    data = np.arange(12, dtype=np.float32).reshape(3, 4)
    indices = np.array([[2, 0, 1, 2], [0, 1, 2, 0], [1, 2, 0, 1]], np.uint32)
    scatter = ScatterOperatorDesc(f32(3, 4), u32(3, 4), f32(3, 4), f32(3, 4), 0)
    picked = np.take_along_axis(data, indices.astype(np.int64), 0)
    undone = Device().compile(scatter)(np.zeros_like(data), indices, picked)
    np.testing.assert_array_equal(undone, data)
    # GATHER's operands do not fit: its indices need not have the input's sizes outside of Axis.
    gathered = GatherOperatorDesc(f32(3, 4), u32(1, 2), f32(2, 4), 0, 1)
    assert check(gathered) == []
    inverse = ScatterOperatorDesc(f32(3, 4), u32(1, 2), f32(2, 4), f32(3, 4), 0)
    assert [violation.field for violation in check(inverse)] == [
        "IndicesTensor.Sizes",
        "UpdatesTensor.Sizes",
    ]


@pytest.mark.parametrize("operator", ["SCATTER_ND", "GATHER_ND", "GATHER_ND1"])
def test_09_trailing_sizes_start_after_the_indexed_dimensions(operator):
    data, indices = f32(3, 4, 5, 6, 7), u32(1, 1, 1, 2, 3)
    meant = f32(1, 1, 2, 6, 7)
    d, k = 5, 3
    by_the_formula = f32(1, 2, *data.sizes[d - k :])
    make = {
        "SCATTER_ND": lambda t: ScatterNdOperatorDesc(data, indices, t, data, 5, 3),
        "GATHER_ND": lambda t: GatherNdOperatorDesc(data, indices, t, 5, 3),
        "GATHER_ND1": lambda t: GatherNd1OperatorDesc(data, indices, t, 5, 3, 0),
    }[operator]
    assert check(make(meant)) == []
    (violation,) = check(make(by_the_formula))
    assert violation.expected.startswith("be {1,1,2,6,7}")
    assert violation.found == "{1,2,5,6,7}"
    if operator == "SCATTER_ND":
        assert violation.rule == "DML_SCATTER_ND_OPERATOR_DESC, UpdatesTensor; erratum 9"


def test_10_scatter_nd_example_has_float_indices_and_three_dimension_counts():
    printed = ScatterNdOperatorDesc(f32(8), f32(4, 1), f32(4), f32(8), 1, 2)
    assert messages(printed) == [
        "SCATTER_ND: `IndicesTensor.DataType` must be one of INT64, INT32, UINT64, UINT32 at "
        "feature level 6_4, got FLOAT32; no feature level accepts it",
        "SCATTER_ND: `IndicesTensor.DimensionCount` must equal InputTensor.DimensionCount = 1, "
        "got 2",
    ]
    meant = example("scatter_nd")
    sizes = [tensor.sizes for tensor in meant.desc.tensors.values()]
    assert sizes == [(1, 8), (4, 1), (1, 4), (1, 8)]
    np.testing.assert_array_equal(
        Device().compile(meant.desc)(*meant.arrays()), [[1, 11, 3, 10, 9, 6, 7, 12]]
    )


def test_11_scatter_nd_counts_include_the_dimension_count():
    assert check(ScatterNdOperatorDesc(f32(3, 4), u32(2, 2), f32(1, 2), f32(3, 4), 2, 2)) == []
    for r, q, field in ((3, 2, "InputDimensionCount"), (2, 3, "IndicesDimensionCount")):
        (violation,) = check(
            ScatterNdOperatorDesc(f32(3, 4), u32(2, 2), f32(1, 2), f32(3, 4), r, q)
        )
        assert violation.message == f"SCATTER_ND: `{field}` must be 1 to 2 (D), got 3"
        assert violation.rule == f"DML_SCATTER_ND_OPERATOR_DESC, {field}; erratum 11"


def test_12_scatter_nd_tuples_are_at_most_as_long_as_the_meaningful_input():
    # D is 3, so the page would allow tuples of 3, but only two dimensions are meaningful.
    printed = ScatterNdOperatorDesc(f32(1, 3, 4), u32(1, 2, 3), f32(1, 1, 2), f32(1, 3, 4), 2, 2)
    (violation,) = check(printed)
    assert violation.message == (
        "SCATTER_ND: `IndicesTensor.Sizes[2]` must be 1 to 2 (InputDimensionCount), as it is the "
        "number of coordinates in an index tuple, got 3"
    )
    assert violation.rule == "DML_SCATTER_ND_OPERATOR_DESC, IndicesTensor; erratum 12"


def test_13_scatter_nd_differs_from_scatter_elements_and_has_no_axis():
    assert ScatterElementsOperatorDesc is ScatterOperatorDesc
    assert ScatterNdOperatorDesc is not ScatterElementsOperatorDesc
    assert "Axis" not in ScatterNdOperatorDesc.field_names()


def test_14_the_translations_lack_a_table_and_rename_identifiers():
    # The Portuguese page has no table for 4_1, and the Spanish page writes "IndexsTensor".
    tensor = BufferTensorDesc("INT64", (1, 8))
    desc = ScatterNdOperatorDesc(tensor, u32(4, 1), BufferTensorDesc("INT64", (1, 4)), tensor, 1, 2)
    assert check(desc, "4_1") == []
    assert {str(violation.first_level) for violation in check(desc, "4_0")} == {"4_1"}
    assert list(ScatterNdOperatorDesc.field_names())[1] == "IndicesTensor"


def test_15_scatter_nd_output_sizes_and_data_type_match_each_its_own():
    other = BufferTensorDesc("FLOAT16", (4, 2))
    desc = ScatterNdOperatorDesc(f32(3, 4), u32(2, 1), f32(2, 4), other, 2, 2)
    assert messages(desc) == [
        "SCATTER_ND: `OutputTensor.DataType` must equal InputTensor.DataType = FLOAT32, "
        "got FLOAT16",
        "SCATTER_ND: `OutputTensor.Sizes` must be {3,4}, got {4,2}",
    ]
    assert [violation.rule for violation in check(desc)] == [
        "DML_SCATTER_ND_OPERATOR_DESC, Tensor constraints",
        "DML_SCATTER_ND_OPERATOR_DESC, OutputTensor",
    ]
    assert check(ScatterNdOperatorDesc(f32(3, 4), u32(2, 1), f32(2, 4), f32(3, 4), 2, 2)) == []


def test_16_scatter_nd_counts_leave_sizes_not_indices():
    # The page's own numbers {1,4,6} are sizes: they bound the components of a tuple.
    data, tuples, updates = f32(1, 1, 4, 6), u32(1, 1, 4, 2), f32(1, 1, 4, 6)
    desc = ScatterNdOperatorDesc(data, tuples, updates, data, 3, 3)
    assert check(desc) == []
    values = np.arange(1, 25, dtype=np.float32).reshape(1, 1, 4, 6)
    tuples = np.array([[0, 3], [1, 0], [0, 4], [0, 0]], np.uint32).reshape(1, 1, 4, 2)
    result = Device().compile(desc)(np.zeros_like(values), tuples, values)
    assert result[0, 0, 3].tolist() == [1, 2, 3, 4, 5, 6]
    assert result[0, 0, 0].tolist() == [19, 20, 21, 22, 23, 24]
    assert not result[0, 0, 1:3].any()
    for field, input_sizes, tuple_sizes, r, q in (
        ("InputDimensionCount", (1, 5, 4, 6), (1, 1, 4, 2), 2, 3),
        ("IndicesDimensionCount", (1, 1, 4, 6), (1, 5, 4, 2), 3, 2),
    ):
        wrong = ScatterNdOperatorDesc(f32(*input_sizes), u32(*tuple_sizes), updates, data, r, q)
        tensor = "InputTensor" if r == 2 else "IndicesTensor"
        assert any(
            message.startswith(
                f"SCATTER_ND: `{tensor}.Sizes` must start with 2 sizes of 1, as {field} is 2, got"
            )
            for message in messages(wrong)
        )


def test_the_page_of_errata_has_each_of_them_once():
    numbers = re.findall(r"^### (\d+)\. ", PAGE.read_text(), re.MULTILINE)
    assert numbers == [str(number) for number in range(1, 17)]
    assert "In sixteen cases" in PAGE.read_text()
