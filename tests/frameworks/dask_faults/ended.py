"""Calls that cannot succeed: one clear error in bounded time, and nothing half-written."""

import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import CancelledError, ThreadPoolExecutor

import dask
import numpy as np
import pytest
import zarr
from distributed import Client

import gatherum
import gatherum.dask
from clusters import (
    CALLS,
    LONGEST,
    STRATEGIES,
    WARNINGS,
    WIDTH,
    block,
    digest,
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
from source import SOURCE

pytestmark = pytest.mark.filterwarnings(*WARNINGS)
BEFORE = digest(whole(block, 0, WIDTH))


def wrong_index(values, block_info):
    """Put an index that is out of bounds for every table into one block."""
    if block_info[0]["chunk-location"][0] == 9:
        values[3] = 10**9
    return values


def unreadable(values, block_info):
    """Fail in one block as a file that has changed does."""
    if block_info[0]["chunk-location"][0] == 9:
        raise OSError("updates.npy: changed since it was opened")
    return values


def failing(call, path, why):
    """Make a call that fails in the middle."""
    indices, values = lazy(index_block, 100), lazy(block, 200, WIDTH)
    if why == "index":
        indices = indices.map_blocks(wrong_index, dtype=indices.dtype, meta=indices._meta)
    else:
        values = values.map_blocks(unreadable, dtype=values.dtype, meta=values._meta)
    if call == "gather":
        return gatherum.gather(values, indices).compute()
    if call == "add":
        table = lazy(block, 0, WIDTH)
        return gatherum.scatter_slices(table, indices, values, reduction="add").compute()
    return gatherum.dask.scatter_nd_into(path, indices[:, None], values, reduction="add")


@pytest.mark.parametrize("why", ["index", "file"])
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_task_raises(strategy, call, why, tmp_path):
    message = {
        "index": r"^\w+: index 1000000000 is out of bounds for axis 0 of size 6400 "
        r"\(indices\[3603(, 0)?\]\)$",
        "file": "^updates.npy: changed since it was opened$",
    }[why]
    with session(strategy) as at:
        path = store(tmp_path)
        running = at.pool.submit(failing, call, path, why)
        with pytest.raises({"index": IndexError, "file": OSError}[why], match=message):
            running.result(LONGEST)
        assert stored(path) == BEFORE


@pytest.mark.parametrize("call", CALLS)
def test_the_scheduler_goes_away(call, tmp_path, monkeypatch):
    monkeypatch.setattr("gatherum.dask.planning.choice.SMALL_BYTES", -1)
    workplace = tmp_path / "workers"
    workplace.mkdir()
    here = tmp_path / "table"
    here.mkdir()
    path = store(here)
    settings = {"gatherum.strategy": "tasks", "array.chunk-size": "128KiB"}
    with (
        outside(workplace) as (address, pid),
        dask.config.set(settings),
        Client(address, timeout=5) as client,
    ):
        running = ThreadPoolExecutor(1).submit(run, call, path)
        while not client.run_on_scheduler(is_at_work):
            time.sleep(0.05)
        assert not running.done()
        os.kill(pid, signal.SIGKILL)
        began = time.monotonic()
        error = running.exception(LONGEST)
        print(call, time.monotonic() - began, repr(error))
    if call == "into":
        assert isinstance(error, ConnectionError)
        assert str(error).startswith("gatherum.dask: the scheduler went away before all tasks")
    else:
        assert isinstance(error, CancelledError)
    assert stored(path) == BEFORE


def test_the_scheduler_of_a_command_goes_away(tmp_path):
    workplace = tmp_path / "workers"
    workplace.mkdir()
    here = tmp_path / "table"
    here.mkdir()
    path = str(here / "table.zarr")
    array = zarr.create_array(path, shape=(20_000, 4), chunks=(5, 4), dtype="f4")
    array[...] = 1
    rows = np.random.default_rng(0).integers(0, 20_000, 30_000)
    np.save(workplace / "rows.npy", rows)
    np.save(workplace / "one.npy", np.ones(4, "f4"))
    operands = [str(workplace / "rows.npy"), str(workplace / "one.npy"), "--reduction", "add"]
    command = [sys.executable, "-m", "gatherum", "scatter-slices", path, *operands, "--in-place"]
    with outside(workplace) as (address, pid), subprocess.Popen(
        [*command, "--scheduler", address], env=os.environ | {"PYTHONPATH": SOURCE},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as running:  # fmt: skip
        while not (here / "table.zarr.partial.flat").exists():
            assert running.poll() is None
            time.sleep(0.05)
        time.sleep(2)
        assert running.poll() is None
        os.kill(pid, signal.SIGKILL)
        began = time.monotonic()
        out, err = running.communicate(timeout=LONGEST)
        print(time.monotonic() - began)
    assert running.returncode == 1 and re.fullmatch("Dashboard: http://.*/status\n", out)
    assert re.fullmatch("gatherum: gatherum.dask: the scheduler went away before all .*\n", err)
    assert os.listdir(here) == ["table.zarr"]
    assert (zarr.open_array(path, mode="r")[...] == 1).all()
