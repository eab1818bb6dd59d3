"""A table that stays open: the answers of the operators in memory, whoever asks, and whatever
becomes of its file.
"""

import asyncio
import importlib.util
import os
import pickle
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gatherum
from files.storage import FORMATS, bits, put
from gatherum import files, native
from gatherum.files import disk
from gatherum.files.handle import direct_reads, row_reads, state
from gatherum.files.handle import table as table_module

pytestmark = pytest.mark.usefixtures("quick_sync")
TABLE = np.random.default_rng(0).integers(0, 1 << 30, (300, 8)).astype(np.int32)
CACHES = ["0", "4KiB", "1MiB"]


@pytest.fixture(autouse=True)
def watched_closely(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check the file after every call."""
    monkeypatch.setattr(state, "NEAR", -1.0)


# ------------------------------------------------------------------ the same answers


@pytest.mark.slow
@pytest.mark.parametrize("cache", CACHES)
@pytest.mark.parametrize("form", [*FORMATS, "array"])
def test_every_gather_has_the_bits_of_the_operator(tmp_path: Path, form: str, cache: str) -> None:
    given = TABLE if form == "array" else put(tmp_path, "t", TABLE, form)
    expected = TABLE.astype(">i4") if form == "big-endian" else TABLE
    rng = np.random.default_rng(1)
    with files.open(given, cache=cache) as table:
        assert (table.shape, table.dtype, table.nbytes) == ((300, 8), expected.dtype, 9600)
        assert table.path == ("" if form == "array" else str(given).partition(":")[0])
        for shape in [(30,), (), (4, 5), (0,), (200,), (1,)]:
            rows = rng.integers(-300, 300, shape)
            for _ in range(2):  # from the file, and perhaps from the cache
                assert bits(table.gather(rows)) == bits(gatherum.gather(expected, rows))
        wide = rng.integers(-900, 900, (4, 9))
        for mode, fill in [("clip", 0), ("wrap", 7), ("fill", 0), ("drop", 7), ("fill", 0)]:
            call: dict[str, Any] = {"mode": mode, "fill_value": fill}
            found = table.gather(wide, **call)
            assert bits(found) == bits(gatherum.gather(expected, wide, **call))
        columns = rng.integers(0, 8, 5)
        assert bits(table.gather(columns, 1)) == bits(gatherum.gather(expected, columns, 1))
        points = np.stack([rng.integers(0, 300, 9), rng.integers(0, 8, 9)], 1)
        assert bits(table.gather_nd(points)) == bits(gatherum.gather_nd(expected, points))
        order = rng.integers(0, 300, (5, 8))
        found = table.gather_elements(order)
        assert bits(found) == bits(gatherum.gather_elements(expected, order))
        batches = [rows, columns, order]
        for found, batch in zip(table.rows(batches), batches, strict=True):
            assert bits(found) == bits(gatherum.gather(expected, batch))


@pytest.mark.parametrize("cache", ["0", "1MiB"])
def test_indices_of_every_kind(tmp_path: Path, cache: str) -> None:
    table = files.open(put(tmp_path, "t", TABLE), cache=cache)
    rows = [3, 0, 299, 3]
    for dtype in ("i1", "u1", "<i2", ">i2", "u4", ">i4", "i8", ">i8", "u8"):
        some = np.array([3, 0, 99, 3], dtype)
        assert bits(table.gather(some)) == bits(TABLE[[3, 0, 99, 3]])
    for given in (rows, tuple(rows), np.array(rows)[::-1], np.array([rows, rows]).T, 7):
        assert bits(table.gather(given)) == bits(gatherum.gather(TABLE, given))
    assert bits(table.gather(put(tmp_path, "i", np.array(rows)))) == bits(TABLE[rows])
    many = np.arange(9000) % 300
    assert bits(table.gather(many)) == bits(TABLE[many])


@pytest.mark.parametrize("shape", [(5,), (0, 3), (4, 0), (2, 3, 4, 5)])
@pytest.mark.parametrize("cache", ["0", "1MiB"])
def test_tables_of_every_shape(tmp_path: Path, shape: tuple[int, ...], cache: str) -> None:
    array = np.arange(np.prod(shape), dtype=np.float64).reshape(shape)
    for form in ("npy", "fortran"):
        table = files.open(put(tmp_path, "t", array, form), cache=cache)
        rows = np.zeros((2, 0 if shape[0] == 0 else 3), np.int64)
        assert bits(table.gather(rows)) == bits(gatherum.gather(array, rows))
        found = table.gather([0, 99, -1], mode="fill", fill_value=2.5)
        expected = gatherum.gather(array, [0, 99, -1], mode="fill", fill_value=2.5)
        assert bits(found) == bits(expected)
    scalar = files.open(put(tmp_path, "s", np.array(1.0)))
    with pytest.raises(ValueError, match="at least 1 dimension"):
        scalar.gather([0])


@pytest.mark.parametrize("cache", ["0", "1MiB"])
@pytest.mark.parametrize(
    ("indices", "call"),
    [([300], {}), ([0, -301], {}), ([[0, 1], [2, 2**40]], {}), ([-1], {"negative": False}),
     ([0.5], {}), ([True], {}), ([[1], [2, 3]], {}), ("no", {}), ([2**70], {}),
     ([0], {"axis": 2}), ([0], {"axis": 1.5}), ([0], {"mode": "no"}),
     ([0], {"negative": 1}), ([0], {"mode": "fill", "fill_value": "x"}),
     ([9], {"mode": "drop", "fill_value": 2**40}), ([-1], {"mode": "raise", "negative": None}),
     (np.array([2**63 + 1], np.uint64), {}), (np.ma.masked_array([1], [True]), {})],
)  # fmt: skip
def test_what_is_refused_in_memory_is_refused_here(
    tmp_path: Path, cache: str, indices: Any, call: dict[str, Any]
) -> None:
    path = put(tmp_path, "t", TABLE)
    table = files.open(path, cache=cache)
    with pytest.raises(Exception) as expected:
        files.gather_file(path, indices, **call)
    for _ in range(2):
        with pytest.raises(type(expected.value)) as caught:
            table.gather(indices, **call)
        assert str(caught.value) == str(expected.value)
    if not call:
        with pytest.raises(type(expected.value)):
            table.submit(indices).result()
    assert bits(table.gather([5])) == bits(TABLE[[5]])


# ------------------------------------------------------------------------------- out


@pytest.mark.parametrize("cache", ["0", "1MiB"])
@pytest.mark.parametrize("form", ["npy", "zarr3"])
def test_rows_land_where_the_caller_wants_them(tmp_path: Path, form: str, cache: str) -> None:
    table = files.open(put(tmp_path, "t", TABLE, form), cache=cache)
    rows = np.array([7, 0, -1, 7])
    expected = gatherum.gather(TABLE, rows)
    for out in (
        np.empty((4, 8), np.int32),
        np.empty((4, 16), np.int32)[:, ::2],
        np.empty((8, 4), np.int32).T,
        np.empty(129, np.uint8)[1:].view(np.int32).reshape(4, 8),
    ):
        for _ in range(2):
            out[...] = -1
            assert table.gather(rows, out=out) is out
            assert np.array_equal(out, expected)
    out = np.empty((4, 1), np.int32)
    assert table.gather_elements([[1], [2], [3], [-1]], out=out) is out
    assert np.array_equal(out, TABLE[[1, 2, 3, -1], :1])
    points = np.empty(2, np.int32)
    assert table.gather_nd([[1, 2], [-1, -1]], out=points) is points
    assert points.tolist() == [TABLE[1, 2], TABLE[-1, -1]]


@pytest.mark.parametrize("cache", ["0", "1MiB"])
def test_an_out_that_does_not_fit(tmp_path: Path, cache: str) -> None:
    table = files.open(put(tmp_path, "t", TABLE), cache=cache)
    frozen = np.empty((1, 8), np.int32)
    frozen.flags.writeable = False
    rows = np.zeros(1, np.int64)
    overlapping = np.zeros(5, np.int64)
    wrong: list[tuple[Any, Any]] = [
        (rows, np.empty((2, 8), np.int32)), (rows, np.empty((1, 8), np.int64)), (rows, frozen),
        (rows, np.broadcast_to(np.zeros((1, 1), np.int32), (1, 8))), (rows, [1]),
        (overlapping[:1], overlapping[:4].view(np.int32).reshape(1, 8)), (rows, "out.npy"),
        (rows, np.ma.masked_array(np.zeros((1, 8), np.int32))),
    ]  # fmt: skip
    for indices, out in wrong:
        with pytest.raises((TypeError, ValueError)) as expected:
            gatherum.gather(TABLE, indices, out=out)
        with pytest.raises(type(expected.value)) as caught:
            table.gather(indices, out=out)
        assert str(caught.value) == str(expected.value)


@pytest.mark.parametrize("count", [2, 100_000])
@pytest.mark.parametrize("cache", ["0", "1MiB"])
@pytest.mark.parametrize("form", ["npy", "zarr3"])
def test_out_is_not_touched_where_an_index_is_refused(
    tmp_path: Path, form: str, cache: str, count: int
) -> None:
    table = files.open(put(tmp_path, "t", TABLE, form), cache=cache)
    table.gather([0, 1])
    rows = np.zeros(count, np.int64)
    rows[-1] = 300
    out = np.full((count, 8), -7, np.int32)
    with pytest.raises(IndexError, match="index 300 is out of bounds"):
        table.gather(rows, out=out)
    assert (out == -7).all()


def test_padding_moves_too(tmp_path: Path) -> None:
    padded = np.dtype({"names": ["a"], "formats": ["i1"], "offsets": [0], "itemsize": 8})
    array = TABLE.view(padded)
    table = files.open(array)
    out = np.zeros((4, 4), padded)[::2]
    table.gather([1, 2], out=out)
    expected = gatherum.gather(array, [1, 2]).tobytes()
    assert out.view("V8").tobytes() == table.gather([1, 2]).tobytes() == expected


# ------------------------------------------------------------------------ opened, closed


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs /proc: run on Linux")
@pytest.mark.parametrize("form", ["npy", "npz", "deflated", "zarr3", "hdf5"])
def test_nothing_stays_open(tmp_path: Path, form: str) -> None:
    path = put(tmp_path, "t", TABLE, form)
    before = len(os.listdir("/proc/self/fd"))
    with files.open(path, cache="1MiB") as table:
        table.submit([1]).result()
        rows = table.rows([[1], [2]])
        next(rows)
    table.close()
    rows.close()
    assert len(os.listdir("/proc/self/fd")) == before
    del table
    dropped = files.open(path)
    dropped.gather([1])
    del dropped
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_closed_table_says_so(tmp_path: Path) -> None:
    path = put(tmp_path, "t", TABLE)
    table = files.open(path)
    assert repr(table) == f"<Table {path}: int32 (300, 8)>"
    table.close()
    assert repr(table) == f"<closed Table {path}>"
    for name, use in {
        "gather": lambda: table.gather([0]), "gather_nd": lambda: table.gather_nd([[0]]),
        "gather_elements": lambda: table.gather_elements([[0]]), "stats": table.stats,
        "rows": lambda: table.rows([[0]]), "submit": lambda: table.submit([0]),
        "prefetch": lambda: table.prefetch([0]), "shape": lambda: table.shape,
        "dtype": lambda: table.dtype, "nbytes": lambda: table.nbytes, "with": table.__enter__,
        "reload": table.reload, "pickle": lambda: pickle.dumps(table),
    }.items():  # fmt: skip
        with pytest.raises(ValueError, match=rf"^{name}: the table .*t\.npy is closed$"):
            use()


def test_rows_end_where_the_table_is_closed(tmp_path: Path) -> None:
    table = files.open(put(tmp_path, "t", TABLE))
    begun, other = table.rows(iter([[1], [2], [3]])), table.rows([[1]])
    assert bits(next(begun)) == bits(TABLE[[1]])
    table.close()
    for rows in (begun, other):
        with pytest.raises(ValueError, match=r"^rows: the table .*t\.npy is closed$"):
            next(rows)


def test_a_callback_closes_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state.State, "are_resident", lambda *_: False)
    for readers in (1, 3):
        table = files.open(put(tmp_path, "t", TABLE), readers=readers)
        raised: list[Exception] = []
        begin, called = threading.Event(), threading.Event()

        def close(_: Any, table: Any = table, raised: Any = raised, called: Any = called) -> None:
            try:
                table.close()
                table.close()
            except Exception as error:
                raised.append(error)
            called.set()

        waiting = table._start(begin.wait)
        waiting.add_done_callback(close)
        others = [table.submit([n]) for n in range(50)]
        begin.set()
        assert called.wait(20)
        for number, other in enumerate(others):
            assert bits(other.result(20)) == bits(TABLE[[number]])
        with pytest.raises(ValueError, match=r"^submit: .* is closed$"):
            table.submit([0])
        for thread in threading.enumerate():
            if thread.name == "gatherum-close":
                thread.join(20)
        assert raised == []
        with pytest.raises(ValueError, match=r"^gather: .* is closed$"):
            table.gather([0])


@pytest.mark.parametrize("form", ["npy", "npz", "zarr3", "hdf5", "safetensors"])
def test_another_directory(tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put(tmp_path, "t", TABLE, form)
    (tmp_path / "other").mkdir()
    put(tmp_path / "other", "t", TABLE + 1, form)
    monkeypatch.chdir(tmp_path)
    table = files.open(os.path.relpath(path))
    monkeypatch.chdir(tmp_path / "other")
    assert bits(table.gather([3])) == bits(TABLE[[3]])
    assert table.path == path.partition(":")[0]
    table.reload()
    assert bits(table.gather([3])) == bits(TABLE[[3]])
    assert bits(pickle.loads(pickle.dumps(table)).gather([3])) == bits(TABLE[[3]])
    if hasattr(os, "fork"):
        assert forked(lambda: check_one(table)) == 0


def check_one(table: Any) -> None:
    assert bits(table.gather([3])) == bits(TABLE[[3]])


def test_a_link_with_dots_leads_where_the_system_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "far/inner").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "far/inner")
    put(tmp_path / "far", "t", TABLE)
    put(tmp_path, "t", TABLE + 1)
    monkeypatch.chdir(tmp_path)
    table = files.open("link/../t.npy")
    assert np.array_equal(np.load(table.path), TABLE)
    for found in (table, pickle.loads(pickle.dumps(table))):
        assert bits(found.gather([3])) == bits(TABLE[[3]])


@pytest.mark.parametrize("cache", CACHES)
@pytest.mark.parametrize("order", ["C", "F", "strided"])
def test_an_array_in_memory_is_read_as_it_is(order: str, cache: str) -> None:
    array = np.asarray(TABLE, order="F" if order == "F" else "C").copy(order="K")
    array = np.repeat(array, 2, 1)[:, ::2] if order == "strided" else array
    table = files.open(array, cache=cache)
    for _ in range(3):
        assert bits(table.gather([3, 3])) == bits(array[[3, 3]])
        table.prefetch([3])
        array += 1
    assert table.stats().cached_bytes == 0
    for indices in ([1], np.arange(299, -1, -1)):
        out = array[: len(indices)]
        with pytest.raises(ValueError, match=r"^gather: `out` must not share memory with `data`"):
            table.gather(indices, out=out)


def test_arguments_of_open(tmp_path: Path) -> None:
    path = put(tmp_path, "t", TABLE)
    with pytest.raises(ValueError, match="cache must be a size such as '512MiB', got 'much'"):
        files.open(path, cache="much")
    with pytest.raises(ValueError, match="cache must hold at least one row, 41 bytes, got 40"):
        files.open(path, cache=40)
    with pytest.raises(TypeError, match="cache must be a str or an int, got NoneType"):
        files.open(path, cache=None)  # type: ignore[arg-type]
    for readers in (0, 5000):
        with pytest.raises(ValueError, match=f"`readers` must be from 1 to 1024, got {readers}"):
            files.open(path, readers=readers)
    with pytest.raises(TypeError, match="open: `readers` must be an integer"):
        files.open(path, readers=1.5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="open: `data` must be an array, got object"):
        files.open(object())
    with pytest.raises(FileNotFoundError):
        files.open(tmp_path / "none.npy")
    with pytest.raises(TypeError, match="storage_options must be a dict"):
        files.open(path, storage_options=3)  # type: ignore[arg-type]


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


def test_the_error_says_what_to_do(tmp_path: Path) -> None:
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
    with table._lock, table._counts.lock:  # as another thread may hold them
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


def forked(call: Any) -> int:
    """Run a call in a child, and return its exit status."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            call()
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


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
    held = pickle.loads(pickle.dumps(files.open(TABLE)))
    assert bits(held.gather([1])) == bits(TABLE[[1]])


@pytest.mark.slow
@pytest.mark.parametrize("cache", CACHES)
@pytest.mark.parametrize("form", ["npy", "zarr3", "hdf5 chunks"])
def test_eight_threads_have_the_answers_of_one(tmp_path: Path, form: str, cache: str) -> None:
    table = files.open(put(tmp_path, "t", TABLE, form), cache=cache)
    rounds = 300 if form == "npy" else 20

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
@pytest.mark.parametrize("form", ["npy", "zarr3", "array"])
def test_futures(
    tmp_path: Path, form: str, resident: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state.State, "are_resident", lambda *_: resident)
    table = files.open(TABLE if form == "array" else put(tmp_path, "t", TABLE, form), readers=2)
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
    with pytest.raises(TypeError, match="unexpected keyword"):
        table.submit([0], moden="raise").result()

    async def ask() -> list[Any]:
        return await asyncio.gather(*(table.gather_async([n]) for n in range(30)))

    for number, found in enumerate(asyncio.run(ask())):
        assert bits(found) == bits(TABLE[[number]])
    waits = [table.submit([n]) for n in range(20)]
    table.close()
    assert all(future.done() for future in waits)


@pytest.mark.skipif(not hasattr(os, "RWF_NOWAIT"), reason="needs preadv2: run on Linux")
def test_what_is_resident_is_read_without_a_thread(tmp_path: Path) -> None:
    table = files.open(put(tmp_path, "t", TABLE))
    table.gather(np.arange(300))
    assert table.submit([3, 2]).done()
    assert table._pool is None
    assert table.submit(np.arange(300)).result().shape == (300, 8)
    assert table._pool is not None


def test_prefetched_rows_are_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for form in ("npy", "zarr3"):
        table = files.open(put(tmp_path, "t", TABLE, form), cache="1MiB", readers=1)
        table.prefetch([5, -1, 5])
        table._start(int).result()  # what is before it in the queue is done
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
                found = table.gather(rows)
            except (IndexError, OSError):
                continue
            assert {row.tobytes() for row in found} <= known
        ended.set()
        changing.result()


# --------------------------------------------------------------------------- the cache


def test_the_cache_holds_what_is_asked_for_most(tmp_path: Path) -> None:
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


def test_what_the_core_refuses() -> None:
    cache = native.make_row_cache(4, 10, 8)
    rows, numbers = np.zeros(16, np.uint8), np.zeros(2, np.int64)
    for call in (cache.lookup, cache.insert):
        for wrong in ([0], numbers.astype("i4"), np.zeros((1, 2), np.int64), numbers[::-1]):
            with pytest.raises(TypeError, match="flat arrays of int64"):
                call(wrong, None, rows)
        with pytest.raises(ValueError, match="differ in length"):
            call(numbers, np.zeros(3, np.int64), rows)
        for out in (rows.view("i8"), rows[::2], b"0" * 16):
            with pytest.raises(TypeError, match="contiguous, writable array of bytes"):
                call(numbers, None, out)
    assert cache.lookup(numbers, np.array([0, 2]), rows) is False
    assert cache.lookup(np.array([0, 10]), None, rows) is False
    cache.insert(np.array([0, 10, -1]), np.array([0, 0, 0]), rows)
    assert cache.held == 1
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


def test_rows_that_were_waited_for_are_asked_for_together(
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


def test_a_row_is_read_once_however_often_it_is_asked_for(tmp_path: Path) -> None:
    table = files.open(put(tmp_path, "t", TABLE))
    before = table.stats().bytes_read
    table.gather(np.full(1000, 7))
    assert table.stats().bytes_read - before <= 4096


@pytest.mark.skipif(direct_reads.FLAG is None, reason="needs O_DIRECT: run on Linux")
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
        assert isinstance(again._state.reads, direct_reads.DirectReads)
        again.close()
        os.truncate(path.partition(":")[0], 2000)
        with pytest.raises(OSError, match=r"(truncated|changed) while it was being read"):
            table.gather([250, 3])


@pytest.mark.skipif(direct_reads.FLAG is None, reason="needs O_DIRECT: run on Linux")
def test_direct_reads_are_for_flat_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for form in ("zarr3", "fortran"):
        with pytest.raises(ValueError, match="direct=True is for files on this machine whose rows"):
            files.open(put(tmp_path, "t", TABLE, form), direct=True)
    with pytest.raises(ValueError, match="got the table"):
        files.open(TABLE, direct=True)
    path = put(tmp_path, "t", TABLE)
    with pytest.raises(TypeError, match="open: `direct` must be"):
        files.open(path, direct=1)  # type: ignore[arg-type]
    before = len(os.listdir("/proc/self/fd"))
    files.open(path, direct=True).close()
    monkeypatch.setattr(direct_reads, "FLAG", None)
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


@pytest.mark.slow
@pytest.mark.parametrize("cache", ["0", "64KiB"])
@pytest.mark.parametrize("form", ["npy", "zarr3"])
def test_tables_at_urls(web: Any, form: str, cache: str) -> None:
    array = np.random.default_rng(3).integers(0, 1 << 60, (9000, 4))
    table = files.open(web.url(put(web.folder, "t", array, form)), cache=cache)
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


@pytest.mark.parametrize("fault", ["503", "cut off", "dropped", "short"])
def test_a_server_that_fails_for_a_moment(web: Any, fault: str) -> None:
    array = np.random.default_rng(3).integers(0, 1 << 60, (9000, 4))
    table = files.open(web.url(put(web.folder, "t", array)))
    web.fail(fault, 2)
    assert bits(table.gather([8999, 3000])) == bits(array[[8999, 3000]])


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


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_forked_child_has_a_connection_of_its_own(web: Any) -> None:
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
