"""Malformed files, read by the functions on files and by the command line.

The first four bytes choose the format, the operand whose file it is, the operator and the entry
point. The other bytes are the file: a `.npy`, `.npz` or `.safetensors` file, or the metadata of a
Zarr array. The call writes a result that the format's own package reads, or raises one of the
documented exceptions in one line, and leaves no other files behind. Nothing is unpickled.
"""

import io
import json
import math
import shutil
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import gatherum
from gatherum._model.operators import SCATTERS

from .runs import OPERANDS, TABLE, by_command, by_function, contents, no_pickle, own_folder
from .source import Source

FORMATS = ("npy", "npz", "safetensors", "zarr3", "zarr2")
ROLES = ("table", "indices", "updates")
OPERATORS = (
    *("gather", "scatter_nd", "gather_elements", "gather_nd", "scatter_elements", "scatter_slices"),
)
ENTRIES = ("function", "function", "command", "in place")
# Limit on a mutated shape, so that a run ends soon.
MOST = 1 << 20

WORDS = """
    'descr': 'fortran_order': 'shape': '<f4' '|O' '>i8' '|b1' '<f2' True False (4,3) (12,) () (0,4)
    (-1,) [('a','<i4')] "dtype" "F32" "I64" "BF16" "F4" "shape" "data_offsets" "__metadata__" [4,3]
    [0,48] [] {} null true 1e400 NaN "zarr_format" "node_type" "array" "group" "data_type" "float32"
    "int64" "chunk_grid" "regular" "chunk_shape" "configuration" "chunk_key_encoding" "default" "v2"
    "codecs" "bytes" "endian" "little" "zstd" "gzip" "blosc" "crc32c" "sharding_indexed" "transpose"
    "order" "fill_value" "attributes" "chunks" "compressor" "filters" "pickle" "<f4" "|O"
    "numcodecs.zlib" "dimension_separator" "storage_transformers" 9223372036854775808 4294967296
"""
MAGIC = (b"\x93NUMPY", b"PK\3\4", b"PK\1\2", b"PK\5\6", b"PK\6\6", b"PK\6\7")
DICTIONARY = (*MAGIC, *(word.encode() for word in WORDS.split()))


def run(data: bytes) -> str:
    """Pass the bytes to a call as one of its files, and return the outcome."""
    source = Source(data)
    form, role = source.choice(FORMATS), source.choice(ROLES)
    op, entry = source.choice(OPERATORS), source.choice(ENTRIES)
    if role == "updates" or entry == "in place":
        op = op if op in SCATTERS else "scatter_nd"
    content = source.rest()
    if not _is_small(form, content):
        return "too large to run"
    with own_folder() as folder, no_pickle():
        paths = _written(folder, op, role, form, content)
        before = contents(folder)
        out = paths["table"] if entry == "in place" else str(folder / "out.npy")
        if entry == "command":
            label = by_command(op, paths, out)
        else:
            label = by_function(op, paths, out, in_place=entry == "in place")
        after = contents(folder)
        if label != "result":
            assert after == before, f"{label} left {set(after) ^ set(before)}: {content!r}"
            return f"{form} {label}"
        if entry == "in place":
            more = {name for name in set(after) - set(before) if "table.zarr/" not in name}
            assert not more and set(before) <= set(after), f"left {more}: {content!r}"  # but chunks
        else:
            assert set(after) == {*before, "out.npy"}, f"left {set(after)}: {content!r}"
            _compare_with_memory(op, paths, out, form, role)
    return f"{form} result"


def seeds() -> Iterator[bytes]:
    """Yield valid and almost valid files of every format."""
    with own_folder() as folder:
        for form in range(len(FORMATS)):
            for content in _valid(FORMATS[form], folder):
                for role, op, entry in (
                    (0, 0, 0),
                    (1, 0, 2),
                    (2, 1, 0),
                    (0, 3, 2),
                    (0, 4, 3),
                    (0, 1, 0),
                ):
                    if (role == 1) == (
                        b"i8" in content or b"int64" in content or b"I64" in content
                    ):
                        yield bytes([form, role, op, entry]) + content


# --- The call, and its checks


def _compare_with_memory(op: str, paths: dict[str, str], out: str, form: str, role: str) -> None:
    """Compare with the same call in memory if NumPy itself reads the file."""
    actual = np.load(out, allow_pickle=False)
    if form not in ("npy", "npz"):
        return
    arrays = {name: np.load(path.partition(":")[0]) for name, path in paths.items() if name != role}
    try:
        loaded = np.load(paths[role].partition(":")[0], allow_pickle=False)
        arrays[role] = loaded if form == "npy" else loaded["a"]
    except Exception:  # NumPy is stricter at times, with other messages
        return
    expected = getattr(gatherum, op)(*(arrays[name] for name in paths))
    assert expected.dtype == actual.dtype and expected.shape == actual.shape, (expected, actual)
    assert expected.tobytes() == actual.tobytes(), (expected, actual)


# --- The files


def _written(folder: Path, op: str, role: str, form: str, content: bytes) -> dict[str, str]:
    """Write the operands, one of them from the fuzzed bytes, and return their paths."""
    paths = {}
    for name, array in OPERANDS[op].items():
        if name != role:
            paths[name] = str(folder / f"{name}.npy")
            np.save(paths[name], array)
        elif form.startswith("zarr"):
            directory = folder / f"{name}.zarr"
            _write_zarr(directory, form, content)
            paths[name] = str(directory)
        else:
            (folder / f"{name}.{form}").write_bytes(content)
            member = "" if form == "npy" else ":a"
            paths[name] = str(folder / f"{name}.{form}{member}")
    return paths


def _write_zarr(directory: Path, form: str, content: bytes) -> None:
    """Write metadata, and the chunks of an uncompressed array of TABLE's form."""
    directory.mkdir()
    (directory / ("zarr.json" if form == "zarr3" else ".zarray")).write_bytes(content)
    if form == "zarr3":
        for i in range(2):
            (directory / "c" / str(i)).mkdir(parents=True)
            (directory / "c" / str(i) / "0").write_bytes(TABLE[2 * i : 2 * i + 2].tobytes())
    else:
        for i in range(2):
            (directory / f"{i}.0").write_bytes(TABLE[2 * i : 2 * i + 2].tobytes())


def _is_small(form: str, content: bytes) -> bool:
    """Return True if a run on the file ends soon: large Zarr arrays may have no chunks."""
    if not form.startswith("zarr"):
        return True
    try:
        metadata = json.loads(content)
        grid = metadata.get("chunk_grid", {})
        chunks = metadata.get("chunks") or grid.get("configuration", {}).get("chunk_shape") or []
        sizes = (math.prod(map(int, metadata["shape"])), math.prod(map(int, chunks)))
        return all(abs(size) <= MOST for size in sizes) and "itemsize" not in str(metadata)
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError):
        return True


def _valid(form: str, folder: Path) -> Iterator[bytes]:
    for array in (TABLE, np.asfortranarray(TABLE), np.array([2, 0]), np.array([[1], [3]], ">i8")):
        yield from _files(form, array, folder)
    yield from _files(form, np.ones((2, 3), np.float32), folder)
    if form in ("npy", "npz"):
        for odd in (
            np.array([object()]),
            np.zeros(3, "S0"),
            np.zeros(2, [("a", "i4"), ("b", "O")]),
        ):
            yield from _files(form, odd, folder)
        yield from _files(form, np.zeros((4, 3), [("a", "u1"), ("b", "<f4")]), folder)
    if form == "npy":
        yield b"\x93NUMPY\x03\x00\x04\x00\x00\x00{}  "
        yield b"\x93NUMPY\x02\x00\xff\xff\x00\x00" + b"(" * 200


def _files(form: str, array: np.ndarray[Any, Any], folder: Path) -> Iterator[bytes]:
    if form == "npy":
        stream = io.BytesIO()
        np.lib.format.write_array(stream, np.asarray(array), allow_pickle=True)
        yield stream.getvalue()
    elif form == "npz":
        stream = io.BytesIO()
        np.lib.format.write_array(stream, np.asarray(array), allow_pickle=True)
        for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            archive = io.BytesIO()
            with zipfile.ZipFile(archive, "w", method) as writer:
                writer.writestr(zipfile.ZipInfo("a.npy"), stream.getvalue(), method)
            yield archive.getvalue()
    elif form == "safetensors":
        yield from _tensors(array)
    else:
        yield from _metadata(form, array, folder)


def _tensors(array: np.ndarray[Any, Any]) -> Iterator[bytes]:
    code = {"float32": "F32", "int64": "I64"}[array.dtype.name]
    body = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<")).tobytes()
    first = {"dtype": code, "shape": list(array.shape), "data_offsets": [0, len(body)]}
    other = {"dtype": "BF16", "shape": [2], "data_offsets": [len(body), len(body) + 4]}
    for header in ({"a": first}, {"__metadata__": {"format": "np"}, "a": first, "b": other}):
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        tail = bytes(4) if "b" in header else b""
        yield len(text).to_bytes(8, "little") + text + body + tail


def _metadata(form: str, array: np.ndarray[Any, Any], folder: Path) -> Iterator[bytes]:
    if not array.flags.c_contiguous or not array.dtype.isnative:
        return
    zarr: Any = __import__("zarr")
    version = 3 if form == "zarr3" else 2
    chunks = (2, *array.shape[1:])
    for more in ({"compressors": None}, {}, {"shards": chunks} if version == 3 else {"order": "F"}):
        path = folder / "made.zarr"
        shutil.rmtree(path, ignore_errors=True)
        zarr.create_array(
            str(path),
            shape=array.shape,
            chunks=chunks,
            dtype=array.dtype,
            zarr_format=version,
            **more,
        )
        text = (path / ("zarr.json" if version == 3 else ".zarray")).read_text()
        yield json.dumps(json.loads(text)).encode()
