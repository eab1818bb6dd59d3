"""`gather_quantized` on tensors: NumPy's bits, gradients of the scales, graphs, errors."""

import numpy as np
import pytest
from tensors import compiled, tensor_of, torch

import gatherum
from gatherum import files
from gatherum.torch.functions import quantized

ml_dtypes = pytest.importorskip("ml_dtypes", reason="install ml_dtypes for its number types")

DTYPES = ["uint8", "int8", "float8_e4m3fn", "float8_e5m2"]
SCALES = ["float32", "float16", "bfloat16", "float8_e8m0fnu"]
RESULTS = ["float32", "float16", "bfloat16"]


def bits_of(array):
    return array.view(f"u{array.dtype.itemsize}")


def same(actual, expected):
    assert str(actual.dtype) == f"torch.{expected.dtype.name}"
    assert tuple(actual.shape) == expected.shape
    raw = actual.detach().view({2: torch.uint16, 4: torch.uint32}[actual.dtype.itemsize]).numpy()
    np.testing.assert_array_equal(raw, bits_of(expected))


def drawn(rng, dtype="int8", scale="float32", shape=(5, 4, 6), q=-1, block=4, bits=8):
    data = rng.integers(0, 256, shape, np.uint8).view(dtype)
    blocks = [*shape[:-1], shape[-1] * 8 // bits]
    blocks[q] = -(-blocks[q] // block)
    scales = rng.integers(100, 150, blocks, np.uint8).view("float8_e8m0fnu")
    if scale != "float8_e8m0fnu":
        scales = rng.standard_normal(blocks).astype(scale)
    zeros = None
    if dtype in ("uint8", "int8"):
        packed = (*blocks[:-1], -(-blocks[-1] * bits // 8))
        zeros = rng.integers(0, 256, packed, np.uint8).view(dtype)
    return data, scales, zeros


@pytest.mark.parametrize("result", RESULTS)
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_bits_of_numpy(dtype, scale, result):
    rng = np.random.default_rng(len(dtype) + len(scale))
    data, scales, zeros = drawn(rng, dtype, scale)
    indices = rng.integers(-5, 5, (2, 3))
    options = {"block_size": 4, "dtype": result}
    for points in (None, zeros):
        expected = gatherum.gather_quantized(data, indices, scales, points, **options)
        zero_points = None if points is None else tensor_of(points)
        tensors = tensor_of(data), torch.from_numpy(indices), tensor_of(scales), zero_points
        same(gatherum.gather_quantized(*tensors, **options), expected)
        options["dtype"] = getattr(torch, result)
        same(gatherum.torch.functions.quantized.gather_quantized(*tensors, **options), expected)
        options["dtype"] = result


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize(("axis", "q"), [(a, q) for a in range(3) for q in range(3)])
def test_axes_layouts_and_modes(axis, q, bits):
    rng = np.random.default_rng(axis)
    data, scales, zeros = drawn(rng, "uint8", q=q, bits=bits)
    options = {"axis": axis, "quantize_axis": q, "block_size": 4, "bits": bits, "mode": "fill"}
    indices = np.array([3, -2, 99, 0])
    expected = gatherum.gather_quantized(data, indices, scales, zeros, **options)
    tensors = [tensor_of(each) for each in (data, scales, zeros)]
    for turned in (tensors, [each.mT.contiguous().mT for each in tensors]):
        same(gatherum.gather_quantized(turned[0], indices, *turned[1:], **options), expected)
    # Other operands than tensors are converted.
    same(gatherum.gather_quantized(tensors[0], [3, -2, 99, 0], scales, zeros, **options), expected)


@pytest.mark.parametrize(("mode", "block"), [("clip", 1), ("wrap", 4), ("fill", 100)])
@pytest.mark.parametrize(("axis", "q"), [(a, q) for a in range(3) for q in range(3)])
def test_gradients_of_the_scales(axis, q, mode, block):
    rng = np.random.default_rng(q)
    data, scales, zeros = drawn(rng, q=q, block=block)
    options = {"axis": axis, "quantize_axis": q, "block_size": block, "mode": mode}
    indices = np.array([[3, -1], [9, 0], [3, 1]])
    operands = tensor_of(data), torch.from_numpy(indices), tensor_of(scales).requires_grad_()
    result = gatherum.gather_quantized(*operands, tensor_of(zeros), **options)
    weights = torch.from_numpy(rng.integers(-4, 5, tuple(result.shape)).astype(np.float32))
    (of_scales,) = torch.autograd.grad(result, operands[2], weights)
    # The function is linear: compute its gradient one scale at a time.
    expected = np.zeros(scales.size, np.float32)
    for n in range(scales.size):
        one = np.zeros_like(scales)
        one.flat[n] = 1
        part = gatherum.gather_quantized(data, indices, one, zeros, **options)
        expected[n] = (part * weights.numpy()).sum()  # integers: exact
    np.testing.assert_array_equal(of_scales.numpy().ravel(), expected)


def test_a_gradient_has_the_dtype_of_the_scales():
    data, scales, _ = drawn(np.random.default_rng(0), "float8_e4m3fn", "bfloat16")
    data = np.nan_to_num(data.astype(np.float32)).astype(data.dtype)
    factors = tensor_of(scales).requires_grad_()
    result = gatherum.gather_quantized(
        tensor_of(data), [1, 0], factors, block_size=4, dtype=torch.float16
    )
    result.float().sum().backward()
    assert factors.grad.dtype == torch.bfloat16
    values = data[:2].astype(np.float32).reshape(2, 4, 6)
    sums = np.stack([values[..., :4].sum(-1), values[..., 4:].sum(-1)], -1)
    np.testing.assert_allclose(factors.grad[:2].float().numpy(), sums, rtol=0.01)
    assert not factors.grad[2:].any()


@pytest.mark.parametrize("dynamic", [False, True])
def test_graphs(dynamic):
    data, scales, zeros = drawn(np.random.default_rng(1))

    def lookup(data, indices, scales, zeros):
        return gatherum.gather_quantized(data, indices, scales, zeros, block_size=4) * 2

    graph = compiled(lookup, dynamic=dynamic)
    for indices in ([1, 0, 4], [[2, 2], [0, 1]]):
        operands = [tensor_of(data), torch.tensor(indices), tensor_of(scales), tensor_of(zeros)]
        operands[2].requires_grad_()
        result, expected = graph(*operands), lookup(*operands)
        same(result, expected.detach().numpy())
        assert torch.equal(
            *(torch.autograd.grad(each.sum(), operands[2])[0] for each in (result, expected))
        )


def test_export():
    data, scales, zeros = drawn(np.random.default_rng(2))

    class Lookup(torch.nn.Module):
        def forward(self, data, indices, scales, zeros):
            return gatherum.gather_quantized(data, indices, scales, zeros, block_size=4)

    operands = tensor_of(data), torch.tensor([1, 3]), tensor_of(scales), tensor_of(zeros)
    program = torch.export.export(Lookup(), operands)
    assert "gatherum.gather_quantized.default" in program.graph_module.code
    same(
        program.module()(*operands),
        gatherum.gather_quantized(data, [1, 3], scales, zeros, block_size=4),
    )


def test_tensors_receive_the_rows_of_a_file(tmp_path):
    data, scales, _ = drawn(np.random.default_rng(2), shape=(50, 24))
    np.save(tmp_path / "codes.npy", data)
    with files.open(tmp_path / "codes.npy", scales=scales, dtype="bfloat16") as table:
        out = torch.empty((3, 24), dtype=torch.bfloat16)
        assert table.gather([3, 0, 9], out=out) is out
        same(out, table.gather([3, 0, 9]))


def test_invalid_calls_raise():
    data, scales, zeros = map(tensor_of, drawn(np.random.default_rng(3)))
    run = gatherum.gather_quantized
    with pytest.raises(IndexError, match=r"^gather_quantized: index 7 is out of bounds for axis 0"):
        run(data, torch.tensor([7]), scales, block_size=4)
    with pytest.raises(
        ValueError, match=r"^gather_quantized: `scales` must have shape \(5, 4, 2\)"
    ):
        run(data, [0], scales[..., :1], block_size=4)
    with pytest.raises(TypeError, match=r"`zero_points` must have the dtype of `data`, int8, got"):
        run(data, [0], scales, zeros.to(torch.uint8), block_size=4)
    with pytest.raises(TypeError, match=r"`indices` must have an integer dtype, got float32"):
        run(data, torch.zeros(2), scales, block_size=4)
    with pytest.raises(TypeError, match=r"`data` must be uint8, .*, got float32$"):
        run(data.float(), [0], scales, block_size=4)
    with pytest.raises(
        TypeError, match=r"^gather_quantized: `scales` must be a NumPy array, got a"
    ):
        run(data.numpy(), [0], scales, block_size=4)
    with pytest.raises(TypeError, match=r"dense tensor, got a tensor of layout sparse_coo"):
        run(data.to_sparse(), [0], scales, block_size=4)
    meta = [each.to("meta") for each in (data, torch.tensor([0, 1]), scales)]
    assert run(*meta, block_size=4).shape == (2, 4, 6)
    with pytest.raises(TypeError, match=r"`scales` must be on the device of `data`, meta, got cpu"):
        run(*meta[:2], scales, block_size=4)
    with pytest.raises(NotImplementedError) as caught:  # on another device that holds values
        quantized._refuse_device(*meta, None)
    assert str(caught.value) == (
        "gather_quantized: tensors must be on the CPU or on a CUDA device, got meta; "
        "write data.cpu()"
    )


def test_operands_without_a_gradient():
    data, scales, _ = drawn(np.random.default_rng(4), "float8_e4m3fn", "float8_e8m0fnu")
    table, factors = tensor_of(data), tensor_of(scales)
    for operands, name in (
        ((table.clone().requires_grad_(), factors), "data"),
        ((table, factors.clone().requires_grad_()), "scales"),
    ):
        with pytest.raises(NotImplementedError) as caught:
            gatherum.gather_quantized(operands[0], [0], operands[1], block_size=4)
        assert str(caught.value) == (
            f"gather_quantized: `{name}` must not need a gradient, because there is none; write "
            f"{name}.detach()"
        )
