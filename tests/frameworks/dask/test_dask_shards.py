"""The data that a shuffle hands over, and how."""

import asyncio

import numpy as np
import pytest

import gatherum

pytest.importorskip("distributed", reason="install distributed: pip install distributed")
import dask.array as da
from distributed.shuffle._rechunk import ArrayRechunkRun

from gatherum.dask.graph import block_kernels
from gatherum.dask.planning.routing import make_route
from gatherum.dask.shuffling.shuffle_shards import RowsRun


@pytest.fixture
def run(monkeypatch):
    """Return a run on worker "here", and a list of the data that it received and sent."""
    calls = []

    async def noted(step, *arguments):
        calls.append((step, *arguments))
        return {"status": "OK"}

    monkeypatch.setattr(ArrayRechunkRun, "send", lambda _, *arguments: noted("sent", *arguments))
    monkeypatch.setattr(
        ArrayRechunkRun, "receive", lambda _, *arguments: noted("received", *arguments)
    )
    rows_run = object.__new__(RowsRun)
    rows_run.id = rows_run.run_id = 1
    rows_run.local_address, rows_run.closed, rows_run._exception = "here", False, None
    return rows_run, calls


def test_shards_for_the_same_worker_need_no_connection(run):
    rows_run, calls = run
    for address in ("here", "there"):
        assert asyncio.run(rows_run.send(address, ["a shard"])) == {"status": "OK"}
    assert calls == [("received", ["a shard"]), ("sent", "there", ["a shard"])]


def test_nothing_is_kept_by_a_run_that_has_ended(run):
    rows_run, calls = run
    rows_run.closed = True
    with pytest.raises(Exception, match="has already been closed"):
        asyncio.run(rows_run.send("here", ["a shard"]))
    assert calls == []


@pytest.mark.parametrize("one", [False, True], ids=["updates", "one update"])
@pytest.mark.parametrize("sizes", [(50,), (20, 0, 30)])
def test_owners_receive_the_same_pieces_as_from_tasks(sizes, one):
    rng = np.random.default_rng(3)
    data = da.zeros((2, 40, 3), dtype=np.int64, chunks=(2, (8, 0, 12, 20), 3))
    blocks = [rng.integers(-5, 20, size) for size in sizes]  # no entry for the last owner
    updates = [rng.integers(0, 99, (2, size, 3)) for size in sizes]
    added = 7 if one else da.zeros((2, sum(sizes), 3), dtype=int, chunks=(2, sizes, 3))
    indices = da.from_array(np.concatenate(blocks), chunks=(sizes,))
    drops = {"mode": "drop", "negative": False}
    lazy = gatherum.scatter_slices(data, indices, added, 1, **drops)
    layer = lazy.dask.layers[lazy.name]
    origins = np.cumsum((0, *sizes)).tolist()[:-1]
    call, shapes = layer.call, [(2, size, 3) for size in sizes]
    route = make_route(call, layer.layout.keyed, data.shape, [(n,) for n in origins], blocks)
    updates = [np.array(7)] * len(sizes) if one else updates
    result = list(block_kernels.updates_by_owner(call, route, shapes, updates))
    assert [owner for owner, _, _ in result] == [0, 2]
    whole = block_kernels.routed_updates(call, None, route, shapes, updates)
    for owner, part, values in result:
        expected, cut = block_kernels.updates_for_owners(call, route, whole, owner, owner + 1)
        np.testing.assert_array_equal(part.rows, expected.rows)
        np.testing.assert_array_equal(values, cut)
        assert one or (values.base is None and values.flags.c_contiguous)
