"""The JSON form of DxDispatch, read and written, and the output of `gatherum check` for it."""

import json

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from gatherum.directml import (
    BufferTensorDesc,
    GatherNd1OperatorDesc,
    GatherOperatorDesc,
    ScatterElementsOperatorDesc,
    TensorDataType,
    TensorFlags,
    check_file,
    check_text,
    from_json,
    to_json,
)
from gatherum.directml.jsontext import parse_json

from .page_examples import EXAMPLES, f32, u32

GATHER = {
    "type": "DML_OPERATOR_GATHER",
    "desc": {
        "InputTensor": {"DataType": "FLOAT32", "Sizes": [4]},
        "IndicesTensor": {"DataType": "UINT32", "Sizes": [5]},
        "OutputTensor": {"DataType": "FLOAT32", "Sizes": [5]},
        "Axis": 0,
        "IndexDimensions": 1,
    },
}
UINT = st.integers(0, 2**32 - 1)


@st.composite
def tensor_descs(draw):
    sizes = draw(st.lists(st.integers(0, 9) | UINT, min_size=1, max_size=8))
    strides = st.lists(UINT, min_size=len(sizes), max_size=len(sizes))
    desc = BufferTensorDesc(
        draw(st.sampled_from(TensorDataType)),
        sizes,
        draw(st.none() | strides),
        draw(st.none() | st.integers(1, 2**64 - 1)),
        draw(UINT),
        draw(st.sampled_from([TensorFlags.NONE, TensorFlags.OWNED_BY_DML])),
    )
    assume(desc.total_tensor_size_in_bytes < 2**64)  # no field holds a larger size
    return desc


@st.composite
def operator_descs(draw):
    """Draw descs of any kind, valid or not: JSON does not check them."""
    cls = type(draw(st.sampled_from(EXAMPLES)).desc)
    values = {
        name: draw(tensor_descs() if name.endswith("_tensor") else UINT)
        for name in cls.field_names().values()
    }
    return cls(**values)


@settings(max_examples=200)
@given(desc=operator_descs())
def test_round_trip(desc):
    written = to_json(desc)
    text = json.dumps(written)
    again = from_json(text)
    assert again == desc and from_json(written) == desc and from_json(text.encode()) == desc
    assert type(again) is type(desc) and to_json(again) == written


def test_json_contains_every_field():
    desc = GatherNd1OperatorDesc(
        BufferTensorDesc("FLOAT16", (2, 3), (8, 1), 64, 16, TensorFlags.OWNED_BY_DML),
        BufferTensorDesc("INT64", (2, 1)),
        BufferTensorDesc("FLOAT16", (1, 2)),
        2,
        2,
        1,
    )
    assert to_json(desc) == {
        "type": "DML_OPERATOR_GATHER_ND1",
        "desc": {
            "InputTensor": {
                "Type": "DML_TENSOR_TYPE_BUFFER",
                "Desc": {
                    "DataType": "DML_TENSOR_DATA_TYPE_FLOAT16",
                    "Flags": "DML_TENSOR_FLAG_OWNED_BY_DML",
                    "DimensionCount": 2,
                    "Sizes": [2, 3],
                    "Strides": [8, 1],
                    "TotalTensorSizeInBytes": 64,
                    "GuaranteedBaseOffsetAlignment": 16,
                },
            },
            "IndicesTensor": {
                "Type": "DML_TENSOR_TYPE_BUFFER",
                "Desc": {
                    "DataType": "DML_TENSOR_DATA_TYPE_INT64",
                    "Flags": "DML_TENSOR_FLAG_NONE",
                    "DimensionCount": 2,
                    "Sizes": [2, 1],
                    "TotalTensorSizeInBytes": 16,
                    "GuaranteedBaseOffsetAlignment": 0,
                },
            },
            "OutputTensor": {
                "Type": "DML_TENSOR_TYPE_BUFFER",
                "Desc": {
                    "DataType": "DML_TENSOR_DATA_TYPE_FLOAT16",
                    "Flags": "DML_TENSOR_FLAG_NONE",
                    "DimensionCount": 2,
                    "Sizes": [1, 2],
                    "TotalTensorSizeInBytes": 4,
                    "GuaranteedBaseOffsetAlignment": 0,
                },
            },
            "InputDimensionCount": 2,
            "IndicesDimensionCount": 2,
            "BatchDimensionCount": 1,
        },
    }
    assert list(to_json(desc)["desc"]) == list(GatherNd1OperatorDesc.field_names())


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(GATHER),
        json.dumps({"Type": "GATHER", "Desc": GATHER["desc"]}),
        json.dumps({"type": "GATHER", **GATHER["desc"]}),
        json.dumps({**GATHER, "dmlCompileType": "DmlCompileGraph", "executionFlags": "NONE"}),
        json.dumps(GATHER).replace('"FLOAT32"', '"DML_TENSOR_DATA_TYPE_FLOAT32"'),
        json.dumps(GATHER).replace('"Sizes": [4]', '"Sizes": [4], "Strides": []'),
        json.dumps(GATHER).replace('"Sizes": [4]', '"Sizes": [4,], "DimensionCount": 1,'),
        json.dumps(GATHER).replace('"Sizes": [4]', '"Sizes": [4], "TotalTensorSizeInBytes": 0'),
        json.dumps(GATHER).replace('"Sizes": [4]', '"Sizes": [4], "Flags": "DML_TENSOR_FLAG_NONE"'),
        json.dumps(GATHER).replace('"Sizes": [4]', '"Sizes": [4], "Flags": ["NONE"]'),
        json.dumps(GATHER).replace('"Sizes": [4]', '"Sizes": [4], "Type": "BUFFER"'),
        "// a comment, with a ] in it\n" + json.dumps(GATHER, indent=1) + "/* and\n another */",
        "\ufeff" + json.dumps(GATHER),
    ],
)
def test_text_that_dxdispatch_accepts(text):
    assert from_json(text.encode()) == GatherOperatorDesc(f32(4), u32(5), f32(5), 0, 1)


def test_scatter_elements_is_scatter():
    desc = ScatterElementsOperatorDesc(f32(4), u32(4), f32(4), f32(4), 0)
    written = to_json(desc)
    assert written["type"] == "DML_OPERATOR_SCATTER"
    for name in ("DML_OPERATOR_SCATTER_ELEMENTS", "SCATTER_ELEMENTS", "SCATTER"):
        assert from_json({**written, "type": name}) == desc


def with_desc(**members):
    return json.dumps({**GATHER, "desc": {**GATHER["desc"], **members}})


def with_input(**members):
    return with_desc(InputTensor={"DataType": "FLOAT32", "Sizes": [4], **members})


def without(name):
    desc = {key: value for key, value in GATHER["desc"].items() if key != name}
    return json.dumps({**GATHER, "desc": desc})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not valid JSON: Expecting value at line 1, column 1"),
        (
            "{",
            "not valid JSON: Expecting property name enclosed in double quotes at line 1, column 2",
        ),
        ("{} {}", "not valid JSON: Extra data at line 1, column 4"),
        (
            '{\n  "type": "GATHER"\n  "desc": 1}',
            "not valid JSON: Expecting ',' delimiter at line 3, column 3",
        ),
        ("[,]", "not valid JSON: Expecting value at line 1, column 2"),
        ("[1,,]", "not valid JSON: Expecting value at line 1, column 4"),
        ("/* never ends", "not valid JSON: Expecting value at line 1, column 1"),
        ('{"type": NaN}', "not valid JSON: NaN is not a JSON number"),
        ('{"type": 1, "type": 2}', "ambiguous JSON: the member 'type' is given twice"),
        (b"\xff\xfe", "not valid JSON: byte 0 is not UTF-8"),
        ("[" * 100_000, "not valid JSON: nested too deeply"),
        ("[" + "1" * 5000 + "]", "unsupported JSON: an integer of 5000 digits"),
        ("[]", "the operator desc must be an object, got a list"),
        ("null", "the operator desc must be an object, got null"),
        ("{}", "the operator desc must have a member 'type'"),
        ('{"type": 7}', "`type` must be a string, got 7"),
        (
            '{"type": "GATHER", "Type": "GATHER"}',
            "the operator desc must have one of 'Type' and 'type', got both",
        ),
        (
            '{"type": "DML_OPERATOR_GEMM"}',
            "`type` must be one of DML_OPERATOR_GATHER, DML_OPERATOR_GATHER_ELEMENTS, "
            "DML_OPERATOR_GATHER_ND, DML_OPERATOR_GATHER_ND1, DML_OPERATOR_SCATTER, "
            'DML_OPERATOR_SCATTER_ND, DML_OPERATOR_SCATTER_ELEMENTS, got "DML_OPERATOR_GEMM"',
        ),
        ('{"type": "GATHER", "desc": 1}', "`desc` must be an object, got 1"),
        (
            '{"dispatchables": {}}',
            "the model must have one dispatchable where `name` does not say which, got none",
        ),
        (without("OutputTensor"), "`desc.OutputTensor` is missing: DML_OPERATOR_GATHER needs it"),
        (without("Axis"), "`desc.Axis` is missing: DML_OPERATOR_GATHER needs it"),
        (
            with_desc(axis=0),
            "`desc` must have no members but InputTensor, IndicesTensor, OutputTensor, Axis, "
            'IndexDimensions, got "axis"',
        ),
        (with_desc(Axis=-1), "`desc.Axis` must be an integer from 0 to 4294967295, got -1"),
        (with_desc(Axis=1.0), "`desc.Axis` must be an integer from 0 to 4294967295, got 1.0"),
        (with_desc(Axis=True), "`desc.Axis` must be an integer from 0 to 4294967295, got true"),
        (with_desc(InputTensor=[4]), "`desc.InputTensor` must be an object, got a list"),
        (
            with_desc(InputTensor={"Sizes": [4]}),
            "`desc.InputTensor.DataType` is missing: every tensor needs it",
        ),
        (
            with_input(Stride=[1]),
            "`desc.InputTensor` must have no members but DataType, Flags, DimensionCount, Sizes, "
            'Strides, TotalTensorSizeInBytes, GuaranteedBaseOffsetAlignment, Type, got "Stride"',
        ),
        (
            with_input(Sizes=[4, None]),
            "`desc.InputTensor.Sizes[1]` must be an integer from 0 to 4294967295, got null",
        ),
        (
            with_input(Sizes="44"),
            '`desc.InputTensor.Sizes` must be a list of integers, got "44"',
        ),
        (
            with_input(Strides=[2**32]),
            "`desc.InputTensor.Strides[0]` must be an integer from 0 to 4294967295, got 4294967296",
        ),
        (
            with_input(Strides=None),
            "`desc.InputTensor.Strides` must be a list of integers, got null",
        ),
        (
            with_input(DimensionCount=2),
            "`desc.InputTensor.DimensionCount` must be the length of Sizes, 1, got 2",
        ),
        (
            with_input(Strides=[1, 1]),
            "`desc.InputTensor.DimensionCount` must be the length of Strides, 2, got 1",
        ),
        (
            with_input(DataType="FLOAT"),
            "`desc.InputTensor.DataType` must be one of UNKNOWN, FLOAT32, FLOAT16, UINT32, UINT16, "
            'UINT8, INT32, INT16, INT8, FLOAT64, UINT64, INT64, UINT4, INT4, got "FLOAT"',
        ),
        (
            with_input(Flags="OWNED"),
            '`desc.InputTensor.Flags` must be of NONE, OWNED_BY_DML, got "OWNED"',
        ),
        (
            with_input(Type="TEXTURE"),
            '`desc.InputTensor.Type` must be DML_TENSOR_TYPE_BUFFER, got "TEXTURE"',
        ),
        (
            with_desc(InputTensor={"Type": "BUFFER", "Desc": {"Sizes": [1], "DataType": 1}}),
            "`desc.InputTensor.Desc.DataType` must be one of UNKNOWN, FLOAT32, FLOAT16, UINT32, "
            "UINT16, UINT8, INT32, INT16, INT8, FLOAT64, UINT64, INT64, UINT4, INT4, got 1",
        ),
    ],
)
def test_malformed_json_raises_one_message(text, message):
    with pytest.raises(ValueError) as raised:
        from_json(text)
    assert str(raised.value) == message
    assert raised.value.__suppress_context__ or raised.value.__context__ is None


def test_strings_are_unchanged():
    text = with_desc(Axis="// no comment, ] and }")
    with pytest.raises(ValueError, match=r'got "// no comment, \] and }"$'):
        from_json(text)


def test_a_quote_after_a_backslash_ends_no_string():
    text = r'["\"// no comment, ]", "\\", /* one */ "/* none \" */",]'
    assert parse_json(text) == ['"// no comment, ]', "\\", '/* none " */']


def test_from_json_accepts_only_text_and_mappings():
    with pytest.raises(TypeError, match=r"^from_json: `source` must be JSON text or a mapping, "):
        from_json(7)


def test_descs_that_json_cannot_represent():
    with pytest.raises(ValueError, match=r"^to_json: `OutputTensor` must be a tensor, got None$"):
        to_json(GatherOperatorDesc(f32(4), u32(5), None, 0, 1))
    with pytest.raises(ValueError) as raised:
        to_json(GatherOperatorDesc(f32(4), u32(5), f32(5), -1, 1))
    assert str(raised.value) == ("to_json: `Axis` must be an integer from 0 to 4294967295, got -1")
    with pytest.raises(ValueError, match=r"^to_json: `InputTensor.Sizes\[0\]` must be an integer"):
        to_json(GatherOperatorDesc(f32(-4), u32(5), f32(5), 0, 1))


def test_report_of_an_accepted_desc():
    report = check_text(json.dumps(GATHER), "4_1")
    assert report.accepted
    assert report.lines == ("GATHER: accepted by feature level 4_1",)
    assert str(report) == "GATHER: accepted by feature level 4_1"


def test_report_of_a_rejected_desc(tmp_path):
    path = tmp_path / "gather.json"
    path.write_text(with_desc(IndexDimensions=2))
    report = check_file(path, "2_1")
    assert not report.accepted
    assert report.lines == (
        "GATHER: rejected by feature level 2_1, 4 reasons",
        *(
            f"  `{name}.DimensionCount` must be 4 at feature level 2_1, got 1; first accepted at "
            "3_0 [DML_GATHER_OPERATOR_DESC, Tensor support]"
            for name in ("InputTensor", "IndicesTensor", "OutputTensor")
        ),
        "  `IndexDimensions` must be 0 to 1 (Axis + 1), got 2 "
        "[DML_GATHER_OPERATOR_DESC, IndexDimensions; erratum 3]",
    )


def model(**dispatchables):
    return json.dumps({"resources": {}, "dispatchables": dispatchables, "commands": []})


def test_a_dispatchable_of_a_model_is_read():
    alone = from_json(json.dumps(GATHER))
    assert from_json(model(a=GATHER)) == alone
    both = model(a=GATHER, b={"type": "hlsl"}, c=json.loads(with_desc(Axis=1)))
    assert from_json(both, "a") == from_json(json.loads(both), name="a") == alone
    assert from_json(both, name="c").axis == 1


@pytest.mark.parametrize(
    ("source", "name", "message"),
    [
        (
            model(a=GATHER, b=GATHER),
            None,
            'the model must have one dispatchable where `name` does not say which, got "a", "b"',
        ),
        (
            model(a=GATHER, b=GATHER),
            "c",
            '`name` must be one of the model\'s dispatchables, "a", "b"; got "c"',
        ),
        (model(a={"type": "hlsl"}), "a", "`dispatchables.a`: `type` must be one of "),
        (
            json.dumps(GATHER),
            "a",
            "`name` must be left out: the source is one operator desc, not a model with names",
        ),
    ],
)
def test_a_dispatchable_that_is_not_there(source, name, message):
    with pytest.raises(ValueError) as raised:
        from_json(source, name)
    assert str(raised.value).startswith(message)


def test_report_of_a_model():
    wrong = json.loads(with_desc(Axis=1))
    report = check_text(model(a=GATHER, b={"type": "hlsl", "sourcePath": "b.hlsl"}, c=wrong))
    assert not report.accepted
    assert report.lines == (
        "a: GATHER: accepted by feature level 6_4",
        "b: not checked, hlsl is not a gather or scatter operator",
        "c: GATHER: rejected by feature level 6_4, 1 reason",
        "  `Axis` must be 0 to 0 (D - 1), got 1 [DML_GATHER_OPERATOR_DESC, Axis]",
    )
    assert check_text(model(a=GATHER)).accepted


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (model(), "the model has no gather or scatter operator: it has none"),
        (
            model(b={"type": "hlsl"}, c={"Type": "DML_OPERATOR_GEMM"}, d={}),
            "the model has no gather or scatter operator: it has b (hlsl), "
            "c (DML_OPERATOR_GEMM), d (without a type)",
        ),
        (
            model(**{str(i): {"type": "hlsl"} for i in range(9)}),
            "the model has no gather or scatter operator: it has "
            + "".join(f"{i} (hlsl), " for i in range(8))
            + "...",
        ),
        (model(b=1), "`dispatchables.b` must be an object, got 1"),
        ('{"dispatchables": []}', "`dispatchables` must be an object, got a list"),
        (
            model(b={"type": "GATHER", "desc": {}}),
            "`dispatchables.b`: `desc.InputTensor` is missing: GATHER needs it",
        ),
        ("7", "the operator desc must be an object, got 7"),
    ],
)
def test_reports_of_invalid_models(text, message):
    with pytest.raises(ValueError) as raised:
        check_text(text)
    assert str(raised.value) == message
