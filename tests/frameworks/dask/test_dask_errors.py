"""Errors of calls on Dask arrays, when the call is made and when it is computed."""

from functools import partial

import numpy as np
import pytest

import gatherum

da = pytest.importorskip("dask.array", reason="install Dask: pip install 'dask[array]'")
import dask  # noqa: E402

import gatherum.dask  # noqa: E402
from gatherum.dask.graph import block_kernels  # noqa: E402

DATA = np.arange(60.0, dtype=np.float32).reshape(12, 5)
LAZY = da.from_array(DATA, chunks=(5, 2))


def refused(op, *operands, **attributes):
    with pytest.raises((TypeError, ValueError, IndexError)) as caught:
        getattr(gatherum, op)(*operands, **attributes)
    return caught.value


@pytest.mark.parametrize(
    ("op", "operands", "attributes"),
    [
        ("gather", ([0],), {"axis": 2}),
        ("gather", ([0],), {"axis": "clip"}),
        ("gather", ([0.5],), {}),
        ("gather", ([0],), {"mode": "no"}),
        ("gather", ([0],), {"mode": "fill", "fill_value": "x"}),
        ("gather_elements", ([0],), {}),
        ("gather_elements", ([[0] * 6],), {}),
        ("gather_nd", ([[0, 0, 0]],), {}),
        ("gather_nd", ([[0]],), {"batch_dims": 2}),
        ("scatter_slices", ([0], np.zeros((2, 5), np.float32)), {}),
        ("scatter_slices", ([0], np.zeros((1, 5))), {}),
        ("scatter_nd", ([[0]], None), {}),
        ("scatter_nd", ([[0]], 1.0), {"reduction": "sum"}),
        ("scatter_elements", ([[0]], [[1.0, 2.0]]), {}),
    ],
)
def test_calls_are_checked_when_they_are_made(op, operands, attributes):
    expected = refused(op, DATA, *operands, **attributes)
    error = refused(op, LAZY, *operands, **attributes)
    assert type(error) is type(expected)
    assert str(error) == str(expected)


def test_nothing_is_computed_while_a_call_is_made():
    def never(block):
        raise AssertionError("was computed")

    x = LAZY.map_blocks(never, dtype=LAZY.dtype, meta=LAZY._meta)
    i = da.from_array(np.array([0, 99]), chunks=1).map_blocks(
        never, dtype=int, meta=np.empty(0, int)
    )
    u = x[:2].rechunk((1, 5))
    t = i[:, None]
    results = [
        gatherum.gather(x, i), gatherum.gather_elements(x, t), gatherum.gather_nd(x, t),
        gatherum.scatter_slices(x, i, u), gatherum.scatter_nd(x, t, u, reduction="add"),
        gatherum.scatter_elements(x, t, u[:, :1], reduction="mean"),
    ]  # fmt: skip
    assert [one.shape for one in results] == [(2, 5), (2, 1), (2, 5), (12, 5), (12, 5), (12, 5)]
    gatherum.plan("gather", x, i)
    print(gatherum.explain("gather", x, i))
    for one in results:
        with pytest.raises(AssertionError, match="was computed"):
            one.compute()


def test_the_first_invalid_index_of_all_chunks_is_named():
    indices = np.zeros((6, 6), np.int16)
    indices[1, 4] = 17
    indices[2, 0] = -99
    indices[4, 1] = 98
    expected = str(refused("gather", DATA, indices))
    assert "index 17" in expected and "indices[1, 4]" in expected
    for chunks in ((6, 6), (1, 2), (3, 1), (2, 6), ((1, 0, 5), (5, 1))):
        lazy = gatherum.gather(LAZY, da.from_array(indices, chunks=chunks))
        for part in (lazy, lazy[5, 5]):  # every index is checked for any part
            with pytest.raises(IndexError) as caught:
                part.compute()
            assert str(caught.value) == expected
        with dask.config.set(scheduler="threads"), pytest.raises(IndexError) as caught:
            lazy.compute()
        assert str(caught.value) == expected


def test_unknown_sizes():
    x = LAZY[LAZY[:, 0] > 3]
    assert str(refused("gather", x, [0])) == (
        "gather: `data` must have chunks of known sizes, got shape (nan, 5); write "
        "data.compute_chunk_sizes()"
    )
    i = da.flatnonzero(LAZY[:, 0] > 3)
    assert str(refused("gather", LAZY, i)).startswith(
        "gather: `indices` must have chunks of known sizes, got shape (nan,)"
    )
    x.compute_chunk_sizes()
    assert gatherum.gather(x, [0]).compute().tolist() == [DATA[1].tolist()]


def test_arrays_without_numpy_chunks_raise():
    masked = da.ma.masked_array(LAZY, LAZY > 3)
    assert str(refused("gather", masked, [0])) == (
        "gather: `data` must not be a masked array: its mask would be lost"
    )

    class Converts:
        def __array__(self, dtype=None, copy=None):
            return np.ma.array([0, 1], mask=[True, False])

    assert str(refused("gather", LAZY, Converts())) == (
        "gather: `indices` must not be a masked array: its mask would be lost"
    )

    class Other:
        shape, ndim, dtype = (0, 0), 2, DATA.dtype
        __array_function__ = None

    x = LAZY.copy()
    x._meta = Other()
    assert str(refused("gather", x, [0])).startswith(
        "gather: `data` must have chunks that are NumPy arrays, got "
    )


def test_other_collections_of_dask():
    late = dask.delayed(lambda: [0])()
    for call in (gatherum.gather, gatherum.plan, gatherum.explain):
        name = () if call is gatherum.gather else ("gather",)
        for operands in ((LAZY, late), (late, [0])):
            with pytest.raises(TypeError, match=r"must be a NumPy array, got a dask\.Delayed"):
                call(*name, *operands)


def test_data_decides():
    indices = da.from_array(np.array([0, 1]))
    assert "got a dask.Array" in str(refused("gather", DATA, indices))
    assert gatherum.dask.gather(DATA, indices).compute().tolist() == DATA[:2].tolist()


def test_out_is_refused():
    assert str(refused("gather", LAZY, [0], out=DATA[:1])).startswith(
        "gather: `out` must be None for Dask arrays"
    )


def test_reports_need_values():
    assert "must have values that can be read here, got a dask.Array" in str(
        refused("index_report", "gather", DATA, da.from_array(np.array([0])))
    )


def test_chunks_that_known_indices_do_not_address_are_not_read():
    def once(block, block_info=None):
        read.append(block_info[0]["chunk-location"])
        return block

    read = []
    table = da.from_array(
        np.arange(60_000_000, dtype=np.int8).reshape(-1, 100), chunks=(30_000, 50)
    )
    table = table.map_blocks(once, dtype=np.int8, meta=table._meta)
    rows = np.array([[30_000, 599_999], [1, -1]])
    with_strategy = dask.config.set({"gatherum.strategy": "tasks"})
    with_small = pytest.MonkeyPatch.context()
    with with_strategy, with_small as patch:
        patch.setattr("gatherum.dask.planning.choice.SMALL_BYTES", 1000)
        assert "at most 3 of 20 chunks" in str(gatherum.explain("gather", table, rows))
        result = gatherum.gather(table, rows, mode="clip").compute()
        np.testing.assert_array_equal(result[:, :, 99], (rows % 600_000 * 100 + 99).astype(np.int8))
        assert sorted(set(read)) == [(n, m) for n in (0, 1, 19) for m in (0, 1)]
        with pytest.raises(IndexError, match=r"index 600000 .*\(indices\[1\]\)"):
            gatherum.gather(table, [0, 600_000]).compute()
        read.clear()
        put = gatherum.scatter_slices(table, rows[0], 7)
        assert put[30_000, 3].compute() == 7 and put[0, 0].compute() == 0
        assert len(dict(put.dask)) < len(dict(table.dask)) + 120


def test_blocks_that_no_entry_reaches_wait_for_the_check():
    lazy = gatherum.scatter_slices(LAZY, [0, 12], 1.0)
    beyond = gatherum.scatter_elements(LAZY, da.from_array(np.array([[0, 12]])), 1.0)
    for part in (lazy[7:], beyond[:, 4:]):
        with pytest.raises(IndexError, match="index 12 is out of bounds"):
            part.compute()


OPS = {
    "gather": ([3, 9, 3], ()),
    "gather_elements": ([[3, 1, 0, 2, 3], [9, 3, 5, 5, 0]], ()),
    "gather_nd": ([[3], [9], [3]], ()),
    "scatter_slices": ([3, 9, 3], (1.0,)),
    "scatter_elements": ([[3, 1, 0, 2, 3], [9, 3, 5, 5, 0]], (1.0,)),
    "scatter_nd": ([[3], [9], [3]], (1.0,)),
}


def declared_as(array, dtype, chunks):
    """Return a lazy array whose blocks have a different dtype than it declares."""
    blocks = da.from_array(array, chunks=chunks)
    dtype = np.dtype(dtype)
    return da.Array(blocks.dask, blocks.name, blocks.chunks, dtype=dtype)


@pytest.mark.parametrize("value", ["fast", "blockwise", True, ["tasks"]])
def test_a_setting_with_an_unknown_strategy(value):
    message = f"gather: `gatherum.strategy` must be one of 'tasks', 'shuffle', got {value!r}"
    for call in (gatherum.gather, partial(gatherum.explain, "gather")):
        with dask.config.set({"gatherum.strategy": value}), pytest.raises(ValueError) as caught:
            call(LAZY, [0, 1])
        assert str(caught.value) == message


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("strategy", [None, "tasks"])
def test_blocks_of_another_dtype_than_declared(op, strategy, monkeypatch):
    """Indices that are not integers raise as in all calls; they are never cast."""
    indices, updates = np.array(OPS[op][0]), OPS[op][1]
    if strategy:
        monkeypatch.setattr("gatherum.dask.planning.choice.SMALL_BYTES", -1)
    with dask.config.set({"gatherum.strategy": strategy}):
        for dtype in ("f4", "bool"):
            for declared in ("<i8", ">i8"):
                lazy = declared_as(indices.astype(dtype), declared, 1)
                with pytest.raises(TypeError) as caught:
                    getattr(gatherum, op)(LAZY, lazy, *updates).compute(scheduler="synchronous")
                expected = refused(op, DATA, indices.astype(dtype), *updates)
                assert str(caught.value) == str(expected)
        for dtype in ("i1", ">u4"):
            for declared in ("<i8", ">i8"):
                lazy = declared_as(indices.astype(dtype), declared, 1)
                result = getattr(gatherum, op)(LAZY, lazy, *updates)
                expected = getattr(gatherum, op)(DATA, indices, *updates)
                np.testing.assert_array_equal(result.compute(scheduler="synchronous"), expected)


@pytest.mark.parametrize("strategy", [None, "tasks"])
def test_blocks_of_data_in_another_byte_order(strategy):
    """The byte order of the first block does not determine how other blocks are read."""
    blocks = [
        da.from_delayed(dask.delayed(np.full(2, value).astype)(dtype), (2,), dtype="<f4")
        for value, dtype in ((1.5, ">f4"), (2.5, "<f4"), (300.5, ">f4"))
    ]
    for order in ([0, 1, 2], [1, 0, 2]):
        data = da.concatenate([blocks[n] for n in order])
        expected = np.array([1.5, 2.5, 300.5], "f4")[order]
        with dask.config.set({"gatherum.strategy": strategy}):
            result = gatherum.gather(data, [0, 2, 4]).compute(scheduler="synchronous")
        np.testing.assert_array_equal(result, expected)


def test_blocks_that_are_joined_as_bytes_have_one_dtype():
    words = "gatherum.dask: the chunks of an array must have one dtype, got >f4 and float64"
    with pytest.raises(TypeError) as caught:
        block_kernels.assemble((2,), (0,), [np.zeros(2, ">f4"), np.zeros(2, "f8")])
    assert str(caught.value) == words


@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize(("dtype", "declared"), [("f8", "i4"), ("f4", "f8"), ("i8", "M8[s]")])
def test_blocks_of_data_of_another_dtype_are_refused(op, dtype, declared):
    data = declared_as(DATA.astype(dtype), declared, 5)
    indices, updates = OPS[op]
    updates = [np.asarray(updates[0]).astype(declared)] if updates else []
    words = (
        f"{op}: `data` must have chunks of the dtype that its array declares, "
        f"{np.dtype(declared)}, got {np.dtype(dtype)}"
    )
    with pytest.raises(TypeError) as caught:
        getattr(gatherum, op)(data, indices, *updates).compute(scheduler="synchronous")
    assert str(caught.value) == words


@pytest.mark.parametrize("declared", ["<i8", ">i8"])
def test_updates_of_another_dtype_than_declared_are_not_cast(declared):
    zeros = da.zeros((12, 2), dtype=declared, chunks=5)
    updates = declared_as(np.full((2, 2), 1.5), declared, 1)
    with pytest.raises(
        TypeError, match=r"^scatter_slices: `updates` must have the dtype of `data`"
    ):
        gatherum.scatter_slices(zeros, [1, 11], updates).compute(scheduler="synchronous")
