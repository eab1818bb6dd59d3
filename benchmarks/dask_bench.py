"""Compare Dask's own indexing with gatherum's on the same arrays, on a cluster of two processes.

    python benchmarks/dask_bench.py [--rows 4000000] [--only gather] [--rounds 3]

Every call runs in a separate process and on a separate cluster; with several rounds, the calls of
a case run in turns. The script prints medians of the rounds: tasks, seconds, the CPU time of the
workers and of the scheduler with the client, and the largest resident set of a worker. Rows have
1 KiB, so 4 million rows are 4.1 GB.
"""

import argparse
import hashlib
import json
import statistics
import subprocess
import sys
import time

import numpy as np

WIDTH = 256
# Chunks of the table, chunks of the indices, the call.
CASES = {
    "gather 80x40": (80, 40, ("vindex", "gather")),
    "gather 400x200": (400, 200, ("vindex", "gather")),
    "scatter 80x40": (80, 40, ("setitem", "scatter")),
    "scatter 80x40, one row": (80, 40, ("scatter_hot",)),
    "scatter 80x40, Zipf": (80, 40, ("scatter_zipf",)),
    "gather 80x40, one row": (80, 40, ("gather_hot",)),
    "histogram 1000 bins": (1, 40, ("histogram", "histogram_in_order")),
    "add in four chunkings": (1, 1, ("chunkings",)),
}


def table_block(block_info):
    (start, stop), (_, width) = block_info[None]["array-location"]
    out = np.empty((stop - start, width), np.float32)
    out[:] = np.arange(start, stop, dtype=np.float32)[:, None]
    return out


def index_block(block_info, rows, distribution="even"):
    ((start, stop),) = block_info[None]["array-location"]
    rng = np.random.default_rng(start)
    if distribution == "hot":
        return np.full(stop - start, rows // 3)
    if distribution == "zipf":
        return rng.zipf(1.3, stop - start) % rows
    return rng.integers(0, rows, stop - start)


def table(rows, chunks):
    import dask.array as da

    sizes = ((rows // chunks,) * chunks, (WIDTH,))
    none = np.empty((0, 0), np.float32)
    return da.map_blocks(table_block, chunks=sizes, dtype=np.float32, meta=none)


def places(count, chunks, rows, distribution="even"):
    import dask.array as da

    sizes = ((count // chunks,) * chunks,)
    none = np.empty(0, np.int64)
    return da.map_blocks(
        index_block, rows=rows, distribution=distribution, chunks=sizes, dtype=np.int64, meta=none
    )


def lazy_result(name, rows, chunks, index_chunks):
    """Return the lazy result of one call."""
    import dask.array as da

    import gatherum

    name, _, distribution = name.partition("_")
    if name == "histogram":
        many = places(16 * rows, index_chunks, 1000)
        bins = da.zeros(1000, dtype=np.int64)
        return gatherum.scatter_slices(bins, many, 1, reduction="add")
    data = table(rows, chunks)
    if name == "vindex":
        return data.vindex[places(rows, index_chunks, rows).compute()]
    if name == "gather":
        return gatherum.gather(data, places(rows, index_chunks, rows, distribution))
    updates = table(rows // 2, index_chunks)
    if distribution:
        where = places(rows // 2, index_chunks, rows, distribution)
        return gatherum.scatter_slices(data, where, updates, reduction="add")
    half = np.random.default_rng(0).permutation(rows)[: rows // 2]
    if name == "scatter":
        where = da.from_array(half, chunks=rows // 2 // index_chunks)
        return gatherum.scatter_slices(data, where, updates)
    data[half] = updates  # Dask supports only NumPy indices here
    return data


def chunkings():
    """Add 25.6 million elements to a table, in four chunkings, and check for NumPy's bits."""
    import dask.array as da

    import gatherum

    rng = np.random.default_rng(0)
    data = rng.standard_normal((40_000, WIDTH), dtype=np.float32)
    where = rng.zipf(1.5, 100_000) % len(data)
    updates = rng.standard_normal((len(where), WIDTH), dtype=np.float32)
    expected = data.copy()
    np.add.at(expected, where, updates)
    wanted = hashlib.sha256(expected).hexdigest()
    irregular = (39_000, 1, 0, 999)
    cut = [
        (10_000, 5000, 5000), (irregular, (1, 99_999), 7000), (40_000, 333, 100_000),
        (5000, 100_000, 2500),
    ]  # fmt: skip
    equal = []
    for of_data, of_indices, of_updates in cut:
        lazy = [
            da.from_array(array, chunks=(chunks, *array.shape[1:]))
            for array, chunks in ((data, of_data), (where, of_indices), (updates, of_updates))
        ]
        sums = gatherum.scatter_slices(*lazy, reduction="add")
        equal.append(hashlib.sha256(sums.compute()).hexdigest() == wanted)
    return equal


def peak():
    with open("/proc/self/status") as status:
        (line,) = (line for line in status if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1e6


def processor_time():
    return time.process_time()


def run(name, rows, chunks, index_chunks):
    import dask
    from distributed import Client, LocalCluster

    limits = ("pause", "terminate", "target", "spill")
    settings = {f"distributed.worker.memory.{limit}": False for limit in limits}
    if name.endswith("_in_order"):
        import gatherum.dask.planning.choice

        gatherum.dask.planning.choice.partial_pays = lambda *sizes: False
        name = name.removesuffix("_in_order")
    with (
        dask.config.set(settings),
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        client.run(__import__, "gatherum")
        before, started = client.run(processor_time), time.perf_counter()
        own = processor_time()
        if name == "chunkings":
            tasks, total = 0, chunkings()
        else:
            result = lazy_result(name, rows, chunks, index_chunks)
            tasks = len(dict(result.dask))
            total = float(result.sum(dtype=np.float64).compute())
        seconds, own = time.perf_counter() - started, processor_time() - own
        used = sum(client.run(processor_time).values()) - sum(before.values())
        peaks = client.run(peak).values()
    counted = {"tasks": tasks, "seconds": seconds, "cpu": used, "scheduler": own}
    print(json.dumps({"call": name, **counted, "peak_gb": max(peaks), "result": total}))


def turns(names, rows, chunks, index_chunks, rounds):
    """Run calls in turns, each in a separate process; return their output by round."""
    runs = {name: [] for name in names}
    for number in range(rounds):
        for name in names[:: -1 if number % 2 else 1]:
            child = [sys.executable, __file__, "--rows", str(rows), "--child"]
            command = [*child, name, str(chunks), str(index_chunks)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                print("   ", name, "failed:", done.stderr[-300:])
            else:
                runs[name].append(json.loads(done.stdout.splitlines()[-1]))
    return runs


def summary_of(name, runs):
    """Return a line of a table: medians, and the result, which is equal in all rounds."""
    if not runs:
        return f"| {name} | failed | | | | | |"
    middle = {
        key: statistics.median(one[key] for one in runs)
        for key in ("tasks", "seconds", "cpu", "scheduler", "peak_gb")
    }
    spread = sorted(one["cpu"] for one in runs)
    return (
        f"| {name} | {middle['tasks']:,.0f} | {middle['seconds']:.1f} s | {middle['cpu']:.1f} s "
        f"({spread[0]:.1f}-{spread[-1]:.1f}) | {middle['scheduler']:.1f} s | "
        f"{middle['peak_gb']:.2f} GB | {runs[0]['result']} |"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--child", nargs=3)
    options = parser.parse_args()
    if options.child:
        name, chunks, index_chunks = options.child
        run(name, options.rows, int(chunks), int(index_chunks))
        return
    print("| call | tasks | time | workers' CPU | scheduler and client | peak | sum |")
    print("|---|---|---|---|---|---|---|")
    for case, (chunks, index_chunks, names) in CASES.items():
        if options.only not in case:
            continue
        runs_by_name = turns(names, options.rows, chunks, index_chunks, options.rounds)
        for name, runs in runs_by_name.items():
            print(summary_of(f"{case}: {name}", runs), flush=True)


if __name__ == "__main__":
    main()
