"""Writes arrays to files of every format, and reads them with the formats' own packages."""

import errno
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gatherum import files
from gatherum.files.strategies import file_gather

__all__ = [
    "FORMATS", "bits", "described", "fail_at", "fail_notes", "get", "keeps_notes", "leftovers",
    "npy_bytes", "put", "refused",
]  # fmt: skip

FORMATS = (
    "npy", "fortran", "big-endian", "npz", "deflated", "safetensors", "zarr2", "zarr3", "shards",
    "hdf5", "hdf5 chunks",
)  # fmt: skip
MISSING = "install {0} to test {0} files"
# Calls with a descriptor raise errors without a file name. Calls with a path name the first path.
OF_DESCRIPTORS = ("pread", "preadv", "pwrite", "fsync", "ftruncate")
OF_PATHS = ("rename", "replace", "mkdir", "unlink", "rmdir")


def put(folder: Path, name: str, array: NDArray[Any], file_format: str = "npy") -> str:
    """Write an array, and return the path under which gatherum reads it."""
    path = os.fspath(folder / name)
    if file_format == "npy":
        np.save(path + ".npy", np.array(array, order="C"))
    elif file_format == "fortran":
        np.save(path + ".npy", np.array(array, order="F"))
    elif file_format == "big-endian":
        np.save(path + ".npy", array.astype(array.dtype.newbyteorder(">")))
    elif file_format in ("npz", "deflated"):
        save = np.savez if file_format == "npz" else np.savez_compressed
        save(path + ".npz", first=np.zeros(3), wanted=array)
        return path + ".npz:wanted"
    elif file_format == "safetensors":
        return put_tensor(path + ".safetensors", array)
    elif file_format in ("hdf5", "hdf5 chunks"):
        return put_dataset(path + ".h5", array, chunked=file_format != "hdf5")
    else:
        return put_zarr(path + ".zarr", array, file_format)
    return path + ".npy"


def put_tensor(path: str, array: NDArray[Any]) -> str:
    """Write a safetensors file with the array between two other arrays."""
    package = pytest.importorskip("safetensors.numpy", reason=MISSING.format("safetensors"))
    around = np.arange(5, dtype=np.float32)
    package.save_file({"a": around, "wanted": np.array(array, order="C"), "z": around}, path)
    return path + ":wanted"


def put_dataset(path: str, array: NDArray[Any], *, chunked: bool) -> str:
    """Write an HDF5 file with the array between two other arrays, contiguous or in chunks."""
    package = pytest.importorskip("h5py", reason=MISSING.format("h5py"))
    call: dict[str, Any] = {}
    if chunked and array.size and array.ndim:
        call = {"chunks": tuple(max(1, n // 6) for n in array.shape), "compression": "gzip",
                "shuffle": True, "fletcher32": array.ndim == 2}  # fmt: skip
    with package.File(path, "w") as file:
        file["a"] = np.arange(5)
        file.create_dataset("group/wanted", data=array, **call)
        file["z"] = np.arange(5)
    return path + ":group/wanted"


def put_zarr(
    path: str,
    array: NDArray[Any],
    file_format: str = "zarr3",
    chunks: tuple[int, ...] | None = None,
) -> str:
    """Write a Zarr array with a few chunks per dimension."""
    zarr = pytest.importorskip("zarr", reason=MISSING.format("zarr"))
    parts = 6 if array.ndim < 3 else 4 if file_format == "shards" else 2
    chunks = chunks or tuple(max(1, n // parts) for n in array.shape)
    extra = {"shards": tuple(2 * c for c in chunks)} if file_format == "shards" and chunks else {}
    # Without this, older versions lose the sign of -0.0.
    with zarr.config.set({"array.write_empty_chunks": True}):
        target = zarr.create_array(
            path,
            shape=array.shape,
            chunks=chunks,
            dtype=array.dtype,
            zarr_format=2 if file_format == "zarr2" else 3,
            overwrite=True,
            **extra,
        )
        if array.size:
            target[...] = array
    return path


def get(path: str) -> NDArray[Any]:
    """Read an array with the package of its format."""
    if path.endswith(".npy"):
        return np.load(path)
    if ".safetensors:" in path:
        package = pytest.importorskip("safetensors.numpy", reason=MISSING.format("safetensors"))
        file, name = path.split(":")
        tensor: NDArray[Any] = package.load_file(file)[name]
        return tensor
    if ".h5:" in path:
        package = pytest.importorskip("h5py", reason=MISSING.format("h5py"))
        name, member = path.split(":")
        with package.File(name, "r") as opened:
            dataset: NDArray[Any] = opened[member][...]
        return dataset
    zarr = pytest.importorskip("zarr", reason=MISSING.format("zarr"))
    return np.asarray(zarr.open_array(path, mode="r")[...])


def bits(array: NDArray[Any]) -> tuple[tuple[int, ...], str, bytes]:
    """Return shape, dtype and all bits of an array, for comparisons."""
    return array.shape, str(array.dtype), array.tobytes()


def leftovers(folder: Path) -> list[str]:
    """Return the names of files that a finished run must not leave behind."""
    return [name for name in os.listdir(folder) if "partial" in name or "gatherum" in name]


def refused(folder: Path, table: str, error_type: type[Exception] = ValueError) -> str:
    """Gather from a table that must raise. Return the error's line."""
    indices, out = put(folder, "i", np.array([0])), folder / "o.npy"
    before = set(os.listdir(folder))
    with pytest.raises(error_type) as caught:
        files.gather_file(table, indices, out)
    assert set(os.listdir(folder)) == before
    line = str(caught.value)
    assert "\n" not in line
    return line.replace(str(folder) + "/", "")


def npy_bytes(header: str, data: bytes = bytes(64), version: int = 1) -> bytes:
    """Return a .npy file with the given header."""
    body = header.encode() + b"\n"
    size = struct.pack("<H" if version == 1 else "<I", len(body))
    return b"\x93NUMPY" + bytes([version, 0]) + size + body + data


def described(shape: str = "(2, 2)", descr: str = "'<f4'", order: str = "False") -> str:
    """Return the header of a .npy file."""
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}"


def keeps_notes(folder: Path) -> bool:
    """Return True if the file system has attributes, for the notes of completed in-place runs."""
    try:
        os.setxattr(folder, "user.trial", b"")
    except (AttributeError, OSError):
        return False
    os.removexattr(folder, "user.trial")
    return True


def choose_pass(monkeypatch: pytest.MonkeyPatch, passes: bool) -> None:
    """Let gathers to files pass over the table whenever they can, or never."""
    monkeypatch.setattr(file_gather, "_is_cheaper", lambda *_: passes)
    if passes:
        monkeypatch.setattr(file_gather, "_is_settled", lambda *_: False)


def fail_notes(monkeypatch: pytest.MonkeyPatch, count: int, number: int) -> None:
    """Let the `count`-th note and all later ones fail with the given error number."""
    calls, setxattr = [], getattr(os, "setxattr", lambda *_: None)

    def failing(path: str, *arguments: Any) -> None:
        calls.append(path)
        if len(calls) >= count:
            raise OSError(number, os.strerror(number), path)
        setxattr(path, *arguments)

    monkeypatch.setattr(os, "setxattr", failing, raising=False)


def fail_at(monkeypatch: pytest.MonkeyPatch, at: int) -> list[str]:
    """Let the `at`-th call that moves data or changes the disk fail. Return the calls made."""
    calls: list[str] = []

    def failing(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def run(first: Any, *arguments: Any, **more: Any) -> Any:
            calls.append(name)
            if len(calls) == at:
                path = (first,) if name in OF_PATHS else ()
                raise OSError(errno.EIO, os.strerror(errno.EIO), *path)
            return None if name == "fsync" else call(first, *arguments, **more)

        return run

    for name in (*OF_DESCRIPTORS, *OF_PATHS):
        if hasattr(os, name):
            monkeypatch.setattr(os, name, failing(name, getattr(os, name)))
    if fcntl := pytest.importorskip("fcntl", reason="locks of POSIX systems"):
        monkeypatch.setattr(fcntl, "flock", failing("flock", fcntl.flock))
    return calls
