"""Write rows of an open table while threads read them."""

import os
import pickle
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from files.open_tables import CACHES, TABLE, forked
from files.storage import bits, put
from gatherum import files
from gatherum._system import native
from gatherum.files.resources import disk

pytestmark = pytest.mark.usefixtures("watched_closely")

WRITABLE = ("npy", "fortran", "safetensors", "hdf5")
ROWS = np.arange(16, dtype=np.int32).reshape(2, 8)


@pytest.mark.parametrize("cache", CACHES)
@pytest.mark.parametrize("file_format", WRITABLE)
def test_rows_are_written_in_place(tmp_path: Path, file_format: str, cache: str) -> None:
    path = put(tmp_path, "t", TABLE, file_format)
    expected = TABLE.copy()
    with files.open(path, cache=cache) as table:
        for indices, rows in (
            ([3, -1], ROWS), ([[7], [7]], ROWS[:, None]), (5, ROWS[0]), ([8, 9], 4), ([], ROWS[:0]),
            (np.arange(300, dtype=np.uint16), TABLE[::-1] + 1),
        ):  # fmt: skip
            table.gather(np.arange(300))
            expected[np.asarray(indices, np.int64)] = rows  # the last duplicate wins
            table.write(indices, rows)
            assert bits(table.gather(np.arange(300))) == bits(expected)
            assert bits(table.gather([2], 1)) == bits(expected[:, [2]])
        assert bits(next(table.rows([[3, 3]]))) == bits(expected[[3, 3]])
        assert bits(pickle.loads(pickle.dumps(table)).gather([3])) == bits(expected[[3]])
        assert table.version == 0
    assert bits(files.gather_file(path, np.arange(300))) == bits(expected)


def test_other_tensors_are_unchanged(tmp_path: Path) -> None:
    path = put(tmp_path, "t", TABLE, "safetensors")
    before = Path(path.partition(":")[0]).read_bytes()
    with files.open(path) as table:
        table.write([0], TABLE[[0]])
    assert Path(path.partition(":")[0]).read_bytes() == before


@pytest.mark.parametrize(
    ("indices", "rows", "error", "message"),
    [
        ([3, 300], ROWS, IndexError,
         "write: index 300 is out of bounds for axis 0 of size 300 (indices[1])"),
        ([3, 4], ROWS[:, :7], ValueError,
         "write: `rows` must have shape (2, 8), got (2, 7)"),
        ([3, 4], ROWS.astype(float), TypeError,
         "write: `rows` must have the dtype of `table`, int32, got float64; write "
         "rows.astype(table.dtype)"),
        ([3, 4], 0.5, ValueError,
         "write: `rows` must be an integer where `table` is int32, got 0.5"),
        ([0.5], ROWS[0], TypeError,
         "write: `indices` must have an integer dtype, got float64; write "
         "indices.astype(np.int64)"),
        ([0], ["data"], TypeError,
         "write: the rows must be one path or one array, got a list that contains strings or "
         "paths; call the function for each file, or pass numpy.array(strings) if the strings are "
         "the elements"),
        ("t.npy", ROWS, ValueError, "write: the indices are stored in the table's file, {}"),
        ([0], "t.npy", ValueError, "write: the rows are stored in the table's file, {}"),
    ],
)  # fmt: skip
def test_arguments_are_checked_before_anything_is_written(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    indices: Any,
    rows: Any,
    error: type[Exception],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    path = put(tmp_path, "t", TABLE)
    with files.open(path) as table:
        with pytest.raises(error) as caught:
            table.write(indices, rows)
        assert str(caught.value) == message.format(path)
        assert bits(np.load(path)) == bits(TABLE)
        table.write([0], TABLE[[0]])


@pytest.mark.parametrize(
    ("file_format", "why"),
    [
        ("hdf5 chunks", "it is stored in chunks"), ("zarr3", "it is stored in chunks"),
        ("npz", ".npz files are read only"),
    ],
)  # fmt: skip
def test_tables_that_cannot_be_written(tmp_path: Path, file_format: str, why: str) -> None:
    path = put(tmp_path, "t", TABLE, file_format)
    with files.open(path) as table:
        with pytest.raises(ValueError) as caught:
            table.write([0], TABLE[[0]])
        assert str(caught.value) == f"write: {path} cannot be written, {why}"


def test_arrays_quantized_and_closed_tables_cannot_be_written(tmp_path: Path) -> None:
    codes = put(tmp_path, "c", np.ones((4, 6), np.int8))
    with files.open(codes, scales=np.ones((4, 2), np.float32)) as table:
        with pytest.raises(NotImplementedError) as refused:
            table.write([0], 1)
        assert str(refused.value) == f"write: {codes} cannot be written, it is quantized"
    array = files.open(TABLE)
    with pytest.raises(ValueError) as caught:
        array.write([0], 1)
    assert str(caught.value) == "write: only a table in a file can be written, got an array"
    array.close()
    with pytest.raises(ValueError, match=r"write: the table .* is closed"):
        array.write([0], 1)


def test_a_changed_file_is_not_written(tmp_path: Path) -> None:
    path = put(tmp_path, "t", TABLE)
    with files.open(path) as table, files.open(path, follow=True) as follower:
        other = put(tmp_path, "o", TABLE + 1)
        os.replace(other, path)
        with pytest.raises(OSError, match="changed while it was being read") as caught:
            table.write([0], ROWS[0])
        assert caught.value.__notes__ == ["Table.reload opens it again"]
        follower.gather([0])
        follower.write([0], ROWS[0])
        assert bits(follower.gather([0, 1])) == bits(np.stack([ROWS[0], TABLE[1] + 1]))
        table.reload()
        table.write([1], ROWS[1])
        with pytest.raises(OSError, match="changed while it was being read"):
            follower.gather([0])  # another table has written the file


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_a_child_sees_rows_that_its_parent_wrote_before(tmp_path: Path) -> None:
    path = put(tmp_path, "t", TABLE)
    with files.open(path, cache="1MiB") as table:
        table.gather([3])
        table.write([3], ROWS[0])

        def child() -> None:
            assert table.gather([3]).tolist() == [ROWS[0].tolist()]
            table.write([4], ROWS[1])
            assert table.gather([4]).tolist() == [ROWS[1].tolist()]

        assert forked(child) == 0
        with pytest.raises(OSError, match="changed while it was being read"):
            table.gather([3])


def slow_writes(monkeypatch: pytest.MonkeyPatch, pause: float = 0.0) -> None:
    """Let each write of bytes to a file happen in two parts."""
    write = disk.DiskFile.write_from

    def in_parts(self: disk.DiskFile, offset: int, buffer: memoryview | bytes) -> None:
        half = len(buffer) // 2
        write(self, offset, memoryview(buffer)[:half])
        time.sleep(pause)
        write(self, offset + half, memoryview(buffer)[half:])

    monkeypatch.setattr(disk.DiskFile, "write_from", in_parts)


READS: dict[str, Callable[[files.Table], Any]] = {
    "gather": lambda table: table.gather(np.arange(20)),
    "gather many": lambda table: table.gather(np.arange(5000) % 20)[:20],
    "gather_nd": lambda table: table.gather_nd(np.arange(20)[:, None]),
    "rows": lambda table: next(table.rows([np.arange(20)])),
    "submit": lambda table: table.submit(np.arange(20)).result(),
}


@pytest.mark.parametrize("cache", ["0", "1MiB"])
@pytest.mark.parametrize("read", READS)
def test_no_call_returns_a_mixture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: str, cache: str
) -> None:
    slow_writes(monkeypatch, 0.001)
    path = put(tmp_path, "t", np.zeros((20, 64), np.int64))
    wrong: list[object] = []
    seen: list[set[int]] = [set(), set()]
    last, done = 0, threading.Event()
    with files.open(path, cache=cache) as table:

        def call(numbers: set[int]) -> None:
            try:
                while not done.is_set():
                    least = last
                    result = READS[read](table)
                    first = int(result[0, 0])
                    assert (result == first).all(), np.unique(result)
                    assert first >= least  # a call that begins after a write returns its rows
                    numbers.add(first)
            except Exception as error:
                wrong.append(error)

        threads = [threading.Thread(target=call, args=(numbers,)) for numbers in seen]
        for thread in threads:
            thread.start()
        until = time.monotonic() + 20
        while not wrong and not (last > 20 and all(len(numbers) > 3 for numbers in seen)):
            assert time.monotonic() < until
            table.write(np.arange(20), last + 1)
            last += 1
            time.sleep(0.001)
        done.set()
        for thread in threads:
            thread.join()
    assert wrong == []


def test_a_row_that_was_read_before_a_write_is_not_cached_after_it() -> None:
    cache = native.make_row_cache(4, 10, 8)
    old, numbers = np.zeros(8, np.uint8), np.zeros(1, np.int64)
    version = cache.version
    cache.forget(numbers)
    cache.insert(numbers, None, old, version)
    assert cache.cached_rows == 0
    cache.insert(numbers, None, old, cache.version)
    assert cache.cached_rows == 1
    cache.forget(numbers)
    assert cache.cached_rows == 0
    assert cache.lookup(numbers, None, old).tolist() == [0]  # type: ignore[union-attr]


def test_a_write_that_fails_leaves_the_table_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = put(tmp_path, "t", TABLE)
    with files.open(path, cache="1MiB") as table:
        table.gather([1])
        with monkeypatch.context() as failing:

            def fail(*_: object) -> None:
                raise OSError(28, "No space left on device", path)

            failing.setattr(disk.DiskFile, "write_from", fail)
            with pytest.raises(OSError, match="No space left"):
                table.write([1], ROWS[0])
        assert bits(table.gather([1])) == bits(TABLE[[1]])
        table.write([1], ROWS[0])
        assert bits(table.gather([1])) == bits(ROWS[:1])


@pytest.mark.frameworks
def test_messages_about_tensors_name_methods_of_tensors(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="install torch to test tensors: pip install torch")
    path = put(tmp_path, "t", TABLE)
    calls = [
        (torch.tensor([0.5]), torch.zeros(1, 8, dtype=torch.int32),
         "write: `indices` must have an integer dtype, got float32; write indices.to(torch.int64)"),
        ([0], torch.zeros(1, 8),
         "write: `rows` must have the dtype of `table`, int32, got float32; write "
         "rows.to(torch.int32)"),
    ]  # fmt: skip
    with files.open(path) as table:
        for indices, rows, message in calls:
            with pytest.raises(TypeError) as caught:
                table.write(indices, rows)
            assert str(caught.value) == message
