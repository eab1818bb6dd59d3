"""Buffer sizes in exact integers, and layouts that overlap themselves."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gatherum.directml import (
    BufferTensorDesc,
    TensorDataType,
    calc_buffer_tensor_size,
    helper_buffer_tensor_size,
)

BYTES = {
    **dict.fromkeys(("FLOAT64", "INT64", "UINT64"), 8),
    **dict.fromkeys(("FLOAT32", "INT32", "UINT32"), 4),
    **dict.fromkeys(("FLOAT16", "INT16", "UINT16"), 2),
    **dict.fromkeys(("INT8", "UINT8"), 1),
}


@pytest.mark.parametrize("name", BYTES)
def test_packed_and_strided(name):
    width = BYTES[name]
    assert TensorDataType[name].dtype.itemsize == width
    for sizes in ((1,), (3,), (2, 3), (1, 2, 3, 5)):
        expected = math.ceil(math.prod(sizes) * width / 4) * 4
        assert calc_buffer_tensor_size(TensorDataType[name], sizes) == expected
    assert calc_buffer_tensor_size(name, (2, 3), (4, 1)) == math.ceil(7 * width / 4) * 4
    assert calc_buffer_tensor_size(name, (5, 3), (0, 0)) == max(4, width)


@pytest.mark.parametrize(
    ("name", "sizes", "strides", "exact", "helper"),
    [
        ("FLOAT32", (3, 1), (2**31, 1), 4 * (2**32 + 1), 4),
        ("UINT8", (2,), (2**32 - 1,), 2**32, 2**32),  # the last that does not wrap
        ("UINT8", (2, 2), (2**32 - 1, 1), 2**32 + 4, 4),  # 2**32 + 1 bytes
        ("FLOAT16", (65537, 65537), (65536, 1), 2 * (2**32 + 65536) + 4, 2 * 65536 + 4),
        ("FLOAT64", (2**32 - 1,), None, 8 * (2**32 - 1), 8 * (2**32 - 1)),
        ("INT8", (2**32 - 1,) * 2, None, (2**32 - 1) ** 2 + 3, (2**32 - 1) ** 2 + 3),
        ("FLOAT64", (2**32 - 1,) * 2, None, 8 * (2**32 - 1) ** 2, 8 * (2**32 - 1) ** 2 % 2**64),
        ("INT8", (2**32 - 1,) * 8, None, (2**32 - 1) ** 8 + 3, 2**64 - 2**35 + 4),
    ],
)
def test_where_the_helper_wraps(name, sizes, strides, exact, helper):
    assert calc_buffer_tensor_size(name, sizes, strides) == exact
    assert helper_buffer_tensor_size(name, sizes, strides) == helper
    assert BufferTensorDesc(name, sizes, strides).total_tensor_size_in_bytes == exact


@given(
    name=st.sampled_from(sorted(BYTES)),
    dimensions=st.lists(
        st.tuples(st.integers(1, 2**32 - 1), st.integers(0, 2**32 - 1)), min_size=1, max_size=8
    ),
)
def test_the_helper_is_exact_exactly_where_nothing_wraps(name, dimensions):
    sizes, strides = zip(*dimensions, strict=True)
    last = sum((n - 1) * s for n, s in dimensions)
    exact = calc_buffer_tensor_size(name, sizes, strides)
    assert exact == -(-(last + 1) * BYTES[name] // 4) * 4
    assert (helper_buffer_tensor_size(name, sizes, strides) == exact) == (last < 2**32)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("UNKNOWN", (1,)), "`data_type` must have a width, got UNKNOWN"),
        (("INT8", ()), "`sizes` must be one or more sizes of at least 1, got ()"),
        (("INT8", (3, 0)), "`sizes` must be one or more sizes of at least 1, got (3, 0)"),
        (("INT8", (3,), (1, 1)), "`strides` must have 1 entries, got 2"),
        (("INT8", (3,), (-1,)), "`strides` must be at least 0, got (-1,)"),
    ],
)
def test_arguments_without_a_buffer_size(arguments, message):
    for function in (calc_buffer_tensor_size, helper_buffer_tensor_size):
        with pytest.raises(ValueError) as raised:
            function(*arguments)
        assert str(raised.value) == f"calc_buffer_tensor_size: {message}"


@pytest.mark.parametrize(("sizes", "strides"), [((2.5,), None), ((2,), (1.5,)), (("2",), None)])
def test_sizes_and_strides_are_integers(sizes, strides):
    with pytest.raises(TypeError, match="must be integers, got"):
        calc_buffer_tensor_size(TensorDataType.FLOAT32, sizes, strides)
