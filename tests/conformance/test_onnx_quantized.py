"""GatherBlockQuantized in ONNX's evaluator, and the answers of ONNX Runtime.

The cases are values that ONNX Runtime's own tests publish, and the rules of its text.
"""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="install onnx for gatherum.onnx: pip install onnx")
ml_dtypes = pytest.importorskip("ml_dtypes", reason="install ml_dtypes for its number types")
if tuple(map(int, onnx.__version__.split(".")[:2])) < (1, 19):
    pytest.skip("onnx before 1.19 has types of its own", allow_module_level=True)

from onnx import helper, numpy_helper  # noqa: E402

from gatherum.onnx import Evaluator, backend  # noqa: E402


def model_of(data, indices, scales, zeros=None, **attributes):
    """Make a model of one node, with everything except the indices stored in it."""
    stored = {"data": data, "scales": scales} | ({} if zeros is None else {"zeros": zeros})
    initializers = [numpy_helper.from_array(np.asarray(a), name) for name, a in stored.items()]
    names = ["data", "indices", "scales", *(["zeros"] if zeros is not None else [])]
    node = helper.make_node(
        "GatherBlockQuantized", names, ["rows"], domain="com.microsoft", **attributes
    )
    rank = data.ndim - 1 + indices.ndim
    tensor_types = helper.np_dtype_to_tensor_dtype(indices.dtype), initializers[1].data_type
    graph = helper.make_graph(
        [node],
        "lookup",
        [helper.make_tensor_value_info("indices", tensor_types[0], indices.shape)],
        [helper.make_tensor_value_info("rows", tensor_types[1], [None] * rank)],
        initializers,
    )
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


def ours(data, indices, scales, zeros=None, **attributes):
    model = model_of(data, indices, scales, zeros, **attributes)
    return Evaluator(model).run(None, {"indices": indices})[0]


def int4(values):
    return np.array(values, np.int8).astype(ml_dtypes.int4)


def uint4(values):
    """Return the same values, 8 higher."""
    return (np.array(values) + 8).astype(np.uint8).astype(ml_dtypes.uint4)


SIX = [[[-8, -7, -6, -5], [-4, -3, -2, -1], [0, 1, 2, 3]],
       [[4, 5, 6, 7], [4, 5, 6, 7], [-4, -3, -2, -1]]]  # fmt: skip
PUBLISHED = [  # data, indices, scales, zero points, both axes, result
    (SIX, [1], [[[1], [2], [1]], [[2], [1], [2]]], None, 0, 2,
     [[[8, 10, 12, 14], [4, 5, 6, 7], [-8, -6, -4, -2]]]),
    (SIX, [[2, -3, 2]], [[[1, 2, 1, 2]]] * 2, [[[-1, 1, 0, 0]], [[1, -1, 0, 0]]], 1, 1,
     [[[[1, 0, 2, 6], [-7, -16, -6, -10], [1, 0, 2, 6]]],
      [[[-5, -4, -2, -2], [3, 12, 6, 14], [-5, -4, -2, -2]]]]),
    (SIX, [[-2], [0]], [[[1, 2, 1, 2]] * 3], [[[-1, 1, 0, 0], [1, -1, 0, 0], [0, 0, 1, -1]]], 2, 0,
     [[[[-6], [-7]], [[-2], [-5]], [[1], [0]]], [[[6], [5]], [[6], [3]], [[-3], [-4]]]]),
]  # fmt: skip


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("scale", [np.float32, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("make", [int4, uint4])
@pytest.mark.parametrize(("data", "indices", "scales", "zeros", "axis", "q", "rows"), PUBLISHED)
def test_published_cases(data, indices, scales, zeros, axis, q, rows, make, scale, index):
    if zeros is None and make is uint4:
        zeros = np.zeros(np.shape(scales), int)  # 8 in the data as well as here
    zeros = None if zeros is None else make(zeros)
    operands = make(data), np.array(indices, index), np.array(scales, scale), zeros
    for at in (0, -3):
        axes = {"gather_axis": axis + at, "quantize_axis": q + at}
        result = ours(*operands, **axes, block_size=16)
        assert result.dtype == scale
        np.testing.assert_array_equal(result.astype(np.float32), np.array(rows, np.float32))


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_uint8_without_zero_points(bits):
    data = np.full((2, 8), 0b01010101, np.uint8)
    width = 8 * 8 // bits
    result = ours(data, np.array([1]), np.ones((2, -(-width // 16)), np.float32), bits=bits,
                  block_size=16)  # fmt: skip
    value = 0b01010101 & (1 << bits) - 1
    assert result.tolist() == [[value - 2 ** (bits - 1)] * width]


def test_packed_zero_points_begin_a_byte_with_each_row():
    data = np.array([[0x55] * 24, [0xAA] * 24], np.uint8)  # 48 values: 3 blocks of 16
    zeros = np.array([[0x21, 0x03], [0x54, 0x06]], np.uint8)
    result = ours(data, np.array([0, 1]), np.ones((2, 3), np.float32), zeros, block_size=16)
    assert result[:, ::16].tolist() == [[4, 3, 2], [6, 5, 4]]


def test_the_defaults_of_the_attributes():
    data = np.zeros((1, 128), np.uint8)
    result = ours(data, np.array([0]), np.ones((1, 2), np.float32))
    assert result.tolist() == [[-8.0] * 256]


def test_invalid_indices_give_zeros():
    result = ours(int4([[1] * 16, [2] * 16]), np.array([2, -3, -1]), np.ones((2, 1), np.float32),
                  block_size=16)  # fmt: skip
    assert result[:, 0].tolist() == [0, 0, 2]


@pytest.mark.parametrize("shape", [(2, 3), (1, 3), (2, 1), (1, 1)])
def test_scales_of_float8_broadcast(shape):
    data = np.arange(96, dtype=np.uint8).reshape(2, 48).view(ml_dtypes.float8_e4m3fn)
    scales = np.array([[0.5, 1.0, 2.0], [3.0, 4.0, 5.0]], np.float32)[: shape[0], : shape[1]]
    block = 16 if shape[1] == 3 else 0  # one for the whole axis
    result = ours(data, np.array([1, 0]), scales, block_size=block)
    factors = np.broadcast_to(np.repeat(scales, 48 // shape[1], axis=1), (2, 48))
    np.testing.assert_array_equal(result, (data.astype(np.float32) * factors)[[1, 0]])


def test_the_backend_runs_it():
    data, scales = int4([[1] * 16]), np.full((1, 1), 2, np.float32)
    model = model_of(data, np.array([0]), scales, block_size=16)
    assert backend.is_compatible(model)
    assert backend.prepare(model).run([np.array([0])])["rows"].tolist() == [[2.0] * 16]


W4, ONES = int4([[1] * 16]), np.ones((1, 1), np.float32)
W8 = np.ones((1, 16), np.uint8)
AT = "GatherBlockQuantized (output 'rows'): "
REFUSED = [
    ((W4, ONES), {"block_size": 8}, ValueError,
     "`block_size` must be a power of 2 from 16 on, got 8"),
    ((W4, ONES), {"block_size": 48}, ValueError,
     "`block_size` must be a power of 2 from 16 on, got 48"),
    ((W4, ONES), {"block_size": 0}, ValueError,
     "`block_size` must be a power of 2 from 16 on, got 0"),
    ((W4, ONES), {"bits": 8}, ValueError, "`bits` must be 4 where `data` is int4, got 8"),
    ((W8, ONES), {"bits": 3}, ValueError, "`bits` must be 2, 4 or 8 where `data` is uint8, got 3"),
    ((W8, ONES), {"bits": 8, "gather_axis": 1}, ValueError,
     "`gather_axis` must be 0 for uint8, got 1"),
    ((W4, ONES), {"gather_axis": 2}, ValueError, "`gather_axis` must be in [-2, 2), got 2"),
    ((W4, ONES), {"quantize_axis": -3}, ValueError, "`quantize_axis` must be in [-2, 2), got -3"),
    ((W4.astype(np.int8), ONES), {}, TypeError,
     "input `data` ('data') must be one of int4, uint4, uint8, float8_e4m3fn, float8_e5m2, "
     "got int8"),
    ((W4, ONES.astype(np.float64)), {}, TypeError,
     "input `scales` ('scales') must be one of float32, float16, bfloat16, got float64"),
    ((W4, ONES[:, :0]), {}, ValueError,
     "input `scales` ('scales') must have shape (1, 1), a scale for each 128 of dimension 1 of "
     "the values, (1, 16), got (1, 0)"),
    ((W4, ONES, W4), {}, ValueError,
     "input `zero_points` ('zeros') must have shape (1, 1), one for each scale, got (1, 16)"),
    ((W4, ONES), {"axis": 0}, ValueError,
     "has no attribute `axis` (bits, block_size, gather_axis, quantize_axis)"),
    ((W4, ONES), {"bits": 4.0}, ValueError, "`bits` must be INT"),
]  # fmt: skip


@pytest.mark.parametrize(("operands", "attributes", "error_type", "message"), REFUSED)
def test_invalid_nodes_raise(operands, attributes, error_type, message):
    data, *others = operands
    with pytest.raises(error_type) as caught:
        ours(data, np.array([0]), *others, **attributes)
    assert str(caught.value) == AT + message


def test_inputs_that_are_missing():
    model = model_of(W4, np.array([0]), ONES)
    del model.graph.node[0].input[2]
    with pytest.raises(ValueError, match=r"must have 3 or 4 inputs \(data, indices, scales, zero"):
        Evaluator(model)


# Answers of ONNX Runtime, if it is installed.


@pytest.fixture
def runtime():
    ort = pytest.importorskip(
        "onnxruntime", reason="install onnxruntime to compare with it: pip install onnxruntime"
    )

    def run(data, indices, scales, zeros=None, **attributes):
        model = model_of(data, indices, scales, zeros, **attributes)
        session = ort.InferenceSession(
            model.SerializeToString(), providers=["CPUExecutionProvider"]
        )
        return session.run(None, {"indices": indices})[0]

    return run


def random_call(rng, make, shape, q, block, scale):
    data = make(rng.integers(-8, 8, shape))
    blocks = list(shape)
    blocks[q] = -(-shape[q] // block)
    scales = (rng.integers(1, 1000, blocks) / 64).astype(scale)
    return data, scales, make(rng.integers(-8, 8, blocks))


@pytest.mark.parametrize("scale", [np.float32, np.float16])
@pytest.mark.parametrize("make", [int4, uint4])
@pytest.mark.parametrize(("axis", "q"), [(a, q) for a in range(3) for q in range(3)])
def test_onnx_runtime_gives_the_same_bits(runtime, axis, q, make, scale):
    rng = np.random.default_rng(3 * axis + q)
    shape = [4, 6, 8]
    shape[q] = 34
    data, scales, zeros = random_call(rng, make, shape, q, 16, scale)
    indices = rng.integers(-shape[axis], shape[axis], (2, 3))
    options = {"gather_axis": axis, "quantize_axis": q, "block_size": 16}
    for points in (None, zeros):
        expected = ours(data, indices, scales, points, **options)
        np.testing.assert_array_equal(runtime(data, indices, scales, points, **options), expected)


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("rows", [1, 3])
def test_onnx_runtime_gives_the_same_bits_of_uint8(runtime, bits, rows):
    rng = np.random.default_rng(bits)
    data = rng.integers(0, 256, (rows, 20), np.uint8)
    width = 20 * 8 // bits
    scales = rng.random((rows, -(-width // 16)), np.float32)
    zeros = rng.integers(0, 256, (rows, -(-scales.shape[1] * bits // 8)), np.uint8)
    indices = rng.integers(-rows, rows, 7)
    for points in (None, zeros):
        expected = ours(data, indices, scales, points, bits=bits, block_size=16)
        result = runtime(data, indices, scales, points, bits=bits, block_size=16)
        np.testing.assert_array_equal(result, expected)


def test_a_nan_keeps_its_bits_there(runtime):
    scales = np.array([[0x7FC12345], [0xFF812345]], np.uint32).view(np.float32)
    operands = int4([[1] * 16] * 2), np.array([0, 1]), scales
    assert np.all(ours(*operands, block_size=16).view(np.uint32) == 0x7FC00000)
    result = runtime(*operands, block_size=16).view(np.uint32)
    assert result[:, 0].tolist() == [0x7FC12345, 0xFFC12345]


def test_bfloat16_and_rank_1_that_it_lacks(runtime):
    for operands, axis in (((W4, ONES.astype(ml_dtypes.bfloat16)), 1), ((W4[0], ONES[0]), 0)):
        options = {"block_size": 16, "quantize_axis": axis}
        assert np.all(ours(operands[0], np.array([0]), operands[1], **options) == 1)
        with pytest.raises(Exception, match=r"NOT_IMPLEMENTED|must have rank > 1"):
            runtime(operands[0], np.array([0]), operands[1], **options)


def test_onnx_runtime_gives_zeros_for_invalid_indices(runtime):
    operands = int4([[1] * 16, [2] * 16]), np.array([2, -3, -1]), np.ones((2, 1), np.float32)
    result = runtime(*operands, block_size=16)
    np.testing.assert_array_equal(result, ours(*operands, block_size=16))
