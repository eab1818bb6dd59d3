"""Gathers of most pages of a flat file, which are read part by part."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gatherum
from files.storage import bits, put
from gatherum import files
from gatherum.files.disk import PAGE, DiskFile
from gatherum.files.stats import Meter
from gatherum.files.tables import flat
from gatherum.files.tables.flat import FlatArray, FlatRows
from gatherum.files.tables.table import Panel

pytestmark = pytest.mark.usefixtures("quick_sync")


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make parts of two pages, so that a small file has many."""
    monkeypatch.setattr(flat, "PART_BYTES", 2 * PAGE)


def table_of(rows: int, columns: int, path: Path) -> FlatRows:
    np.arange(rows * columns, dtype="<i4").tofile(path)
    file = DiskFile(str(path), Meter())
    array = FlatArray(file, 0, (rows, columns), np.dtype("<i4"))
    return FlatRows(array, (1,), columns, Panel.of((columns,), ((0, columns),)))


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("memory", ["64KiB", "1MiB"])
@pytest.mark.parametrize("columns", [1, 3, 8, 100])
@pytest.mark.parametrize("form", ["npy", "safetensors"])
def test_the_same_bits(tmp_path: Path, columns: int, form: str, memory: str) -> None:
    rng = np.random.default_rng(columns)
    table = rng.integers(0, 1 << 30, (40_000 // columns, columns)).astype(np.int32)
    indices = rng.integers(-len(table) - 3, len(table) + 3, 9000)
    path, call = put(tmp_path, "t", table, form), {"mode": "fill", "fill_value": -1}
    expected = gatherum.gather(table, indices, **call)
    assert bits(files.gather_file(path, indices, memory=memory, **call)) == bits(expected)
    files.gather_file(path, indices, tmp_path / "o.npy", memory=memory, **call)
    assert bits(np.load(tmp_path / "o.npy")) == bits(expected)


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("places", [False, True])
@pytest.mark.parametrize("columns", [1, 5, 16])
def test_parts_and_places(tmp_path: Path, columns: int, places: bool) -> None:
    table = table_of(20_000 // columns, columns, tmp_path / "rows")
    rng = np.random.default_rng(0)
    numbers = rng.integers(0, table.extent, 3000)
    where = rng.permutation(4000)[:3000] if places else None
    wanted = table.ordered(numbers, where)
    assert wanted.blocks is not None
    assert wanted.blocks.rows & (wanted.blocks.rows - 1) == 0
    into = np.full((4000, columns), -7, np.int32)
    parts = table.fetch(wanted, into, limit=1 << 20, once=False)
    assert parts == np.unique(numbers // wanted.blocks.rows).size > 5
    where = np.arange(3000) if where is None else where
    assert np.array_equal(into[where], numbers[:, None] * columns + np.arange(columns))
    assert np.all(np.delete(into, where, axis=0) == -7)
    table.array.file.close()


def test_when_parts_are_read(tmp_path: Path) -> None:
    table = table_of(1 << 18, 1, tmp_path / "rows")  # 256 pages
    everywhere = np.arange(0, 1 << 18, 256)

    def in_parts(numbers: Any) -> bool:
        return table.ordered(np.asarray(numbers), None).blocks is not None

    assert in_parts(everywhere)
    assert not in_parts(everywhere[:500])  # too few
    assert not in_parts(np.repeat(everywhere[:512], 2))  # of half of the pages
    assert not in_parts(everywhere[:0])
    assert in_parts(np.repeat(everywhere[: 1024 * 10 // 11 + 8], 3))
    before = table.array.file.meter.bytes_read
    table.fetch(table.ordered(everywhere, None), np.empty((1024, 1), "<i4"), limit=1, once=False)
    assert table.array.file.meter.bytes_read - before == 1 << 20
    table.array.file.close()


def test_lengths_that_parts_share() -> None:
    lengths = {flat.rounded(count) for count in range(1, 1 << 14)}
    assert len(lengths) < 120
    assert all(count <= flat.rounded(count) <= max(count * 9 // 8, count) for count in range(4096))
