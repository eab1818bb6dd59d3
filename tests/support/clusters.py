"""Clusters of processes, slow calls on them, and faults that are injected meanwhile.

A fault is injected after a given number of tasks: in the middle of a call on any machine, slow or
busy.
"""

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster, SchedulerPlugin

import gatherum
import gatherum.dask
from gatherum.dask.planning import choice

STRATEGIES = ("tasks", "shuffle")
# The calls: two functions, and the change of a Zarr array.
CALLS = ("gather", "add", "into")
CHUNKS, ROWS, WIDTH = 16, 400, 32
# Warnings that Dask raises about Dask, and on a busy machine.
WARNINGS = (
    "ignore::DeprecationWarning",
    "ignore::ResourceWarning",
    "ignore:Creating scratch directories:UserWarning",
)
LONGEST = 200  # seconds to wait for a call


def block(seed: int, shape: tuple[int, ...]) -> Any:
    """Return rows of the table or of the updates; their sums depend on the order."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def index_block(seed: int, shape: tuple[int, ...]) -> Any:
    """Return indices, of which a few are very frequent."""
    return np.random.default_rng(seed).zipf(1.3, shape) % (CHUNKS * ROWS)


def slowly(make: Callable[..., Any], seed: int, block_info: Any) -> Any:
    """Make a block after a pause, in which a fault can occur."""
    time.sleep(0.05)
    place = block_info[None]
    sizes = [stop - start for start, stop in place["array-location"]]
    return make(seed + place["chunk-location"][0], tuple(sizes))


def lazy(make: Callable[..., Any], seed: int, *sizes: int) -> Any:
    """Return a Dask array whose blocks are made slowly."""
    chunks = ((ROWS,) * CHUNKS, *((n,) for n in sizes))
    dtype = make(0, (0,) * len(chunks)).dtype
    meta = np.empty((0,) * len(chunks), dtype)
    return da.map_blocks(slowly, make, seed, chunks=chunks, dtype=dtype, meta=meta)


def whole(make: Callable[..., Any], seed: int, *sizes: int) -> Any:
    """Return the same values as one NumPy array."""
    return np.concatenate([make(seed + n, (ROWS, *sizes)) for n in range(CHUNKS)])


def digest(array: Any) -> str:
    """Return a digest of an array's bits."""
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


def expected(call: str) -> str:
    """Return the digest of a call on NumPy arrays."""
    table, indices = whole(block, 0, WIDTH), whole(index_block, 100)
    if call == "gather":
        return digest(gatherum.gather(table, indices))
    updates = whole(block, 200, WIDTH)
    return digest(gatherum.scatter_slices(table, indices, updates, reduction="add"))


def store(folder: Path) -> str:
    """Write the table to a Zarr array with the chunks of the arrays, and return its path."""
    import zarr

    path = folder / "table.zarr"
    shutil.rmtree(path, ignore_errors=True)
    shape = CHUNKS * ROWS, WIDTH
    array = zarr.create_array(path, shape=shape, chunks=(ROWS, WIDTH), dtype=np.float32)
    array[...] = whole(block, 0, WIDTH)
    return str(path)


def stored(path: str) -> str:
    """Return the digest of a Zarr array. Check that no other files are next to it or in it."""
    import zarr

    deadline = time.monotonic() + LONGEST
    while time.monotonic() < deadline and os.listdir(Path(path).parent) != ["table.zarr"]:
        time.sleep(0.1)  # a task that is running when its run fails cleans up when it ends
    files = [name for _, _, names in os.walk(path) for name in names]
    assert sorted(os.listdir(Path(path).parent)) == ["table.zarr"]
    assert len(files) == CHUNKS + 1 and not any(".partial" in name for name in files)
    return digest(zarr.open_array(path, mode="r")[...])


class Watch(SchedulerPlugin):
    """Counts the finished tasks, and acts once when `at` of them are done."""

    name = "watch"

    def __init__(self) -> None:
        self.done, self.at, self.act = 0, -1, lambda: None
        self.struck = False

    def transition(self, key: Any, start: str, finish: str, *_: Any, **__: Any) -> None:
        """Handle a state change of a task."""
        if start == "processing" and finish == "memory":
            self.done += 1
            if self.done == self.at:
                self.struck = True
                self.act()


class Session:
    """A cluster and its client."""

    def __init__(self, cluster: Any, client: Any) -> None:
        self.cluster, self.client, self.watch = cluster, client, Watch()
        self.pool = ThreadPoolExecutor(1)
        cluster.scheduler.add_plugin(self.watch)

    def strike(self, at: int, act: Callable[[], Any]) -> None:
        """Inject a fault when `at` tasks, counted from now, are done."""
        self.watch.done, self.watch.at, self.watch.act = 0, at, act

    def kill(self, number: int = 0) -> Callable[[], None]:
        """Return a function that kills a worker."""
        pids = sorted(self.client.run(os.getpid).items())
        return lambda: os.kill(pids[number][1], signal.SIGKILL)

    def start(self, call: str, path: str = "") -> "Future[str]":
        """Start a call whose result is the digest of its outcome."""
        return self.pool.submit(run, call, path)


def run(call: str, path: str = "") -> str:
    """Run a call on the cluster that is Dask's scheduler, and return the digest of the outcome."""
    indices = lazy(index_block, 100)
    if call == "gather":
        return digest(gatherum.gather(lazy(block, 0, WIDTH), indices).compute())
    updates = lazy(block, 200, WIDTH)
    if call == "into":
        gatherum.dask.scatter_nd_into(path, indices[:, None], updates, reduction="add")
        return stored(path)
    table = lazy(block, 0, WIDTH)
    result = gatherum.scatter_slices(table, indices, updates, reduction="add")
    return digest(result.compute())


@contextmanager
def session(strategy: str, *, workers: int = 2, **options: Any) -> Iterator[Session]:
    """Start a cluster that moves rows by one of the two strategies, however few they are."""
    settings = {
        "gatherum.strategy": strategy,
        "array.chunk-size": "128KiB",
        "distributed.logging.distributed": "critical",
    }
    small, choice.SMALL_BYTES = choice.SMALL_BYTES, -1
    try:
        with (
            dask.config.set(settings | options.pop("settings", {})),
            LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                dashboard_address="127.0.0.1:0",
                silence_logs=50,
                **options,
            ) as cluster,
            Client(cluster) as client,
            # Not the client itself: a nanny sends the settings to the workers that it starts.
            dask.config.set(scheduler="distributed"),
        ):
            yield Session(cluster, client)
    finally:
        choice.SMALL_BYTES = small


@contextmanager
def outside(folder: Path) -> Iterator[tuple[str, int]]:
    """Start a scheduler and two workers as processes. Return the scheduler's address and PID."""
    log = (folder / "log").open("w")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    file = str(folder / "scheduler.json")

    def start(program: str, *arguments: str) -> Any:
        command = [sys.executable, "-m", f"distributed.cli.{program}", *arguments]
        return subprocess.Popen(command, env=environment, stdout=log, stderr=log)

    processes = [start("dask_scheduler", "--port=0", "--no-dashboard", f"--scheduler-file={file}")]
    try:
        while not os.path.exists(file):
            assert processes[0].poll() is None
            time.sleep(0.1)
        for _ in range(2):
            processes.append(
                start("dask_worker", f"--scheduler-file={file}", "--nthreads=1", "--no-dashboard",
                      f"--local-directory={folder}")
            )  # fmt: skip
        with Client(scheduler_file=file) as client:
            client.wait_for_workers(2, timeout=60)
            address = client.scheduler.address
        yield address, processes[0].pid
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
        log.close()


def is_at_work(dask_scheduler: Any) -> bool:
    """Return True if some tasks are done and others are not."""
    done = [task for task in dask_scheduler.tasks.values() if task.state == "memory"]
    return len(done) > 5
