"""A fault of each kind in the middle of a call. `nox -s faults` runs all of them."""

import errno
import os
import re
import resource
import signal
import threading
import time
from concurrent.futures import CancelledError, ThreadPoolExecutor

import numpy as np
import pytest

pytest.importorskip("distributed", reason="install distributed: pip install distributed")
pytest.importorskip("zarr", reason="install zarr")
import dask
from distributed import Client

import gatherum.dask
from clusters import (
    LONGEST,
    WARNINGS,
    WIDTH,
    block,
    digest,
    expected,
    index_block,
    is_at_work,
    lazy,
    outside,
    run,
    session,
    store,
    stored,
    whole,
)

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings(*WARNINGS)]
BEFORE = digest(whole(block, 0, WIDTH))


@pytest.mark.parametrize(
    ("call", "strategy"),
    [
        pytest.param("gather", "tasks", marks=pytest.mark.release),
        ("gather", "shuffle"),
        pytest.param("add", "shuffle", marks=pytest.mark.release),
        pytest.param("into", "tasks", marks=pytest.mark.release),
    ],
)
def test_a_worker_is_killed(call, strategy, tmp_path):
    with session(strategy) as at:
        path = store(tmp_path)
        at.strike(40, at.kill())
        assert at.start(call, path).result(LONGEST) == expected(call)
        assert at.watch.struck and at.watch.done > 40, "the kill must land before the end"


@pytest.mark.release
def test_a_worker_is_retired():
    with session("tasks") as at:
        some = threading.Event()
        at.strike(40, some.set)
        address = sorted(at.client.scheduler_info()["workers"])[0]
        running = at.start("add")
        assert some.wait(LONGEST) and not running.done()
        at.client.retire_workers([address], close_workers=True)
        assert running.result(LONGEST) == expected("add")


def wrong(values, block_info):
    if block_info[0]["chunk-location"][0] == 9:
        values[3] = 10**9
    return values


def deadly(values):
    os.kill(os.getpid(), signal.SIGKILL)


def into(path, function):
    """Change a store by indices that a function modifies."""
    indices = lazy(index_block, 100)
    indices = indices.map_blocks(function, dtype=indices.dtype, meta=indices._meta)
    updates = lazy(block, 200, WIDTH)
    gatherum.dask.scatter_nd_into(path, indices[:, None], updates, reduction="add")


def test_a_task_raises(tmp_path):
    with session("shuffle") as at:
        path = store(tmp_path)
        message = r"^scatter_nd: index 1000000000 is out of bounds .* \(indices\[3603.*\]\)$"
        with pytest.raises(IndexError, match=message):
            at.pool.submit(into, path, wrong).result(LONGEST)
        assert stored(path) == BEFORE


@pytest.mark.release
def test_every_worker_dies(tmp_path):
    with session("tasks", settings={"distributed.scheduler.allowed-failures": 0}) as at:
        path = store(tmp_path)
        with pytest.raises(OSError, match="every worker that ran one of the tasks died, 1 in"):
            at.pool.submit(into, path, deadly).result(LONGEST)
        assert stored(path) == BEFORE


def limit_files(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


@pytest.mark.release
def test_a_disk_is_full(tmp_path):
    with session("shuffle") as at:
        path = store(tmp_path)
        at.client.run(limit_files, 20_000)
        with pytest.raises(
            OSError, match=r"^gatherum\.dask: a worker's disk does not take the rows"
        ):
            at.start("into", path).result(LONGEST)
        assert stored(path) == BEFORE


@pytest.mark.release
def test_the_scheduler_goes_away(tmp_path, monkeypatch):
    monkeypatch.setattr("gatherum.dask.planning.choice.SMALL_BYTES", -1)
    (tmp_path / "workers").mkdir()
    (tmp_path / "table").mkdir()
    path = store(tmp_path / "table")
    with (
        dask.config.set({"gatherum.strategy": "tasks", "array.chunk-size": "128KiB"}),
        outside(tmp_path / "workers") as (address, pid),
        Client(address, timeout=5) as client,
        dask.config.set(scheduler="distributed"),
        ThreadPoolExecutor(2) as pool,
    ):
        calls = {call: pool.submit(run, call, path) for call in ("add", "into")}
        while not client.run_on_scheduler(is_at_work):
            time.sleep(0.05)
        assert not any(running.done() for running in calls.values())
        os.kill(pid, signal.SIGKILL)
        errors = {call: running.exception(LONGEST) for call, running in calls.items()}
    assert isinstance(errors["add"], CancelledError)
    assert isinstance(errors["into"], ConnectionError)
    assert re.match("gatherum.dask: the scheduler went away before all tasks", str(errors["into"]))
    assert stored(path) == BEFORE


@pytest.mark.parametrize("error", [None, OSError(27, "File too large")])
def test_a_task_that_outlives_its_run_leaves_nothing_behind(tmp_path, monkeypatch, error):
    """The run has removed its directory, and zarr creates it again."""
    from gatherum.dask.shuffling import staging

    folder = tmp_path / "table.zarr.partial.flat" / "run"

    class Written:
        def __init__(self, *_, **__):
            pass

        def write_box(self, box, values):
            (folder / "c").mkdir(parents=True)
            (folder / "c" / "0").write_bytes(b"")
            if error:
                raise error

    monkeypatch.setattr(staging, "ZarrArray", Written)
    with pytest.raises(OSError, match="File too large") if error else dask.config.set():
        staging.write(str(folder), (), np.zeros(1))
    assert list(tmp_path.iterdir()) == []
    (folder / "other").mkdir(parents=True)  # of a later run
    (folder / ".zarray").write_text("{}")
    with pytest.raises(OSError, match="File too large") if error else dask.config.set():
        staging.write(str(folder), (), np.zeros(1))
    assert (folder / "c" / "0").exists() and (folder / "other").exists()


@pytest.mark.parametrize("number", [errno.ENOTEMPTY, errno.ENOENT, errno.EACCES])
def test_files_that_a_task_writes_or_removes_meanwhile_are_checked_again(number, monkeypatch):
    from gatherum.dask.shuffling import staging

    class Build:
        replacing, cleared, closed = False, 0, False

        def remove_files(self):
            self.cleared += 1
            if self.cleared < 3:
                raise OSError(number, "while it is removed")

        def close(self):
            self.closed = True

    build = Build()
    monkeypatch.setattr(staging, "_PAUSE", 0)
    denied = number == errno.EACCES
    kept = staging.discarded_when_failed(build, resumable=True)
    with pytest.raises(OSError if denied else IndexError), kept:
        raise IndexError
    assert (build.cleared, build.closed) == (1 if denied else 3, True)


def test_a_stale_task_writes_only_to_its_own_directory(tmp_path):
    """Simulate a task whose client was killed and which still runs during the next run."""
    from gatherum.dask.shuffling.staging import write
    from gatherum.dask.store_changes import change

    path = store(tmp_path)
    box = slice(0, 400), slice(0, WIDTH)
    folders = []

    def compute(tasks):
        (folder,) = (tmp_path / "table.zarr.partial.flat").iterdir()
        folders.append(str(folder))
        if len(folders) == 1:
            raise SystemExit  # killed
        with pytest.raises((OSError, ValueError)):
            write(folders[0], box, np.zeros((400, WIDTH), np.float32))
        dask.compute(*tasks)
        (chunk,) = (folder / "c").rglob("0")
        chunk.with_name("0.cut-off.partial").write_bytes(b"half of a chunk")

    call = "scatter_nd", path, np.array([[6399]]), np.zeros((1, WIDTH), np.float32)
    for ends in (SystemExit, None):
        with pytest.raises(ends) if ends else dask.config.set():
            change(*call, {"mode": "clip"}, resume=False, compute=compute)
    assert len(set(folders)) == 2
    changed = whole(block, 0, WIDTH)
    changed[6399] = 0
    assert stored(path) == digest(changed)
