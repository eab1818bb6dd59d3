"""Workers that are short of memory, and full disks."""

import hashlib
import os
import resource

import dask.array as da
import numpy as np
import pytest
from distributed import wait

import gatherum
from clusters import (
    CALLS,
    LONGEST,
    STRATEGIES,
    WARNINGS,
    WIDTH,
    block,
    digest,
    expected,
    lazy,
    run,
    session,
    store,
    stored,
    whole,
)

pytestmark = pytest.mark.filterwarnings(*WARNINGS)
# A table and updates of 192 MiB each, for workers with less than 300 MiB.
BLOCKS, LENGTH, COLUMNS = 24, 16384, 128
CHUNK, BUFFER = 16 << 20, 16 << 20
SETTINGS = {
    "array.chunk-size": CHUNK,
    "distributed.p2p.storage.buffer": BUFFER,
    "distributed.p2p.comm.buffer": BUFFER,
}


def planned(idle_memory):
    """Return the bytes that docs/dask.md plans for a worker with one thread."""
    return idle_memory + 8 * CHUNK + 2 * BUFFER


def rows(block_info):
    (start, stop), (_, columns) = block_info[None]["array-location"]
    return np.random.default_rng(start).random((stop - start, columns), np.float32)


def where(hot, block_info):
    ((start, stop),) = block_info[None]["array-location"]
    if hot:
        return np.full(stop - start, 77)
    return np.random.default_rng(start).integers(0, BLOCKS * LENGTH, stop - start)


def tell(values):
    """Return a number that depends on the bits of a block."""
    digest = hashlib.sha256(np.ascontiguousarray(values).tobytes()).digest()
    return np.frombuffer(digest[:8], np.int64).reshape(1, 1)


def told(call, hot):
    """Return the numbers of a result's blocks; the whole result is never in one process."""
    meta = np.empty((0, 0), np.float32)
    table = da.map_blocks(
        rows, chunks=((LENGTH,) * BLOCKS, (COLUMNS,)), dtype=np.float32, meta=meta
    )
    indices = da.map_blocks(
        where, hot, chunks=((LENGTH,) * BLOCKS,), dtype=int, meta=np.empty(0, int)
    )
    if call == "gather":
        result = gatherum.gather(table, indices)
    else:
        result = gatherum.scatter_slices(table, indices, table + 1, reduction="add")
    result = result.rechunk((LENGTH, COLUMNS))
    return result.map_blocks(tell, chunks=((1,) * BLOCKS, (1,)), dtype=int, meta=meta.astype(int))


def resident():
    """Return the resident bytes of a worker after all its imports."""
    import gatherum.dask.shuffling.shuffle  # noqa: F401

    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmRSS"))


@pytest.fixture(scope="module")
def idle_memory():
    if not os.path.exists("/proc/self/status"):
        pytest.skip("needs Linux, which says in /proc how much memory a worker takes")
    with session("tasks", workers=1) as at:
        return max(at.client.run(resident).values())


@pytest.mark.parametrize(
    ("strategy", "call", "hot"),
    [(strategy, call, hot)
     for strategy in STRATEGIES for call in ("gather", "scatter") for hot in (False, True)
     if (strategy, call, hot) != ("tasks", "gather", True)],
)  # fmt: skip
def test_a_limit_of_1_2_times_what_was_planned(strategy, call, hot, idle_memory):
    with session(strategy, settings=SETTINGS):
        numbers = told(call, hot).compute()
    with session(strategy, settings=SETTINGS, memory_limit=int(1.2 * planned(idle_memory))):
        np.testing.assert_array_equal(told(call, hot).compute(), numbers)


def limit_files(size):
    """Limit the size of the files that this process writes, which simulates a full disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def spilled(dask_worker):
    return dask_worker.data.spilled_total.disk


@pytest.mark.parametrize("call", CALLS[:2])
def test_a_full_disk_for_what_waits(call, tmp_path):
    """Data that cannot be spilled stays in memory."""
    early = dict.fromkeys(("target", "spill"), 0.001)
    settings = {f"distributed.worker.memory.{name}": share for name, share in early.items()}
    with session("tasks", settings=settings, memory_limit="2GiB") as at:
        waiting = at.client.persist(lazy(block, 0, WIDTH))
        wait(waiting)
        assert any(at.client.run(spilled).values())
        del waiting
        at.client.restart()
        at.client.run(limit_files, 1000)
        waiting = at.client.persist(lazy(block, 0, WIDTH))
        wait(waiting)
        assert not any(at.client.run(spilled).values())
        assert at.start(call).result(LONGEST) == expected(call)


@pytest.mark.parametrize("call", CALLS)
def test_a_full_disk_for_a_shuffle(call, tmp_path):
    with session("shuffle") as at:
        path = store(tmp_path)
        at.client.run(limit_files, 20_000)
        with pytest.raises(OSError, match="a worker's disk does not take the rows that it"):
            at.start(call, path).result(LONGEST)
        assert stored(path) == digest(whole(block, 0, WIDTH))
        at.client.restart()  # and with enough space again
        assert run(call, path) == expected(call)


def test_a_full_disk_for_a_store(tmp_path):
    with session("tasks") as at:
        path = store(tmp_path)
        at.client.run(limit_files, 20_000)
        with pytest.raises(OSError, match=r"File too large: '.*/table.zarr.partial.flat/\w+'$"):
            at.start("into", path).result(LONGEST)
        assert stored(path) == digest(whole(block, 0, WIDTH))
