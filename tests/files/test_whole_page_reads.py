"""Gathers of most pages of a flat file, which are read in parts."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gatherum
from files.storage import bits, put
from gatherum import files
from gatherum.files.resources.disk import DiskFile
from gatherum.files.resources.stats import Meter
from gatherum.files.row_access.flat import FlatArray, FlatRows
from gatherum.files.row_access.table import Panel, RowsToRead

pytestmark = pytest.mark.usefixtures("quick_sync")


def table_of(rows: int, columns: int, path: Path) -> FlatRows:
    np.arange(rows * columns, dtype="<i4").tofile(path)
    file = DiskFile(str(path), Meter())
    array = FlatArray(file, 0, (rows, columns), np.dtype("<i4"))
    return FlatRows(array, (1,), columns, Panel.of((columns,), ((0, columns),)))


@pytest.mark.parametrize("memory", ["64KiB", "1MiB"])
@pytest.mark.parametrize("columns", [1, 3, 8, 100])
@pytest.mark.parametrize("file_format", ["npy", "safetensors"])
def test_the_same_bits(tmp_path: Path, columns: int, file_format: str, memory: str) -> None:
    rng = np.random.default_rng(columns)
    table = rng.integers(0, 1 << 30, (40_000 // columns, columns)).astype(np.int32)
    indices = rng.integers(-len(table) - 3, len(table) + 3, 9000)
    path, call = put(tmp_path, "t", table, file_format), {"mode": "fill", "fill_value": -1}
    expected = gatherum.gather(table, indices, **call)
    assert bits(files.gather_file(path, indices, memory=memory, **call)) == bits(expected)
    files.gather_file(path, indices, tmp_path / "o.npy", memory=memory, **call)
    assert bits(np.load(tmp_path / "o.npy")) == bits(expected)


@pytest.mark.parametrize("places", [False, True])
@pytest.mark.parametrize("columns", [1, 5, 16, 1000])
def test_parts_of_pages_fill_the_requested_rows(tmp_path: Path, columns: int, places: bool) -> None:
    table = table_of(80_000 // columns, columns, tmp_path / "rows")
    rng = np.random.default_rng(0)
    count = max(3000, 2 * table.extent)
    numbers = rng.integers(0, table.extent, count)
    where = rng.permutation(count + 1000)[:count] if places else None
    wanted = table.in_storage_order(numbers, where)
    assert wanted.joins_neighbours and wanted.row_numbers is numbers
    into = np.full((count + 1000, columns), -7, np.int32)
    reads = table.fetch(wanted, into, limit=16 << 10, once=False)
    assert 20 <= reads <= 160  # at least half of 4 KiB, at most 16 KiB each
    where = np.arange(count) if where is None else where
    assert np.array_equal(into[where], numbers[:, None] * columns + np.arange(columns))
    assert np.all(np.delete(into, where, axis=0) == -7)
    table.array.file.close()


def test_when_parts_are_read(tmp_path: Path) -> None:
    table = table_of(1 << 18, 1, tmp_path / "rows")  # 256 pages
    everywhere = np.random.default_rng(0).permutation(1 << 10) * 256

    def in_parts(numbers: Any) -> bool:
        return table.in_storage_order(np.asarray(numbers), None).row_numbers is numbers

    assert in_parts(everywhere)
    assert not in_parts(np.sort(everywhere))  # already in order
    assert not in_parts(everywhere[everywhere < 1 << 17])  # from half of the pages
    assert not in_parts(np.repeat(everywhere[:128], 99))
    assert not in_parts(everywhere[:0])
    assert in_parts(everywhere[everywhere < (1 << 18) * 10 // 11 + 1024])
    # a few requests among a million, so more of them are sampled
    assert in_parts(np.r_[np.repeat(0, 1 << 20), everywhere, 0])
    before = table.array.file.meter.bytes_read
    into = np.empty((1024, 1), "<i4")
    table.fetch(table.in_storage_order(everywhere, None), into, limit=1 << 20, once=False)
    assert table.array.file.meter.bytes_read - before == 1 << 20
    assert np.array_equal(into[:, 0], everywhere)
    table.array.file.close()


@pytest.mark.parametrize("wrong", [-1, 1 << 18])
def test_a_row_that_is_not_there(tmp_path: Path, wrong: int) -> None:
    table = table_of(1 << 18, 1, tmp_path / "rows")
    numbers = np.random.default_rng(0).permutation(1 << 18)
    numbers[12_345] = wrong
    into = np.empty((1 << 18, 1), "<i4")
    with pytest.raises(OSError, match=r"request 12345 is for a row that does not exist$"):
        table.fetch(RowsToRead(numbers, None, True), into, limit=1 << 20, once=False)
    numbers[12_345] = 0
    with pytest.raises(OSError, match=r"request \d+ is for a row that does not exist$"):
        table.fetch(RowsToRead(numbers, None, True), into[:-1], limit=1 << 20, once=False)
    table.array.file.close()
