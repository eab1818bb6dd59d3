"""An open table of quantized rows: bit-for-bit equal to `gather_quantized` on its arrays."""

import asyncio
import os
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import gatherum
from files.open_tables import forked
from gatherum import files
from gatherum.files.open_table import state

ml_dtypes = pytest.importorskip("ml_dtypes", reason="install ml_dtypes for its number types")


def random_operands(rng, dtype="int8", bits=8, shape=(50, 24), block=8, q=-1):
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


def same(actual, expected):
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    assert actual.tobytes() == expected.tobytes()


@pytest.mark.parametrize("cache", ["0", "1MiB"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize(
    ("stored_dtype", "bits"), [("int8", 8), ("uint8", 4), ("uint8", 2), ("uint8", 8)]
)
def test_the_bits_of_the_arrays(saved, stored_dtype, bits, dtype, cache):
    rng = np.random.default_rng(bits)
    arrays = random_operands(rng, stored_dtype, bits)
    codes, scales, zeros = saved(*arrays)
    options = {"block_size": 8, "bits": bits, "dtype": dtype}
    with files.open(codes, scales=scales, zero_points=zeros, cache=cache, **options) as table:
        assert table.shape == (50, 24 * 8 // bits)
        assert table.dtype == gatherum.gather_quantized(arrays[0], 0, *arrays[1:], **options).dtype
        for indices in ([3, -1, 3], [[0, 49], [7, 8]], 5, [], rng.integers(-50, 50, 300)):
            expected = gatherum.gather_quantized(arrays[0], indices, *arrays[1:], **options)
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
    arrays = random_operands(rng, shape=(6, 5, 8), block=3, q=q)
    codes, scales, zeros = saved(*arrays)
    options = {"quantize_axis": q, "block_size": 3}
    with files.open(codes, scales=scales, zero_points=zeros, **options) as table:
        indices = np.array([[4, -9], [99, 0]])
        attributes = {"axis": axis, "mode": mode, "negative": False}
        expected = gatherum.gather_quantized(
            arrays[0], indices, *arrays[1:], **options, **attributes
        )
        same(table.gather(indices, **attributes), expected)


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
    arrays = random_operands(rng)
    codes, scales, _ = saved(*arrays)
    batches = [rng.integers(0, 50, 7) for _ in range(10)]
    table = files.open(str(codes), scales=str(scales), block_size=8)
    expected = [gatherum.gather_quantized(arrays[0], b, arrays[1], block_size=8) for b in batches]
    for opened in (table, pickle.loads(pickle.dumps(table))):
        for result, wanted in zip(opened.rows(batches), expected, strict=True):
            same(result, wanted)
        opened.prefetch(batches[0])
    np.save(scales, arrays[1] * 2)
    table.reload()
    same(table.gather(batches[0]), expected[0] * 2)
    np.save(scales, arrays[1][:, :2])
    with pytest.raises(ValueError, match="`scales` must have shape"):
        table.reload()


def test_invalid_calls_raise(saved):
    arrays = random_operands(np.random.default_rng(3))
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


@pytest.mark.parametrize("cache", ["0", "1MiB"])
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("bits", [2, 4])
@pytest.mark.parametrize(("shape", "q"), [((9,), 0), ((5, 6), 0), ((5, 6), 1), ((3, 2, 5), 1)])
def test_slices_that_are_a_part_of_each_byte(saved, shape, q, bits, dtype, cache):
    rng = np.random.default_rng(bits)
    arrays = random_operands(rng, dtype, bits, shape, block=3, q=q)
    codes, scales, zeros = saved(*arrays)
    options = {"quantize_axis": q, "block_size": 3, "bits": bits}
    size = shape[-1] * 8 // bits
    for factors in ((scales, zeros), (scales,)):
        beside = dict(zip(("scales", "zero_points"), factors, strict=False))
        with files.open(codes, **beside, cache=cache, **options) as table:
            for indices in (rng.integers(-size, size, (4, 7)), np.arange(size), 1, []):
                expected = gatherum.gather_quantized(
                    arrays[0],
                    indices,
                    *arrays[1 : 1 + len(factors)],
                    axis=len(shape) - 1,
                    **options,
                )
                for _ in range(2):
                    same(table.gather(indices, axis=-1), expected)
            message = (
                rf"^gather: index {size} is out of bounds for axis {len(shape) - 1} of size {size}"
            )
            with pytest.raises(IndexError, match=message):
                table.gather([0, size], axis=-1)


def test_prefetched_rows_have_their_scales_in_the_cache(saved):
    rng = np.random.default_rng(0)
    for shape, q, bits in (((30, 4), 0, 8), ((30, 4), 1, 4), ((40,), 0, 4), ((30, 4), 0, 2)):
        arrays = random_operands(rng, "uint8", bits, shape, block=3, q=q)
        codes, scales, zeros = saved(*arrays)
        options = {"quantize_axis": q, "block_size": 3, "bits": bits, "cache": "1MiB", "readers": 1}
        with files.open(codes, scales=scales, zero_points=zeros, **options) as table:
            table.prefetch([25, 3, -1])
            table._start(int).result()  # earlier work in the queue is done
            parts = table._state, *table._state.beside
            before = [part.cache.misses for part in parts]
            table.gather([25, 3, -1])
            assert [part.cache.misses for part in parts] == before
            assert all(part.cache.hits for part in parts)


# ----------------------------------------------------------------- changes of the files


@pytest.fixture
def watched_closely(monkeypatch):
    """Check the files after every call."""
    monkeypatch.setattr(state, "NEAR", -1.0)


def replace(path, array):
    np.save(path.with_name("new.npy"), array)
    os.replace(path.with_name("new.npy"), path)


@pytest.mark.usefixtures("watched_closely")
@pytest.mark.parametrize("cache", ["0", "1MiB"])
@pytest.mark.parametrize(
    ("part", "change"),
    [(0, lambda a: a.astype(np.int32)), (0, lambda a: a[:40]), (0, lambda a: a[:, :16]),
     (0, lambda a: a.reshape(50, 3, 8)), (0, lambda a: a.view(np.uint8)),
     (1, lambda a: a.astype(np.float64)), (1, lambda a: a[:, :1]), (1, lambda a: a[:40]),
     (2, lambda a: a.astype(np.uint8)), (2, lambda a: a[:, :1])],
)  # fmt: skip
def test_a_reload_that_fails_leaves_the_table_as_it_was(saved, part, change, cache):
    arrays = random_operands(np.random.default_rng(5))
    paths = saved(*arrays)
    table = files.open(paths[0], scales=paths[1], zero_points=paths[2], block_size=8, cache=cache)
    expected = table.gather([0, 45])
    replace(paths[part], change(arrays[part]))
    with pytest.raises((TypeError, ValueError), match=r"^open: "):
        table.reload()
    assert (table.shape, table.dtype) == ((50, 24), np.float32)
    for _ in range(2):
        with pytest.raises(OSError, match="changed while it was being read") as caught:
            table.gather([0, 45])
        assert caught.value.__notes__ == ["Table.reload opens it again"]
    replace(paths[part], arrays[part])
    table.reload()
    same(table.gather([0, 45]), expected)


def test_reloads_and_lookups_at_the_same_time(saved):
    widths = {8: np.arange(32, dtype=np.int8).reshape(4, 8)}
    widths[24] = np.arange(96, dtype=np.int8).reshape(4, 24)
    codes, scales = saved(widths[8], np.ones((4, 1), np.float32))
    table = files.open(codes, scales=scales, block_size=8)
    ended = threading.Event()

    def ask():
        while not ended.is_set():
            try:
                result = table.gather([0, 1, 2, 3])
            except OSError:
                continue
            assert np.array_equal(result, widths[result.shape[1]])

    with ThreadPoolExecutor(3) as threads:
        asked = [threads.submit(ask) for _ in range(3)]
        for turn in range(60):
            width = (24, 8)[turn % 2]
            replace(codes, widths[width])
            replace(scales, np.ones((4, width // 8), np.float32))
            table.reload()
            assert table.shape == (4, width)
        ended.set()
        for one in asked:
            one.result()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_another_directory(saved, monkeypatch, tmp_path):
    arrays = random_operands(np.random.default_rng(5))
    saved(*arrays)
    monkeypatch.chdir(tmp_path)
    table = files.open("codes.npy", scales="scales.npy", zero_points="zeros.npy", block_size=8)
    expected = table.gather([1, 2])
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    same(pickle.loads(pickle.dumps(table)).gather([1, 2]), expected)
    table.reload()
    same(table.gather([1, 2]), expected)
    assert forked(lambda: same(table.gather([1, 2]), expected)) == 0
    replace(tmp_path / "scales.npy", arrays[1])

    def gather_of_a_replaced_table() -> None:
        with pytest.raises(OSError, match="changed since the parent"):
            table.gather([1])

    assert forked(gather_of_a_replaced_table) == 0


def test_arrays_are_tables(saved):
    arrays = random_operands(np.random.default_rng(6), shape=(50, 8), block=2)
    codes, scales, zeros = arrays
    scales = scales.astype(np.float32)
    table = files.open(codes, scales=scales, zero_points=zeros, block_size=2, cache="1MiB")
    for _ in range(2):
        expected = gatherum.gather_quantized(codes, [4], scales, zeros, block_size=2)
        same(table.gather([4]), expected)
        scales += 1
        zeros += 1
    with pytest.raises(ValueError, match=r"^gather: `out` must not share memory with `data`"):
        table.gather([1, 2], out=scales.reshape(-1)[:16].reshape(2, 8))


def test_a_closed_table(saved):
    arrays = random_operands(np.random.default_rng(3))
    codes, scales, _ = saved(*arrays)
    table = files.open(codes, scales=scales, block_size=8, dtype="float16", bits=8)
    assert repr(table) == f"<Table {codes}: float16 (50, 24)>"
    rows = table.rows([[n] for n in range(20)])
    next(rows)
    table.close()
    for use in (lambda: next(rows), lambda: table.rows([[0]])):
        with pytest.raises(ValueError, match=r"^rows: the table .*codes\.npy is closed$"):
            use()
    assert repr(table) == f"<closed Table {codes}>"


@pytest.mark.parametrize(
    ("bad", "error_type"), [([50], IndexError), ([1.5], TypeError), ("x.npy", TypeError)], ids=repr
)
def test_batches_before_an_error_are_yielded(saved, bad, error_type):
    codes, scales, _ = saved(*random_operands(np.random.default_rng(3)))
    plain, quantized = files.open(codes), files.open(codes, scales=scales, block_size=8)
    errors = []
    for table in (plain, quantized):
        rows = table.rows([[1], [2, 3], bad, [4]])
        assert [batch.shape for batch in (next(rows), next(rows))] == [(1, 24), (2, 24)]
        with pytest.raises(error_type) as caught:
            next(rows)
        errors.append((str(caught.value), caught.value.__notes__))
    assert errors[0] == errors[1]
    assert errors[0][1] == ["in batch 2 (the first is 0)"]


def test_an_iterator_of_batches_that_fails(saved):
    codes, scales, _ = saved(*random_operands(np.random.default_rng(3)))

    def batches(threads):
        for row in range(2):
            threads.append(threading.current_thread().name)
            yield [row]
        raise RuntimeError("no more")

    for table in (files.open(codes), files.open(codes, scales=scales, block_size=8)):
        threads: list[str] = []
        rows = table.rows(batches(threads))
        assert [next(rows).shape, next(rows).shape] == [(1, 24)] * 2
        with pytest.raises(RuntimeError, match="no more") as caught:
            next(rows)
        assert not hasattr(caught.value, "__notes__")
        assert threads == ["gatherum-batches"] * 2


def test_small_batches_along_another_axis(saved):
    arrays = random_operands(np.random.default_rng(3))
    codes, scales, _ = saved(*arrays)
    table = files.open(codes, scales=scales, block_size=8)
    batches = [np.array([[n % 24, 3]]) for n in range(200)]
    for result, batch in zip(table.rows(batches, axis=1), batches, strict=True):
        same(result, gatherum.gather_quantized(arrays[0], batch, arrays[1], axis=1, block_size=8))
    fill = next(table.rows([[50, 1]], mode="fill"))
    same(fill, table.gather([50, 1], mode="fill"))


def test_errors_name_the_call(saved):
    codes, scales, _ = saved(*random_operands(np.random.default_rng(3)))
    for error, options in (
        (ValueError, {"block_size": 0}), (ValueError, {"block_size": 12}),
        (TypeError, {"block_size": 8, "dtype": "int8"}), (ValueError, {"block_size": 8, "bits": 3}),
        (ValueError, {"block_size": 8, "quantize_axis": 2}),
    ):  # fmt: skip
        with pytest.raises(error, match=r"^open: `"):
            files.open(codes, scales=scales, **options)
    table = files.open(codes, scales=scales, block_size=8)
    for error, call in (
        (IndexError, {"indices": [50]}), (ValueError, {"indices": [0], "axis": 2}),
        (ValueError, {"indices": [0], "mode": "no"}), (TypeError, {"indices": [0.5]}),
        (TypeError, {"indices": [0], "negative": 1}),
    ):  # fmt: skip
        with pytest.raises(error, match=r"^gather: "):
            table.gather(**call)


@pytest.mark.parametrize(
    "arguments", [{"block_size": 8}, {"bits": 8}, {"quantize_axis": 0}, {"dtype": "float16"},
              {"zero_points": np.zeros(1, np.int8)}, {"dtype": np.dtype("float16")}],
)  # fmt: skip
def test_arguments_of_a_quantized_table_need_its_scales(saved, arguments):
    (codes,) = saved(np.ones((2, 8), np.int8))
    default = {"quantize_axis": "-1", "dtype": "float32"}
    for name in arguments:
        said = rf"^open: `{name}` must be {default.get(name)} without `scales`$"
        with pytest.raises(ValueError, match=said):
            files.open(codes, **arguments)
