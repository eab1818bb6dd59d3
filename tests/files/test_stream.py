"""Streams of rows for batches of indices."""

import gc
import math
import os
import queue
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gatherum
from files.storage import FORMATS, bits, put
from gatherum import files
from gatherum.files import batches as ahead
from gatherum.files import job, lookups, stream

pytestmark = pytest.mark.usefixtures("quick_sync")
TABLE = np.random.default_rng(0).integers(0, 1 << 30, (300, 8)).astype(np.int32)
ROW = TABLE[0].nbytes + 8  # and its index


@pytest.mark.parametrize("memory", ["64KiB", "1GiB"])
@pytest.mark.parametrize("file_format", [*FORMATS, "array"])
def test_each_batch_is_a_gather(tmp_path: Path, file_format: str, memory: str) -> None:
    table = TABLE if file_format == "array" else put(tmp_path, "t", TABLE, file_format)
    rng = np.random.default_rng(1)
    shapes = [(30,), (), (4, 5), (0,), (200,)]
    batches = [rng.integers(-350, 350, shape) for shape in shapes]
    call: dict[str, Any] = {"mode": "fill", "fill_value": 7}
    result = list(files.rows(table, iter(batches), memory=memory, **call))
    for batch, answer in zip(batches, result, strict=True):
        assert np.array_equal(answer, gatherum.gather(TABLE, batch, **call))
        assert answer.flags.writeable
        answer[...] = -1
    columns = list(files.rows(table, [[7, 0], [-1]], 1, memory=memory))
    assert [np.array_equal(a, TABLE[:, b]) for a, b in zip(columns, ([7, 0], [-1]), strict=True)]
    assert [bits(a)[0] for a in columns] == [(300, 2), (300, 1)]


@pytest.fixture
def one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gather each batch with a separate call."""
    monkeypatch.setattr(ahead, "MOST_BATCHES", 1)


@pytest.mark.usefixtures("one_by_one")
def test_the_next_batch_is_read_ahead() -> None:
    asked: list[int] = []
    second = threading.Event()

    def batches() -> Iterator[list[int]]:
        for number in range(4):
            asked.append(number)
            if number == 1:
                second.set()
            yield [number]

    result = files.rows(TABLE, batches())
    assert asked == []
    assert np.array_equal(next(result), TABLE[:1])
    assert second.wait(20)
    result.close()
    assert asked in ([0, 1], [0, 1, 2])


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Record the number of indices of each call; batches are consumed once they fill the space."""
    noted: list[int] = []
    run, take = lookups.IntoArray.run, ahead.Batches.next_piece

    def counted(strategy: lookups.IntoArray, job: Any, sink: Any) -> None:
        noted.append(math.prod(job.sources["indices"].shape))
        run(strategy, job, sink)

    def slow(self: ahead.Batches, wait: bool = True) -> Any:
        with self._changed:
            self._fetch_on()
            self._changed.wait_for(lambda: not self._is_fetching or self._ended)
        return take(self, wait)

    monkeypatch.setattr(lookups.IntoArray, "run", counted)
    monkeypatch.setattr(ahead.Batches, "next_piece", slow)
    return noted


def test_small_batches_are_gathered_together(
    calls: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ahead, "MOST_BATCHES", 8)
    memory = 64 << 10
    monkeypatch.setattr(stream, "SHARE", memory // (10 * ROW))  # ten rows
    assert len(list(files.rows(TABLE, ([n] for n in range(30)), memory=memory))) == 30
    assert calls == [8, 8, 8, 6]
    calls.clear()
    sizes = [1, 4, 6, 1, 10, 11, 3, 0, 25, 2]
    result = list(files.rows(TABLE, (np.arange(size) for size in sizes), memory=memory))
    assert all(np.array_equal(a, TABLE[:size]) for a, size in zip(result, sizes, strict=True))
    assert calls == [5, 7, 10, 11, 3, 25, 2]
    calls.clear()
    mixed = [np.array([n], "i4" if n % 3 else "u2") for n in range(9)]
    assert [a[0, 0] for a in files.rows(TABLE, mixed)] == TABLE[:9, 0].tolist()
    assert calls == [1, 2, 1, 2, 1, 2]


@pytest.mark.usefixtures("calls")
def test_no_more_batches_are_fetched_than_there_is_space(monkeypatch: pytest.MonkeyPatch) -> None:
    def batches(size: int, asked: list[int]) -> Iterator[Any]:
        for number in range(100):
            asked.append(number)
            yield np.zeros(size, np.intp)

    monkeypatch.setattr(stream, "SHARE", (1 << 30) // (10 * ROW))  # ten rows
    for size, together in [(1, 10), (3, 4), (10, 1), (50, 1)]:
        asked: list[int] = []
        result = files.rows(TABLE, batches(size, asked))
        next(result)
        result.close()  # first here, second read, third waits, next requested
        assert together <= len(asked) <= 3 * together


def test_long_rows_are_gathered_while_the_cache_holds_them(
    calls: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "CACHED", 2 * (4096 + 8) + 8)
    for width, expected in [(4096, [2, 2, 2, 1]), (4095, [7])]:
        table = np.zeros((9, width), np.uint8)
        assert len(list(files.rows(table, [[n] for n in range(7)]))) == 7
        assert calls == expected
        calls.clear()


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("file_format", ["npy", "zarr"])
def test_together_or_not_the_rows_are_the_same(
    tmp_path: Path, calls: list[int], file_format: str, axis: int
) -> None:
    rng = np.random.default_rng(2)
    shapes = [(3,), (), (2, 4), (0,), (1, 1, 1), (0, 2)]
    batches = [rng.integers(-8, 8, shape) for shape in shapes]
    result = list(files.rows(put(tmp_path, "t", TABLE, file_format), batches, axis))
    assert calls == [13]
    for batch, answer in zip(batches, result, strict=True):
        assert bits(answer) == bits(gatherum.gather(TABLE, batch, axis))
        assert answer.flags.c_contiguous
        assert answer.base is None or answer.base.size == answer.size
        answer[...] = -1


@pytest.mark.parametrize("size", [2, 50])
def test_batches_may_come_in_the_same_memory(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(stream, "SHARE", (1 << 30) // (10 * ROW))  # ten rows

    def batches() -> Iterator[Any]:
        memory = np.empty(size, np.int64)
        for number in range(10):
            memory[:] = number
            yield memory
            memory[:] = 299

    for number, batch in enumerate(files.rows(TABLE, batches())):
        assert np.array_equal(batch, TABLE[[number] * size])


def test_batches_before_a_mistake_are_yielded(calls: list[int]) -> None:
    for wrong, error, message in [
        ([3, 300], IndexError, r"index 300 is out of bounds .* \(indices\[1\]\)"),
        ([0.5], TypeError, "`indices` must have an integer dtype"),
    ]:
        result = files.rows(TABLE, [[0], [1], [2], [1], wrong, [4]])
        for row in (0, 1, 2, 1):
            assert np.array_equal(next(result), TABLE[[row]])
        with pytest.raises(error, match=message):
            next(result)
    calls.clear()

    def batches() -> Iterator[list[int]]:
        yield [0]
        yield [1]
        yield [2]
        yield [3]
        raise KeyError("the caller's own")

    result = files.rows(TABLE, batches())
    assert [next(result)[0, 0] for _ in range(4)] == TABLE[:4, 0].tolist()
    with pytest.raises(KeyError, match="the caller's own"):
        next(result)
    assert calls == [4]
    with pytest.raises(ValueError, match=r"`axis` must be in \[-2, 2\), got 2"):
        next(files.rows(TABLE, [[0], [1]], 2))


def test_a_batch_may_depend_on_the_rows_before_it() -> None:
    come: queue.SimpleQueue[list[int] | None] = queue.SimpleQueue()
    come.put([1])
    result = files.rows(TABLE, iter(come.get, None))
    for number in range(1, 50):  # the first ones are served quickly
        assert np.array_equal(next(result), TABLE[[number]])
        come.put([number + 1])
    come.put(None)
    assert np.array_equal(next(result), TABLE[[50]])
    assert list(result) == []


def ends(threads: int) -> bool:
    """Wait until at most this number of threads is alive: the reading threads end by themselves."""
    for _ in range(200):
        gc.collect()
        if threading.active_count() <= threads:
            return True
        time.sleep(0.1)
    return False


@pytest.mark.parametrize("early", [1, 5, 0])
def test_threads_end_with_the_rows(early: int) -> None:
    before = threading.active_count()
    result = files.rows(TABLE, ([n % 300] for n in range(5000)))
    if early:
        for _ in range(early):
            next(result)
        assert threading.active_count() > before
        result.close()
    else:
        assert sum(1 for _ in result) == 5000
    assert ends(before)


def fed(come: "queue.SimpleQueue[Any]") -> Iterator[Any]:
    """Yield the items of a queue, and wait for each."""
    while (batch := come.get()) is not None:
        yield batch


def test_closing_does_not_wait_for_a_pending_batch() -> None:
    before = threading.active_count()
    come: queue.SimpleQueue[Any] = queue.SimpleQueue()
    come.put([0])
    for rows in files.rows(TABLE, fed(come)):
        assert np.array_equal(rows, TABLE[:1])
        break
    come.put(None)
    assert ends(before)
    for batch in ([0], [5, 5000]):
        come.put(batch)
    result = files.rows(TABLE, fed(come))
    next(result)
    with pytest.raises(IndexError, match=r"index 5000 .* \(indices\[1\]\)") as caught:
        next(result)
    assert caught.value.__notes__ == ["in batch 1 (the first is 0)"]
    come.put(None)
    assert ends(before)


def test_no_batch_is_fetched_after_the_loop_ends() -> None:
    before = threading.active_count()
    come: queue.SimpleQueue[Any] = queue.SimpleQueue()
    come.put([0])
    result = files.rows(TABLE, fed(come))
    next(result)
    result.close()
    for batch in ([1], [2], [3]):
        come.put(batch)
    assert ends(before)
    assert come.qsize() >= 2, "but the one that the thread was waiting for"


@pytest.mark.parametrize("endless", ["iter(come.get, None)", "([n % 2] for n in range(10**6))"])
@pytest.mark.parametrize("end", ["", "raise SystemExit(3)", "raise RuntimeError('its own')"])
def test_a_program_ends_with_rows_left(end: str, endless: str) -> None:
    program = f"""
import queue
import numpy as np
from gatherum.files import rows
come = queue.Queue()
come.put([0])
batches = rows(np.ones((2, 1)), {endless})
print(next(batches))
{end}
"""
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=100, check=False
    )
    assert ended.stdout == "[[1.]]\n"
    assert ended.returncode == (3 if "Exit" in end else 1 if end else 0)


def test_rows_that_their_own_batches_refer_to_are_collected() -> None:
    class Sampler:
        def __init__(self) -> None:
            self.rows = files.rows(TABLE, self)

        def __iter__(self) -> Iterator[list[int]]:
            while True:
                yield [1]

    before = threading.active_count()
    sampler = Sampler()
    next(sampler.rows)
    del sampler
    assert ends(before)


@pytest.mark.parametrize("axis", [0, 1])
def test_padding_moves_too(calls: list[int], axis: int) -> None:
    padded = np.dtype({"names": ["a"], "formats": ["i1"], "offsets": [0], "itemsize": 8})
    table = TABLE.view(padded)
    for batch, result in zip([[1], [2, 0]], files.rows(table, [[1], [2, 0]], axis), strict=True):
        expected = gatherum.gather(table, batch, axis)
        assert (result.tobytes(), result.shape) == (expected.tobytes(), expected.shape)
    assert calls == [3]


def test_rows_of_no_bytes_and_of_no_table_take_room(calls: list[int]) -> None:
    batches = [np.zeros(100, np.int64)] * 6
    for table in (np.zeros((5, 0)), np.zeros((0, 20))):
        for batch in files.rows(table, batches, mode="fill", memory="64KiB"):
            assert batch.shape == (100, *table.shape[1:])
            assert not batch.any()
    assert calls == [200, 200, 200] + [100] * 6


def test_a_batch_that_is_refused_comes_when_it_is_its_turn(tmp_path: Path) -> None:
    result = files.rows(put(tmp_path, "t", TABLE), [[1], [2, 300]])
    next(result)
    with pytest.raises(IndexError) as caught:
        next(result)
    with pytest.raises(IndexError) as expected:
        gatherum.gather(TABLE, [2, 300])
    assert str(caught.value) == str(expected.value)
    with pytest.raises(TypeError, match="gather: `indices` must have an integer dtype"):
        next(files.rows(TABLE, [[1.5]]))
    with pytest.raises(ValueError, match="is not there, nor a known kind of file"):
        files.rows("t.txt", [])
    with pytest.raises(
        FileNotFoundError, match="`spill_dir` must be a directory that exists, got /nowhere"
    ):
        files.rows(TABLE, [], spill_dir="/nowhere")


def test_a_table_that_changes_during_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = put(tmp_path, "t", TABLE)
    result = files.rows(path, [[1]])
    next(result)
    os.utime(path, ns=(1, 1))
    with pytest.raises(OSError, match="changed while it was being read"):
        next(result)
    monkeypatch.setattr(stream, "PAUSE", -1.0)
    changed = threading.Event()

    def batches() -> Iterator[list[int]]:
        yield [1]
        assert changed.wait(20)
        while True:
            yield [2]

    result = files.rows(path, batches())
    next(result)
    os.utime(path, ns=(2, 2))
    changed.set()
    with pytest.raises(OSError, match="changed while it was being read"):
        next(result)


def test_a_table_that_changes_before_an_invalid_batch(tmp_path: Path) -> None:
    path = put(tmp_path, "t", TABLE)

    def batches() -> Iterator[list[float]]:
        os.utime(path, ns=(1, 1))
        yield [1.5]

    with pytest.raises(OSError, match="changed while it was being read"):
        next(files.rows(path, batches()))


def test_batches_are_given_back() -> None:
    batches_made: list[weakref.ref[Any]] = []

    def batches() -> Iterator[Any]:
        for number in range(20):
            batch = np.array([number])
            batches_made.append(weakref.ref(batch))
            yield batch

    result = files.rows(TABLE, batches())
    for _ in range(10):
        next(result)
    assert sum(batch() is not None for batch in batches_made) <= 4
    result.close()


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs /proc: run on Linux")
def test_nothing_stays_open_or_held(tmp_path: Path) -> None:
    path = put(tmp_path, "t", TABLE)
    before = len(os.listdir("/proc/self/fd"))
    result = files.rows(path, ([n] for n in range(100)))
    next(result)
    assert len(os.listdir("/proc/self/fd")) > before
    result.close()
    assert len(os.listdir("/proc/self/fd")) == before
    assert sum(1 for _ in files.rows(path, ([n] for n in range(100)))) == 100
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.usefixtures("one_by_one")
def test_batches_share_one_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planned: list[tuple[int, ...]] = []
    plan = job.plan

    def noted(name: str, data: Any, indices: Any, **attributes: Any) -> Any:
        planned.append(indices[0])
        return plan(name, data, indices, **attributes)

    monkeypatch.setattr(job, "plan", noted)
    path = put(tmp_path, "t", TABLE)
    batches = [
        np.array(rows, dtype)
        for rows, dtype in [
            ([1, 2, 900], np.int64), ([3, -900, 4], np.int64), ([5, 6], np.int64),
            ([7, 200], np.uint8), ([8, 900], np.int64), ([9, 10], np.int64),
        ]
    ]  # fmt: skip
    result = list(files.rows(path, batches, mode="fill", fill_value=7))
    for batch, answer in zip(batches, result, strict=True):
        assert np.array_equal(answer, gatherum.gather(TABLE, batch, mode="fill", fill_value=7))
    assert planned == [(3,), (2,), (2,), (2,)]
