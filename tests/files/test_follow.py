"""An open table with `follow=True` continues with the file that replaces its file."""

import os
import pickle
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from files.storage import put
from gatherum import files
from gatherum.files.open_table import lifetime, state

ROWS = np.arange(20)
FORMS = ("npy", "safetensors", "hdf5 chunks", "npz")


@pytest.fixture(autouse=True)
def _checked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "NEAR", 0.0)
    monkeypatch.setattr(lifetime, "RETRY", 0.0)


def table_of(number: int, rows: int = 20) -> Any:
    return np.full((rows, 3), number, np.float32)


def replace(path: str, folder: Path, number: int, file_format: str = "npy", rows: int = 20) -> None:
    """Write a table to another file, and rename it."""
    (folder / "next").mkdir(exist_ok=True)
    new = put(folder / "next", "t", table_of(number, rows), file_format)
    os.replace(new.partition(":")[0], path.partition(":")[0])


def now(table: files.Table) -> float:
    """Return the number in the table, and check that all its rows have it."""
    table.gather([0])  # detects a new file
    result = table.gather(ROWS)
    assert np.array_equal(result, np.broadcast_to(result[0, 0], (20, 3)))
    return float(result[0, 0])


@pytest.mark.parametrize("file_format", FORMS)
def test_a_replaced_file_is_followed(tmp_path: Path, file_format: str) -> None:
    path = put(tmp_path, "t", table_of(1), file_format)
    with files.open(path, follow=True, cache="4KiB") as table:
        assert (now(table), table.version) == (1, 0)
        replace(path, tmp_path, 2, file_format, rows=30)
        assert (now(table), table.version, table.shape) == (2, 1, (30, 3))
        assert table.submit([25]).result().tolist() == [[2, 2, 2]]
        other = pickle.loads(pickle.dumps(table))
        replace(path, tmp_path, 3, file_format)
        assert (now(other), other.version, now(table), table.version) == (3, 1, 3, 2)
        other.close()
        table.reload()
        assert table.version == 3


def test_calls_of_threads_go_on(tmp_path: Path) -> None:
    path = put(tmp_path, "t", table_of(0))
    seen: list[set[float]] = [set() for _ in range(4)]
    wrong: list[object] = []
    done = threading.Event()
    with files.open(path, follow=True) as table:

        def call(number: int) -> None:
            try:
                while not done.is_set():
                    result = table.gather(ROWS)
                    assert (result == result[0, 0]).all()
                    seen[number].add(float(result[0, 0]))
            except Exception as error:
                wrong.append(error)

        threads = [threading.Thread(target=call, args=(number,)) for number in range(len(seen))]
        for thread in threads:
            thread.start()
        for number in range(1, 8):
            replace(path, tmp_path, number)
            while table.version < number and not wrong:
                table.gather([0])
        while not (wrong or all(7 in numbers for numbers in seen)):
            table.gather([0])
        done.set()
        for thread in threads:
            thread.join()
        assert wrong == []
        assert table.version == 7


def test_the_old_file_is_used_until_there_is_a_new_one(tmp_path: Path) -> None:
    path = put(tmp_path, "t", table_of(1))
    with files.open(path, follow=True) as table:
        os.unlink(path)
        assert (now(table), table.version) == (1, 0)
        (tmp_path / "part").write_bytes(b"\x93NUMPY\x01\x00")
        os.replace(tmp_path / "part", path)
        assert (now(table), table.version) == (1, 0)
        replace(path, tmp_path, 2)
        assert (now(table), table.version) == (2, 1)


def test_a_file_written_in_place_is_an_error(tmp_path: Path) -> None:
    path = put(tmp_path, "t", table_of(1))
    with files.open(path, follow=True) as table:
        np.save(path, table_of(2, 40))
        with pytest.raises(OSError, match="changed while it was being read") as caught:
            table.gather([0])
        assert caught.value.__notes__ == [state.RELOAD]
        table.reload()
        assert (now(table), table.version) == (2, 1)


def test_quantized_values_wait_for_their_scales(tmp_path: Path) -> None:
    codes, scales = (put(tmp_path, n, np.ones((4, w), t)) for n, w, t in
                     (("c", 6, np.int8), ("s", 2, np.float32)))  # fmt: skip
    with files.open(codes, scales=scales, follow=True) as table:
        for name, path, array in (
            ("c2", codes, np.full((4, 8), 3, np.int8)),
            ("s2", scales, np.full((4, 4), 2, np.float32)),
        ):
            assert table.gather([0]).tolist() == [[1] * 6]
            os.replace(put(tmp_path, name, array), path)
        table.gather([0])
        assert (table.gather([0]).tolist(), table.version) == ([[6] * 8], 1)


@pytest.mark.parametrize("file_format", ["array", "zarr3"])
def test_tables_that_cannot_be_followed(tmp_path: Path, file_format: str) -> None:
    array = np.zeros((2, 3))
    table: Any = array if file_format == "array" else put(tmp_path, "t", array, file_format)
    with pytest.raises(ValueError, match=r"^open: `follow` needs a table in one local file, got "):
        files.open(table, follow=True)
    with pytest.raises(TypeError, match="`follow` must be"):
        files.open(table, follow=1)  # type: ignore[arg-type]
