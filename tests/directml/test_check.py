"""Every kind of violation, compared with its whole message."""

import numpy as np
import pytest

from gatherum.directml import (
    BufferTensorDesc,
    Device,
    GatherElementsOperatorDesc,
    GatherNd1OperatorDesc,
    GatherNdOperatorDesc,
    GatherOperatorDesc,
    OperatorDesc,
    ScatterNdOperatorDesc,
    ScatterOperatorDesc,
    TensorFlags,
    check,
)

from .page_examples import f32, u32


def messages(desc, level="6_4"):
    return [violation.message for violation in check(desc, level)]


def gathered(data, output=None):
    """Return a GATHER of any input; everything else is valid for sizes (4,)."""
    return GatherOperatorDesc(data, u32(4), output or f32(4), 0, 1)


@pytest.mark.parametrize(
    ("tensor", "expected"),
    [
        (
            BufferTensorDesc("FLOAT32", (4,), total_tensor_size_in_bytes=15),
            "`InputTensor.TotalTensorSizeInBytes` must be at least 16, the size that Sizes, "
            "Strides and DataType imply, got 15",
        ),
        (
            BufferTensorDesc("FLOAT32", (4,), (3,), total_tensor_size_in_bytes=39),
            "`InputTensor.TotalTensorSizeInBytes` must be at least 40, the size that Sizes, "
            "Strides and DataType imply, got 39",
        ),
        (
            BufferTensorDesc("FLOAT32", (4,), total_tensor_size_in_bytes=2**64),
            "`InputTensor.TotalTensorSizeInBytes` must be 0 to 18446744073709551615, "
            "got 18446744073709551616",
        ),
        (
            BufferTensorDesc("FLOAT32", (4,), guaranteed_base_offset_alignment=2),
            "`InputTensor.GuaranteedBaseOffsetAlignment` must be 0 or a power of two of at "
            "least 4, the element size, got 2",
        ),
        (
            BufferTensorDesc("FLOAT32", (4,), guaranteed_base_offset_alignment=24),
            "`InputTensor.GuaranteedBaseOffsetAlignment` must be 0 or a power of two of at "
            "least 4, the element size, got 24",
        ),
        (
            BufferTensorDesc("FLOAT32", (4,), guaranteed_base_offset_alignment=-4),
            "`InputTensor.GuaranteedBaseOffsetAlignment` must be 0 or a power of two of at "
            "least 4, the element size, got -4",
        ),
        (
            BufferTensorDesc("FLOAT32", (4,), (1, 1)),
            "`InputTensor.Strides` must have DimensionCount = 1 entries, got {1,1}",
        ),
        (
            BufferTensorDesc("FLOAT32", (4,), (-1,)),
            "`InputTensor.Strides` must be strides of 0 to 4294967295, got {-1}",
        ),
        (
            BufferTensorDesc("FLOAT32", (4,), (2**32,)),
            "`InputTensor.Strides` must be strides of 0 to 4294967295, got {4294967296}",
        ),
    ],
)
def test_of_one_tensor(tensor, expected):
    assert messages(gathered(tensor)) == [f"GATHER: {expected}"]


def test_sizes_of_at_least_one():
    desc = GatherOperatorDesc(f32(0, 3), u32(1, 2), f32(2, 3), 0, 1)
    assert messages(desc) == [
        "GATHER: `InputTensor.Sizes` must be sizes of 1 to 4294967295, got {0,3}"
    ]


def test_at_most_2_to_the_32_minus_1_elements():
    assert check(GatherOperatorDesc(f32(65535, 65537), u32(1, 1), f32(1, 65537), 0, 1)) == []
    desc = GatherOperatorDesc(f32(65536, 65536), u32(1, 1), f32(1, 65536), 0, 1)
    assert messages(desc) == [
        "GATHER: `InputTensor.Sizes` must have at most 4294967295 elements, "
        "got {65536,65536} with 4294967296"
    ]


@pytest.mark.parametrize("alignment", [0, 4, 8, 4096])
def test_alignments_that_will_do(alignment):
    tensor = BufferTensorDesc("FLOAT32", (4,), guaranteed_base_offset_alignment=alignment)
    assert check(gathered(tensor)) == []


def test_a_total_size_may_be_no_multiple_of_four():
    tensor = BufferTensorDesc("FLOAT32", (4,), total_tensor_size_in_bytes=17)
    assert check(gathered(tensor)) == []


@pytest.mark.parametrize("strides", [(0,), (1,), (7,)])
def test_inputs_may_broadcast_and_be_padded(strides):
    assert check(gathered(BufferTensorDesc("FLOAT32", (4,), strides))) == []


@pytest.mark.parametrize(
    ("sizes", "strides", "accepted"),
    [
        ((2, 3), (3, 1), True),
        ((2, 3), (1, 2), True),  # transposed
        ((2, 3), (4, 1), True),  # padded
        ((2, 3), (3, 2), True),  # interleaved: 0 2 4, 3 5 7
        ((1, 3), (0, 1), True),  # a dimension of size 1 has no step
        ((2, 3), (0, 1), False),
        ((2, 3), (2, 1), False),  # 0 1 2, 2 3 4
        ((2, 3), (4, 2), False),  # 0 2 4, 4 6 8
        ((3, 3), (3, 2), True),  # 0 2 4, 3 5 7, 6 8 10
        ((3, 4), (3, 2), False),  # 0 2 4 6, ..., 6 8 10 12
    ],
)
def test_outputs_do_not_overlap_themselves(sizes, strides, accepted):
    offsets = np.add.outer(np.arange(sizes[0]) * strides[0], np.arange(sizes[1]) * strides[1])
    assert (len(np.unique(offsets)) == offsets.size) == accepted
    output = BufferTensorDesc("FLOAT32", sizes, strides)
    desc = GatherOperatorDesc(f32(9, sizes[1]), u32(1, sizes[0]), output, 0, 1)
    expected = (
        []
        if accepted
        else [
            f"GATHER: `OutputTensor.Strides` must give every element of sizes "
            f"{{{sizes[0]},{sizes[1]}}} a place of its own, got {{{strides[0]},{strides[1]}}}"
        ]
    )
    assert messages(desc) == expected
    if accepted:
        values = np.arange(9 * sizes[1], dtype=np.float32)
        out = np.full(16, -1, np.float32)
        Device().compile(desc).dispatch(
            input_tensor=values,
            indices_tensor=np.arange(sizes[0], dtype=np.uint32),
            output_tensor=out,
        )
        wanted = np.full(16, -1, np.float32)
        wanted[offsets.ravel()] = values[: offsets.size]
        assert out.tolist() == wanted.tolist()


def test_only_inputs_are_owned_by_dml():
    owned = BufferTensorDesc("FLOAT32", (4,), flags=TensorFlags.OWNED_BY_DML)
    assert check(gathered(owned)) == []
    assert messages(gathered(f32(4), owned)) == [
        "GATHER: `OutputTensor.Flags` must be DML_TENSOR_FLAG_NONE, as only inputs can be "
        "OWNED_BY_DML, got DML_TENSOR_FLAG_OWNED_BY_DML"
    ]


@pytest.mark.parametrize(
    ("desc", "expected"),
    [
        (
            GatherOperatorDesc(f32(3, 4), u32(1, 2), f32(2, 4), 2, 1),
            "GATHER: `Axis` must be 0 to 1 (D - 1), got 2",
        ),
        (
            GatherOperatorDesc(f32(3, 4), u32(1, 2), f32(2, 4), -1, 1),
            "GATHER: `Axis` must be 0 to 1 (D - 1), got -1",
        ),
        (
            GatherOperatorDesc(f32(3, 4), u32(3, 2), f32(2, 4), 0, 1),
            "GATHER: `IndicesTensor.Sizes` must start with 1 size of 1, as IndexDimensions is 1, "
            "got {3,2}",
        ),
        (
            GatherOperatorDesc(f32(3, 4), u32(1, 2), f32(3, 4), 0, 1),
            "GATHER: `OutputTensor.Sizes` must be {2,4}, got {3,4}",
        ),
        (
            GatherOperatorDesc(f32(3, 4), u32(1, 2), None, 0, 1),
            "GATHER: `OutputTensor` must be a tensor of sizes {2,4}, got None",
        ),
        (
            GatherElementsOperatorDesc(f32(3, 4), u32(2, 3), f32(2, 3), 0),
            "GATHER_ELEMENTS: `IndicesTensor.Sizes` must equal InputTensor.Sizes = {3,4} on "
            "every dimension but Axis = 0, got {2,3}",
        ),
        (
            GatherElementsOperatorDesc(f32(3, 4), u32(2, 4), f32(3, 4), 0),
            "GATHER_ELEMENTS: `OutputTensor.Sizes` must be {2,4}, got {3,4}",
        ),
        (
            GatherNdOperatorDesc(f32(2, 3), u32(5, 1), f32(1, 5), 1, 2),
            "GATHER_ND: `InputTensor.Sizes` must start with 1 size of 1, as "
            "InputDimensionCount is 1, got {2,3}",
        ),
        (
            GatherNdOperatorDesc(f32(3, 4), u32(5, 1), f32(5, 4), 0, 2),
            "GATHER_ND: `InputDimensionCount` must be 1 to 2 (D), got 0",
        ),
        (
            GatherNdOperatorDesc(f32(2, 2, 2), u32(2, 2, 1), f32(2, 2, 2), 3, 3),
            "GATHER_ND: `OutputTensor.DimensionCount` must be at least 4 to hold {2,2,2,2}, got 3",
        ),
        (
            GatherNd1OperatorDesc(f32(3, 4), u32(3, 1), f32(1, 3), 2, 2, 2),
            "GATHER_ND1: `BatchDimensionCount` must be 0 to 1, below InputDimensionCount = 2 and "
            "IndicesDimensionCount = 2, got 2",
        ),
        (
            GatherNd1OperatorDesc(f32(3, 4), u32(2, 1), f32(1, 2), 2, 2, 1),
            "GATHER_ND1: `IndicesTensor.Sizes` must have the input's batch sizes {3} in its "
            "first 1 meaningful dimensions, got {2}",
        ),
        (
            GatherNd1OperatorDesc(f32(3, 4), u32(3, 2), f32(1, 3), 2, 2, 1),
            "GATHER_ND1: `IndicesTensor.Sizes[1]` must be 1 to 1 (InputDimensionCount - "
            "BatchDimensionCount), as it is the number of coordinates in an index tuple, got 2",
        ),
        (
            ScatterOperatorDesc(f32(3, 4), u32(2, 4), f32(3, 4), f32(3, 4), 0),
            "SCATTER: `UpdatesTensor.Sizes` must be {2,4} (IndicesTensor.Sizes), got {3,4}",
        ),
        (
            ScatterOperatorDesc(f32(4), u32(4), BufferTensorDesc("FLOAT16", (4,)), f32(4), 0),
            "SCATTER: `UpdatesTensor.DataType` must equal InputTensor.DataType = FLOAT32, "
            "got FLOAT16",
        ),
        (
            ScatterNdOperatorDesc(f32(2, 2, 2), u32(2, 2, 1), f32(2, 2, 2), f32(2, 2, 2), 3, 3),
            "SCATTER_ND: `UpdatesTensor.DimensionCount` must be at least 4 to hold {2,2,2,2}, "
            "got 3",
        ),
    ],
)
def test_of_attributes_and_sizes(desc, expected):
    assert messages(desc) == [expected]


def test_a_tuple_has_at_least_one_coordinate():
    desc = GatherNdOperatorDesc(f32(1, 3), u32(2, 0), f32(2, 3), 1, 2)
    assert [violation.field for violation in check(desc)] == [
        "IndicesTensor.Sizes",
        "IndicesTensor.Sizes[1]",
    ]


def test_every_reason_is_given_at_once():
    data = BufferTensorDesc("INT64", (0, 3), total_tensor_size_in_bytes=7)
    indices = BufferTensorDesc("INT16", (1, 2), (1, 1), 1, 3)
    output = BufferTensorDesc("FLOAT32", (2, 3), (0, 1))
    violations = check(GatherOperatorDesc(data, indices, output, 5, 1), "2_1")
    assert [violation.field for violation in violations] == [
        "InputTensor.DataType",
        "InputTensor.DimensionCount",
        "InputTensor.Sizes",
        "IndicesTensor.DataType",
        "IndicesTensor.DimensionCount",
        "IndicesTensor.TotalTensorSizeInBytes",
        "IndicesTensor.GuaranteedBaseOffsetAlignment",
        "OutputTensor.DimensionCount",
        "OutputTensor.DataType",
        "Axis",
        "OutputTensor.Strides",
    ]
    assert [str(violation.first_level) for violation in violations[:5]] == [
        "4_1",
        "3_0",
        "None",
        "None",
        "3_0",
    ]
    with pytest.raises(ValueError) as raised:
        Device("2_1").compile(GatherOperatorDesc(data, indices, output, 5, 1))
    lines = str(raised.value).splitlines()
    assert lines[0] == "GATHER: feature level 2_1 does not accept this desc:"
    assert lines[1:] == [f"- {violation}" for violation in violations]


def test_a_violation_reads_as_its_message_with_its_source():
    (violation,) = check(GatherOperatorDesc(f32(3, 4), u32(1, 2), f32(2, 4), 2, 1))
    assert (violation.field, violation.expected, violation.found) == (
        "Axis",
        "be 0 to 1 (D - 1)",
        "2",
    )
    assert str(violation) == (
        "GATHER: `Axis` must be 0 to 1 (D - 1), got 2 [DML_GATHER_OPERATOR_DESC, Axis]"
    )


def test_a_level_that_does_not_exist():
    with pytest.raises(ValueError, match=r"^feature level must be one of 1_0, .*, got '9_9'$"):
        check(gathered(f32(4)), "9_9")
    with pytest.raises(ValueError, match=r"^feature level must be one of 1_0, .*, got '7_0'$"):
        Device("7_0")


@pytest.mark.parametrize("desc", [None, f32(4), OperatorDesc(f32(4), u32(4))])
def test_values_that_are_not_operator_descs_are_rejected(desc):
    with pytest.raises(TypeError, match=r"^check: `desc` must be an operator desc, got "):
        check(desc)


def test_output_sizes_that_cannot_be_inferred_say_every_reason():
    desc = ScatterOperatorDesc(f32(3, 4), u32(2, 3), f32(3, 4), None, 0)
    with pytest.raises(ValueError) as raised:
        desc.infer_output_sizes()
    assert str(raised.value).splitlines() == [
        "SCATTER: `IndicesTensor.Sizes` must equal InputTensor.Sizes = {3,4} on every dimension "
        "but Axis = 0, got {2,3}",
        "SCATTER: `UpdatesTensor.Sizes` must be {2,3} (IndicesTensor.Sizes), got {3,4}",
    ]
    with pytest.raises(ValueError, match=r"`InputTensor.DimensionCount` must be at least 1"):
        GatherOperatorDesc(f32(), u32(), None, 0, 0).infer_output_sizes()


def test_the_inferred_output_completes_a_desc():
    desc = GatherOperatorDesc(f32(1, 3, 3), u32(1, 1, 2), None, 2, 2)
    complete = desc.with_inferred_output()
    assert complete.output_tensor == f32(3, 1, 2)
    assert check(complete) == []


def test_numbers_without_bounds_are_cut_short():
    big = 10**5000
    tensor = BufferTensorDesc("FLOAT32", (big,), (big,), big, big)
    desc = GatherElementsOperatorDesc(tensor, tensor, tensor, big)
    violations = check(desc)
    assert "`Axis` must be 0 to 0 (D - 1), got an integer of 16610 bits" in violations[-1].message
    assert max(len(violation.message) for violation in violations) < 200
    many = BufferTensorDesc("FLOAT32", (7,) * 100)
    assert "{7,7,7,7,7,7,7,7,7,7,7,7,7,7,7,7,... 100 in all}" in str(
        check(GatherElementsOperatorDesc(many, BufferTensorDesc("INT32", (8,) * 100), many, 0))
    )


def test_eight_dimensions_have_a_bounded_product_too():
    tensor = BufferTensorDesc("INT8", (2**4,) * 8)
    (violation, *_) = check(GatherElementsOperatorDesc(tensor, u32(*tensor.sizes), tensor, 0))
    assert violation.message == (
        "GATHER_ELEMENTS: `InputTensor.Sizes` must have at most 4294967295 elements, "
        "got {16,16,16,16,16,16,16,16} with 4294967296"
    )
