"""`gather_quantized` against the oracle: codes, types, axes, blocks and modes; bits, not values."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gatherum
from gatherum import reference
from gatherum._model.modes import MODES
from gatherum._system import native

ml_dtypes = pytest.importorskip("ml_dtypes", reason="install ml_dtypes for its number types")

INTEGERS = ["uint8", "int8", "uint4", "int4", "uint2", "int2"]
FLOATS = ["float8_e4m3fn", "float8_e5m2"]
SCALES = ["float32", "float16", "bfloat16", "float8_e8m0fnu"]
RESULTS = ["float32", "float16", "bfloat16"]


def bits_of(array):
    return array.view(f"u{array.dtype.itemsize}")


def same(actual, expected):
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    assert actual.flags.c_contiguous
    np.testing.assert_array_equal(bits_of(actual), bits_of(expected))


def check(data, indices, scales, zeros=None, **attributes):
    same(
        gatherum.gather_quantized(data, indices, scales, zeros, **attributes),
        reference.gather_quantized(data, indices, scales, zeros, **attributes),
    )


def scales_of(rng, shape, dtype="float32"):
    if dtype == "float8_e8m0fnu":
        return rng.integers(100, 150, shape, np.uint8).view(dtype)
    signs = rng.choice([-1, 1], shape)
    return (signs * np.exp2(rng.uniform(-6, 6, shape))).astype(dtype)


def codes(dtype):
    """Return every byte once, even if fewer of its bits count."""
    return np.arange(256, dtype=np.uint8).view(dtype)[None]


SPECIAL = [0.0, -0.0, 1.0, -1.5, 1e-40, 3e38, math.inf, -math.inf, math.nan, 2.0**-133, 0.1, 65519]


@pytest.mark.parametrize("result", RESULTS)
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("dtype", INTEGERS + FLOATS)
def test_every_code(dtype, scale, result):
    if scale == "float8_e8m0fnu":
        scales = np.array([0, 1, 126, 127, 128, 254, 255], np.uint8).view(scale)
    else:
        with np.errstate(all="ignore"):
            scales = np.array(SPECIAL, np.float32).astype(scale)
    data = np.repeat(codes(dtype), len(scales), axis=0)
    check(data, np.arange(len(scales)), scales[:, None], block_size=256, dtype=result)


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_packed_codes(dtype, bits, zeros):
    data = np.repeat(codes(dtype), 3, axis=0)
    rng = np.random.default_rng(0)
    blocks = 256 * 8 // bits // 16
    scales = scales_of(rng, (3, blocks))
    points = rng.integers(0, 256, (3, blocks * bits // 8), np.uint8).view(dtype)
    check(data, [2, 0], scales, points if zeros else None, block_size=16, bits=bits)


def test_the_default_zero_point():
    ones = np.ones((1, 1), np.float32)
    run = gatherum.gather_quantized
    three = np.array([[3]], np.uint8)
    assert run(three, 0, ones, block_size=1).tolist() == [3 - 128]
    assert run(three, 0, ones, block_size=2, bits=4).tolist() == [3 - 8, 0 - 8]
    assert run(three, 0, ones, block_size=4, bits=2).tolist() == [3 - 2, -2, -2, -2]
    assert run(three.view(np.int8), 0, ones, block_size=2, bits=4).tolist() == [3, 0]
    assert run(three.astype(ml_dtypes.uint4), 0, ones, block_size=1).tolist() == [3]


SHAPES = [(5,), (4, 3), (3, 5, 2), (2, 3, 2, 2)]
AXES = [(s, a, q) for s in SHAPES for a in range(len(s)) for q in range(len(s))]


@pytest.mark.parametrize("layout", ["contiguous", "reversed", "transposed"])
@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize(("shape", "axis", "q"), AXES)
def test_axes_and_blocks(shape, axis, q, bits, layout):
    rng = np.random.default_rng(len(shape))
    data = rng.integers(0, 256, shape, np.uint8)
    values = (*shape[:-1], shape[-1] * 8 // bits)
    for block in (1, 2, 100):
        blocks = (*values[:q], -(-values[q] // block), *values[q + 1 :])
        scales = scales_of(rng, blocks)
        packed = (*blocks[:-1], -(-blocks[-1] * bits // 8))
        zeros = rng.integers(0, 256, packed, np.uint8)
        indices = rng.integers(-values[axis], values[axis], (2, 3))
        operands = [data, scales, zeros]
        if layout == "reversed":
            operands = [array[::-1].copy()[::-1] for array in operands]
        if layout == "transposed":
            operands = [np.asfortranarray(array) for array in operands]
        data, scales, zeros = operands
        attributes = {"axis": axis, "quantize_axis": q - len(shape), "block_size": block}
        check(data, indices, scales, zeros, bits=bits, **attributes)
        check(data, [-99, 0, 99], scales, zeros, bits=bits, mode="fill", **attributes)


@pytest.mark.parametrize("length", [1, 15, 16, 17, 255, 256, 257, 600])
@pytest.mark.parametrize("bits", [2, 4, 8])
def test_rows_of_every_length(length, bits):
    rng = np.random.default_rng(length)
    data = rng.integers(0, 256, (4, length), np.uint8)
    values = length * 8 // bits
    for block in (7, 32, 300, values):
        scales = scales_of(rng, (4, -(-values // block)), "float16")
        zeros = rng.integers(0, 256, (4, -(-scales.shape[1] * bits // 8)), np.uint8)
        check(data, [3, 1, 1], scales, zeros, block_size=block, bits=bits, dtype="bfloat16")
    columns = scales_of(rng, (1, values))  # one for each column, shared by all rows
    attributes = {"quantize_axis": 0, "block_size": 4, "bits": bits}
    check(data, [3, 1, 1], columns, **attributes)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("negative", [False, True])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", ">i4", "uint64"])
def test_modes(mode, negative, dtype):
    rng = np.random.default_rng(1)
    data, scales = rng.integers(-128, 128, (5, 6), np.int8), scales_of(rng, (5, 2))
    attributes = {"block_size": 3, "mode": mode, "negative": negative}
    for values in ([0, 4, 2], [0, 5], [1, -1], [-6, 9], [], 3, 7):
        indices = np.array(values, np.int64).astype(dtype)
        try:
            expected = reference.gather_quantized(data, indices, scales, **attributes)
        except IndexError as error:
            with pytest.raises(IndexError) as caught:
                gatherum.gather_quantized(data, indices, scales, **attributes)
            assert str(caught.value) == str(error).replace("(indices[])", "(indices)")
        else:
            same(gatherum.gather_quantized(data, indices, scales, **attributes), expected)


@pytest.mark.parametrize("shape", [(0, 4), (3, 0), (0, 0), (2, 0, 3)])
@pytest.mark.parametrize("axis", [0, 1])
def test_empty_dimensions(shape, axis):
    data = np.zeros(shape, np.int8)
    scales = np.ones((*shape[:-1], -(-shape[-1] // 2)), np.float32)
    check(data, np.zeros((2, 0), np.int64), scales, axis=axis, block_size=2)
    check(data, [0, 5], scales, axis=axis, block_size=2, mode="fill")
    if shape[axis] == 0:
        for mode in ("raise", "clip", "wrap"):
            with pytest.raises(IndexError, match="size 0"):
                gatherum.gather_quantized(data, [0], scales, axis=axis, block_size=2, mode=mode)


def test_a_block_may_be_larger_than_anything():
    data, scales = np.arange(4, dtype=np.int8)[None], np.full((1, 1), 2, np.float32)
    result = gatherum.gather_quantized(data, 0, scales, block_size=10**30)
    same(result, np.arange(0, 8, 2, dtype=np.float32))


def test_fill_gives_zeros():
    data, scales = np.full((2, 3), 7, np.int8), np.full((2, 1), -2.0, np.float32)
    result = gatherum.gather_quantized(data, [5, 0], scales, block_size=3, mode="fill")
    same(result, np.array([[0.0] * 3, [-14.0] * 3], np.float32))


def test_zero_dimensional_indices():
    data, scales = np.arange(6, dtype=np.int8).reshape(2, 3), np.ones((2, 1), np.float32)
    assert gatherum.gather_quantized(data, 1, scales, block_size=3).tolist() == [3.0, 4.0, 5.0]
    result = gatherum.gather_quantized(data[0], 1, scales[0], block_size=3)
    assert result.shape == ()
    assert result == 1


@pytest.mark.parametrize("dtype", [np.float16, np.dtype(np.float16), "float16"])
def test_a_dtype_is_a_name_or_a_type(dtype):
    data, scales = np.ones((1, 2), np.int8), np.ones((1, 1), np.float32)
    assert gatherum.gather_quantized(data, 0, scales, block_size=2, dtype=dtype).dtype == np.float16


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_calls(data):
    shape = data.draw(st.lists(st.integers(0, 5), min_size=1, max_size=3))
    dtype = data.draw(st.sampled_from(INTEGERS + FLOATS))
    packs = dtype in ("uint8", "int8")
    bits = data.draw(st.sampled_from([None, 2, 4, 8])) if packs else None
    in_byte = 8 // bits if bits else 1
    axis, q = (data.draw(st.integers(-len(shape), len(shape) - 1)) for _ in range(2))
    block = data.draw(st.integers(1, 7))
    values = [*shape[:-1], shape[-1] * in_byte]
    blocks = values.copy()
    blocks[q] = -(-values[q] // block)
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    table = rng.integers(0, 256, shape, np.uint8).view(dtype)
    scales = scales_of(rng, blocks, data.draw(st.sampled_from(SCALES)))
    zeros = None
    if dtype in INTEGERS and data.draw(st.booleans()):
        packed = (*blocks[:-1], -(-blocks[-1] // in_byte))
        zeros = rng.integers(0, 256, packed, np.uint8).view(dtype)
    places = data.draw(st.lists(st.integers(-6, 6), max_size=4))
    mode = data.draw(st.sampled_from(["clip", "wrap", "fill"] if values[axis] else ["fill"]))
    attributes = {"axis": axis, "quantize_axis": q, "block_size": block, "bits": bits}
    result = data.draw(st.sampled_from(RESULTS))
    check(table, places, scales, zeros, mode=mode, dtype=result, **attributes)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_the_same_bits_on_any_number_of_threads(axis):
    rng = np.random.default_rng(2)
    data = rng.integers(0, 256, (40, 50, 64), np.uint8).view("float8_e4m3fn")
    scales = scales_of(rng, (40, 50, 4))
    indices = rng.integers(0, data.shape[axis], 1000)
    before = gatherum.get_num_threads()
    results = []
    try:
        for threads in (1, 2, 3, 8):
            gatherum.set_num_threads(threads)
            attributes = {"axis": axis, "block_size": 16, "dtype": "float16"}
            results.append(gatherum.gather_quantized(data, indices, scales, **attributes))
    finally:
        gatherum.set_num_threads(before)
    assert results[0].nbytes > 2 << 20  # large enough for several threads
    for other in results[1:]:
        same(other, results[0])
    few = gatherum.gather_quantized(
        data, indices[:3], scales, axis=axis, block_size=16, dtype="float16"
    )
    same(few, np.take(results[0], range(3), axis))
    oracle = np.take(data, indices[:3], axis).astype(np.float32)
    factors = np.repeat(scales, 16, axis=2)
    expected = oracle * np.take(factors, indices[:3], axis)
    np.testing.assert_allclose(few.astype(np.float32), expected, rtol=1e-3, atol=1e-3)


def test_arrays_that_another_thread_sees_keep_their_memory():
    data, scales = np.ones((2, 3), np.int8), np.ones((2, 1), np.float32)
    rows = np.array([-5, 0, 7, 1])  # numbers out of bounds produce zeros, for every caller
    out = np.full((4, 3), 9, np.float32)
    sizes = {"before": (1, 1, 1), "gathered": 2, "after": (1, 3, 1), "blocks": (1, 1, 3)}
    names = {"value": "int8", "scale": "float32", "result": "float32"}
    options = {"bits": 8, "packed": False, "zero": 0.0, "scale_line": 1}
    native.dequantize(data, scales, None, rows, out, **names, **options, **sizes)
    assert out.tolist() == [[0.0] * 3, [1.0] * 3, [0.0] * 3, [1.0] * 3]


WRONG = [
    {"value": "int16"},
    {"scale": "float64"},
    {"result": "int8"},
    {"bits": 3},
    {"gathered": 3},
    {"after": (1, 4, 1)},
    {"after": (2, 3, 1)},
    {"before": (1, 2, 1)},
    {"before": (-1, 1, 1)},
    {"blocks": (1, 1, 1)},
    {"blocks": (0, 1, 3)},
    {"after": (2**40, 2**40, 1)},
    {"value": "float8_e5m2", "bits": 4},
]


@pytest.mark.parametrize("change", WRONG)
def test_the_core_checks_its_arguments(change):
    data, scales = np.ones((2, 3), np.int8), np.ones((2, 1), np.float32)
    rows, out = np.array([0, 1]), np.zeros((2, 3), np.float32)
    sizes = {"before": (1, 1, 1), "gathered": 2, "after": (1, 3, 1), "blocks": (1, 1, 3)}
    names = {"value": "int8", "scale": "float32", "result": "float32"}
    options = {"bits": 8, "packed": False, "zero": 0.0, "scale_line": 1} | names | sizes | change
    with pytest.raises(ValueError, match="not a gather of quantized rows"):
        native.dequantize(data, scales, None, rows, out, **options)


def test_levels_and_pieces_agree():
    """Every position in a vector and in the remainder has the same bits."""
    rng = np.random.default_rng(3)
    for dtype, result in itertools.product(["int8", *FLOATS], RESULTS):
        data = rng.integers(0, 256, (1, 600), np.uint8).view(dtype)
        scales = scales_of(rng, (1, 1))
        whole = gatherum.gather_quantized(data, 0, scales, block_size=600, dtype=result)
        for begin in (1, 5, 17):
            part = np.ascontiguousarray(data[:, begin:])
            part_result = gatherum.gather_quantized(part, 0, scales, block_size=600, dtype=result)
            same(part_result, whole[begin:])
