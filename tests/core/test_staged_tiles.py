"""Tiles of indices, staged while the preceding ones move: lines, columns and partitions."""

import numpy as np
import pytest

import gatherum
from canaries import guarded, strays
from gatherum import reference
from sizes import chosen_from, family

# A cache line has 8 or 16 indices: less than one, whole ones, and some more.
WIDTHS = [1, 7, 8, 15, 16, 17, 64, 200]
DTYPES = ["i8", "i4", "u4", "i2", ">i8"]
ROWS = 40


@pytest.fixture(autouse=True)
def _one_thread(settings_restored):
    gatherum.set_num_threads(1)


def _bits(array):
    return array.shape, array.dtype, array.tobytes()


def _columns(width, index_dtype, dtype="f4", rows=70):
    rng = np.random.default_rng(9)
    data = rng.standard_normal((ROWS, width)).astype(dtype)
    updates = rng.standard_normal((rows, width)).astype(dtype)
    return data, rng.integers(0, ROWS, (rows, width)).astype(index_dtype), updates


def _chosen(operator, *operands, **more):
    return family(gatherum.plan(operator, *operands, **more).algorithm)


@pytest.mark.parametrize("index_dtype", DTYPES)
@pytest.mark.parametrize("width", WIDTHS)
def test_columns_of_every_width(width, index_dtype):
    """A chunk of columns may end anywhere; the last one may end inside a cache line."""
    operands = _columns(width, index_dtype)
    data, indices, _ = operands
    folds = [{"axis": 0, "reduction": reduction} for reduction in ("none", "add", "mean")]
    gathered = _bits(reference.gather_elements(data, indices, axis=0))
    scattered = [_bits(reference.scatter_elements(*operands, **more)) for more in folds]
    for sizes in ({"small_call_bytes": 0}, {"small_call_bytes": 0, "private_cache_bytes": 0}):
        with chosen_from(sizes):
            # A single column is handled as a line.
            assert (_chosen("gather_elements", data, indices, axis=0) == "packed") == (width > 1)
            assert _bits(gatherum.gather_elements(data, indices, axis=0)) == gathered
            for more, expected in zip(folds, scattered, strict=True):
                assert (
                    _chosen("scatter_elements", *operands, **more) == "accumulators" or width == 1
                )
                assert _bits(gatherum.scatter_elements(*operands, **more)) == expected


@pytest.mark.parametrize("place", [0, 63, 64, 1000, 4479])
@pytest.mark.parametrize("index", [ROWS, -1, -ROWS, -ROWS - 1])
@pytest.mark.parametrize("mode", ["raise", "drop", "clip", "wrap"])
def test_one_index_of_a_column(place, index, mode):
    index_dtype = ("i8", "i4", ">i8")[(place + index + len(mode)) % 3]
    data, indices, updates = _columns(64, index_dtype)
    indices.flat[place] = index
    operands = data, indices, updates, 0
    with chosen_from({"small_call_bytes": 0}):
        if mode == "raise" and not -ROWS <= index < ROWS:
            where = ", ".join(map(str, np.unravel_index(place, indices.shape)))
            with pytest.raises(IndexError, match=rf"index {index} .*\(indices\[{where}\]\)"):
                gatherum.scatter_elements(*operands, reduction="add")
            with pytest.raises(IndexError, match=rf"index {index} .*\(indices\[{where}\]\)"):
                gatherum.gather_elements(data, indices, axis=0)
            return
        options = {"reduction": "add", "mode": mode}
        result = gatherum.scatter_elements(*operands, **options)
        assert _bits(result) == _bits(reference.scatter_elements(*operands, **options))
        filled = "fill" if mode == "drop" else mode
        result = gatherum.gather_elements(data, indices, axis=0, mode=filled)
        assert _bits(result) == _bits(reference.gather_elements(data, indices, axis=0, mode=filled))


def _every(array, step):
    """Return the columns `step` apart, or repeat the first one if it is 0."""
    if step == 0:
        return np.broadcast_to(array[:, :1], array.shape)
    return np.repeat(array, abs(step), axis=1)[:, ::step]


@pytest.mark.parametrize("of_updates", [1, 2, -1, 0])
@pytest.mark.parametrize("of_indices", [1, 2, -1, 0])
def test_columns_of_strided_operands(of_indices, of_updates):
    """Columns that are not adjacent are not prefetched with the indices, but are read correctly."""
    data, indices, updates = _columns(64, "i8")
    operands = data, _every(indices, of_indices), _every(updates, of_updates), 0
    with chosen_from({"small_call_bytes": 0}):
        assert _bits(gatherum.scatter_elements(*operands, reduction="add")) == _bits(
            reference.scatter_elements(*operands, reduction="add")
        )


@pytest.mark.parametrize("of_out", [2, -1])
@pytest.mark.parametrize("of_indices", [1, 2, -1, 0])
def test_columns_into_strided_output(of_indices, of_out):
    data, indices, _ = _columns(64, "i8")
    indices = _every(indices, of_indices)
    out = np.zeros((70, 64 * abs(of_out)), "f4")[:, ::of_out]
    with chosen_from({"small_call_bytes": 0}):
        gatherum.gather_elements(data, indices, axis=0, out=out)
    assert np.array_equal(out, np.take_along_axis(data, indices, axis=0))


@pytest.mark.parametrize("far", [False, True])
@pytest.mark.parametrize("index_dtype", DTYPES)
@pytest.mark.parametrize("lengths", [(1, 1), (5, 255), (3, 256), (4, 300), (2, 1000)])
def test_lines_that_do_not_go_on_in_one_another(far, index_dtype, lengths):
    """A tile may be longer or shorter than the one it is staged with, and so may lines."""
    rng = np.random.default_rng(4)
    lines, length = lengths
    data = rng.integers(0, 255, (1 << 20) + 3 if far else 30_000).astype("u1")
    indices = rng.integers(0, 30_000, (lines, length + 3)).astype(index_dtype)[:, :length]
    out = guarded(indices.shape, "u1", shift=1)
    gatherum.gather(data, indices, out=out)
    assert not strays(out)
    assert np.array_equal(out, data[indices.astype("i8")])
    if indices.dtype.kind != "u":
        indices[:, length // 2] = -1
        gatherum.gather(data, indices, out=out)
        assert np.array_equal(out, data[indices.astype("i8")])


@pytest.mark.parametrize("index_dtype", DTYPES)
@pytest.mark.parametrize("count", [1, 255, 256, 257, 520, 1500])
@pytest.mark.parametrize("bad", [None, 0, 254, 255, -1])
def test_partitions_of_every_length(index_dtype, count, bad):
    rng = np.random.default_rng(6)
    size = 2 * count  # more than 8 would make a partition too sparse
    data, updates = (rng.standard_normal(n).astype("f4") for n in (size, count))
    indices = rng.integers(0, size, (count, 1)).astype(index_dtype)
    if bad is not None:
        indices[min(bad, count - 1)] = size
    with chosen_from({"small_call_bytes": 0, "many_updates": 1, "far_bytes": 0}):
        operands, options = (data, indices, updates), {"reduction": "add", "mode": "drop"}
        assert _chosen("scatter_nd", *operands, reduction="add") == "partitioned"
        result = gatherum.scatter_nd(*operands, **options)
        assert _bits(result) == _bits(reference.scatter_nd(*operands, **options))
        if bad is not None:
            with pytest.raises(IndexError, match=f"index {size} "):
                gatherum.scatter_nd(*operands, reduction="add")


@pytest.mark.parametrize("reduction", ["none", "add", "mean"])
@pytest.mark.parametrize("width", [2, 8])
def test_threads_that_share_a_few_columns(width, reduction):
    """With three or more threads, each has a separate slab for a part of the rows."""
    rows = 600_000 // width
    rng = np.random.default_rng(3)
    indices = rng.permuted(np.tile(np.arange(rows)[:, None], (1, width)), axis=0)
    updates = np.arange(rows * width, dtype="f8").reshape(rows, width)
    data = np.ones((rows, width))
    expected = np.empty_like(data)
    np.put_along_axis(expected, indices, updates, axis=0)
    more = {"none": 0, "add": 1, "mean": 1}[reduction]
    expected = (expected + more) / (2 if reduction == "mean" else 1)
    for threads in (1, 3, 7):
        gatherum.set_num_threads(threads)
        result = gatherum.scatter_elements(data, indices, updates, 0, reduction=reduction)
        assert np.array_equal(result, expected), threads


@pytest.mark.parametrize("index", ["i4", "i8"])
@pytest.mark.parametrize("columns", [9, 61, 64, 300])
def test_lines_across_the_data_of_every_end(columns, index):
    data = np.arange(90 * 512, dtype="f4").reshape(90, 512)  # a row is a power of two bytes
    indices = np.random.default_rng(5).integers(0, 90, (70, columns)).astype(index)
    expected = data[indices, np.arange(columns)]
    assert np.array_equal(gatherum.gather_elements(data, indices), expected)
