"""Workers' memory on a cluster of processes stays within the plan, even if all entries gather."""

import numpy as np
import pytest

import gatherum

pytest.importorskip("distributed", reason="install distributed: pip install distributed")
import dask
import dask.array as da
from distributed import Client, LocalCluster

from gatherum.dask.planning import costs
from samples import every

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning"),
]
ROWS, WIDTH, ENTRIES = 64_000, 256, 512_000
MIB = 1 << 20
BUFFER = 24 * MIB
# Memory that allocators keep, code that the first call loads, and file pages that the system has
# not yet reclaimed: together far less than the rows of all entries (500 MiB).
SPARE = 192 * MIB


def rows_block(block_info):
    (start, stop), _ = block_info[None]["array-location"]
    return np.full((stop - start, WIDTH), start % 7, np.float32)


def table(rows, chunk):
    chunks = da.core.normalize_chunks((chunk, WIDTH), (rows, WIDTH))
    none = np.empty((0, 0), np.float32)
    return da.map_blocks(rows_block, chunks=chunks, dtype=np.float32, meta=none)


def memory():
    with open("/proc/self/status") as status:
        result = dict(line.split(":", 1) for line in status)
    return [int(result[name].split()[0]) * 1024 for name in ("VmHWM", "VmRSS")]


def call(op, indices):
    if op == "gather":
        return gatherum.gather(table(ROWS, 4000), indices)
    return gatherum.scatter_slices(
        table(ROWS, 4000), indices, table(ENTRIES, 8000), reduction="add"
    )


@pytest.mark.parametrize("op", every(2, ["scatter", "gather"]))
def test_a_hot_row_needs_no_more_than_was_planned(op, monkeypatch):
    monkeypatch.setattr("gatherum.dask.planning.choice.SMALL_BYTES", -1)
    settings = {
        "gatherum.strategy": "shuffle",
        "array.chunk-size": 8 * MIB,
        "distributed.p2p.comm.buffer": BUFFER,
        "distributed.p2p.storage.buffer": BUFFER,
        "distributed.scheduler.worker-saturation": 1.0,
    }
    with (
        dask.config.set(settings),
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        even = da.from_array(np.arange(ENTRIES) * 7 % ROWS, chunks=8000)
        call(op, even[:8000] if op == "gather" else even).sum().compute()  # imports
        before = max(now for _, now in client.run(memory).values())
        lazy = call(op, da.full(ENTRIES, 1717, chunks=8000))
        layer = lazy.dask.layers[lazy.name]
        cost = costs.cost(layer.call, layer.layout, layer.choice)
        assert layer.choice.strategy == "shuffle"
        planned = cost.task_bytes + cost.route_bytes + 2 * BUFFER
        assert planned < 0.4 * ENTRIES * WIDTH * 4
        lazy.sum().compute()
        most = max(peak for peak, _ in client.run(memory).values())
        assert most < before + planned + SPARE
