"""Offsets past 2^31 and 2^32, in elements and in bytes, for every kernel, reading and writing.

The arrays are sparse files of many GiB of which a few pages exist. The tests read those pages back
after a call, so every written byte of the file is checked, at any offset.
"""

import ctypes
import mmap
import os
import sys
from itertools import pairwise

import numpy as np
import pytest

import gatherum
from sizes import family
from sparse_files import NEEDS_HOLES, PLACES

pytestmark = [pytest.mark.slow, NEEDS_HOLES]
GIB = 1 << 30


@pytest.fixture(params=[1, 3], ids=["one thread", "three threads"])
def threads(request, settings_restored):
    """Use this number of threads."""
    gatherum.set_num_threads(request.param)


def _places(array):
    """Return positions along an array, including its end."""
    return np.append(PLACES[array.size > PLACES], array.size - 1)


def _rows_at(space, rows, columns, step, dtype="u1"):
    """Return rows that are `step` bytes apart."""
    item = np.dtype(dtype).itemsize
    sparse = space((rows - 1) * step + columns * item)
    return sparse, sparse.array(dtype, (rows, columns), (step, item))


def _filled(array, seed=0):
    array[...] = np.random.default_rng(seed).integers(1, 100, array.shape)
    return array


@pytest.mark.parametrize("index", ["i8", "u8", ">i8"])
@pytest.mark.parametrize("dtype", ["u1", "f4", "f8", "c16"])
def test_gather_lines(space, dtype, index):
    data = space((2**32 + 4096) * np.dtype(dtype).itemsize).array(dtype)
    places = _places(data)
    data[places] = np.arange(1, len(places) + 1)
    result = gatherum.gather(data, places.astype(index))
    assert result.tolist() == list(range(1, len(places) + 1))
    if index != "u8":
        assert gatherum.gather(data, places - data.size).tobytes() == result.tobytes()
    assert (
        gatherum.gather_nd(data[::-1], (data.size - 1 - places)[:, None]).tolist()
        == result.tolist()
    )
    assert gatherum.gather_elements(data, places.astype(index)).tolist() == result.tolist()
    for bad in (data.size, 2**62, 2**63 - 1):
        with pytest.raises(IndexError, match=f"index {bad} is out of bounds .* size {data.size} "):
            gatherum.gather(data, np.array([0, bad], index))


@pytest.mark.parametrize("step", [1, 2], ids=["packed", "strided"])
@pytest.mark.parametrize(("dtype", "columns"), [("u1", 1000), ("f4", 1024), ("S3", 700)])
def test_gather_rows(space, dtype, columns, step):
    item = np.dtype(dtype).itemsize
    row = columns * item
    data = space(((2**32 + 10**6) * item) // row * row).array(dtype, (-1, columns))
    rows = _places(data.ravel()) // columns
    for row in rows:
        data[row] = np.arange(row, row + columns).astype(dtype)
    expected = np.stack([data[row, ::step] for row in rows])
    assert gatherum.gather(data[:, ::step], rows).tobytes() == expected.tobytes()
    many = np.resize(rows, 9_000)
    result = gatherum.gather_nd(data[:, ::step], many[:, None])
    assert result[: len(rows)].tobytes() == expected.tobytes()
    assert result[-1].tobytes() == expected[(len(many) - 1) % len(rows)].tobytes()


def test_components_far_apart(space):
    sparse, data = _rows_at(space, 5, 2**31 - 8, 2**31 + 8)
    places = [(0, 0), (0, 2**31 - 9), (1, 0), (2, 1), (4, 2**31 - 9), (3, 2**30)]
    for value, place in enumerate(places, 1):
        data[place] = value
    indices = np.array(places)
    assert gatherum.gather_nd(data, indices).tolist() == [1, 2, 3, 4, 5, 6]
    updates = np.full(6, 10, np.uint8)
    assert gatherum.scatter_nd(data, indices, updates, reduction="add", out=data) is data
    assert gatherum.gather_nd(data, indices - data.shape).tolist() == [11, 12, 13, 14, 15, 16]
    assert len(sparse.written()) == 6


def test_stretches(space, threads):
    _, data = _rows_at(space, 6, 1_000, 2**31 + 64)
    _filled(data)
    indices = np.random.default_rng(1).integers(-1_000, 1_000, (6, 20_000))
    assert family(gatherum.plan("gather_elements", data, indices, axis=1).algorithm) == "prefetched"
    result = gatherum.gather_elements(data, indices, 1)
    assert result.tobytes() == np.take_along_axis(data, indices, 1).tobytes()
    assert gatherum.gather(data, indices[0], 1).tobytes() == data[:, indices[0]].tobytes()


def test_packed(space, threads):
    _, data = _rows_at(space, 70, 600, 2**26 + 64)
    _filled(data)
    indices = np.random.default_rng(1).integers(-70, 70, (300, 600))
    assert family(gatherum.plan("gather_elements", data, indices).algorithm) == "packed"
    result = gatherum.gather_elements(data, indices)
    assert result.tobytes() == np.take_along_axis(data, indices, 0).tobytes()


def test_results_and_indices_far_apart(space, threads):
    data = np.arange(1, 251, dtype=np.uint8).reshape(50, 5)
    sparse, out = _rows_at(space, 5, 5, 2**31 + 16)
    indices = space(5 * 2**32).array("i8", (5,), (2**32,))
    indices[:] = [49, 0, -1, 7, 3]
    assert gatherum.gather(data, indices, out=out) is out
    assert out.tolist() == data[indices].tolist()
    assert sparse.holds(out)
    pairs = space(4 * 2**31).array("i4", (2, 2), (8, 2**32 + 4))
    pairs[...] = [[49, 4], [3, -5]]
    assert gatherum.gather_nd(data, pairs).tolist() == [data[49, 4], data[3, 0]]
    pairs[1, 1] = -6
    with pytest.raises(IndexError, match=r"index -6 .* axis 1 of size 5 \(indices\[1, 1\]\)"):
        gatherum.gather_nd(data, pairs)
    wide = np.resize(np.arange(50), (5, 20_000))
    sparse, out = _rows_at(space, 5, 20_000, 2**31 + 16)
    gatherum.gather(data[:, 0], wide, out=out)
    assert out.tobytes() == data[:, 0][wide].tobytes()
    assert sparse.holds(out)


def test_the_position_of_an_index_past_2_to_the_32(settings_restored):
    space = mmap.mmap(-1, 2**32 + 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        space.madvise(mmap.MADV_HUGEPAGE)  # reads zeros in larger pages
    indices = np.frombuffer(space, np.int8)
    indices[2**32 + 9] = 4
    with pytest.raises(IndexError) as caught:
        gatherum.gather(np.zeros((4, 0), np.int8), indices)
    assert str(caught.value) == (
        f"gather: index 4 is out of bounds for axis 0 of size 4 (indices[{2**32 + 9}])"
    )


@pytest.mark.parametrize("reduction", ["none", "add", "mean"])
@pytest.mark.parametrize("dtype", ["u1", "f4", "f8"])
def test_scatter_lines(space, dtype, reduction):
    sparse = space((2**32 + 4096) * np.dtype(dtype).itemsize)
    data = sparse.array(dtype)
    places = _places(data)
    updates = np.arange(1, len(places) + 1).astype(dtype)
    plan = gatherum.plan(
        "scatter_nd", data, places[:, None], updates, reduction=reduction, out=data
    )
    assert family(plan.algorithm) == ("by_destination" if reduction == "mean" else "direct")
    gatherum.scatter_nd(
        data, places[:, None], updates, reduction=reduction, include_self=False, out=data
    )
    assert data[places].tolist() == updates.tolist()
    pieces = [data[a:b] for a, b in pairwise(p for x in places for p in (x, x + 1))][::2]
    assert sparse.holds(*pieces)
    gatherum.scatter_elements(data, places - data.size, updates, 0, reduction="add", out=data)
    assert data[places].tolist() == (updates + updates).tolist()
    before = sparse.written()
    with pytest.raises(IndexError, match=f"index {data.size} "):
        gatherum.scatter_nd(data, np.append(places, data.size)[:, None], updates[0], out=data)
    assert sparse.written() == before
    assert sparse.holds(*pieces)


@pytest.mark.parametrize("step", [1, 2], ids=["packed", "strided"])
@pytest.mark.parametrize("reduction", ["none", "add", "mean"])
def test_scatter_rows(space, reduction, step):
    sparse = space((2**32 // 1_000 + 2) * 4_000)
    data = sparse.array("f4", (-1, 1_000))
    rows = np.unique(_places(data.ravel()) // 1_000)
    updates = _filled(np.empty((len(rows), 1_000 // step), np.float32))
    gatherum.scatter_nd(
        data[:, ::step], rows[:, None], updates, reduction=reduction, out=data[:, ::step]
    )
    for row, update in zip(rows, updates, strict=True):
        expected = update / np.float32(2) if reduction == "mean" else update
        assert data[row, ::step].tobytes() == expected.tobytes()
    assert sparse.holds(*(data[row] for row in rows))


def test_shares_of_the_destinations(space, threads):
    sparse = space(2**33)
    data = sparse.array("u1")
    places = np.concatenate(
        [place + np.arange(300) for place in (0, 2**31, 2**32 - 150, 2**33 - 300)]
    )
    indices = np.random.default_rng(3).choice(places, 200_000)
    expected = np.bincount(np.searchsorted(places, indices)).astype(np.uint8)
    plan = gatherum.plan("scatter_nd", data, indices[:, None], data[0], reduction="add")
    assert family(plan.algorithm) == "direct"
    gatherum.scatter_nd(data, indices[:, None], np.uint8(1), reduction="add", out=data)
    assert data[places].tolist() == expected.tolist()
    assert sparse.holds(*(data[place : place + 300] for place in places[::300]))


@pytest.mark.parametrize(
    ("dtype", "reduction"),
    [("u1", "add"), ("f8", "max"), ("f2", "add"), ("i4", "mean"), ("i8", "none")],
)
def test_slabs(space, threads, dtype, reduction):
    item = np.dtype(dtype).itemsize
    sparse = space(4 * (2**31 + 16) + item)
    data = sparse.array(dtype, (5,), (2**31 + 16,))
    indices = np.random.default_rng(4).integers(-5, 5, (300_000, 1))
    updates = (np.arange(300_000) % 90 + 1).astype(dtype)
    near = np.arange(1, 6).astype(dtype)
    data[:] = near
    plan = gatherum.plan("scatter_nd", data, indices, updates, reduction=reduction, out=data)
    assert family(plan.algorithm) == "accumulators"
    expected = gatherum.scatter_nd(near, indices, updates, reduction=reduction)
    for view, numbers in ((data, indices), (data[::-1], 4 - indices % 5)):
        view[:] = near if view is data else near[::-1]
        gatherum.scatter_nd(view, numbers, updates, reduction=reduction, out=view)
        assert data.tobytes() == expected.tobytes()
        assert sparse.holds(data)


@pytest.mark.parametrize("axis", [0, 1])
def test_slabs_of_columns_and_lines(space, threads, axis):
    sparse, data = _rows_at(space, 6, 300, 2**31 + 64, "f4")
    _filled(data)
    near, shape = data.copy(), ((4_000, 300), (6, 40_000))[axis]
    indices = np.random.default_rng(4).integers(0, data.shape[axis], shape)
    updates = _filled(np.empty(shape, np.float32), 1)
    plan = gatherum.plan(
        "scatter_elements", data, indices, updates, axis=axis, reduction="add", out=data
    )
    assert family(plan.algorithm) == "accumulators"
    gatherum.scatter_elements(data, indices, updates, axis, reduction="add", out=data)
    assert (
        data.tobytes()
        == gatherum.scatter_elements(near, indices, updates, axis, reduction="add").tobytes()
    )
    assert sparse.holds(data)


def _repeated(fd, size, times):
    """Map a file of `size` bytes several times in a row: one large array of little memory."""
    space = mmap.mmap(-1, size * times)
    start = np.frombuffer(space, np.uint8).ctypes.data
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    map_fixed, access = 0x10, mmap.PROT_READ | mmap.PROT_WRITE
    for at in range(start, start + size * times, size):
        if libc.mmap(at, size, access, mmap.MAP_SHARED | map_fixed, fd, 0) != at:
            raise OSError(ctypes.get_errno(), "mmap")
    return np.frombuffer(space, np.uint8)


@pytest.mark.skipif(
    sys.platform != "linux",
    reason="maps one file many times over: run on Linux, where MAP_FIXED is 16",
)
@pytest.mark.parametrize("reduction", ["add", "mean"])
def test_a_partition(threads, reduction):
    # 1031 and the size have no common divisor, so each destination is a different byte.
    count, step, size = 2**23 + 1, 1031, 2**23 + 2**16
    with open(os.memfd_create("bytes"), "r+b") as file:
        file.truncate(size)
        data = _repeated(file.fileno(), size, count * step // size + 1)[: count * step : step]
        bytes_of_file = np.memmap(file, np.uint8, "r+")
        _filled(bytes_of_file)
        near, before = data.copy(), bytes_of_file.copy()
        indices = np.random.default_rng(4).integers(-count, count, (1_100_000, 1))
        updates = _filled(np.empty(1_100_000, np.uint8), 1)
        plan = gatherum.plan("scatter_nd", data, indices, updates, reduction=reduction, out=data)
        assert family(plan.algorithm) == "partitioned"
        gatherum.scatter_nd(data, indices, updates, reduction=reduction, out=data)
        expected = gatherum.scatter_nd(near, indices, updates, reduction=reduction)
        assert data.tobytes() == expected.tobytes()
        others = np.ones(size, bool)
        others[np.arange(count) * step % size] = False
        assert np.count_nonzero(others) == size - count
        assert (bytes_of_file == before)[others].all()


@pytest.mark.parametrize("reduction", ["mean", "add"])
def test_groups_counted_out(space, threads, reduction):
    sparse, data = _rows_at(space, 6, 40, 2**31 + 64, "f2")
    _filled(data)
    near = data.copy()
    indices = np.random.default_rng(4).integers(-6, 6, (400, 1))
    updates = _filled(np.empty((400, 40), np.float16), 1)
    plan = gatherum.plan("scatter_nd", data, indices, updates, reduction=reduction, out=data)
    assert family(plan.algorithm) == "by_destination"
    gatherum.scatter_nd(data, indices, updates, reduction=reduction, out=data)
    assert (
        data.tobytes() == gatherum.scatter_nd(near, indices, updates, reduction=reduction).tobytes()
    )
    assert sparse.holds(data)


def test_updates_and_outputs_far_apart(space, threads):
    _, updates = _rows_at(space, 6, 4_000, 2**31 + 64, "f4")
    sparse, out = _rows_at(space, 9, 4_000, 2**30 + 64, "f4")
    data = _filled(np.empty((9, 4_000), np.float32))
    _filled(updates, 1)
    indices = np.array([8, 0, 8, 1, -2, 0])[:, None]
    expected = gatherum.scatter_nd(data, indices, updates.copy(), reduction="add")
    assert gatherum.scatter_nd(data, indices, updates, reduction="add", out=out) is out
    assert out.tobytes() == expected.tobytes()
    assert sparse.holds(out)


def test_duplicates_are_told_apart():
    places = np.array([5, 2**31 + 5, 2**32 + 5, 2**33 + 5, 5])
    report = gatherum.index_report("scatter_nd", (2**34,), places[:, None])
    assert (report.duplicates, report.first_duplicate) == (1, (4,))
