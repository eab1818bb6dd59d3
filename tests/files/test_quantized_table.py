"""A table of quantized rows that stays open: the bits of `gather_quantized` on its arrays."""

import asyncio
import pickle

import numpy as np
import pytest

import gatherum
from gatherum import files

ml_dtypes = pytest.importorskip("ml_dtypes", reason="install ml_dtypes for its number types")


def made(rng, dtype="int8", bits=8, shape=(50, 24), block=8, q=-1):
    codes = rng.integers(0, 256, shape, np.uint8).view(dtype)
    blocks = [*shape[:-1], shape[-1] * 8 // bits]
    blocks[q] = -(-blocks[q] // block)
    scales = rng.standard_normal(blocks).astype(np.float16)
    packed = (*blocks[:-1], -(-blocks[-1] * bits // 8))
    zeros = rng.integers(0, 256, packed, np.uint8).view(dtype)
    return codes, scales, zeros


@pytest.fixture
def saved(tmp_path):
    def save(*arrays):
        paths = []
        for name, array in zip(("codes", "scales", "zeros"), arrays, strict=False):
            paths.append(tmp_path / f"{name}.npy")
            np.save(paths[-1], array)
        return paths

    return save


def same(found, expected):
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("cache", ["0", "1MiB"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize(("kind", "bits"), [("int8", 8), ("uint8", 4), ("uint8", 2), ("uint8", 8)])
def test_the_bits_of_the_arrays(saved, kind, bits, dtype, cache):
    rng = np.random.default_rng(bits)
    arrays = made(rng, kind, bits)
    codes, scales, zeros = saved(*arrays)
    how = {"block_size": 8, "bits": bits, "dtype": dtype}
    with files.open(codes, scales=scales, zero_points=zeros, cache=cache, **how) as table:
        assert table.shape == (50, 24 * 8 // bits)
        assert table.dtype == gatherum.gather_quantized(arrays[0], 0, *arrays[1:], **how).dtype
        for indices in ([3, -1, 3], [[0, 49], [7, 8]], 5, [], rng.integers(-50, 50, 300)):
            expected = gatherum.gather_quantized(arrays[0], indices, *arrays[1:], **how)
            same(table.gather(indices), expected)
            same(table.submit(indices).result(), expected)
            same(asyncio.run(table.gather_async(indices)), expected)
            out = np.zeros_like(expected)
            assert table.gather(indices, out=out) is out
            same(out, expected)
    with pytest.raises(ValueError, match=r"is closed$"):
        table.gather([0])


@pytest.mark.parametrize("mode", ["clip", "wrap", "fill", "drop"])
@pytest.mark.parametrize(("axis", "q"), [(a, q) for a in range(3) for q in range(3)])
def test_axes_and_modes(saved, axis, q, mode):
    rng = np.random.default_rng(axis)
    arrays = made(rng, shape=(6, 5, 8), block=3, q=q)
    codes, scales, zeros = saved(*arrays)
    how = {"quantize_axis": q, "block_size": 3}
    with files.open(codes, scales=scales, zero_points=zeros, **how) as table:
        indices = np.array([[4, -9], [99, 0]])
        given = {"axis": axis, "mode": mode, "negative": False}
        expected = gatherum.gather_quantized(arrays[0], indices, *arrays[1:], **how, **given)
        same(table.gather(indices, **given), expected)


@pytest.mark.parametrize("blocks", [1, 3])
def test_the_block_size_follows_from_the_shapes(saved, blocks):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 120, (9, 24), np.uint8).view(ml_dtypes.float8_e4m3fn)
    scales = rng.random((9, blocks), np.float32)
    expected = gatherum.gather_quantized(codes, [4, 8], scales, block_size=24 // blocks)
    with files.open(codes, scales=scales) as table:  # arrays are tables, too
        same(table.gather([4, 8]), expected)
    with pytest.raises(ValueError, match="`block_size` must be given where 5 scales do not divide"):
        files.open(codes, scales=rng.random((9, 5), np.float32))


def test_batches_pickles_and_reloads(saved):
    rng = np.random.default_rng(1)
    arrays = made(rng)
    codes, scales, _ = saved(*arrays)
    batches = [rng.integers(0, 50, 7) for _ in range(10)]
    table = files.open(str(codes), scales=str(scales), block_size=8)
    expected = [gatherum.gather_quantized(arrays[0], b, arrays[1], block_size=8) for b in batches]
    for given in (table, pickle.loads(pickle.dumps(table))):
        for found, wanted in zip(given.rows(batches), expected, strict=True):
            same(found, wanted)
        given.prefetch(batches[0])
    np.save(scales, arrays[1] * 2)
    table.reload()
    same(table.gather(batches[0]), expected[0] * 2)
    np.save(scales, arrays[1][:, :2])
    with pytest.raises(ValueError, match="`scales` must have shape"):
        table.reload()


def test_what_is_refused(saved):
    arrays = made(np.random.default_rng(3))
    codes, scales, zeros = saved(*arrays)
    with pytest.raises(ValueError, match=r"^open: `zero_points` must be None without `scales`$"):
        files.open(codes, zero_points=zeros)
    with pytest.raises(TypeError, match="`dtype` must be float32, float16 or bfloat16"):
        files.open(codes, scales=scales, block_size=8, dtype="int8")
    with pytest.raises(ValueError, match=r"`scales` must have shape \(50, 2\)"):
        files.open(codes, scales=scales, block_size=12)
    with pytest.raises(TypeError, match="`scales` must be float32, float16, bfloat16 or"):
        files.open(codes, scales=codes, block_size=8)
    with files.open(codes, scales=scales, block_size=8) as table:
        with pytest.raises(IndexError, match=r"index 50 is out of bounds for axis 0 of size 50"):
            table.gather([0, 50])
        with pytest.raises(TypeError, match="`indices` must have an integer dtype, got float64"):
            table.gather([0.5])
        with pytest.raises(TypeError, match="`indices` must be an array for a quantized table"):
            table.gather(codes)
        with pytest.raises(ValueError, match="`fill_value` must be 0 for a quantized table, got 1"):
            table.gather([99], mode="fill", fill_value=1)
        with pytest.raises(ValueError, match=r"`out` must have shape \(1, 24\), got \(2, 24\)"):
            table.gather([1], out=np.zeros((2, 24), np.float32))
        with pytest.raises(TypeError, match="float32"):
            table.gather([1], out=np.zeros((1, 24), np.float64))
        for name in ("gather_nd", "gather_elements"):
            with pytest.raises(NotImplementedError, match=f"^{name}: a quantized table has"):
                getattr(table, name)([[0]])
    with (
        files.open(
            codes.with_name("codes.npy"), scales=np.ones((50, 1), np.float32), bits=4
        ) as table,
        pytest.raises(ValueError, match="`axis` must not be the last one of a table with 2 values"),
    ):
        table.gather([0], axis=1)
