"""Zarr arrays as other programs write them: codecs, filters, orders, and missing chunks."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from files.storage import MISSING, bits, leftovers
from gatherum import files
from gatherum.plan import apply

zarr = pytest.importorskip("zarr", reason=MISSING.format("zarr"))
numcodecs = pytest.importorskip("numcodecs", reason=MISSING.format("zarr"))
codecs = zarr.codecs

pytestmark = pytest.mark.usefixtures("quick_sync")

ARRAYS: dict[str, dict[str, Any]] = {
    "2-plain": {"zarr_format": 2, "compressors": None},
    "2-zlib": {"zarr_format": 2, "compressors": numcodecs.Zlib(1)},
    "2-gzip": {"zarr_format": 2, "compressors": numcodecs.GZip(1)},
    "2-zstd": {"zarr_format": 2, "compressors": numcodecs.Zstd(1)},
    "2-lz4": {"zarr_format": 2, "compressors": numcodecs.LZ4()},
    "2-blosc": {"zarr_format": 2, "compressors": numcodecs.Blosc("lz4", shuffle=1)},
    "2-shuffled": {"zarr_format": 2, "filters": [numcodecs.Shuffle(4)]},
    "2-columns": {"zarr_format": 2, "order": "F"},
    "2-folders": {"zarr_format": 2, "chunk_key_encoding": {"name": "v2", "separator": "/"}},
    "3-plain": {"compressors": None},
    "3-gzip": {"compressors": codecs.GzipCodec(level=1)},
    "3-zstd": {"compressors": codecs.ZstdCodec(level=1)},
    "3-blosc": {"compressors": codecs.BloscCodec(cname="zstd", shuffle="bitshuffle")},
    "3-checked": {"compressors": [codecs.GzipCodec(level=1), codecs.Crc32cCodec()]},
    "3-swapped": {"serializer": codecs.BytesCodec(endian="big")},
    "3-transposed": {"filters": [codecs.TransposeCodec(order=(1, 0))]},
    "3-dotted": {"chunk_key_encoding": {"name": "default", "separator": "."}},
    "3-sharded": {"shards": (160, 22), "compressors": codecs.GzipCodec(level=1)},
}  # fmt: skip


def write(path: Path, array: NDArray[Any], kind: str) -> None:
    """Write an array whose last rows are fill values, in chunks that were never written."""
    made = zarr.create_array(
        path, shape=array.shape, chunks=(40, 11), dtype=array.dtype, fill_value=7, **ARRAYS[kind]
    )
    made[: len(array) - 200] = array[:-200]
    array[-200:] = 7


@pytest.mark.parametrize("kind", ARRAYS)
def test_rows_are_read_and_changed_whatever_the_codec(tmp_path: Path, kind: str) -> None:
    rng = np.random.default_rng(0)
    table = rng.integers(0, 9, (500, 30)).astype(np.float32)
    path = tmp_path / "table.zarr"
    write(path, table, kind)
    rows, updates = rng.integers(-500, 500, 600), rng.random((600, 30)).astype(np.float32)
    np.save(tmp_path / "rows.npy", rows)
    np.save(tmp_path / "places.npy", rows[:, None])
    np.save(tmp_path / "updates.npy", updates)
    files.gather_file(path, tmp_path / "rows.npy", tmp_path / "o.npy", memory="64KiB")
    assert bits(np.load(tmp_path / "o.npy")) == bits(table[rows])

    before = (path / (".zarray" if kind[0] == "2" else "zarr.json")).read_bytes()
    files.scatter_nd_file(
        path, tmp_path / "places.npy", tmp_path / "updates.npy", path, in_place=True,
        reduction="add", memory="64KiB",
    )  # fmt: skip
    expected = apply("scatter_nd", table, rows[:, None], updates, reduction="add")
    assert bits(np.asarray(zarr.open_array(path, mode="r")[...])) == bits(expected)
    assert (path / (".zarray" if kind[0] == "2" else "zarr.json")).read_bytes() == before
    assert leftovers(tmp_path) == []
