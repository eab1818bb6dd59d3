"""Workers that are killed in the middle of a call: the same bits, from those that are left."""

import hashlib
import os
import signal
import time

import numpy as np
import pytest

import gatherum

pytest.importorskip("distributed", reason="install distributed: pip install distributed")
import dask
import dask.array as da
from distributed import Client, LocalCluster

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning"),
]
CHUNKS, ROWS = 12, 500


def table_block(block_info):
    time.sleep(0.1)
    (start, stop), (_, width) = block_info[None]["array-location"]
    return np.arange(start * width, stop * width, dtype=np.float32).reshape(-1, width)


def index_block(block_info):
    time.sleep(0.1)
    ((start, stop),) = block_info[None]["array-location"]
    return np.random.default_rng(start).integers(0, CHUNKS * ROWS, stop - start)


def operands():
    table = da.map_blocks(
        table_block, chunks=((ROWS,) * CHUNKS, (64,)), dtype=np.float32, meta=np.empty((0, 0), "f4")
    )
    indices = da.map_blocks(
        index_block, chunks=((ROWS,) * CHUNKS,), dtype=int, meta=np.empty(0, int)
    )
    return table, indices, table / 7


def run(op):
    table, indices, updates = operands()
    if op == "gather":
        return gatherum.gather(table, indices)
    return gatherum.scatter_slices(table, indices, updates, reduction="add")


def digest(array):
    return hashlib.sha256(array.tobytes()).hexdigest()


@pytest.mark.parametrize("op", ["gather", "scatter"])
@pytest.mark.parametrize("way", ["tasks", "shuffle"])
def test_a_worker_is_killed(op, way, monkeypatch):
    with dask.config.set(scheduler="synchronous"):
        expected = digest(run(op).compute())
    monkeypatch.setattr("gatherum.dask.ways.SMALL_BYTES", -1)
    settings = {"gatherum.way": way, "distributed.scheduler.allowed-failures": 20}
    with (
        dask.config.set(settings),
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        assert way in gatherum.explain("gather", *operands()[:2]).way
        pids = list(client.run(os.getpid).values())
        future = client.compute(run(op))
        landed = 0
        for _ in pids:
            time.sleep(1.0)
            if future.done():
                break
            # Another one each time: the first has been started again.
            os.kill(pids[landed], signal.SIGKILL)
            landed += 1
        assert landed, "the kill must land before the end"
        assert digest(future.result(timeout=200)) == expected
