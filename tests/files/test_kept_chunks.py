"""Open tables keep decoded chunks: the next call does not decode them again."""

import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gatherum import files
from gatherum.files.open_table import kept_chunks

pytestmark = [pytest.mark.frameworks, pytest.mark.usefixtures("quick_sync")]
LENGTH = 200_000
VALUES = np.random.default_rng(5).standard_normal(LENGTH)
ROWS = np.random.default_rng(6).integers(0, LENGTH, 400)


def put_parquet(path: Path, values: Any, groups: list[int]) -> str:
    arrow: Any = pytest.importorskip("pyarrow", reason="install pyarrow to test columns")
    from pyarrow import parquet

    table, start = arrow.table({"v": values}), 0
    with parquet.ParquetWriter(path, table.schema) as writer:
        for length in groups:
            writer.write_table(table.slice(start, length), row_group_size=length)
            start += length
    return f"{path}:v"


def put_hdf5(path: Path, values: Any, chunk: Any) -> str:
    h5py: Any = pytest.importorskip("h5py", reason="install h5py to test HDF5")
    with h5py.File(path, "w") as file:
        options = {"compression": "gzip", "compression_opts": 1, "maxshape": (None,) * values.ndim}
        file.create_dataset("v", data=values, chunks=chunk, **options)
    return f"{path}:v"


def put_zarr(path: Path, values: Any, chunk: Any) -> str:
    zarr: Any = pytest.importorskip("zarr", reason="install zarr to test Zarr")
    zarr.create_array(str(path), data=values, chunks=chunk, overwrite=True)
    return str(path)


KINDS: dict[str, tuple[str, Callable[..., str], Any]] = {
    "one row group": ("t.parquet", put_parquet, [LENGTH]),
    "unequal row groups": ("t.parquet", put_parquet, [40_000, 120_000, 40_000]),
    "a short last row group": ("t.parquet", put_parquet, [120_000, 80_000]),
    "one HDF5 chunk": ("t.h5", put_hdf5, (LENGTH,)),
    "one HDF5 chunk larger than the dataset": ("t.h5", put_hdf5, (280_000,)),
    "HDF5 chunks": ("t.h5", put_hdf5, (60_000,)),
    "one Zarr chunk": ("t.zarr", put_zarr, (LENGTH,)),
    "Zarr chunks": ("t.zarr", put_zarr, (60_000,)),
}


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Return the boxes and groups that have been decoded."""
    from gatherum.files.formats.arrow import ArrowColumn
    from gatherum.files.formats.hdf5_chunks import ChunkedDataset
    from gatherum.files.formats.zarr.arrays import ZarrArray

    found: list[object] = []
    methods = (ArrowColumn, "_decoded"), (ChunkedDataset, "read_box"), (ZarrArray, "read_box")
    for owner, name in methods:
        method = getattr(owner, name)

        def counted(self: Any, box: Any, method: Any = method) -> Any:
            found.append(box)
            return method(self, box)

        monkeypatch.setattr(owner, name, counted)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_the_next_lookup_decodes_nothing(tmp_path: Path, reads: list[object], kind: str) -> None:
    name, put, chunk = KINDS[kind]
    with files.open(put(tmp_path / name, VALUES, chunk)) as table:
        assert table.gather(ROWS).tobytes() == VALUES[ROWS].tobytes()
        assert reads
        reads.clear()
        for rows in (ROWS, ROWS[::-1], np.array([LENGTH - 1, 0, -1]), ROWS.reshape(20, 20)):
            assert table.gather(rows).tobytes() == VALUES[rows].tobytes()
        assert table.gather_nd(ROWS[:, None]).tobytes() == VALUES[ROWS].tobytes()
        assert not reads


@pytest.mark.parametrize(("name", "put"), [("t.h5", put_hdf5), ("t.zarr", put_zarr)])
def test_rows_of_two_dimensions(
    tmp_path: Path, reads: list[object], name: str, put: Callable[..., str]
) -> None:
    values = VALUES.reshape(1000, 200)
    with files.open(put(tmp_path / name, values, (300, 150))) as table:
        for _ in range(2):
            reads.clear()
            rows = table.gather(ROWS % 1000)
            assert rows.tobytes() == values[ROWS % 1000].tobytes()
            columns = table.gather(ROWS % 200, axis=1)
            assert columns.tobytes() == values[:, ROWS % 200].tobytes()
            points = np.stack([ROWS % 1000, ROWS % 200], 1)
            assert table.gather_nd(points).tobytes() == values[tuple(points.T)].tobytes()
            rows[:], columns[:] = 0, 0  # results are copies
        assert not reads


@pytest.mark.parametrize("kind", ["unequal row groups", "HDF5 chunks", "Zarr chunks"])
def test_a_changed_file(tmp_path: Path, kind: str) -> None:
    name, put, chunk = KINDS[kind]
    with files.open(put(tmp_path / name, VALUES, chunk)) as table:
        table.gather(ROWS)
        put(tmp_path / name, -VALUES, chunk)
        time.sleep(0.05)
        with pytest.raises(OSError, match=r"changed|vanished"):
            table.gather(ROWS)
        table.reload()
        assert table.gather(ROWS).tobytes() == (-VALUES)[ROWS].tobytes()


def test_the_memory_of_chunks_is_limited(tmp_path: Path, reads: list[object]) -> None:
    path = put_zarr(tmp_path / "t.zarr", VALUES, (40_000,))
    kept = kept_chunks.KeptChunks(files_array(path), 700_000)  # two chunks of 320,000 bytes
    boxes = [(slice(start, start + 40_000),) for start in range(0, LENGTH, 40_000)]
    for number, count in ((0, 1), (1, 2), (0, 2), (2, 3), (0, 3), (1, 4), (4, 5), (1, 5)):
        assert kept.view_box(boxes[number]).tobytes() == VALUES[boxes[number]].tobytes()
        assert len(reads) == count
    small = kept_chunks.KeptChunks(files_array(path), 0)  # it keeps the last one
    for number, count in ((0, 6), (0, 6), (1, 7), (0, 8)):
        small.view_box(boxes[number])
        assert len(reads) == count


def files_array(path: str) -> Any:
    from gatherum.files.formats.zarr.arrays import ZarrArray
    from gatherum.files.resources.stats import Meter

    return ZarrArray(path, Meter())


def test_an_array_object_is_read_again(tmp_path: Path) -> None:
    zarr: Any = pytest.importorskip("zarr", reason="install zarr to test Zarr")
    array = zarr.open_array(put_zarr(tmp_path / "t.zarr", VALUES, (LENGTH,)), mode="r+")
    with files.open(array) as table:
        table.gather([3])
        array[3] = 7.0
        assert table.gather([3]).tolist() == [7.0]


def test_threads_share_the_chunks(tmp_path: Path) -> None:
    path = put_zarr(tmp_path / "t.zarr", VALUES, (40_000,))
    kept = kept_chunks.KeptChunks(files_array(path), 700_000)  # two of five chunks
    boxes = [(slice(start, start + 40_000),) for start in range(0, LENGTH, 40_000)]

    def check(seed: int) -> bool:
        order = np.random.default_rng(seed).integers(0, len(boxes), 100)
        return all(np.array_equal(kept.view_box(boxes[n]), VALUES[boxes[n]]) for n in order)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(check, range(8)))
    finally:
        sys.setswitchinterval(interval)
