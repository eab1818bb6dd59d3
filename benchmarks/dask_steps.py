"""Measure the cost of each step of a call on Dask arrays, and predict larger calls from it.

    python benchmarks/dask_steps.py measure > benchmarks/dask_steps.json
    python benchmarks/dask_steps.py plan --workers 100
    python benchmarks/dask_steps.py check

`measure` runs small calls on a cluster of two processes. `plan` computes calls of any size from
these measurements and from `gatherum.dask.planning.costs`; docs/dask-planning.md shows its output.
`check` runs calls that fit on this machine and compares them with the formulas.
"""

import argparse
import json
import pickle
import platform
import statistics
import time
from contextlib import contextmanager
from datetime import date
from pathlib import Path

import numpy as np

FIGURES = Path(__file__).with_suffix(".json")
MIB, GIB = 1 << 20, 1 << 30


@contextmanager
def cluster(workers=2):
    import dask
    from distributed import Client, LocalCluster

    limits = ("pause", "terminate", "target", "spill")
    settings = {f"distributed.worker.memory.{limit}": False for limit in limits}
    settings["distributed.scheduler.work-stealing"] = False
    with (
        dask.config.set(settings),
        LocalCluster(
            n_workers=workers, threads_per_worker=1, dashboard_address=":0"
        ) as local_cluster,
        Client(local_cluster) as client,
    ):
        client.run(send_all)
        yield client


def send_all():
    """Also send shards for the same worker: among a hundred workers, there are hardly any."""
    from gatherum.dask.shuffling.shuffle_shards import RowsRun

    del RowsRun.send


def processor_time():
    return time.process_time()


def resident():
    with open("/proc/self/status") as status:
        sizes = dict(line.split(":", 1) for line in status)
    return [int(sizes[name].split()[0]) * 1024 for name in ("VmHWM", "VmRSS")]


def spent(client, lazy):
    """Compute an array's sum; return the CPU seconds of the workers and of this process."""
    before, own = sum(client.run(processor_time).values()), processor_time()
    lazy.sum(dtype=np.float64).compute()
    return sum(client.run(processor_time).values()) - before, processor_time() - own


def operands(rows, width, chunks, entries, index_chunks):
    """Return a table and indices that the workers create."""
    import dask.array as da
    from dask_bench import index_block

    table = da.ones((rows, width), dtype=np.float32, chunks=(-(-rows // chunks), width))
    sizes = da.core.normalize_chunks(-(-entries // index_chunks), (entries,))
    none = np.empty(0, np.int64)
    indices = da.map_blocks(index_block, rows=rows, chunks=sizes, dtype=np.int64, meta=none)
    return table, indices


@contextmanager
def shuffles(chunk):
    """Move rows of any size by shuffles, with tasks of a quarter of a chunk."""
    import dask

    from gatherum.dask.planning import choice

    small, choice.SMALL_BYTES = choice.SMALL_BYTES, -1
    with dask.config.set({"gatherum.strategy": "shuffle", "array.chunk-size": chunk}):
        yield
    choice.SMALL_BYTES = small


def costed(lazy):
    """Return the cost of the call that created an array, and how its rows move."""
    from gatherum.dask.planning import costs

    layer = lazy.dask.layers[lazy.name]
    return costs.cost(layer.call, layer.layout, layer.choice), layer.choice


def shuffled(client, rounds, chunk, *sizes):
    """Return the cost of a gather by shuffles without its operands: workers, scheduler, Cost."""
    import gatherum

    table, indices = operands(*sizes)
    differences = []
    with shuffles(chunk):
        taken = gatherum.gather(table, indices)
        for _ in range(rounds):
            alone = [spent(client, one) for one in (table, indices)]
            whole = spent(client, taken)
            differences.append(
                [x - sum(y) for x, y in zip(whole, zip(*alone, strict=True), strict=True)]
            )
    middle = [statistics.median(column) for column in zip(*differences, strict=True)]
    return *middle, costed(taken)[0]


# The largest chunk, then rows, width, chunks, entries, chunks of entries.
WARM = (4000, 1000, 8, 4, 1000, 4)
FEW = (4000, 6000, 8, 60, 6000, 60)
BYTES = (32 * MIB, 160_000, 256, 8, 160_000, 8)
TASKS, ENTRIES = 500, 2_000_000


def measure(rounds):
    """Return the seconds of each step, minus the part that earlier steps explain."""
    import dask
    import dask.array as da

    seconds = {"entry": of_an_entry(rounds), "piece": of_a_piece(rounds)}
    with cluster() as client:
        shuffled(client, 1, *WARM)  # imports and first connections
        base = statistics.median(now for _, now in client.run(resident).values())
        plain = da.ones(TASKS, chunks=1).map_blocks(np.negative)
        count = len(dict(dask.optimize(plain.sum(dtype=np.float64))[0].dask))
        of_a_task = statistics.median(spent(client, plain)[1] for _ in range(rounds)) / count
        worker, _, cost = shuffled(client, rounds, *FEW)
        seconds["task"] = (worker - cost.piece_count * seconds["piece"]) / cost.task_count
        worker, _, cost = shuffled(client, rounds, *BYTES)
        known = cost.task_count * seconds["task"] + cost.piece_count * seconds["piece"]
        seconds["byte"] = (worker - known - BYTES[4] * seconds["entry"]) / cost.sent_bytes
    return {
        "date": date.today().isoformat(),
        "machine": machine(),
        "seconds": seconds,
        "scheduler_seconds_a_task": of_a_task,
        "worker_bytes": base,
    }


def of_an_entry(rounds):
    """Return the seconds of a route per entry, among 400 owners."""
    import dask.array as da

    import gatherum
    from gatherum.dask.planning.routing import make_route

    table = da.zeros((ENTRIES, 4), chunks=(ENTRIES // 400, 4))
    indices = np.random.default_rng(0).integers(0, ENTRIES, ENTRIES)
    layer = gatherum.gather(table, da.from_array(indices))
    layer = layer.dask.layers[layer.name]
    times = []
    for _ in range(rounds):
        start = processor_time()
        make_route(layer.call, layer.layout.keyed, table.shape, [(0,)], [indices])
        times.append(processor_time() - start)
    return statistics.median(times) / ENTRIES


def of_a_piece(rounds):
    """Return the seconds to request a few rows, and to read, send and place them."""
    import dask.array as da
    from distributed.shuffle._pickle import pickle_bytelist, unpickle_bytestream

    import gatherum
    from gatherum.dask.graph import block_kernels
    from gatherum.dask.planning.routing import OwnerRows, make_route
    from gatherum.dask.shuffling import shuffle, shuffle_shards

    count = 400
    table = da.zeros((count * 100, 8), chunks=(100, 8))
    indices = np.random.default_rng(0).permutation(count) * 100
    layer = gatherum.gather(table, da.from_array(indices))
    layer = layer.dask.layers[layer.name]
    route = make_route(layer.call, layer.layout.keyed, table.shape, [(0,)], [indices])
    owners = [range(n, n + 1) for n in range(count)]

    def carried(shards):  # in a message, and in a file
        (unpickled,) = unpickle_bytestream(memoryview(b"".join(pickle_bytelist(shards))))
        return pickle.loads(pickle.dumps(unpickled))

    times = []
    for _ in range(rounds):
        start = processor_time()
        parts = ((n, route.part(n, n + 1)) for n in range(count))
        asked = carried(
            [(n, shuffle_shards.pack_shard(0, part.rows, part.starts)) for n, part in parts]
        )
        pairs = [shuffle_shards.unpacked(shard, np.dtype(np.int64)) for _, shard in asked]
        pieces = [(0, OwnerRows(starts, rows)) for rows, starts in pairs]
        block = [np.zeros((100, 8))]
        sent = carried(list(shuffle._row_shards(0, layer.call, None, block, pieces)))
        rows = [shuffle_shards.unpacked(shard, np.dtype(float))[1] for _, shard in sent]
        block_kernels.merge_rows(layer.call, None, route, [(count, 8)], owners, rows)
        times.append(processor_time() - start)
    return statistics.median(times) / count


def machine():
    import dask

    name = platform.processor() or platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            name = line.split(":")[1].strip()
            break
    return f"{name}, Python {platform.python_version()}, Dask {dask.__version__}"


@contextmanager
def any_cluster():
    """Choose as on a cluster with a tested version of distributed, without a cluster."""
    from gatherum.dask.planning import choice

    asked, choice._can_shuffle = choice._can_shuffle, lambda: True
    yield
    choice._can_shuffle = asked


# Bytes per second that a worker sends, and that its disk writes: assumed, not measured.
NETWORK, DISK = 1.25e9, 1e9


def predicted(figures, cost, entries, workers):
    """Return the cost of a call by shuffles, by the formulas of the page."""
    seconds = figures["seconds"]
    each = {
        "byte": cost.sent_bytes * seconds["byte"],
        "piece": cost.piece_count * seconds["piece"],
        "entry": entries * seconds["entry"],
        "task": cost.task_count * seconds["task"],
    }
    return {
        "scheduler": cost.task_count * figures["scheduler_seconds_a_task"],
        "cpu": {name: one / workers for name, one in each.items()},
        "network": cost.sent_bytes / workers / NETWORK,
        "disk": 2 * cost.sent_bytes / workers / DISK,
        "memory": figures["worker_bytes"]
        + cost.task_bytes
        + cost.route_bytes / workers
        + buffers(),
        "stored": cost.sent_bytes / workers,
    }


def buffers():
    """Return the maximum size of distributed's buffers on a worker."""
    import dask
    import distributed  # its settings  # noqa: F401
    from dask.utils import parse_bytes

    named = ("distributed.p2p.comm.buffer", "distributed.p2p.storage.buffer")
    return sum(parse_bytes(dask.config.get(name)) for name in named)


def planned(rows, row_bytes, entries, chunk):
    """Return a lazy gather of the given sizes."""
    import dask
    import dask.array as da

    import gatherum

    with any_cluster(), dask.config.set({"array.chunk-size": chunk}):
        count = max(1, chunk // row_bytes)
        table = da.zeros((rows, row_bytes), dtype=np.uint8, chunks=(count, row_bytes))
        return gatherum.gather(table, da.zeros(entries, dtype=np.int64, chunks=count))


def plan(options):
    """Print a table: the same call in chunks of several sizes."""
    figures = json.loads(FIGURES.read_text())
    print(f"Measured {figures['date']} on {figures['machine']}:")
    print(", ".join(f"{name} {value:.3g} s" for name, value in figures["seconds"].items()), end="")
    print(f"; scheduler {figures['scheduler_seconds_a_task']:.3g} s a task")
    print()
    rows, entries = int(options.rows), int(options.entries)
    head = (
        "chunks of", "tasks", "pieces", "bytes sent per worker", "scheduler", "CPU per worker",
        "of which pieces", "network", "disk", "memory per worker",
    )  # fmt: skip
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for chunk in options.chunks:
        cost, _ = costed(planned(rows, options.row_bytes, entries, chunk * MIB))
        needs = predicted(figures, cost, entries, options.workers)
        cells = (
            f"{chunk:,} MiB", f"{cost.task_count:,}", f"{cost.piece_count:.1e}",
            f"{cost.sent_bytes / options.workers / 1e9:,.0f} GB", f"{needs['scheduler']:,.0f} s",
            f"{sum(needs['cpu'].values()):,.0f} s", f"{needs['cpu']['piece']:,.0f} s",
            f"{needs['network']:,.0f} s", f"{needs['disk']:,.0f} s",
            f"{needs['memory'] / 1e9:.1f} GB",
        )  # fmt: skip
        print("| " + " | ".join(cells) + " |")


def check(options):
    """Run gathers that fit on this machine and compare them with the formulas."""
    figures = json.loads(FIGURES.read_text())
    print("| gather | tasks | CPU: formula | measured | peak: formula | measured |")
    print("|---|---|---|---|---|---|")
    for name, sizes in CHECKED.items():
        with cluster() as client:
            worker, _, cost = shuffled(client, options.rounds, *sizes)
            peak = max(most for most, _ in client.run(resident).values())
        needs = predicted(figures, cost, sizes[4], 2)
        print(
            f"| {name} | {cost.task_count:,} | {2 * sum(needs['cpu'].values()):.1f} s | "
            f"{worker:.1f} s | {needs['memory'] / 1e9:.2f} GB | {peak / 1e9:.2f} GB |"
        )


CHECKED = {
    "0.8 GB in 40 x 20 chunks": (64 * MIB, 800_000, 256, 40, 800_000, 20),
    "0.2 GB in 200 x 100 chunks": (4 * MIB, 200_000, 256, 200, 200_000, 100),
    "rows of 16 bytes, 6 million": (16 * MIB, 6_000_000, 4, 24, 6_000_000, 24),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mode", choices=("measure", "plan", "check"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=100)
    parser.add_argument("--rows", type=float, default=1e11)
    parser.add_argument("--row-bytes", type=int, default=100)
    parser.add_argument("--entries", type=float, default=1e11)
    parser.add_argument("--chunks", type=int, nargs="+", default=(128, 512, 1024, 2048))
    options = parser.parse_args()
    if options.mode == "measure":
        print(json.dumps(measure(options.rounds), indent=2))
    else:
        {"plan": plan, "check": check}[options.mode](options)


if __name__ == "__main__":
    main()
