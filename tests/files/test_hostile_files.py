"""Special files, and files larger than they claim, raise immediately, in one line."""

import contextlib
import gzip
import json
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from files.storage import MISSING, put, put_zarr
from gatherum import files
from gatherum.files.formats import inflating
from gatherum.files.formats.zarr import arrays

pytestmark = pytest.mark.usefixtures("quick_sync")

# A call that hangs or takes all memory does so in a fork of a process that imports once.
PARENT = """
import json, os, resource, signal, sys
from gatherum import files
from gatherum.files.resources.stats import peak_memory
import numpy, zarr
for line in sys.stdin:
    if (child := os.fork()) == 0:
        signal.alarm(120)
        resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
        before = peak_memory()
        try:
            files.gather_file(*json.loads(line), memory="16MiB")
            message = ""
        except Exception as error:
            message = f"{type(error).__name__} {error}"
        print(json.dumps([message, (peak_memory() - before) >> 20]), flush=True)
        os._exit(0)
    if status := os.waitpid(child, 0)[1]:
        print(json.dumps([f"ended with {os.waitstatus_to_exitcode(status)}", 0]), flush=True)
"""
MEBIBYTES = 64
Refused = Callable[..., str]
OUTSIDE = "a link that leads out of the store is not followed"


@pytest.fixture(scope="module")
def parent(tmp_path_factory: pytest.TempPathFactory) -> Iterator["subprocess.Popen[str]"]:
    """Start the process that gathers in forks."""
    errors = tmp_path_factory.mktemp("parent") / "errors"
    with errors.open("w") as file, subprocess.Popen(
        [sys.executable, "-c", PARENT],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=file, text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    ) as process:  # fmt: skip
        yield process
    assert errors.read_text() == ""


@pytest.fixture
def refused(parent: "subprocess.Popen[str]") -> Refused:
    """Gather in a fork. Return the error's line without the folder's name."""

    def run(table: Path | str, indices: Path | str | None = None) -> str:
        folder = Path(table).parent
        indices = indices or put(folder, "i", np.array([0]))
        assert parent.stdin is not None and parent.stdout is not None
        parent.stdin.write(json.dumps([str(table), str(indices), str(folder / "o.npy")]) + "\n")
        parent.stdin.flush()
        line, peak = json.loads(parent.stdout.readline())
        assert peak < MEBIBYTES
        assert not any(name.startswith("o.npy") for name in os.listdir(folder))
        return str(line).replace(f"{folder}/", "")

    return run


def store(folder: Path, file_format: str = "zarr3", **more: Any) -> tuple[Path, Path]:
    """Make an array of one chunk or shard. Return its metadata file and the chunk's file."""
    zarr = pytest.importorskip("zarr", reason=MISSING.format("zarr"))
    path, version = folder / "t.zarr", 2 if file_format == "zarr2" else 3
    settings = {"chunks": (512, 512), "zarr_format": version} | more
    array = zarr.create_array(path, shape=(512, 512), dtype="f4", **settings)
    array[...] = 1
    if version == 2:
        return path / ".zarray", path / "0.0"
    return path / "zarr.json", path / "c" / "0" / "0"


@pytest.mark.parametrize("file_format", ["zarr2", "zarr3"])
@pytest.mark.parametrize("which", ["metadata", "chunk", "attributes"])
def test_a_fifo_in_a_store(tmp_path: Path, file_format: str, which: str, refused: Refused) -> None:
    metadata, chunk = store(tmp_path, file_format)
    path = {"metadata": metadata, "chunk": chunk}.get(which, metadata.with_name(".zattrs"))
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    line = refused(tmp_path / "t.zarr")
    assert line == f"OSError {path.relative_to(tmp_path)}: is a FIFO, not a regular file"


def test_a_fifo_as_any_operand(tmp_path: Path, refused: Refused) -> None:
    table, indices = put(tmp_path, "t", np.zeros((4, 2))), put(tmp_path, "i", np.array([[0]]))
    updates, fifo = put(tmp_path, "u", np.zeros((1, 2))), str(tmp_path / "fifo.npy")
    os.mkfifo(fifo)
    line = "is a FIFO, not a regular file"
    for operands in ((fifo, indices, updates), (table, fifo, updates), (table, indices, fifo)):
        with pytest.raises(OSError, match=line):
            files.scatter_nd_file(*operands, tmp_path / "o.npy")
        with pytest.raises(OSError, match=line):
            files.scatter_nd_file(*operands, operands[0], in_place=True)
    _, chunk = store(tmp_path)
    chunk.unlink()
    os.mkfifo(chunk)
    assert line in refused(table, tmp_path / "t.zarr")


@pytest.mark.parametrize("target", ["/dev/zero", "/dev/null"])
@pytest.mark.parametrize("which", ["metadata", "chunk"])
def test_a_link_to_a_device_in_a_store(
    tmp_path: Path, which: str, target: str, refused: Refused
) -> None:
    metadata, chunk = store(tmp_path)
    path = metadata if which == "metadata" else chunk
    path.unlink()
    path.symlink_to(target)
    assert refused(tmp_path / "t.zarr").endswith(OUTSIDE)


def test_a_link_to_a_socket_inside_of_a_store(tmp_path: Path, refused: Refused) -> None:
    _, chunk = store(tmp_path)
    chunk.unlink()
    with socket.socket(socket.AF_UNIX) as server:
        here = os.open(tmp_path, os.O_RDONLY)
        try:  # the whole path may be too long for an address
            server.bind(f"/proc/self/fd/{here}/t.zarr/c/socket")
        except OSError:
            pytest.skip("no socket can be bound in a folder by its descriptor")
        finally:
            os.close(here)
        chunk.symlink_to(tmp_path / "t.zarr" / "c" / "socket")
        assert refused(tmp_path / "t.zarr").endswith("is a socket, not a regular file")


def test_a_special_file_instead_of_a_chunk_raises(tmp_path: Path, refused: Refused) -> None:
    _, chunk = store(tmp_path)
    chunk.unlink()
    files.gather_file(tmp_path / "t.zarr", put(tmp_path, "i", np.array([0])), tmp_path / "o.npy")
    (tmp_path / "o.npy").unlink()  # a missing chunk has fill values, and no other chunk has
    chunk.mkdir()
    line = refused(tmp_path / "t.zarr")
    assert line == "ValueError t.zarr/c/0/0: is a directory, not a regular file"
    chunk.rmdir()
    chunk.parent.rmdir()
    chunk.parent.write_bytes(b"")
    assert (
        refused(tmp_path / "t.zarr") == "ValueError t.zarr/c/0/0: lies in what is not a directory"
    )
    chunk.parent.unlink()
    chunk.parent.symlink_to(tmp_path / "t.zarr" / "c")
    line = refused(tmp_path / "t.zarr")
    assert line == "OSError t.zarr/c/0: is a directory, not a regular file"
    chunk.parent.unlink()
    chunk.parent.mkdir()
    chunk.symlink_to(tmp_path / "t.zarr" / "nothing")
    assert "t.zarr/c/0/0" in refused(tmp_path / "t.zarr")


def test_a_chunk_s_file_that_is_far_too_large(tmp_path: Path, refused: Refused) -> None:
    _, chunk = store(tmp_path)
    with chunk.open("wb") as file:
        file.truncate(1 << 40)
    line = refused(tmp_path / "t.zarr")
    assert line.startswith("ValueError t.zarr/c/0/0: has more than 2425856 bytes")


@pytest.mark.parametrize("file_format", ["zarr2", "zarr3", "shard"])
def test_a_bomb_of_gzip(tmp_path: Path, file_format: str, refused: Refused) -> None:
    codec: Any = pytest.importorskip("numcodecs", reason=MISSING.format("zarr")).GZip()
    more: dict[str, Any] = {}
    if file_format != "zarr2":
        codec = __import__("zarr").codecs.GzipCodec()
    if file_format == "shard":
        more = {"shards": (512, 512), "chunks": (256, 512)}
    metadata, chunk = store(tmp_path, file_format, compressors=codec, **more)
    bomb = gzip.compress(bytes(64 << 20)) * (8 if file_format == "shard" else 30)
    if file_format == "shard":
        # One inner chunk only: if two fail together, asyncio may report the second at exit.
        index = struct.pack("<4Q", 0, len(bomb), 2**64 - 1, 2**64 - 1)
        chunk.write_bytes(bomb + index + struct.pack("<I", crc32c(index)))
    else:
        chunk.write_bytes(bomb)
    size = 1 << (19 if file_format == "shard" else 20)
    line = refused(tmp_path / "t.zarr")
    place = chunk.relative_to(tmp_path)
    assert line == (
        f"ValueError {place}: cannot be read: a chunk inflates to more than its {size} bytes"
    )
    assert metadata.exists()


def crc32c(data: bytes) -> int:
    """Return the checksum that follows a shard's index."""
    checksum = 0xFFFFFFFF
    for byte in data:
        checksum ^= byte
        for _ in range(8):
            checksum = checksum >> 1 ^ (0x82F63B78 if checksum & 1 else 0)
    return checksum ^ 0xFFFFFFFF


# ------------------------------------------------------------------- codecs


def zstd_frame(blocks: int, size: int | None, length: int = 128 << 10) -> bytes:
    """Return a frame that repeats one byte, with or without its size."""
    head = bytes([0, 7 << 3]) if size is None else b"\xe0" + struct.pack("<Q", size)
    body = b"".join(
        struct.pack("<I", (n == blocks - 1) | 2 | length << 3)[:3] + b"a" for n in range(blocks)
    )
    return b"\x28\xb5\x2f\xfd" + head + body


@pytest.mark.parametrize("name", inflating.INFLATING)
def test_every_codec_that_inflates_is_bounded(name: str) -> None:
    numcodecs = pytest.importorskip("numcodecs", reason=MISSING.format("zarr"))
    codec = numcodecs.get_codec({"id": name})
    config = codec.get_config()
    for size in (1, 100, 1000, 1 << 20):
        data, plain = bytes(codec.encode(np.full(size, 97, np.uint8))), b"a" * size
        assert bytes(inflating.inflated(name, config, data, size, exact=True)) == plain
        assert bytes(inflating.inflated(name, config, data, size + 9, exact=False)) == plain
        with pytest.raises(ValueError, match=f"inflates to more than its {size - 1} bytes"):
            inflating.inflated(name, config, data, size - 1, exact=True)
        for cut in {0, 1, 3, 9, len(data) // 2, len(data) - 1}:
            with contextlib.suppress(ValueError, RuntimeError):
                result = inflating.inflated(name, config, data[:cut], size, exact=True)
                assert len(bytes(result)) <= size


def test_frames_of_zstd_are_added_up() -> None:
    pytest.importorskip("numcodecs", "0.16.4", reason="older ones read one frame")
    size = 4 * (128 << 10)
    skipped = b"\x50\x2a\x4d\x18\x03\0\0\0abc"
    for data in (
        zstd_frame(4, size),
        zstd_frame(4, None),
        skipped + zstd_frame(4, None),
        skipped + zstd_frame(2, size // 2) * 2 + skipped,
        zstd_frame(2, None) * 2,
    ):
        assert bytes(inflating.inflated("zstd", {}, data, size, exact=True)) == b"a" * size
        for most in (size - 1, 1, 0):
            with pytest.raises((ValueError, RuntimeError)):
                inflating.inflated("zstd", {}, data, most, exact=True)
    for data in (zstd_frame(4, None), zstd_frame(2, None) * 2, zstd_frame(1, None, 5)):
        assert set(bytes(inflating.inflated("zstd", {}, data, size + 9, exact=False))) == {97}
    with pytest.raises(ValueError, match=f"inflates to more than its {size - 1} bytes"):
        inflating.inflated("zstd", {}, zstd_frame(4, None), size - 1, exact=False)
    with pytest.raises(ValueError, match="does not say how large it is, and may be too large"):
        inflating.inflated("zstd", {}, zstd_frame(6, None), size, exact=False)
    with pytest.raises(ValueError, match="no frame where one should begin"):
        inflating.inflated("zstd", {}, zstd_frame(4, size) + b"abcd", size, exact=True)


def test_zstd_without_a_size_is_read(tmp_path: Path) -> None:
    # as a program writes it that compresses a chunk while receiving it
    zarr = pytest.importorskip("zarr", reason=MISSING.format("zarr"))
    for file_format in ("zarr2", "zarr3"):
        codec = (
            zarr.codecs.ZstdCodec() if file_format == "zarr3" else __import__("numcodecs").Zstd()
        )
        _, chunk = store(tmp_path / file_format, file_format, compressors=codec)
        chunk.write_bytes(zstd_frame(8, None))
        out = tmp_path / "o.npy"
        files.gather_file(tmp_path / file_format / "t.zarr", put(tmp_path, "i", np.array([3])), out)
        assert np.load(out).tobytes() == b"a" * 2048
        chunk.write_bytes(zstd_frame(9, None))
        with pytest.raises(ValueError, match="Destination buffer is too small"):
            files.gather_file(
                tmp_path / file_format / "t.zarr", put(tmp_path, "i", np.array([3])), out
            )


def test_many_empty_streams_take_no_longer() -> None:
    for name, empty in (("gzip", gzip.compress(b"")), ("zlib", b"\x78\x9c\x03\0\0\0\0\1")):
        data = empty * 20_000
        assert inflating.inflated(name, {}, data, 5, exact=False) == b""


@pytest.mark.parametrize(
    ("codecs", "line"),
    [
        (
            [{"id": "pickle"}],
            "t.zarr: uses a pickle codec, which is never loaded",
        ),
        (
            [{"id": "astype", "encode_dtype": "<f4", "decode_dtype": "|S1000000"}],
            "t.zarr: the codec 'astype' has the decode_dtype |S1000000, expected numbers",
        ),
        (
            [{"id": "categorize", "labels": ["a"], "dtype": "<U1"}],
            "t.zarr: the codec 'categorize' is not supported, because its output has no size limit",
        ),
    ],
)  # fmt: skip
def test_codecs_that_could_give_anything(
    tmp_path: Path, codecs: list[dict[str, Any]], line: str
) -> None:
    metadata, _ = store(tmp_path, "zarr2")
    metadata.write_text(json.dumps(json.loads(metadata.read_text()) | {"filters": codecs}))
    with pytest.raises(ValueError) as caught:
        files.gather_file(
            tmp_path / "t.zarr", put(tmp_path, "i", np.array([0])), tmp_path / "o.npy"
        )
    assert str(caught.value).replace(f"{tmp_path}/", "") == line


def test_filters_are_read_within_bounds(tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr", reason=MISSING.format("zarr"))
    numcodecs = __import__("numcodecs")
    table = np.arange(5000, dtype="i2").reshape(50, 100)
    for number, codecs in enumerate(
        (
            {"filters": [numcodecs.Delta("i2", "i8")], "compressors": numcodecs.Zstd()},
            {"filters": [numcodecs.AsType("f8", "i2"), numcodecs.Zlib()], "compressors": None},
            {"filters": [numcodecs.Shuffle(2)], "compressors": numcodecs.BZ2()},
            {"filters": [numcodecs.CRC32()], "compressors": numcodecs.LZMA()},
        )
    ):
        path = tmp_path / f"{number}.zarr"
        array = zarr.create_array(
            path, shape=table.shape, chunks=(7, 11), dtype="i2", zarr_format=2, **codecs
        )
        array[...] = table
        files.gather_file(path, put(tmp_path, "i", np.arange(50)), tmp_path / "o.npy")
        assert np.array_equal(np.load(tmp_path / "o.npy"), table)


def test_a_shard_of_countless_chunks(tmp_path: Path) -> None:
    path = put_zarr(str(tmp_path / "t.zarr"), np.zeros((512, 512), np.float32), "shards")
    metadata = Path(path, "zarr.json")
    text = json.loads(metadata.read_text())
    text["chunk_grid"]["configuration"]["chunk_shape"] = [512, 512]
    text["codecs"][0]["configuration"]["chunk_shape"] = [1, 1]
    metadata.write_text(json.dumps(text))
    with pytest.raises(ValueError, match="too much for a memory budget of 67108864 bytes"):
        files.gather_file(
            path, put(tmp_path, "i", np.array([0])), tmp_path / "o.npy", memory="64MiB"
        )


def test_chunks_of_every_operand_must_fit_in_the_budget(tmp_path: Path) -> None:
    table = put(tmp_path, "t", np.zeros((4, 2)))
    indices = put_zarr(str(tmp_path / "i.zarr"), np.zeros(100_000, int), chunks=(100_000,))
    with pytest.raises(ValueError) as caught:
        files.gather_file(table, indices, tmp_path / "o.npy", memory="1MiB")
    assert str(caught.value) == (
        f"{indices}: one chunk has 800000 bytes, too much for a memory budget of 1048576 bytes "
        "(twice the chunk is needed)"
    )


def test_metadata_in_the_root_of_the_file_system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os.path, "lexists", lambda path: True)
    assert arrays._store_root("/no/such/place") == "/"
