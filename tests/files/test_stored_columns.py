"""A gather along the last axis of a file in Fortran order reads its contiguous slices whole."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gatherum
from files.storage import bits
from gatherum import files
from gatherum.files.resources.disk import DiskFile

TABLE = np.asfortranarray(np.arange(5 * 4 * 300, dtype=">i4").reshape(5, 4, 300))
INDICES = np.array([[299, 3, -1], [3, 700, 0]])


@pytest.fixture
def path(tmp_path: Path) -> str:
    np.save(tmp_path / "f.npy", TABLE)
    assert b"'fortran_order': True" in (tmp_path / "f.npy").read_bytes()[:128]
    return str(tmp_path / "f.npy")


@pytest.mark.parametrize("memory", ["1GiB", "64KiB"])
@pytest.mark.parametrize("mode", ["fill", "clip", "wrap"])
def test_results_are_those_of_the_array(path: str, tmp_path: Path, mode: Any, memory: str) -> None:
    fill: Any = {"fill_value": 7} if mode == "fill" else {}
    indices = np.tile(INDICES, (40, 1)) if memory == "64KiB" else INDICES
    expected = gatherum.gather(TABLE, indices, axis=-1, mode=mode, **fill)
    for table in (path, TABLE):
        result = files.gather_file(table, indices, axis=2, mode=mode, memory=memory, **fill)
        assert bits(result) == bits(expected)
        out = tmp_path / "o.npy"
        files.gather_file(table, indices, out, axis=2, mode=mode, memory=memory, **fill)
        assert bits(np.load(out)) == bits(expected)
    with files.open(path) as table:
        assert bits(table.gather(indices, axis=-1, mode=mode, **fill)) == bits(expected)


def test_an_invalid_index_is_named(path: str, tmp_path: Path) -> None:
    message = "gather: index 700 is out of bounds for axis 2 of size 300 (indices[1, 1])"
    out = np.zeros((5, 4, 2, 3), ">i4")
    for call in (
        lambda: files.gather_file(path, INDICES, axis=2),
        lambda: files.gather_file(path, INDICES, tmp_path / "o.npy", axis=2),
        lambda: files.open(path).gather(INDICES, axis=2, out=out),
    ):
        with pytest.raises(IndexError) as caught:
            call()
        assert str(caught.value) == message
    assert not out.any()
    assert not (tmp_path / "o.npy").exists()


def test_slices_are_read_whole(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []
    original = DiskFile.read_rows

    def read_rows(self: DiskFile, stored: Any, *more: Any) -> int:
        sizes.append(stored.item)
        return original(self, stored, *more)

    monkeypatch.setattr(DiskFile, "read_rows", read_rows)
    files.gather_file(path, [5, 6], axis=2)
    assert sizes == [5 * 4 * 4]
