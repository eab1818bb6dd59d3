"""Damaged Zarr stores: special files, links, folders, wrong sizes, decompression bombs.

The first bytes choose the store's form and codec, its operand, the operator and the entry point.
The other bytes damage the store step by step: which name, and what it becomes. The call ends soon
and needs little memory. It returns a result, or raises one of the documented exceptions in one line
without changing anything. For an undamaged store, the result equals that of the call in memory.
"""

import contextlib
import faulthandler
import gzip
import json
import math
import os
import shutil
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import gatherum
from gatherum._model.operators import GATHERS
from gatherum.files.resources.stats import peak_memory

from .runs import OPERANDS, by_command, by_function, contents, no_pickle, own_folder
from .source import Source

FORMS = ("zarr3", "zarr2", "shards")
CODECS = ("none", "gzip", "zstd", "blosc", "crc32c", "zlib", "lz4")
ROLES = ("table", "indices", "updates")
ENTRIES = ("function", "command", "in place")
OPERATORS = ("gather", "scatter_nd", "gather_elements", "gather_nd", "scatter_elements")
PLACES = ("chunk", "metadata", "attributes", "folder", "beside", "other chunk", "journal")
# Limits on a mutated shape, so that a run ends soon.
MOST, MOST_IN_CHUNK = 1 << 12, 1 << 24
# Limits for one input. A thread that waits for a FIFO can only be ended with its process.
SECONDS, SECONDS_TO_LIVE, MEBIBYTES = 20, 120, 256
BOMB = gzip.compress(bytes(48 << 20), 9)
NUMBERS = (0, 1, -1, 3, 7, 100, 1 << 20, 1 << 31, 1 << 40, (1 << 62) + 1, 1 << 64)
TEXTS = (
    "",
    "gzip",
    "zstd",
    "<f4",
    "|S2147483647",
    "<U9",
    "pickle",
    "sharding_indexed",
    "C",
    "F",
    "/",
)
VALUES = (
    *NUMBERS,
    *TEXTS,
    None,
    True,
    1.5,
    [],
    {},
    [[]],
    [1] * 40,
    {"id": "lz4"},
    {"name": "bytes"},
)
WORDS = "zarr_format chunks dtype codecs chunk_shape length_bytes configuration name id filters"
DICTIONARY = (b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd", b"\x50\x2a\x4d\x18", *WORDS.encode().split())

JOURNAL, NOTHING = "out.npy.partial.journal", b" of 0"
Damage = Callable[[Source, Path, Path], None]


def run(data: bytes) -> str:
    """Pass a store to a call as one of its operands, and return the outcome."""
    source = Source(data)
    form, codec = source.choice(FORMS), source.choice(CODECS)
    role, op, entry = source.choice(ROLES), source.choice(OPERATORS), source.choice(ENTRIES)
    if role == "updates" or entry == "in place":
        op = "scatter_nd" if op in GATHERS else op
    with own_folder() as folder, no_pickle(), _watched():
        paths = _written(folder, op, role, form, codec)
        done = [_damage(source, folder, Path(paths[role])) for _ in range(source.below(4))]
        if not _is_small(Path(paths[role])):
            return "too large to run"
        label = _called(folder, op, paths, entry, done)
        return f"{done[0] if len(done) == 1 else len(done) or form} {label}"


def seeds() -> Iterator[bytes]:
    """Yield every kind of damage at every part of a store, in every form, and pairs of them."""
    for form in range(len(FORMS)):
        for codec in range(len(CODECS)):
            for entry in range(len(ENTRIES)):
                yield bytes([form, codec, 0, entry, entry, 0])
        for place in range(len(PLACES)):
            for damage in range(len(DAMAGES)):
                role, entry = damage % 3, place % 3
                op, codec = (damage + place) % 5, damage % len(CODECS)
                yield bytes([form, codec, role, op, entry, 1, place, damage, 5, 3, 2, 1, 9])
    rng = np.random.RandomState(7)
    for _ in range(600):
        yield rng.bytes(6) + rng.bytes(rng.randint(4, 40))


# --- The call, and its checks


@contextlib.contextmanager
def _watched() -> Iterator[None]:
    """Fail if a call takes long or much memory. End the process if the call never ends."""
    faulthandler.dump_traceback_later(SECONDS_TO_LIVE, exit=True)
    began, before = time.monotonic(), peak_memory()
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
    seconds, grown = time.monotonic() - began, peak_memory() - before >> 20
    assert seconds < SECONDS, f"took {seconds:.0f} s"
    assert grown < MEBIBYTES, f"took {grown} MiB"


def _called(folder: Path, op: str, paths: dict[str, str], entry: str, done: list[str]) -> str:
    before = contents(folder)
    out = paths["table"] if entry == "in place" else str(folder / "out.npy")
    if entry == "command":
        label = by_command(op, paths, out)
    else:
        label = by_function(op, paths, out, in_place=entry == "in place")
    after = contents(folder)
    if before.get(JOURNAL) == NOTHING:  # may be used, and removed
        del before[JOURNAL]
        after.pop(JOURNAL, None)
    if label != "result":
        assert after == before, f"{label} left {set(after) ^ set(before)}"
        assert done, f"a store that is as it should be was refused: {label}"
        return label
    left = set(after) - set(before)
    if entry == "in place":
        assert not any(".partial" in name for name in left), f"left {left}"
    else:
        assert left == {"out.npy"} and {*after} >= {*before}, f"left {left}"
        assert all(after[name] == before[name] for name in before), "an input was changed"
    if entry != "in place" and not done:
        expected = getattr(gatherum, op)(*OPERANDS[op].values())
        actual = np.load(out, allow_pickle=False)
        assert (actual.dtype, actual.tobytes()) == (expected.dtype, expected.tobytes()), actual
    return label


# --- The store


def _written(folder: Path, op: str, role: str, form: str, codec: str) -> dict[str, str]:
    """Write the operands, one of them as a store, and return their paths."""
    paths = {}
    for name, array in OPERANDS[op].items():
        if name == role:
            paths[name] = str(folder / f"{name}.zarr")
            _write_store(paths[name], array, form, codec)
        else:
            paths[name] = str(folder / f"{name}.npy")
            np.save(paths[name], array)
    return paths


def _write_store(path: str, array: np.ndarray[Any, Any], form: str, codec: str) -> None:
    zarr: Any = __import__("zarr")
    numcodecs: Any = __import__("numcodecs")
    version = 2 if form == "zarr2" else 3
    compressor: Any = None
    if version == 2 and codec in ("gzip", "zstd", "blosc", "zlib", "lz4"):
        compressor = numcodecs.get_codec({"id": codec})
    elif version == 3 and codec in ("gzip", "zstd", "blosc", "crc32c"):
        compressor = zarr.registry.get_codec_class(codec)()
    chunks = (2, *array.shape[1:])
    more = {"shards": tuple(2 * n for n in chunks)} if form == "shards" else {}
    store = zarr.create_array(
        path, shape=array.shape, chunks=chunks, dtype=array.dtype, zarr_format=version,
        compressors=compressor, **more,
    )  # fmt: skip
    store[...] = array


def _is_small(store: Path) -> bool:
    """Return True if a run on the store ends soon: arrays may be large without having chunks."""
    try:
        name = next(name for name in ("zarr.json", ".zarray") if (store / name).is_file())
        metadata = json.loads(_start_of(store / name))
        grid = metadata.get("chunk_grid", {})
        chunks = metadata.get("chunks") or grid.get("configuration", {}).get("chunk_shape") or []
        size, chunk = math.prod(map(int, metadata["shape"])), math.prod(map(int, chunks))
        return abs(size) <= MOST and abs(chunk) <= MOST_IN_CHUNK
    except (StopIteration, ValueError, KeyError, TypeError, AttributeError, OSError):
        return True


# --- The damage


def _damage(source: Source, folder: Path, store: Path) -> str:
    """Damage one name of the store, and return a description of the damage."""
    place, damage = source.choice(PLACES), source.choice(tuple(DAMAGES))
    path = _placed(store, place)
    if damage not in ("metadata", "bytes"):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif os.path.lexists(path):
            path.unlink()
    # an earlier step may have created the file already, or made the metadata invalid
    with contextlib.suppress(OSError, ValueError, TypeError, IndexError):
        DAMAGES[damage](source, path, store)
    return f"{place}-{damage}"


def _placed(store: Path, place: str) -> Path:
    """Return the path of a part of the store."""
    version = 3 if (store / "c").is_dir() else 2
    chunks = sorted(p for p in store.rglob("*") if not p.is_dir() and p.name[:1].isdigit())
    default = store / ("c/0/0" if version == 3 else "0.0")
    return {
        "chunk": chunks[0] if chunks else default,
        "other chunk": chunks[-1] if chunks else default,
        "metadata": store / ("zarr.json" if (store / "zarr.json").exists() else ".zarray"),
        "attributes": store / ".zattrs",
        "folder": store / ("c/0" if version == 3 else "0"),
        "beside": store / "notes.txt",
        "journal": store.with_name(JOURNAL),
    }[place]


def _start_of(path: Path) -> bytes:
    if not path.is_file():
        raise FileNotFoundError(path)
    with path.open("rb") as file:
        return file.read(1 << 16)


def _changed_metadata(source: Source, path: Path, store: Path) -> None:
    """Replace a value in the metadata."""
    file = _placed(store, "metadata")
    metadata = json.loads(_start_of(file))
    nodes: list[tuple[Any, Any]] = []

    def collect(node: Any) -> None:
        for key in list(node) if isinstance(node, dict) else range(len(node)):
            nodes.append((node, key))
            if isinstance(node[key], dict | list):
                collect(node[key])

    collect(metadata)
    node, key = source.choice(nodes)
    node[key] = source.choice(VALUES)
    file.write_text(json.dumps(metadata))


def _bytes_changed(source: Source, path: Path, store: Path) -> None:
    content = bytearray(_start_of(path))
    at = source.below(max(1, len(content)))
    content[at : at + source.below(9)] = source.take(source.below(9))
    path.write_bytes(content)


def _bomb(source: Source, path: Path, store: Path) -> None:
    block = struct.pack("<I", 2 | 128 << 13)[:3] + b"a"
    path.write_bytes((BOMB, b"\x28\xb5\x2f\xfd\0\x38" + block * 15_000)[source.below(2)])


def _sparse(source: Source, path: Path, store: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << (40, 20, 12, 30)[source.below(4)])


DAMAGES: dict[str, Damage] = {
    "missing": lambda source, path, store: None,
    "fifo": lambda source, path, store: os.mkfifo(path),
    "zeros": lambda source, path, store: path.symlink_to("/dev/zero"),
    "null": lambda source, path, store: path.symlink_to("/dev/null"),
    "folder": lambda source, path, store: path.mkdir(parents=True),
    "empty": lambda source, path, store: path.write_bytes(b"") and None,
    "bytes": _bytes_changed,
    "metadata": _changed_metadata,
    "drawn": lambda source, path, store: path.write_bytes(source.take(source.below(60))) and None,
    "bomb": _bomb,
    "sparse": _sparse,
    "link inside": lambda source, path, store: path.symlink_to(_placed(store, "other chunk")),
    "link outside": lambda source, path, store: path.symlink_to(store.with_name("elsewhere")),
    "link to itself": lambda source, path, store: path.symlink_to(path),
    "link to the store": lambda source, path, store: path.symlink_to(store),
    "link to nothing": lambda source, path, store: path.symlink_to(store / "nothing"),
}
