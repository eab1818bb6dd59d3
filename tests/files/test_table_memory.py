"""Open tables whose rows are in memory: the core runs their gathers without Python."""

import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gatherum
from files.open_tables import TABLE, forked
from files.storage import bits, put
from gatherum import files
from gatherum._system import native
from gatherum.files.open_table import state

WHOLE = "1MiB"  # a cache for all rows of TABLE


def cached(folder: Path, array: Any = TABLE, **options: Any) -> files.Table:
    """Return an open table with all rows in its cache."""
    table = files.open(put(folder, "t", array), cache=WHOLE, **options)
    table.gather(np.arange(len(array)))
    assert table.stats().misses == len(array)
    return table


def mapped(folder: Path) -> files.Table:
    """Return an open table of a memory map."""
    path = folder / "mapped.npy"
    np.save(path, TABLE)
    return files.open(np.load(path, mmap_mode="r"))


MAKES: dict[str, Callable[[Path], files.Table]] = {
    "cache": cached,
    "array": lambda _: files.open(TABLE),
    "fortran array": lambda _: files.open(np.asfortranarray(TABLE)),
    "memory map": mapped,
}


@pytest.fixture(params=MAKES)
def table(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return an open table whose file is never checked again."""
    monkeypatch.setattr(state, "NEAR", 1000.0)
    return MAKES[request.param](tmp_path)


def frames_of(call: Callable[[], object]) -> list[str]:
    """Return the names of the Python functions that a call runs."""
    frames: list[str] = []

    def note(frame: Any, event: str, _: object) -> None:
        if event == "call":
            frames.append(frame.f_code.co_name)

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return frames


INDICES = [
    np.array([3, -1, 299, 3]), np.array([[7, -300]]), np.array(5), np.arange(300, dtype=np.int32),
    np.empty((0, 2), np.int64), np.arange(1024) % 300,
]  # fmt: skip


@pytest.mark.parametrize("indices", INDICES, ids=lambda indices: str(indices.shape))
def test_a_gather_runs_no_python(table: Any, indices: Any) -> None:
    expected = bits(TABLE[indices])
    for out in (None, np.empty((*indices.shape, 8), np.int32)):
        table.gather(indices, out=out)
        frames = frames_of(lambda out=out: table.gather(indices, out=out))  # type: ignore[misc]
        assert frames == ["<lambda>", "gather"]
        result = table.gather(indices, out=out)
        assert bits(result) == expected
        assert out is None or result is out


def test_calls_that_python_runs(table: Any) -> None:
    for indices in (
        np.array([3, -1], np.int16), np.array([3, -1], ">i8"), np.arange(20)[::-2], [3, -1],
        np.arange(2000) % 300, np.array([5], np.uint64),
    ):  # fmt: skip
        assert bits(table.gather(indices)) == bits(TABLE[np.asarray(indices)])
    wide = np.array([2, 300, -301])
    for mode in ("clip", "wrap", "fill"):
        assert bits(table.gather(wide, mode=mode)) == bits(gatherum.gather(TABLE, wide, mode=mode))
    assert bits(table.gather(np.array([2, 0]), 1)) == bits(TABLE[:, [2, 0]])
    out = np.empty((8, 2), np.int32).T
    assert table.gather(np.array([2, 0]), out=out) is out
    assert bits(out) == bits(TABLE[[2, 0]])


@pytest.mark.parametrize(
    ("indices", "options", "error", "message"),
    [
        ([3, 300], {}, IndexError, "index 300 is out of bounds for axis 0 of size 300"),
        ([3, -1], {"negative": False}, IndexError, "index -1 is out of bounds"),
        ([3, 4], {"mode": "none"}, ValueError, "`mode` must be"),
        ([3, 4], {"axis": 2}, ValueError, "axis"),
        ([3, 4], {"axis": 0.0}, TypeError, "axis"),
        ([3, 4], {"negative": 1}, TypeError, "negative"),
        ([3, 4], {"out": np.empty((2, 8))}, TypeError, "`out`"),
        ([3, 4], {"out": np.empty((2, 7), np.int32)}, ValueError, "`out`"),
        ([3, 4], {"other": 1}, TypeError, "other"),
    ],
)
def test_errors_are_those_of_other_tables(
    table: Any,
    tmp_path: Path,
    indices: Any,
    options: dict[str, Any],
    error: type[Exception],
    message: str,
) -> None:
    with files.open(put(tmp_path, "other", TABLE)) as other:
        with pytest.raises(error, match=message) as expected:
            other.gather(np.array(indices), **options)
        with pytest.raises(error) as caught:
            table.gather(np.array(indices), **options)
        assert str(caught.value) == str(expected.value)


@pytest.mark.parametrize("count", [100, 1025, 5000])
def test_an_invalid_index_leaves_the_output(table: Any, count: int) -> None:
    indices = np.zeros(count, np.int64)
    indices[count // 3] = len(TABLE)
    out = np.full((count, *TABLE.shape[1:]), 7, TABLE.dtype)
    with pytest.raises(IndexError):
        table.gather(indices, out=out)
    assert (out == 7).all()
    result = table.gather(np.zeros(count, np.longlong), negative=np.True_, out=out)
    assert bits(result) == bits(np.broadcast_to(TABLE[0], out.shape))


def test_an_output_that_overlaps_the_indices_is_refused(table: Any) -> None:
    memory = np.zeros(64, np.int32)
    indices, out = memory[:2].view(np.int64), memory[:8].reshape(1, 8)
    with pytest.raises(ValueError, match="must not share memory with `indices`"):
        table.gather(indices, out=out)


def test_requests_are_counted(table: Any) -> None:
    before = table.stats()
    table.gather(np.array([3, -1, 299]))
    stats = table.stats()
    added = stats.requests - before.requests, stats.rows - before.rows, stats.bytes - before.bytes
    assert added == (1, 3, 96)
    assert stats.bytes_read == before.bytes_read
    assert 0 < stats.p50 < 1
    if stats.cached_bytes:
        assert (stats.hits - before.hits, stats.misses) == (3, before.misses)


@pytest.mark.parametrize("after", ["replaced", "removed"])
def test_a_change_is_detected(tmp_path: Path, after: str) -> None:
    table = cached(tmp_path)
    if after == "replaced":
        os.replace(put(tmp_path, "next", TABLE + 1), table.path)
    else:
        os.unlink(table.path)
    time.sleep(0.02)
    for _ in range(3):
        with pytest.raises(OSError, match=r"(changed|vanished) while it was being read"):
            table.gather(np.array([3]))
    if after == "replaced":
        table.reload()
        assert bits(table.gather(np.array([3]))) == bits(TABLE[[3]] + 1)
    table.close()
    with pytest.raises(ValueError, match="is closed"):
        table.gather(np.array([3]))


def test_a_change_that_another_method_detects_ends_the_gathers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "NEAR", 1000.0)
    table = cached(tmp_path)
    os.replace(put(tmp_path, "next", TABLE + 1), table.path)
    assert bits(table.gather(np.array([3]))) == bits(TABLE[[3]])
    for _ in range(2):
        with pytest.raises(OSError, match="changed while it was being read"):
            table.write([3], TABLE[[3]])
        with pytest.raises(OSError, match="changed while it was being read"):
            table.gather(np.array([3]))


def test_a_table_follows_its_file(tmp_path: Path) -> None:
    table = cached(tmp_path, follow=True)
    os.replace(put(tmp_path, "next", TABLE[:200] + 1), table.path)
    time.sleep(0.02)
    assert bits(table.gather(np.array([3]))) == bits(TABLE[[3]])
    for _ in range(2):
        assert bits(table.gather(np.arange(200))) == bits(TABLE[:200] + 1)
    assert table.version == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_forked_child_has_its_own_rows(table: Any) -> None:
    def child() -> None:
        for _ in range(2):
            assert bits(table.gather(np.array([5, -1]))) == bits(TABLE[[5, -1]])
        assert table.stats().requests == 2

    assert forked(child) == 0


def test_the_rows_of_an_array_are_those_of_the_call() -> None:
    array = TABLE.copy()
    table = files.open(array)
    array[3] = 7
    assert (table.gather(np.array([3])) == 7).all()
    array.shape = (600, 4)
    assert table.gather(np.array([3])).shape == (1, 8)


@pytest.mark.parametrize("count", [20, 3000])
def test_no_gather_returns_a_mixture(tmp_path: Path, count: int) -> None:
    """The core runs most gathers, because the file is seldom checked."""
    table = cached(tmp_path, np.zeros((20, 64), np.int64))
    wrong: list[BaseException] = []
    indices, last, done = np.arange(count) % 20, 0, threading.Event()

    def read() -> None:
        try:
            while not done.is_set():
                least = last
                rows = table.gather(indices)
                assert (rows == rows[0, 0]).all()
                assert rows[0, 0] >= least
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(1, 60):
        table.write(np.arange(20), number)
        last = number
        time.sleep(0.001)
    done.set()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert (table.gather(indices) == 59).all()


def test_no_gather_runs_while_rows_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "NEAR", 1000.0)
    table: Any = cached(tmp_path)
    table.gather(np.array([3]))
    writes = table._state._writes
    writes.begin()
    indices: Any = np.array([3])
    call = table._state.memory, table._counts, indices, 0, "raise", True, 0, None
    assert native.gather_in_memory(*call) is None
    writes.end()
    assert bits(native.gather_in_memory(*call)) == bits(TABLE[[3]])


def test_arguments_that_the_core_refuses() -> None:
    whole, small = native.make_row_cache(300, 300, 32), native.make_row_cache(299, 300, 32)
    assert (whole.holds_table, small.holds_table) == (True, False)
    for array, cache in ((None, None), (TABLE, whole), (None, small)):
        with pytest.raises(TypeError, match="an array or a row cache for the whole table"):
            native.make_memory_table(array, cache, TABLE.dtype, (8,))
    with pytest.raises(ValueError, match="the cache has other rows"):
        native.make_memory_table(None, whole, TABLE.dtype, (7,))
