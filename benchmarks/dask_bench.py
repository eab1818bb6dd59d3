"""Dask's own indexing beside gatherum's on the same arrays, on a cluster of two processes.

    python benchmarks/dask_bench.py [--rows 4000000] [--only 80x40]

Every call runs in a process and on a cluster of its own. Told are tasks, seconds, the processor
time of the workers, and the largest resident set of one. Rows have 1 KiB: 4 million are 4.1 GB.
"""

import argparse
import json
import subprocess
import sys
import time

import numpy as np

WIDTH = 256
# Chunks of the table, chunks of the indices, what runs.
CASES = {
    "gather 80x40": (80, 40, ("vindex", "gather")),
    "gather 400x200": (400, 200, ("vindex", "gather")),
    "scatter 80x40": (80, 40, ("setitem", "scatter")),
}


def table_block(block_info):
    (start, stop), (_, width) = block_info[None]["array-location"]
    out = np.empty((stop - start, width), np.float32)
    out[:] = np.arange(start, stop, dtype=np.float32)[:, None]
    return out


def index_block(block_info, rows):
    ((start, stop),) = block_info[None]["array-location"]
    return np.random.default_rng(start).integers(0, rows, stop - start)


def table(rows, chunks):
    import dask.array as da

    sizes = ((rows // chunks,) * chunks, (WIDTH,))
    none = np.empty((0, 0), np.float32)
    return da.map_blocks(table_block, chunks=sizes, dtype=np.float32, meta=none)


def made(name, rows, chunks, index_chunks):
    """Return the lazy result of one call."""
    import dask.array as da

    import gatherum

    data = table(rows, chunks)
    sizes = ((rows // index_chunks,) * index_chunks,)
    none = np.empty(0, np.int64)
    indices = da.map_blocks(index_block, rows=rows, chunks=sizes, dtype=np.int64, meta=none)
    if name == "vindex":
        return data.vindex[indices.compute()]
    if name == "gather":
        return gatherum.gather(data, indices)
    half = np.random.default_rng(0).permutation(rows)[: rows // 2]
    updates = table(rows // 2, index_chunks)
    if name == "scatter":
        where = da.from_array(half, chunks=rows // 2 // index_chunks)
        return gatherum.scatter_slices(data, where, updates)
    data[half] = updates  # Dask takes indices of NumPy alone here
    return data


def peak():
    with open("/proc/self/status") as status:
        (line,) = (line for line in status if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1e6


def processor_time():
    return time.process_time()


def run(name, rows, chunks, index_chunks):
    import dask
    from distributed import Client, LocalCluster

    limits = ("pause", "terminate")
    settings = {f"distributed.worker.memory.{limit}": False for limit in limits}
    with (
        dask.config.set(settings),
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        client.run(__import__, "gatherum")
        before, started = client.run(processor_time), time.perf_counter()
        result = made(name, rows, chunks, index_chunks)
        tasks = len(dict(result.dask))
        total = float(result.sum(dtype=np.float64).compute())
        seconds = time.perf_counter() - started
        used = sum(client.run(processor_time).values()) - sum(before.values())
        print(
            json.dumps(
                {
                    "call": name, "tasks": tasks, "seconds": round(seconds, 1),
                    "cpu": round(used, 1), "peak_gb": round(max(client.run(peak).values()), 2),
                    "sum": total,
                }
            )
        )  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--only", default="")
    parser.add_argument("--child", nargs=3)
    given = parser.parse_args()
    if given.child:
        name, chunks, index_chunks = given.child
        run(name, given.rows, int(chunks), int(index_chunks))
        return
    for case, (chunks, index_chunks, names) in CASES.items():
        if given.only not in case:
            continue
        print(case, flush=True)
        for name in names:
            child = [sys.executable, __file__, "--rows", str(given.rows), "--child"]
            command = [*child, name, str(chunks), str(index_chunks)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            lines = done.stdout.splitlines() if done.returncode == 0 else [done.stderr[-300:]]
            print("   ", lines[-1], flush=True)


if __name__ == "__main__":
    main()
