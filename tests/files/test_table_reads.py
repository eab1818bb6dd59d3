"""Reads of an open table's rows: from its cache, a disk or a server."""

import os
import pickle
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gatherum
from files.open_tables import TABLE
from files.storage import bits, put
from gatherum import files
from gatherum._system import native
from gatherum.files.open_table import row_reads, state
from gatherum.files.resources import disk

pytestmark = pytest.mark.usefixtures("quick_sync", "watched_closely")


# --------------------------------------------------------------------------- the cache


def test_the_cache_keeps_the_most_requested_rows(tmp_path: Path) -> None:
    array = np.arange(20_000 * 4, dtype=np.int64).reshape(-1, 4)
    path = put(tmp_path, "t", array)
    table = files.open(path, cache=1000 * 41)
    hot = np.random.default_rng(1).permutation(20_000)[:300]
    cold = np.random.default_rng(2)
    for _ in range(60):
        rows = np.concatenate([hot, cold.integers(0, 20_000, 300)])
        assert np.array_equal(table.gather(rows), array[rows])
    before = table.stats()
    assert before.cached_bytes <= 1000 * 32
    table.gather(hot)
    stats = table.stats()
    assert stats.hits - before.hits >= 250
    assert stats.bytes_read - before.bytes_read <= 100 * 32 * 40
    text = str(stats)
    assert "61 requests for 36,300 rows" in text
    assert "of the rows cached" in text
    assert stats.p50 <= stats.p90 <= stats.p99 > 0


def test_a_cache_follows_a_stream_that_changes(tmp_path: Path) -> None:
    array = np.arange(2000 * 4, dtype=np.int64).reshape(-1, 4)
    table = files.open(put(tmp_path, "t", array), cache=200 * 41)
    for start in (0, 1000, 500):
        for _ in range(60):
            table.gather(np.arange(start, start + 100))
        before = table.stats().hits
        table.gather(np.arange(start, start + 100))
        assert table.stats().hits - before >= 90


@pytest.mark.parametrize("cache", ["8KiB", "1MiB"])
def test_a_cache_for_the_whole_table_holds_it_all(tmp_path: Path, cache: str) -> None:
    array = np.arange(303, dtype=np.uint8)
    table = files.open(put(tmp_path, "t", array), cache=cache)
    for _ in range(2):
        assert np.array_equal(table.gather(np.arange(303)), array)
    stats = table.stats()
    assert (stats.hits, stats.misses, stats.cached_bytes) == (303, 303, 303)


def test_arguments_that_the_row_cache_refuses() -> None:
    cache = native.make_row_cache(4, 10, 8)
    rows, numbers = np.zeros(16, np.uint8), np.zeros(2, np.int64)
    for call in (cache.lookup, lambda *operands: cache.insert(*operands, 0)):
        for wrong in ([0], numbers.astype("i4"), np.zeros((1, 2), np.int64), numbers[::-1]):
            with pytest.raises(TypeError, match="flat array of int64"):
                call(wrong, None, rows)
        with pytest.raises(ValueError, match="differ in length"):
            call(numbers, np.zeros(3, np.int64), rows)
        for out in (rows.view("i8"), rows[::2], b"0" * 16):
            with pytest.raises(TypeError, match="contiguous, writable array of bytes"):
                call(numbers, None, out)
    assert cache.lookup(numbers, np.array([0, 2]), rows) is False
    assert cache.lookup(np.array([0, 10]), None, rows) is False
    cache.insert(np.array([0, 10, -1]), np.array([0, 0, 0]), rows, 0)
    assert cache.cached_rows == 1
    assert cache.lookup(numbers, None, rows) is None
    for sizes in ((0, 1, 1), (1, 0, 1), (1, 1, 0), (2**62, 1, 8)):
        with pytest.raises(ValueError, match="sizes must be at least 1"):
            native.make_row_cache(*sizes)


def test_stats_before_the_first_request(tmp_path: Path) -> None:
    stats = files.open(put(tmp_path, "t", TABLE)).stats()
    assert (stats.requests, stats.rows, stats.bytes, stats.hits, stats.misses) == (0,) * 5
    assert (stats.p50, stats.p90, stats.p99) == (0.0,) * 3
    assert "cached" not in str(stats)


# -------------------------------------------------------------------------- the disk


def test_rows_are_requested_together_after_a_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_reads, "WAITED_CALL", -(1 << 60))
    asked: list[int] = []
    monkeypatch.setattr(disk, "ADVISE", lambda _, offset, *__: asked.append(offset))
    table = files.open(put(tmp_path, "t", TABLE))
    rows = np.array([9, 3, 200, 3])
    assert bits(table.gather(rows)) == bits(TABLE[rows])
    assert asked == []
    assert bits(table.gather(rows)) == bits(TABLE[rows])
    assert asked == sorted(asked)
    assert len(asked) == 4
    for wrong in ([300, 1], [1, -400]):
        with pytest.raises(IndexError, match="out of bounds"):
            table.gather(wrong)
    assert bits(table.gather([-1, 4])) == bits(TABLE[[-1, 4]])


def test_a_wait_for_the_lock_is_no_wait_for_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requests to the system release the lock, so that more threads would wait for it."""
    read, asked = native.read_file_rows, []

    def read_and_wait(*arguments: Any) -> Any:
        result = read(*arguments)
        time.sleep(0.05)
        return result

    monkeypatch.setattr(native, "read_file_rows", read_and_wait)
    monkeypatch.setattr(disk, "ADVISE", lambda _, offset, *__: asked.append(offset))
    with files.open(put(tmp_path, "t", TABLE)) as table:
        for rows in (np.array([9, 3, 200, 3]), np.arange(100)):
            for _ in range(3):
                assert bits(table.gather(rows)) == bits(TABLE[rows])
    assert asked == []


def test_a_row_is_read_once_for_all_its_requests(tmp_path: Path) -> None:
    table = files.open(put(tmp_path, "t", TABLE))
    before = table.stats().bytes_read
    table.gather(np.full(1000, 7))
    assert table.stats().bytes_read - before <= 4096


@pytest.mark.skipif(row_reads.DIRECT is None, reason="needs O_DIRECT: run on Linux")
@pytest.mark.parametrize("cache", ["0", "8KiB"])
@pytest.mark.parametrize("readers", [1, 4])
@pytest.mark.parametrize("width", [3, 500, 4096, 9000])
def test_rows_past_the_page_cache(tmp_path: Path, width: int, readers: int, cache: str) -> None:
    cache = "0" if width > 4096 else cache
    array = np.random.default_rng(4).integers(0, 256, (300, width), np.uint8)
    path = put(tmp_path, "t", array, "safetensors")
    with files.open(path, direct=True, readers=readers, cache=cache) as table:
        rng = np.random.default_rng(5)
        for count in (0, 1, 7, 300, 5000):
            rows = rng.integers(-300, 300, count)
            assert bits(table.gather(rows)) == bits(array[rows])
        assert bits(table.gather([299, 0, 299])) == bits(array[[299, 0, 299]])
        wide = table.gather([5, 400, -1], mode="fill")
        assert bits(wide) == bits(gatherum.gather(array, [5, 400, -1], mode="fill"))
        out = np.full((2, width), 7, np.uint8)
        with pytest.raises(IndexError, match="index 300 is out of bounds"):
            table.gather([0, 300], out=out)
        assert (out == 7).all()
        assert bits(table.gather_nd([[1, 2]])) == bits(array[[1], [2]])
        assert bits(table.submit([8]).result()) == bits(array[[8]])
        again = pickle.loads(pickle.dumps(table))
        assert isinstance(again._state.reads, row_reads.DirectReads)
        again.close()
        os.truncate(path.partition(":")[0], 2000)
        with pytest.raises(OSError, match=r"(truncated|changed) while it was being read"):
            table.gather([250, 3])


@pytest.mark.skipif(row_reads.DIRECT is None, reason="needs O_DIRECT: run on Linux")
@pytest.mark.parametrize("width", [1 << 20, (5 << 19) + 7])
def test_long_rows_past_the_page_cache(tmp_path: Path, width: int) -> None:
    array = np.random.default_rng(4).integers(0, 256, (5, width), np.uint8)
    with files.open(put(tmp_path, "t", array, "safetensors"), direct=True, readers=3) as table:
        assert bits(table.gather([3, 4, 0, 3])) == bits(array[[3, 4, 0, 3]])
        pages = -(-(3 * width) // disk.PAGE) * disk.PAGE
        assert pages <= table.stats().bytes_read <= pages + 16 * disk.PAGE


@pytest.mark.skipif(row_reads.DIRECT is None, reason="needs O_DIRECT: run on Linux")
def test_direct_reads_are_for_flat_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for file_format in ("zarr3", "fortran"):
        with pytest.raises(ValueError, match="direct=True is for files on this machine whose rows"):
            files.open(put(tmp_path, "t", TABLE, file_format), direct=True)
    with pytest.raises(ValueError, match="got the table"):
        files.open(TABLE, direct=True)
    path = put(tmp_path, "t", TABLE)
    with pytest.raises(TypeError, match="open: `direct` must be"):
        files.open(path, direct=1)  # type: ignore[arg-type]
    before = len(os.listdir("/proc/self/fd"))
    files.open(path, direct=True).close()
    monkeypatch.setattr(row_reads, "DIRECT", None)
    with pytest.raises(ValueError, match="needs O_DIRECT, which this system does not have"):
        files.open(path, direct=True)
    assert len(os.listdir("/proc/self/fd")) == before


# ------------------------------------------------------------------------ tables at URLs


@pytest.fixture
def web(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    pytest.importorskip("fsspec", reason="install gatherum[remote] to test URLs")
    pytest.importorskip("aiohttp", reason="install gatherum[remote] to test URLs")
    from files.web import serving
    from gatherum.files.remote import store

    monkeypatch.setattr(store, "FIRST_PAUSE", 0.001)
    monkeypatch.setattr(state, "FAR", -1.0)
    with serving(tmp_path) as web:
        yield web


@pytest.mark.frameworks
@pytest.mark.slow
@pytest.mark.parametrize("cache", ["0", "64KiB"])
@pytest.mark.parametrize("file_format", ["npy", "zarr3"])
def test_tables_at_urls(web: Any, file_format: str, cache: str) -> None:
    array = np.random.default_rng(3).integers(0, 1 << 60, (9000, 4))
    table = files.open(web.url(put(web.folder, "t", array, file_format)), cache=cache)
    rows = np.array([8999, 0, 5000, -3])
    for _ in range(3):
        assert bits(table.gather(rows)) == bits(array[rows])
    if cache != "0":
        stats = table.stats()
        assert stats.hits == 8
        assert stats.misses == 4
    again = pickle.loads(pickle.dumps(table))
    assert bits(again.gather_nd([[5000, 1]])) == bits(array[[5000], [1]])
    with pytest.raises(IndexError, match="index 9000 is out of bounds"):
        table.gather([1, 9000])


@pytest.mark.frameworks
@pytest.mark.parametrize("fault", ["503", "cut off", "dropped", "short"])
def test_a_server_that_fails_for_a_moment(web: Any, fault: str) -> None:
    array = np.random.default_rng(3).integers(0, 1 << 60, (9000, 4))
    table = files.open(web.url(put(web.folder, "t", array)))
    web.fail(fault, 2)
    assert bits(table.gather([8999, 3000])) == bits(array[[8999, 3000]])


@pytest.mark.frameworks
@pytest.mark.parametrize("fault", ["403", "shifted", "whole", "unranged", "long"])
def test_a_server_that_lies(web: Any, fault: str) -> None:
    array = np.random.default_rng(3).integers(0, 1 << 60, (9000, 4))
    table = files.open(web.url(put(web.folder, "t", array)), cache="64KiB")
    table.gather([8999])
    web.fail(fault, 1 << 30)
    with pytest.raises(OSError, match=r"t\.npy"):
        table.gather([5000])
    web.fault, web.times = None, 0
    for _ in range(2):
        assert bits(table.gather([5000, 8999])) == bits(array[[5000, 8999]])


@pytest.mark.frameworks
def test_a_table_at_a_url_that_is_replaced(web: Any) -> None:
    array = np.random.default_rng(3).integers(0, 1 << 60, (9000, 4))
    path = put(web.folder, "t", array)
    table = files.open(web.url(path), cache="64KiB")
    table.gather([8999])
    np.save(path, array + 1)
    for rows in ([8999], [4000]):
        with pytest.raises(OSError, match="changed while it was being read"):
            table.gather(rows)
    table.reload()
    assert bits(table.gather([8999])) == bits(array[[8999]] + 1)


@pytest.mark.frameworks
@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_forked_child_opens_a_separate_connection(web: Any) -> None:
    array = np.random.default_rng(3).integers(0, 1 << 60, (9000, 4))
    table = files.open(web.url(put(web.folder, "t", array)), cache="64KiB")
    table.gather([8999])
    code = f"""
import os, sys
from gatherum import files
table = files.open({web.url(web.folder / "t.npy")!r}, cache="64KiB")
first = table.gather([8999, 4000])
child = os.fork()
if child == 0:
    os._exit(0 if (table.gather([8999, 4000]) == first).all() else 3)
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
assert (table.gather([8999, 4000]) == first).all()
sys.exit(status)
"""
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], timeout=60, capture_output=True, check=False
    )
    assert ended.returncode == 0, ended.stderr.decode()


@pytest.mark.parametrize("count", [2, 17, 256])
def test_few_rows_are_sorted_with_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    """NumPy releases the interpreter's lock to sort, and other threads then delay the call."""

    def refuse(*_: object) -> None:
        raise AssertionError("sorted in Python")

    monkeypatch.setattr(row_reads, "_sorted", refuse)
    monkeypatch.setattr(row_reads, "WAITED_CALL", 1 << 60)
    array = np.arange(3000 * 4, dtype=np.int64).reshape(-1, 4)
    rows = np.random.default_rng(count).integers(0, 3000, count)
    rows[-1] = rows[0]
    with files.open(put(tmp_path, "t", array)) as table:
        assert bits(table.gather(rows)) == bits(array[rows])
        assert bits(table.gather(-rows - 1)) == bits(array[-rows - 1])
        rows[1] = 3000
        with pytest.raises(IndexError, match=r"index 3000 is out of bounds .* \(indices\[1\]\)"):
            table.gather(rows)
        filled = table.gather(rows, mode="fill", fill_value=7)
        assert (filled[1] == 7).all()
        assert bits(np.delete(filled, 1, 0)) == bits(array[np.delete(rows, 1)])
