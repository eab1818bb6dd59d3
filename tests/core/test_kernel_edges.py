"""Edges of the kernels: first and last destinations, partial blocks, and rounding per step.

Most tests need the size from which a kernel is chosen or its work is shared.
"""

import numpy as np
import pytest

import gatherum
from canaries import guarded, guarded_copy, strays
from sizes import chosen_from


def _rng():
    return np.random.default_rng(7)


@pytest.mark.parametrize("shift", [0, 4, 20, 60])
@pytest.mark.parametrize("size", [1 << 20, (1 << 20) + 7])
def test_a_large_copy_into_memory_at_any_address(shift, size):
    """Whole cache lines are written past the caches; the bytes before and after them are not."""
    data = _rng().integers(1, 1 << 30, size).astype("i4")
    out = guarded(data.shape, data.dtype, shift=shift)
    gatherum.scatter_nd(data, [[3]], np.array([-1], "i4"), out=out)
    assert not strays(out)
    expected = data.copy()
    expected[3] = -1
    assert np.array_equal(out, expected)


@pytest.mark.parametrize("dtype", ["i1", "f2", "f4", "c8", "c16", "V3", "V32", "V20000"])
@pytest.mark.parametrize("size", [65_536, 150_001, 3_000_003])
def test_one_item_copied_into_all_places(dtype, size):
    rng = np.random.default_rng(size)
    dtype = np.dtype(dtype)
    item, update = rng.bytes(dtype.itemsize), np.frombuffer(rng.bytes(dtype.itemsize), dtype)
    n = size // dtype.itemsize + 2
    data = np.broadcast_to(np.frombuffer(item, dtype), n)
    for shift in (0, 1, 63):
        out = guarded((n,), dtype, shift=shift)
        gatherum.scatter_nd(data, [[n - 1]], update, out=out)
        assert not strays(out)
        assert out.tobytes() == item * (n - 1) + update.tobytes()


def test_items_copied_in_a_line_each_into_any_layout():
    data = np.broadcast_to(np.arange(300.0)[:, None], (300, 200))
    for out in (np.zeros((300, 200)), np.zeros((200, 300)).T, np.zeros((300, 401))[:, 1::2]):
        for source in (data, np.broadcast_to(7.0, out.shape)):
            expected = source.copy()
            expected[3] = 5
            gatherum.scatter_nd(source, [[3]], np.full((1, 200), 5.0), out=out)
            assert np.array_equal(out, expected)


@pytest.mark.parametrize("shift", [0, 16, 60])
@pytest.mark.parametrize(
    ("columns", "gap"), [(16, 0), (48, 0), (20, 0), (100, 0), (16, 64), (16, 16), (20, 48)]
)
def test_rows_that_go_past_the_caches_at_any_address(columns, gap, shift):
    """Whole cache lines are, and contiguous multiples of 16 bytes."""
    data = _rng().integers(1, 1 << 30, (50, columns)).astype("i4")
    indices = _rng().integers(-60, 60, 700)
    out = guarded((700, columns), "i4", strides=(4 * columns + gap, 4), shift=shift)
    with chosen_from({"streamed_bytes": 0}):
        plan = gatherum.plan("gather", data, indices, mode="fill", out=out)
        assert plan.algorithm == ("direct" if gap % 64 else "streamed")
        gatherum.gather(data, indices, mode="fill", fill_value=7, out=out)
    assert not strays(out)
    valid = (indices >= -50) & (indices < 50)
    assert np.array_equal(out, np.where(valid[:, None], data[np.where(valid, indices, 0)], 7))


@pytest.mark.parametrize("shift", [0, 4, 8, 16])
@pytest.mark.parametrize("dtype", ["u1", "u2", "f4", "f8", "c16"])
@pytest.mark.parametrize("form", ["items", "stretches", "pieces", "a copy of pieces"])
def test_items_that_go_past_the_caches_at_any_address(form, dtype, shift):
    """Contiguous items of 4, 8 and 16 bytes are."""
    data = _rng().integers(1, 99, (64, 150)).astype(dtype)
    indices, axis = _rng().integers(-80, 80, 3000), 0
    if form == "items":
        data = data[0]
        indices *= 2
    elif form == "stretches":
        axis = 1
        indices *= 2
    else:
        data = data[:, ::3]
    size = data.shape[axis]
    shape = (*data.shape[:axis], 3000, *data.shape[axis + 1 :])
    out = guarded(shape, dtype, shift=shift)
    with chosen_from({"streamed_bytes": 0}):
        if form == "a copy of pieces":
            indices = indices % size - size // 2
            out = guarded(data.shape, dtype, shift=shift)
            gatherum.scatter_nd(data, [[0]], data[:1], out=out)
            assert np.array_equal(out, data)
        else:
            gatherum.gather(data, indices, axis=axis, mode="fill", fill_value=7, out=out)
            valid = (indices >= -size) & (indices < size)
            expected = np.take(data, np.where(valid, indices, 0), axis=axis)
            np.moveaxis(expected, axis, 0)[~valid] = 7
            assert np.array_equal(out, expected)
    assert not strays(out)


@pytest.mark.parametrize("shift", [0, 16])
@pytest.mark.parametrize("dtype", ["u2", "f4", "f8", "c16"])
@pytest.mark.parametrize("width", [512, 500])
@pytest.mark.parametrize("negative", [False, True])
def test_columns_that_go_past_the_caches_at_any_address(width, dtype, shift, negative):
    """Columns of whole cache lines are; a negative index selects another loop."""
    data = _rng().integers(1, 99, (300, width)).astype(dtype)
    indices = _rng().integers(-310 if negative else 0, 310, data.shape)
    out = guarded(data.shape, dtype, shift=shift)
    with chosen_from({"streamed_bytes": 0}):
        plan = gatherum.plan("gather_elements", data, indices, axis=0, mode="fill")
        assert plan.algorithm == "packed"
        gatherum.gather_elements(data, indices, axis=0, mode="fill", fill_value=7, out=out)
    assert not strays(out)
    valid = (indices >= -300) & (indices < 300)
    taken = np.take_along_axis(data, np.where(valid, indices, 0), axis=0)
    assert np.array_equal(out, np.where(valid, taken, np.array(7, dtype)))


@pytest.mark.parametrize("shift", [0, 4, 20])
def test_large_columns_at_any_address(shift):
    data, updates = (_rng().integers(0, 99, (1200, 1003)).astype("i4") for _ in range(2))
    indices = _rng().integers(0, 1200, data.shape)
    out = guarded(data.shape, data.dtype, shift=shift)
    gatherum.scatter_elements(data, indices, updates, axis=0, reduction="add", out=out)
    assert not strays(out)
    expected = data.copy()
    np.add.at(expected, (indices, np.arange(1003)), updates)
    assert np.array_equal(out, expected)


@pytest.mark.parametrize("dtype", ["u1", "f4", "c16"])
def test_bad_indices_among_good_ones_far_apart(dtype):
    """In a table of 512 KiB or more, the next block is prefetched while one moves."""
    data = np.arange(1 << 20).astype(dtype)
    indices = _rng().integers(0, data.size, 5000)
    bad = _rng().random(5000) < np.linspace(0, 1, 5000) ** 4
    indices[bad] = data.size + 3
    result = gatherum.gather(data, indices, mode="fill", fill_value=7)
    assert np.array_equal(
        result, np.where(bad, np.array(7, dtype), data[np.where(bad, 0, indices)])
    )


def _lying(values, dtype, stride):
    """Return the values as an array with a stride of `stride` bytes, which may overlap."""
    item = np.dtype(dtype).itemsize
    memory = np.zeros(stride * values.size + item, "u1")
    array = np.lib.stride_tricks.as_strided(memory[:item].view(dtype), values.shape, (stride,))
    for at, value in enumerate(values):  # a later value overwrites the overlap
        array[at] = value
    return array


@pytest.mark.parametrize("dtype", ["i8", "u8", "i4", "u4", "i2", "u1", ">i8", ">i4"])
@pytest.mark.parametrize("stride", [2, 4, 8, 12, 24, -8, -4])
@pytest.mark.parametrize("negative", [False, True])
def test_indices_of_every_type_at_every_stride(dtype, stride, negative):
    """For any layout of an index array, every element counts, including the last few."""
    reach = 100 if dtype in ("u1", "u4", "u8") or not negative else 50
    data = np.arange(100, dtype="f4")
    for n in (1, 2, 3, 4, 5, 7, 255, 258):
        values = _rng().integers(-50 if reach == 50 else 0, reach, n)
        if abs(stride) < np.dtype(dtype).itemsize:
            values = np.zeros(n, "i8")  # they overlap: only a repeated value is in range
            values[-1] = 77 if np.dtype(dtype).isnative else 0
        indices = _lying(values, dtype, abs(stride))[:: -1 if stride < 0 else 1]
        if indices.max() >= 100:
            with pytest.raises(IndexError, match=str(indices[indices >= 100][0])):
                gatherum.gather(data, indices)
            continue
        assert np.array_equal(gatherum.gather(data, indices), data[indices.astype("i8")])


def test_indices_of_another_byte_order_that_are_valid_either_way():
    data = np.zeros((1 << 24) + 1, "u1")
    data[1] = 7
    assert (gatherum.gather(data, np.ones(300, ">i4")) == 7).all()  # byte-swapped it is 2**24


def test_unsigned_indices_from_the_upper_half_on():
    data = np.broadcast_to(np.uint8(5), 1 << 32)
    indices = np.array([(1 << 32) - 1, 1 << 31, 0] * 5, "u4")
    assert np.array_equal(gatherum.gather(data, indices), np.full(15, 5))
    with pytest.raises(IndexError, match="4294967295"):
        gatherum.gather(data[:-1], indices)


BAD = {
    "i8": [100, 101, -1, -100, -101, 2**63 - 1, -(2**63)],
    "i4": [100, 101, -1, -100, -101, 2**31 - 1, -(2**31)],
    "i2": [100, 101, -1, -100, -101, 2**15 - 1, -(2**15)],
    "u8": [100, 2**63, 2**64 - 1],
    "u4": [100, 2**31, 2**32 - 1],
}


@pytest.mark.parametrize("mode", ["clip", "wrap", "fill"])
@pytest.mark.parametrize("dtype", BAD)
def test_modes_handle_a_few_invalid_indices_among_valid_ones(dtype, mode):
    data = np.arange(100, dtype="f4")
    for bad in BAD[dtype]:
        indices = np.arange(700, dtype=dtype) % 100
        indices[[0, 300, 699]] = bad
        valid = -100 <= bad < 100
        at = bad % 100 if valid or mode == "wrap" else 99 if bad > 0 else 0
        expected = data[np.arange(700) % 100]
        expected[[0, 300, 699]] = data[at] if valid or mode != "fill" else 7
        result = gatherum.gather(data, indices, mode=mode, fill_value=7)
        assert np.array_equal(result, expected), bad


@pytest.mark.parametrize("dtype", ["i8", "i4", "u8", "i2"])
@pytest.mark.parametrize("value", [100, -101, 127, -128])
@pytest.mark.parametrize("place", [0, 1, 2, 3, 4, 5, 6, 255, 256, 257, 258])
def test_one_bad_index_at_any_place(dtype, value, place):
    if value < 0 and dtype == "u8":
        value += 1 << 64
    indices = np.arange(259, dtype=dtype) % 100
    indices[place] = value
    with pytest.raises(IndexError, match=rf"{value} .*{place}"):
        gatherum.gather(np.arange(100, dtype="f4"), indices)
    tuples = np.stack([indices, indices[::-1], indices], axis=1) % 7
    tuples[place, 1] = value
    with pytest.raises(IndexError, match=rf"{value} .*{place}"):
        gatherum.gather_nd(np.zeros((7, 100, 7), "f4"), tuples)


SHAPES = [(3, 80, 300), (3, 2, 70, 290)]


def _in_another_order(array):
    """Swap the memory order of the first two axes, so that loops do not merge."""
    return np.ascontiguousarray(array.swapaxes(0, 1)).swapaxes(0, 1) if array.ndim > 3 else array


@pytest.mark.parametrize("shape", SHAPES)
def test_columns_of_several_chunks_in_several_batches(shape):
    data = _in_another_order(_rng().random(shape, "f4"))
    indices = _rng().integers(0, shape[-2], shape)
    result = gatherum.gather_elements(data, indices, axis=-2)
    assert np.array_equal(result, np.take_along_axis(data, indices, -2))


@pytest.mark.parametrize("shape", SHAPES)
def test_slabs_of_several_chunks_in_several_batches(shape):
    data, updates = (_rng().integers(0, 99, shape).astype("i4") for _ in range(2))
    data = _in_another_order(data)
    indices = _rng().integers(0, shape[-2], shape)
    expected = data.copy()
    places = list(np.indices(shape, sparse=True))
    places[-2] = indices
    np.add.at(expected, tuple(places), updates)
    result = gatherum.scatter_elements(data, indices, updates, axis=-2, reduction="add")
    assert np.array_equal(result, expected)


@pytest.mark.parametrize("dtype", ["i8", "i4"])
@pytest.mark.parametrize("reduction", ["add", "max", "none"])
def test_short_lines_of_columns_with_negative_and_bad_indices(dtype, reduction):
    data, updates = (_rng().integers(0, 99, (n, 24)).astype("f4") for n in (40, 2000))
    indices = _rng().integers(0, 40, (2000, 24)).astype(dtype)
    expected = data.copy()
    for row, row_of_updates in zip(indices, updates, strict=True):
        places = row, np.arange(24)  # each of another column
        old = expected[places]
        expected[places] = {
            "add": old + row_of_updates,
            "max": np.maximum(old, row_of_updates),
            "none": row_of_updates,
        }[reduction]
    indices[7, 5] -= 40
    indices[1000:1010] -= 40
    call = data, indices, updates
    result = gatherum.scatter_elements(*call, axis=0, reduction=reduction)
    assert np.array_equal(result, expected)
    indices[1500, 3] = 40
    out = data.copy()
    with pytest.raises(IndexError, match=r"\[1500, 3\]"):
        gatherum.scatter_elements(out, indices, updates, axis=0, reduction=reduction, out=out)
    assert np.array_equal(out, data)


@pytest.mark.parametrize("step", [1, -1])
def test_dropped_updates_in_either_direction(step):
    """If data runs backwards (step -1), offsets are negative and still valid."""
    place = guarded_copy(np.zeros(40, "i4"))
    data = place[::step]
    gatherum.scatter_nd(data, [[3], [40], [0], [-41], [39]], [1, 2, 3, 4, 5], mode="drop", out=data)
    assert not strays(place)
    assert np.flatnonzero(data).tolist() == [0, 3, 39]
    assert data[[0, 3, 39]].tolist() == [3, 1, 5]


@pytest.mark.parametrize("threads", [2, 3, 7])
@pytest.mark.parametrize("count", [150_000, 149_999])
@pytest.mark.parametrize("step", [1, -1])
def test_every_destination_belongs_to_one_thread(threads, count, step, settings_restored):
    """Items at every byte, so that some are at the end of a thread's share."""
    gatherum.set_num_threads(threads)
    place = guarded_copy(np.zeros(count, "u1"))
    data = place[::step]
    indices = _rng().permutation(count)[:, None]
    gatherum.scatter_nd(data, indices, np.ones(count, "u1"), reduction="add", out=data)
    assert data.min() == data.max() == 1
    assert not strays(place)


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
@pytest.mark.parametrize(("dtype", "size"), [("i4", 5 << 19), ("f8", 5 << 19), ("c16", 9 << 19)])
def test_ranges_of_destinations_that_do_not_divide_evenly(threads, dtype, size, settings_restored):
    """The larger one is written past the caches; bytes copied from after the data would be ones."""
    gatherum.set_num_threads(threads)
    count = size // np.dtype(dtype).itemsize + 1
    data = np.ones(count + 100, dtype)[:count]
    data[:] = 0
    indices = np.concatenate([_rng().integers(0, count, 1 << 18), [0, count - 1]])
    updates = np.ones(indices.size, dtype)
    out = guarded(data.shape, dtype)
    gatherum.scatter_nd(data, indices[:, None], updates, reduction="add", out=out)
    assert not strays(out)
    assert np.array_equal(out, np.bincount(indices, minlength=count).astype(dtype))


@pytest.mark.parametrize(
    ("reduction", "first", "last"), [("add", 50, 90), ("max", 30, 70), ("mean", 25, 30)]
)
def test_destinations_without_updates_are_unchanged(reduction, first, last):
    """Rows are folded in groups, one per destination; some groups are empty."""
    data = np.arange(12, dtype="i4").reshape(4, 3)
    updates = np.array([[10], [20], [30], [70], [10]], "i4") * np.ones((1, 3), "i4")
    result = gatherum.scatter_nd(
        data, [[3], [1], [1], [3], [3]], updates, reduction=reduction, include_self=False
    )
    assert np.array_equal(result[[0, 2]], data[[0, 2]])
    assert result[1].tolist() == [first] * 3
    assert result[3].tolist() == [last] * 3


@pytest.mark.parametrize("threads", [1, 2])
def test_groups_of_many_units(threads, settings_restored):
    """Each task begins with a different unit; a line has too many destinations for accumulators."""
    gatherum.set_num_threads(threads)
    data = _rng().integers(0, 99, (4000, 1000)).astype("f2")
    indices = _rng().integers(0, 1000, (4000, 10))
    updates = _rng().integers(0, 99, indices.shape).astype("f2")
    expected = data.copy()
    np.add.at(expected, (np.arange(4000)[:, None], indices), updates)
    result = gatherum.scatter_elements(data, indices, updates, 1, reduction="add")
    assert np.array_equal(result, expected)


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_the_place_of_a_bad_index_in_a_line_that_is_cut_unevenly(threads, settings_restored):
    gatherum.set_num_threads(threads)
    indices = np.zeros((3, 100_010), "i8")[:, :100_003]  # the gaps keep the lines apart
    indices[2, 77_000] = 9
    with pytest.raises(IndexError, match=r"index 9 .* \(indices\[2, 77000\]\)"):
        gatherum.gather(np.zeros(5), indices)
