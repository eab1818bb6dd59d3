"""Zarr arrays as other programs write them: codecs, filters, orders, and missing chunks."""

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from files.storage import MISSING, bits, leftovers
from gatherum import files
from gatherum._plans.plans import apply

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


def write(path: Path, array: NDArray[Any], codec_name: str) -> None:
    """Write an array whose last rows are fill values, in chunks that were never written."""
    target = zarr.create_array(
        path,
        shape=array.shape,
        chunks=(40, 11),
        dtype=array.dtype,
        fill_value=7,
        **ARRAYS[codec_name],
    )
    target[: len(array) - 200] = array[:-200]
    array[-200:] = 7


@pytest.mark.parametrize("codec_name", ARRAYS)
def test_rows_are_read_and_changed_with_every_codec(tmp_path: Path, codec_name: str) -> None:
    rng = np.random.default_rng(0)
    table = rng.integers(0, 9, (500, 30)).astype(np.float32)
    path = tmp_path / "table.zarr"
    write(path, table, codec_name)
    rows, updates = rng.integers(-500, 500, 600), rng.random((600, 30)).astype(np.float32)
    np.save(tmp_path / "rows.npy", rows)
    np.save(tmp_path / "places.npy", rows[:, None])
    np.save(tmp_path / "updates.npy", updates)
    files.gather_file(path, tmp_path / "rows.npy", tmp_path / "o.npy", memory="64KiB")
    assert bits(np.load(tmp_path / "o.npy")) == bits(table[rows])

    before = (path / (".zarray" if codec_name[0] == "2" else "zarr.json")).read_bytes()
    files.scatter_nd_file(
        path, tmp_path / "places.npy", tmp_path / "updates.npy", path, in_place=True,
        reduction="add", memory="64KiB",
    )  # fmt: skip
    expected = apply("scatter_nd", table, rows[:, None], updates, reduction="add")
    assert bits(np.asarray(zarr.open_array(path, mode="r")[...])) == bits(expected)
    assert (path / (".zarray" if codec_name[0] == "2" else "zarr.json")).read_bytes() == before
    assert leftovers(tmp_path) == []


# ------------------------------------------------- chunks that grow before they are compressed

BYTES = {"name": "bytes", "configuration": {"endian": "little"}}
CRC = {"name": "crc32c"}
GZIP = {"name": "gzip", "configuration": {"level": 1}}
ZSTD = {"name": "zstd", "configuration": {"level": 1, "checksum": True}}
WIDER = {"name": "numcodecs.delta", "configuration": {"dtype": "<u4", "astype": "<i8"}}


def shards(
    chunks: tuple[int, int], *codecs: Any, index: Any = (BYTES, CRC), at: str = "end"
) -> Any:
    """Return a codec of shards whose chunks have separate codecs."""
    configuration = {"chunk_shape": chunks, "codecs": codecs, "index_codecs": index}
    return {"name": "sharding_indexed", "configuration": configuration | {"index_location": at}}


GROWING: dict[str, list[Any]] = {
    "compressed shards": [shards((2, 8), BYTES), GZIP],
    "inner chunks that grow": [shards((1, 1), BYTES, GZIP), GZIP],
    "checksums of every chunk": [shards((1, 1), BYTES, CRC, CRC, CRC, CRC, CRC), ZSTD],
    "checksums of an index": [shards((1, 1), BYTES, index=[BYTES, CRC, CRC]), GZIP],
    "an index in front": [shards((1, 1), BYTES, ZSTD, at="start"), GZIP, CRC],
    "shards in shards": [shards((4, 8), shards((2, 4), BYTES, GZIP)), ZSTD],
    "every level compressed": [shards((4, 4), shards((1, 2), BYTES, GZIP), ZSTD), GZIP],
    "three levels": [shards((8, 4), shards((4, 4), shards((1, 1), BYTES, CRC), GZIP), GZIP), GZIP],
    "wider numbers": [shards((1, 4), WIDER, BYTES), GZIP],
    "compressed again and again": [BYTES, GZIP, ZSTD, CRC, GZIP],
}


@pytest.mark.filterwarnings("ignore:Combining a `sharding_indexed` codec")
@pytest.mark.filterwarnings("ignore:Numcodecs codecs are not in the Zarr version 3")
@pytest.mark.parametrize("codec_name", GROWING)
def test_chunks_that_grow_before_they_are_compressed(tmp_path: Path, codec_name: str) -> None:
    table = np.random.default_rng(0).integers(0, 2**31, (16, 8)).astype(np.uint32)
    path = tmp_path / "t.zarr"
    zarr.create_array(path, shape=table.shape, chunks=(8, 8), dtype="u4")
    metadata = json.loads((path / "zarr.json").read_text()) | {"codecs": GROWING[codec_name]}
    (path / "zarr.json").write_text(json.dumps(metadata))
    zarr.open_array(path)[...] = table
    assert bits(files.gather_file(path, np.arange(-3, 16))) == bits(table[np.arange(-3, 16)])
    files.scatter_slices_file(path, np.array([5]), table[:1], path, in_place=True)
    table[5] = table[0]
    assert bits(zarr.open_array(path, mode="r")[...]) == bits(table)


@pytest.mark.parametrize("name", ["zlib", "crc32", "fletcher32", "base64", "lz4"])
@pytest.mark.parametrize("dtype", ["c16", "S40", "u1"])
def test_filters_of_zarr_2_whose_output_grows(tmp_path: Path, name: str, dtype: str) -> None:
    values = np.random.default_rng(0).integers(1, 127, (20, 160), np.uint8)
    table, path = values.view(dtype), tmp_path / "t.zarr"
    codecs = [numcodecs.get_codec({"id": name}), numcodecs.Zlib(1)]
    target = zarr.create_array(
        path, shape=table.shape, chunks=(7, table.shape[1]), dtype=dtype, zarr_format=2,
        filters=codecs, compressors=numcodecs.Zstd(1),
    )  # fmt: skip
    target[...] = table
    assert bits(files.gather_file(path, np.arange(20))) == bits(table)


@pytest.mark.filterwarnings("ignore:Combining a `sharding_indexed` codec")
def test_zstd_without_a_size_around_a_shard(tmp_path: Path) -> None:
    # as a program writes it that compresses a shard while receiving it: blocks without their sizes
    table, path = np.arange(128, dtype="u4").reshape(16, 8), tmp_path / "t.zarr"
    zarr.create_array(path, shape=(16, 8), chunks=(8, 8), dtype="u4")
    document = json.loads((path / "zarr.json").read_text())
    document["codecs"] = [shards((2, 4), BYTES), ZSTD]
    (path / "zarr.json").write_text(json.dumps(document))
    zarr.open_array(path)[...] = table
    for chunk in (path / "c" / "0" / "0", path / "c" / "1" / "0"):
        plain = bytes(numcodecs.Zstd().decode(chunk.read_bytes()))
        block = (len(plain) << 3 | 1).to_bytes(3, "little") + plain  # a stored block, the last one
        chunk.write_bytes(b"\x28\xb5\x2f\xfd\0\x38" + block)
    assert bits(zarr.open_array(path, mode="r")[...]) == bits(table)
    assert bits(files.gather_file(path, np.arange(16))) == bits(table)


@pytest.mark.filterwarnings("ignore:Combining a `sharding_indexed` codec")
def test_a_bomb_around_a_shard(tmp_path: Path) -> None:
    path = tmp_path / "t.zarr"
    zarr.create_array(path, shape=(16, 8), chunks=(8, 8), dtype="u4")
    document = json.loads((path / "zarr.json").read_text())
    document["codecs"] = [shards((1, 1), BYTES, GZIP), GZIP]
    (path / "zarr.json").write_text(json.dumps(document))
    chunk = path / "c" / "0" / "0"
    chunk.parent.mkdir(parents=True)
    chunk.write_bytes(gzip.compress(bytes(1 << 20)))
    most = 64 * (4 + 512 + 16) + 4  # chunks, gzip's overhead, the index and its checksum
    with pytest.raises(ValueError, match=f"a chunk inflates to more than its {most} bytes$"):
        files.gather_file(path, np.array([0]))
    # each level may enlarge every chunk, and this possible growth counts against the budget
    document["codecs"] = [shards((1, 1), BYTES, *[GZIP] * 40), GZIP]
    (path / "zarr.json").write_text(json.dumps(document))
    with pytest.raises(ValueError, match=r"one chunk has \d{7,} bytes, too much for a memory"):
        files.gather_file(path, np.array([0]), memory="256KiB")


def test_a_python_may_lack_bz2_and_lzma(tmp_path: Path) -> None:
    np.savez(tmp_path / "t.npz", a=np.arange(4.0))
    code = f"""
import sys
sys.modules["bz2"] = sys.modules["lzma"] = sys.modules["_bz2"] = sys.modules["_lzma"] = None
import numpy as np
from gatherum import files
print(files.gather_file({str(tmp_path / "t.npz:a")!r}, np.array([2, 0])))
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.stdout == "[2. 0.]\n", run.stderr
