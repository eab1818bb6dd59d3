"""Columns of Parquet and Arrow files: read by groups of rows, and what is refused."""

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gatherum
from files.storage import MISSING, bits, leftovers
from gatherum import files

pyarrow = pytest.importorskip("pyarrow", reason=MISSING.format("pyarrow"))
pytestmark = pytest.mark.usefixtures("quick_sync")
SUFFIXES = ("parquet", "arrow", "feather")
VECTORS = np.random.default_rng(0).random((1000, 4)).astype(np.float32)
NUMBERS = np.arange(1000)


@pytest.fixture(params=SUFFIXES)
def made(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Make a file with columns of many kinds, in four groups."""
    from pyarrow import feather, parquet

    lists = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(VECTORS.ravel()), 4)
    some = [None if i == 400 else [1.0, 2.0] for i in range(1000)]
    table = pyarrow.table(
        {
            "vectors": lists,
            "numbers": NUMBERS,
            "halves": VECTORS[:, 0].astype(np.float16),
            "texts": ["a"] * 1000,
            "bools": [True] * 1000,
            "lists": pyarrow.array([[1, 2]] * 1000),
            "missing": pyarrow.array([None, 1] * 500),
            "holes": pyarrow.array([[1.0, None]] * 1000, pyarrow.list_(pyarrow.float32(), 2)),
            "some missing": pyarrow.array(some, pyarrow.list_(pyarrow.float32(), 2)),
        }
    )
    path = tmp_path / f"t.{request.param}"
    if request.param == "parquet":
        parquet.write_table(table, path, row_group_size=300)
    else:
        compression = "lz4" if request.param == "feather" else "uncompressed"
        feather.write_feather(table, path, chunksize=300, compression=compression)
    return path


@pytest.mark.parametrize("memory", ["64KiB", "1GiB"])
@pytest.mark.parametrize(
    ("column", "array"),
    [("vectors", VECTORS), ("numbers", NUMBERS), ("halves", VECTORS[:, 0].astype(np.float16))],
)
def test_columns(made: Path, column: str, array: Any, memory: str) -> None:
    indices = np.random.default_rng(1).integers(-1000, 1000, (40, 3))
    found = files.gather_file(f"{made}:{column}", indices, memory=memory)
    assert bits(found) == bits(gatherum.gather(array, indices))
    out = made.parent / "o.npy"
    updates = array[:5]
    files.scatter_slices_file(
        f"{made}:{column}", np.arange(5) * 7, updates, out, memory=memory, reduction="max"
    )
    expected = gatherum.scatter_slices(array, np.arange(5) * 7, updates, reduction="max")
    assert bits(np.load(out)) == bits(expected)
    assert leftovers(made.parent) == []


def test_a_column_as_indices_and_updates(made: Path) -> None:
    table = np.zeros((1000, 4), np.float32)
    path = str(made)
    found = files.scatter_slices_file(table, f"{path}:numbers", f"{path}:vectors")
    assert bits(found) == bits(VECTORS)


@pytest.mark.parametrize(
    ("column", "line"),
    [
        ("texts", "a column of string, expected numbers or fixed-size lists of numbers"),
        ("bools", "a column of bool, expected numbers or fixed-size lists of numbers"),
        ("missing", "group 0: has values that are missing"),
        ("some missing", "group 1: has values that are missing"),
        ("holes", "group 0: has values that are missing"),
        ("nope", "the file has no such column; it holds 'vectors', 'numbers', "),
        (None, "name one of its 9 columns after a colon: 'vectors', "),
    ],
)
def test_what_is_refused(made: Path, column: str | None, line: str) -> None:
    path = str(made) if column is None else f"{made}:{column}"
    with pytest.raises(ValueError) as caught:
        files.gather_file(path, np.array([0, 400]))
    assert str(caught.value).startswith(f"{path}: {line}")
    with pytest.raises(ValueError) as caught:
        files.gather_file(f"{made}:lists", np.array([0, 400]))
    assert "a column of list<" in str(caught.value)


def test_read_only(made: Path) -> None:
    path, ones = f"{made}:vectors", np.ones((1, 4), np.float32)
    why = "cannot be written, columns of Parquet and Arrow are read only"
    with pytest.raises(ValueError, match=why):
        files.gather_file(VECTORS, np.array([0]), path)
    with pytest.raises(ValueError, match=why):
        files.scatter_slices_file(path, np.array([0]), ones, path, in_place=True)


@pytest.mark.parametrize("keep", [0, 10, 3000, -10])
def test_damaged_files(made: Path, keep: int) -> None:
    made.write_bytes(made.read_bytes()[:keep])
    with pytest.raises(ValueError) as caught:
        files.gather_file(f"{made}:vectors", np.array([0]))
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(f"{made}:vectors: cannot be read: ")


def test_a_group_that_is_too_large(made: Path) -> None:
    big = np.zeros((20_000, 4))
    from pyarrow import parquet

    lists = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(big.ravel()), 4)
    parquet.write_table(pyarrow.table({"x": lists}), made.parent / "big.parquet")
    with pytest.raises(ValueError, match="one chunk has 1280000 bytes, too much for a memory"):
        files.gather_file(made.parent / "big.parquet", np.array([0]), memory="1MiB")


def test_a_fifo(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "t.parquet")
    with pytest.raises(OSError, match="is a FIFO, not a regular file"):
        files.gather_file(tmp_path / "t.parquet", np.array([0]))


def test_without_pyarrow(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError) as caught:
        files.gather_file(f"{made}:numbers", np.array([0]))
    assert str(caught.value) == "Parquet and Arrow files need pyarrow: pip install pyarrow"
