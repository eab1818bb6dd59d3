"""Rows for one batch of indices after another."""

import os
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gatherum
from files.storage import FORMATS, bits, put
from gatherum import files
from gatherum.files import inputs, stream

pytestmark = pytest.mark.usefixtures("quick_sync")
TABLE = np.random.default_rng(0).integers(0, 1 << 30, (300, 8)).astype(np.int32)


@pytest.mark.parametrize("memory", ["64KiB", "1GiB"])
@pytest.mark.parametrize("form", [*FORMATS, "array"])
def test_each_batch_is_a_gather(tmp_path: Path, form: str, memory: str) -> None:
    table = TABLE if form == "array" else put(tmp_path, "t", TABLE, form)
    rng = np.random.default_rng(1)
    shapes = [(30,), (), (4, 5), (0,), (200,)]
    batches = [rng.integers(-350, 350, shape) for shape in shapes]
    call: dict[str, Any] = {"mode": "fill", "fill_value": 7}
    found = list(files.rows(table, iter(batches), memory=memory, **call))
    for batch, answer in zip(batches, found, strict=True):
        assert np.array_equal(answer, gatherum.gather(TABLE, batch, **call))
        assert answer.flags.writeable
        answer[...] = -1
    columns = list(files.rows(table, [[7, 0], [-1]], 1, memory=memory))
    assert [np.array_equal(a, TABLE[:, b]) for a, b in zip(columns, ([7, 0], [-1]), strict=True)]
    assert [bits(a)[0] for a in columns] == [(300, 2), (300, 1)]


def test_the_next_batch_is_read_ahead() -> None:
    asked: list[int] = []
    second = threading.Event()

    def batches() -> Iterator[list[int]]:
        for number in range(4):
            asked.append(number)
            if number == 1:
                second.set()
            yield [number]

    found = files.rows(TABLE, batches())
    assert asked == []
    assert np.array_equal(next(found), TABLE[:1])
    assert second.wait(20)
    found.close()
    assert asked in ([0, 1], [0, 1, 2])


def test_a_batch_that_is_refused_comes_when_it_is_its_turn(tmp_path: Path) -> None:
    found = files.rows(put(tmp_path, "t", TABLE), [[1], [2, 300]])
    next(found)
    with pytest.raises(IndexError) as caught:
        next(found)
    with pytest.raises(IndexError) as expected:
        gatherum.gather(TABLE, [2, 300])
    assert str(caught.value) == str(expected.value)
    with pytest.raises(TypeError, match="gather: `indices` must have an integer dtype"):
        next(files.rows(TABLE, [[1.5]]))
    with pytest.raises(ValueError, match="is not a known kind of file"):
        files.rows("t.txt", [])
    with pytest.raises(FileNotFoundError, match="there is no such directory"):
        files.rows(TABLE, [], spill_dir="/nowhere")


def test_a_table_that_changes_under_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put(tmp_path, "t", TABLE)
    found = files.rows(path, [[1]])
    next(found)
    os.utime(path, ns=(1, 1))
    with pytest.raises(OSError, match="changed while it was being read"):
        next(found)
    monkeypatch.setattr(stream, "PAUSE", -1.0)
    changed = threading.Event()

    def batches() -> Iterator[list[int]]:
        yield [1]
        assert changed.wait(20)
        while True:
            yield [2]

    found = files.rows(path, batches())
    next(found)
    os.utime(path, ns=(2, 2))
    changed.set()
    with pytest.raises(OSError, match="changed while it was being read"):
        next(found)


def test_batches_are_given_back() -> None:
    seen: list[weakref.ref[Any]] = []

    def batches() -> Iterator[Any]:
        for number in range(20):
            batch = np.array([number])
            seen.append(weakref.ref(batch))
            yield batch

    found = files.rows(TABLE, batches())
    for _ in range(10):
        next(found)
    assert sum(batch() is not None for batch in seen) <= 4
    found.close()


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs /proc: run on Linux")
def test_nothing_stays_open_or_held(tmp_path: Path) -> None:
    path = put(tmp_path, "t", TABLE)
    before = len(os.listdir("/proc/self/fd"))
    found = files.rows(path, ([n] for n in range(100)))
    next(found)
    assert len(os.listdir("/proc/self/fd")) > before
    found.close()
    assert len(os.listdir("/proc/self/fd")) == before
    assert sum(1 for _ in files.rows(path, ([n] for n in range(100)))) == 100
    assert len(os.listdir("/proc/self/fd")) == before


def test_what_batches_share_is_found_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planned: list[tuple[int, ...]] = []
    plan = inputs.plan

    def noted(name: str, data: Any, indices: Any, **attributes: Any) -> Any:
        planned.append(indices[0])
        return plan(name, data, indices, **attributes)

    monkeypatch.setattr(inputs, "plan", noted)
    path = put(tmp_path, "t", TABLE)
    batches = [
        np.array(rows, dtype)
        for rows, dtype in [
            ([1, 2, 900], np.int64), ([3, -900, 4], np.int64), ([5, 6], np.int64),
            ([7, 200], np.uint8), ([8, 900], np.int64), ([9, 10], np.int64),
        ]
    ]  # fmt: skip
    found = list(files.rows(path, batches, mode="fill", fill_value=7))
    for batch, answer in zip(batches, found, strict=True):
        assert np.array_equal(answer, gatherum.gather(TABLE, batch, mode="fill", fill_value=7))
    assert planned == [(3,), (2,), (2,), (2,)]
