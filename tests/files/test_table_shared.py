"""An open table whose file changes, or that threads, futures and processes share."""

import asyncio
import importlib.util
import os
import pickle
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from files.open_tables import CACHES, TABLE, forked
from files.storage import bits, put
from gatherum import files
from gatherum.files.open_table import state
from gatherum.files.open_table import table as table_module

pytestmark = pytest.mark.usefixtures("quick_sync", "watched_closely")


# ------------------------------------------------------------------- a file that changes


def replaced(path: str) -> None:
    np.save(path + ".new.npy", TABLE + 1)
    os.replace(path + ".new.npy", path)


def cut(path: str) -> None:
    os.truncate(path, 4000)


def rewritten(path: str) -> None:
    with open(path, "r+b") as file:
        file.seek(200)
        file.write(b"x" * 8)
    os.utime(path, ns=(5, 5))


@pytest.mark.parametrize("cache", ["0", "1MiB"])
@pytest.mark.parametrize("change", [replaced, cut, rewritten, os.unlink])
def test_a_table_that_changes_is_an_error_until_it_is_opened_again(
    tmp_path: Path, change: Any, cache: str
) -> None:
    path = put(tmp_path, "t", TABLE)
    table = files.open(path, cache=cache)
    assert bits(table.gather([250])) == bits(TABLE[[250]])
    change(path)
    for use in (
        lambda: table.gather([250]), lambda: table.gather([0]), lambda: table.gather([0], 1),
        lambda: table.gather_nd([[0]]), lambda: table.submit([1]).result(),
        lambda: list(table.rows([[1]])),
    ):  # fmt: skip
        with pytest.raises(OSError, match=r"t\.npy: (changed|vanished|ends at byte)"):
            use()
    np.save(path, TABLE[:260] + 5)
    table.reload()
    assert table.shape == (260, 8)
    assert bits(table.gather([250])) == bits(TABLE[[250]] + 5)


def test_the_error_suggests_an_action(tmp_path: Path) -> None:
    path = put(tmp_path, "t", TABLE)
    table = files.open(path)
    replaced(path)
    with pytest.raises(OSError, match="changed while it was being read") as caught:
        table.gather([0])
    assert caught.value.__notes__ == ["Table.reload opens it again"]
    os.unlink(path)
    with pytest.raises(FileNotFoundError):
        table.reload()
    with pytest.raises(FileNotFoundError, match="vanished"):
        table.gather([0])


def test_the_file_is_not_checked_at_every_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "NEAR", 1000.0)
    path = put(tmp_path, "t", TABLE)
    table = files.open(path)
    table.gather([0])
    replaced(path)
    assert bits(table.gather([0])) == bits(TABLE[[0]])


# ------------------------------------------------------- processes, threads, the background


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
@pytest.mark.parametrize("cache", ["0", "1MiB"])
def test_a_forked_child_has_the_table(tmp_path: Path, cache: str) -> None:
    path = put(tmp_path, "t", TABLE)
    table = files.open(path, cache=cache, readers=2)
    closed = files.open(path)
    closed.close()
    table.submit([5]).result()
    with table._lock:  # as another thread may hold them
        child = forked(lambda: check_child(table, closed))
    assert child == 0
    assert bits(table.gather([5])) == bits(TABLE[[5]])
    rewritten(path)
    assert forked(lambda: check_changed(table)) == 0


def check_child(table: Any, closed: Any) -> None:
    for _ in range(2):
        assert bits(table.gather([5, -1])) == bits(TABLE[[5, -1]])
    future = table._start(table.gather, [7])
    assert bits(future.result(20)) == bits(TABLE[[7]])
    assert table.stats().requests == 3
    with pytest.raises(ValueError, match="closed"):
        closed.gather([0])


def check_changed(table: Any) -> None:
    with pytest.raises(OSError, match="changed since the parent process opened it"):
        table.gather([0])
    table.reload()
    assert table.gather([100]).shape == (1, 8)


def test_a_table_pickles_by_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    put(tmp_path, "t", TABLE, "npz")
    table = files.open("t.npz:wanted", cache="64KiB", readers=3)
    table.gather([1])
    data = pickle.dumps(table)
    assert len(data) < 1000
    monkeypatch.chdir("/")
    again = pickle.loads(data)
    assert bits(again.gather([1])) == bits(TABLE[[1]])
    assert again.stats().hits == 0
    assert again.gather([1]) is not None
    assert again.stats().hits == 1
    unpickled = pickle.loads(pickle.dumps(files.open(TABLE)))
    assert bits(unpickled.gather([1])) == bits(TABLE[[1]])


@pytest.mark.slow
@pytest.mark.parametrize("cache", CACHES)
@pytest.mark.parametrize("file_format", ["npy", "zarr3", "hdf5 chunks"])
def test_eight_threads_have_the_answers_of_one(
    tmp_path: Path, file_format: str, cache: str
) -> None:
    table = files.open(put(tmp_path, "t", TABLE, file_format), cache=cache)
    rounds = 300 if file_format == "npy" else 20

    def ask(seed: int) -> None:
        rng = np.random.default_rng(seed)
        out = np.empty((16, 8), np.int32)
        for _ in range(rounds):
            rows = rng.zipf(1.3, 16) % 300 - rng.integers(0, 2) * 300
            assert table.gather(rows, out=out) is out
            assert np.array_equal(out, TABLE[rows])

    with ThreadPoolExecutor(8) as threads:
        for done in [threads.submit(ask, seed) for seed in range(8)]:
            done.result()
    stats = table.stats()
    assert (stats.requests, stats.rows) == (8 * rounds, 8 * rounds * 16)
    assert stats.bytes == stats.rows * 32
    assert stats.hits + stats.misses == (0 if cache == "0" else stats.rows)


def test_reloads_and_lookups_at_the_same_time(tmp_path: Path) -> None:
    path = put(tmp_path, "t", TABLE)
    table = files.open(path, cache="4KiB")
    ended = threading.Event()

    def ask() -> int:
        count = 0
        while not ended.is_set() or count < 20:
            assert bits(table.gather([7, 200])) == bits(TABLE[[7, 200]])
            count += 1
        return count

    with ThreadPoolExecutor(3) as threads:
        asked = [threads.submit(ask) for _ in range(3)]
        for _ in range(50):
            table.reload()
        ended.set()
        assert all(one.result() for one in asked)


@pytest.mark.parametrize("resident", [True, False])
@pytest.mark.parametrize("file_format", ["npy", "zarr3", "array"])
def test_futures(
    tmp_path: Path, file_format: str, resident: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state.State, "are_resident", lambda *_: resident)
    table = files.open(
        TABLE if file_format == "array" else put(tmp_path, "t", TABLE, file_format), readers=2
    )
    rows = np.array([1, -1])
    futures = [table.submit(rows + 0) for _ in range(20)]
    out = np.empty((2, 8), np.int32)
    futures.append(table.submit(rows, out=out))
    futures.append(table.submit([9, 2], 1))
    rows[:] = 77
    for future in futures[:-1]:
        assert bits(future.result()) == bits(TABLE[[1, -1]])
    assert futures[-2].result() is out
    with pytest.raises(IndexError, match="index 9 is out of bounds for axis 1"):
        futures[-1].result()
    with pytest.raises(TypeError, match="unknown argument 'moden'"):
        table.submit([0], moden="raise").result()

    async def ask() -> list[Any]:
        return await asyncio.gather(*(table.gather_async([n]) for n in range(30)))

    for number, result in enumerate(asyncio.run(ask())):
        assert bits(result) == bits(TABLE[[number]])
    waits = [table.submit([n]) for n in range(20)]
    table.close()
    assert all(future.done() for future in waits)


@pytest.mark.skipif(not hasattr(os, "RWF_NOWAIT"), reason="needs preadv2: run on Linux")
def test_rows_in_memory_are_read_without_a_thread(tmp_path: Path) -> None:
    table = files.open(put(tmp_path, "t", TABLE))
    table.gather(np.arange(300))
    assert table.submit([3, 2]).done()
    assert table._pool is None
    assert table.submit(np.arange(300)).result().shape == (300, 8)
    assert table._pool is not None


def test_prefetched_rows_are_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for file_format in ("npy", "zarr3"):
        table = files.open(put(tmp_path, "t", TABLE, file_format), cache="1MiB", readers=1)
        table.prefetch([5, -1, 5])
        table._start(int).result()  # earlier work in the queue is done
        before = table.stats()
        assert before.cached_bytes == 64
        table.gather([5, 299])
        assert table.stats().hits == before.hits + 2
        with pytest.raises(IndexError, match="index 300 is out of bounds"):
            table.prefetch([1, 300])
        with pytest.raises(TypeError, match="integer dtype"):
            table.prefetch([0.5])
    without = files.open(put(tmp_path, "t", TABLE))
    without.prefetch(np.arange(300))
    without.prefetch([])
    assert without._pool is None
    monkeypatch.setattr(table_module, "FEW", 2)
    without.prefetch([1, 2, 3])
    assert without._pool is not None
    files.open(np.zeros((0, 2))).prefetch([])


def test_the_server_of_the_examples(capsys: pytest.CaptureFixture[str]) -> None:
    example = Path(__file__).parents[2] / "examples/server.py"
    spec = importlib.util.spec_from_file_location("server", example)
    assert spec is not None and spec.loader is not None
    server = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(server)
    server.main(["--rows", "2000", "--requests", "400", "--cache", "64KiB"])
    printed = capsys.readouterr().out
    assert printed.startswith("400 requests for 25,600 rows, 12.5 MiB, read ")
    assert re.search(r"p50 [\d,]+ us, p90 [\d,]+ us, p99 [\d,]+ us\n", printed)
    assert printed.endswith(" requests a second from 8 threads\n")


def test_indices_that_another_thread_changes(tmp_path: Path) -> None:
    table = files.open(put(tmp_path, "t", TABLE), cache="4KiB")
    rows, ended = np.zeros(64, np.int64), threading.Event()

    def change() -> None:
        rng = np.random.default_rng(0)
        while not ended.is_set():
            rows[:] = rng.integers(-400, 2**62, 64)
            rows[:] = rng.integers(0, 300, 64)

    known = {row.tobytes() for row in TABLE}
    with ThreadPoolExecutor(1) as thread:
        changing = thread.submit(change)
        for _ in range(2000):
            try:
                result = table.gather(rows)
            except (IndexError, OSError):
                continue
            assert {row.tobytes() for row in result} <= known
        ended.set()
        changing.result()
