"""DirectML's enumerations, and the checks of the tensor desc."""

import subprocess
import sys

import numpy as np
import pytest

from gatherum.directml import BufferTensorDesc, FeatureLevel, TensorDataType, TensorFlags
from gatherum.directml.levels import OPERATORS, SUPPORT
from gatherum.directml.tables import render_levels

from .page_examples import f32


def test_data_types_have_directmls_numbers():
    names = (
        "UNKNOWN FLOAT32 FLOAT16 UINT32 UINT16 UINT8 INT32 INT16 INT8 FLOAT64 UINT64 INT64 "
        "UINT4 INT4"
    )
    assert [member.name for member in TensorDataType] == names.split()
    assert [int(member) for member in TensorDataType] == list(range(14))


def test_flags_have_directmls_numbers():
    assert {flag.name: int(flag) for flag in (TensorFlags(0), *TensorFlags)} == {
        "NONE": 0,
        "OWNED_BY_DML": 1,
    }


def test_feature_levels_have_directmls_numbers_and_order():
    assert len(FeatureLevel) == 15
    for level in FeatureLevel:
        major, minor = str(level).split("_")
        assert int(level) == int(major) * 0x1000 + int(minor) * 0x100
        assert level.name == f"LEVEL_{level}"
        dotted = f"{major}.{minor}"
        for spelling in (str(level), dotted, level.name, f"DML_FEATURE_{level.name}", int(level)):
            assert FeatureLevel(spelling) is level
    assert sorted(FeatureLevel) == list(FeatureLevel)
    for spelling in ("", "4", "4.7", "4..1", "LEVEL_", "DML_FEATURE_4_1", 0x4200, None):
        with pytest.raises(ValueError, match=r"^feature level must be one of 1_0, .*6_4, got "):
            FeatureLevel(spelling)


def test_data_types_by_name_and_by_dtype():
    for member in TensorDataType:
        assert TensorDataType(member.name) is member
        assert TensorDataType(f"DML_TENSOR_DATA_TYPE_{member.name}") is member
        if member.name in ("UNKNOWN", "UINT4", "INT4"):
            with pytest.raises(ValueError, match=rf"^NumPy has no dtype for {member.name}$"):
                member.dtype  # noqa: B018
            continue
        assert member.dtype == np.dtype(member.name.lower())
        assert member.bits == 8 * member.dtype.itemsize
        assert member.signed == (member.dtype.kind == "i")
        assert TensorDataType.from_dtype(member.dtype) is member
    for dtype in ("bool", "complex64", ">f4", "M8[s]", "S4"):
        with pytest.raises(ValueError, match=r"^DirectML has no data type for the dtype "):
            TensorDataType.from_dtype(dtype)
    for wrong in ("FLOAT", 14, -1):
        with pytest.raises(ValueError, match="is not a valid TensorDataType"):
            TensorDataType(wrong)


def test_the_table_has_every_level_of_every_operator():
    assert {(level, name) for level, name, _ in SUPPORT} == {
        (level, name)
        for level in FeatureLevel
        for name, operator in OPERATORS.items()
        if level >= operator.introduced
    }


def test_the_page_of_levels_is_the_rendering_of_the_table(pytestconfig):
    page = pytestconfig.rootpath / "docs" / "directml-levels.md"
    assert page.read_text() == render_levels()


@pytest.mark.parametrize("flags", [2, -1, "NONE"])
def test_flags_that_do_not_exist(flags):
    with pytest.raises(ValueError) as raised:
        BufferTensorDesc("FLOAT32", (3,), flags=flags)
    assert str(raised.value) == (f"BufferTensorDesc: `flags` must be of TensorFlags, got {flags!r}")


def test_gatherum_by_itself_does_not_import_this_layer():
    code = "import sys, gatherum; print('gatherum.directml' in sys.modules)"
    completed = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert completed.stdout.split() == [b"False"]


def test_a_tensor_desc_is_a_value():
    desc = BufferTensorDesc(TensorDataType.FLOAT32, [np.int64(2), 3])
    assert desc == BufferTensorDesc("FLOAT32", (2, 3), total_tensor_size_in_bytes=24)
    assert hash(desc) == hash(f32(2, 3))
    assert desc.sizes == (2, 3) and type(desc.sizes[0]) is int
    assert desc.element_strides == (3, 1)
    with pytest.raises(AttributeError):
        desc.sizes = (1,)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("FLOAT32", 3), "`sizes` must be a sequence of integers, got int"),
        (("FLOAT32", "33"), "`sizes` must be a sequence of integers, got str"),
        (("FLOAT32", (3, 1.0)), "`sizes[1]` must be an integer, got float"),
        (("FLOAT32", (True,)), "`sizes[0]` must be an integer, got bool"),
        (("FLOAT32", (3,), (None,)), "`strides[0]` must be an integer, got NoneType"),
        (("FLOAT32", (3,), None, "8"), "`total_tensor_size_in_bytes` must be an integer, got str"),
        (
            ("FLOAT32", (3,), None, 12, 0.5),
            "`guaranteed_base_offset_alignment` must be an integer, got float",
        ),
    ],
)
def test_numbers_are_integers(arguments, message):
    with pytest.raises(TypeError) as raised:
        BufferTensorDesc(*arguments)
    assert str(raised.value) == f"BufferTensorDesc: {message}"


@pytest.mark.parametrize(
    "data_type",
    ["float32", "Float32", "dml_tensor_data_type_float32", np.float32, np.dtype("f4"), 1],
)
def test_a_desc_takes_a_name_in_any_case_and_a_dtype(data_type):
    assert BufferTensorDesc(data_type, (2,)) == BufferTensorDesc("FLOAT32", (2,))


@pytest.mark.parametrize(
    "data_type", ["float", np.bool_, np.dtype(">f4"), np.complex64, float, None]
)
def test_dtypes_without_a_type_of_directml(data_type):
    with pytest.raises(ValueError):
        BufferTensorDesc(data_type, (2,))
