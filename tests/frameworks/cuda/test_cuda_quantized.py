"""`gather_quantized` on device arrays and tensors has the bits of the call on NumPy arrays."""

import numpy as np
import pytest
from doubles import HostArray, HostTensor, array_of

import gatherum
from strategies import same_bits

ml_dtypes = pytest.importorskip("ml_dtypes", reason="install ml_dtypes for its number types")

RESULTS = ["float32", "float16", "bfloat16"]


def drawn(rng, dtype="int8", scale="float32", shape=(5, 4, 6), q=-1, block=4, bits=8):
    data = rng.integers(0, 256, shape, np.uint8).view(dtype)
    blocks = [*shape[:-1], shape[-1] * 8 // bits]
    blocks[q] = -(-blocks[q] // block)
    scales = rng.integers(0, 256, blocks, np.uint8).view("float8_e8m0fnu")
    if scale != "float8_e8m0fnu":
        scales = np.where(rng.random(blocks) < 0.1, np.nan, rng.normal(0, 1e4, blocks))
        scales = scales.astype(scale)
    packed = (*blocks[:-1], -(-blocks[-1] * bits // 8))
    zeros = rng.integers(0, 256, packed, np.uint8).view(dtype)
    return data, scales, zeros if dtype in ("uint8", "int8") else None


def on_device(array):
    """Return an array that claims to be on a device, of any dtype."""
    if array is None or array.dtype.isbuiltin == 1:
        return None if array is None else HostArray(array)
    made = gatherum.gather(HostArray(array.view(f"u{array.itemsize}")), np.arange(len(array)))
    made.dtype = array.dtype
    return made


TYPES = [
    ("uint8", "float32", "float32"),
    ("int8", "float16", "bfloat16"),
    ("float8_e4m3fn", "bfloat16", "float16"),
    ("float8_e5m2", "float8_e8m0fnu", "float32"),
]


@pytest.mark.parametrize(("dtype", "scale", "result"), TYPES)
def test_the_bits_of_arrays(on_shim, dtype, scale, result):
    rng = np.random.default_rng(len(dtype) + len(scale))
    data, scales, zeros = drawn(rng, dtype, scale, (60, 4, 6))
    indices = rng.integers(-60, 60, (20, 3))
    for points in (None, zeros):
        operands = data, indices, scales, points
        expected = gatherum.gather_quantized(*operands, block_size=4, dtype=result)
        actual = gatherum.gather_quantized(*map(on_device, operands), block_size=4, dtype=result)
        assert isinstance(actual, gatherum.cuda.DeviceArray)
        assert same_bits(array_of(actual), expected)


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize(("axis", "q"), [(a, q) for a in range(3) for q in range(3)])
def test_axes_layouts_and_modes(on_shim, axis, q, bits):
    rng = np.random.default_rng(axis)
    data, scales, zeros = drawn(rng, "uint8" if q else "int8", q=q, bits=bits)
    options = {"axis": axis, "quantize_axis": q, "block_size": 4, "bits": bits, "mode": "fill"}
    indices = np.array([3, -2, 99, 0], np.int32)
    expected = gatherum.gather_quantized(data, indices, scales, zeros, **options)
    turned = [HostArray(each.mT.copy().mT) for each in (data, scales, zeros)]
    result = gatherum.gather_quantized(turned[0], HostArray(indices), *turned[1:], **options)
    assert same_bits(array_of(result), expected)
    lists = [3, -2, 99, 0], scales, HostTensor(zeros)
    assert same_bits(
        array_of(gatherum.gather_quantized(HostTensor(data), *lists, **options)), expected
    )


def outcome(*operands, **options):
    try:
        result = gatherum.gather_quantized(*operands, **options)
        return result.tolist() if isinstance(result, np.ndarray) else array_of(result).tolist()
    except (IndexError, TypeError, ValueError) as error:
        return f"{type(error).__name__}: {error}"


DATA, SCALES = np.arange(24, dtype=np.uint8).reshape(4, 6), np.ones((4, 2), np.float32)
WRONG = [
    (DATA, [[0, 1], [4, 9]], SCALES, {}),
    (DATA, [0, 9], SCALES, {"bits": 4, "axis": 1, "block_size": 6}),
    (DATA, [0.5], SCALES, {}),
    (DATA, [0], SCALES[:3], {}),
    (DATA.astype("i4"), [0], SCALES, {}),
    (DATA[:0], [7], SCALES[:0], {"mode": "clip"}),
    (DATA[:0], [], SCALES[:0], {}),
    (DATA[:, :0], [1], SCALES[:, :0], {}),
    (DATA[:, :0], [4], SCALES[:, :0], {}),
]


@pytest.mark.parametrize("case", WRONG)
def test_errors_and_empty_arrays(on_shim, case):
    data, indices, scales, more = case
    indices = np.array(indices) if indices else np.array(indices, int)
    options = {"block_size": 3} | more
    expected = outcome(data, indices, scales, **options)
    assert outcome(*map(HostArray, (data, indices, scales)), **options) == expected


def test_a_graph_takes_no_call_that_waits(on_shim):
    on_shim.capturing.add(40)
    operands = (HostArray(each, 40) for each in (DATA, np.array([0]), SCALES))
    with pytest.raises(RuntimeError, match=r"^gather_quantized: arrays that are known by __cuda"):
        gatherum.gather_quantized(*operands, block_size=3)


@pytest.mark.frameworks
def test_tensors_and_the_gradient_of_the_scales(on_shim, as_cuda):
    import torch

    rng = np.random.default_rng(3)
    data, scales, zeros = drawn(rng, "int8")
    scales = rng.normal(size=scales.shape).astype(np.float32)
    indices = np.array([[3, -1], [0, 3]])
    expected = gatherum.gather_quantized(data, indices, scales, zeros, block_size=4)
    factors = torch.from_numpy(scales).requires_grad_()
    turned = torch.from_numpy(data.mT.copy()).mT
    result = gatherum.gather_quantized(
        turned, indices, factors, torch.from_numpy(zeros), block_size=4
    )
    assert same_bits(result.detach().numpy(), expected)
    weights = rng.normal(size=expected.shape).astype(np.float32)
    result.backward(torch.from_numpy(weights))
    values = gatherum.gather_quantized(data, indices, np.ones_like(scales), zeros, block_size=4)
    blocks = np.zeros((*expected.shape[:-1], 2), np.float32)
    where = np.arange(6) // 4
    gatherum.scatter_slices(blocks, where, weights * values, -1, reduction="add", out=blocks)
    sums = np.zeros_like(scales)
    gatherum.scatter_slices(sums, indices, blocks, reduction="add", out=sums)
    assert same_bits(factors.grad.numpy(), sums)
