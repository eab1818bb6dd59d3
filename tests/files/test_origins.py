"""An output raises if it is the file of an input that is passed as an array object."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from files.storage import MISSING, bits
from gatherum import files
from gatherum.files.arguments.origins import files_of

pytestmark = pytest.mark.usefixtures("quick_sync")

TABLE = np.arange(12).reshape(4, 3)


def new_zarr(path: str) -> Any:
    zarr = pytest.importorskip("zarr", reason=MISSING.format("zarr"))
    array = zarr.create_array(path, shape=TABLE.shape, chunks=(2, 3), dtype=TABLE.dtype)
    array[...] = TABLE
    return array


def by_fsspec(path: str) -> Any:
    zarr = pytest.importorskip("zarr", reason=MISSING.format("zarr"))
    pytest.importorskip("fsspec", reason=MISSING.format("fsspec"))
    new_zarr(path)
    return zarr.open_array(zarr.storage.FsspecStore.from_url(f"file://{os.path.abspath(path)}"))


def by_wrapper(path: str) -> Any:
    zarr = pytest.importorskip("zarr", reason=MISSING.format("zarr"))
    return zarr.open_array(zarr.storage.LoggingStore(new_zarr(path).store, "ERROR"))


def memory_map(path: str) -> Any:
    np.save(path, TABLE)
    return np.load(path, mmap_mode="r")


def plain_view(path: str) -> Any:
    return np.asarray(memory_map(path))[:, ::-1]


def buffer(path: str) -> Any:
    return np.asarray(memoryview(memory_map(path)))


def dataset(path: str) -> Any:
    h5py = pytest.importorskip("h5py", reason=MISSING.format("h5py"))
    with h5py.File(path, "w") as file:
        file["x"] = TABLE
    return h5py.File(path, "r")["x"]


def virtual(path: str) -> Any:
    h5py = pytest.importorskip("h5py", reason=MISSING.format("h5py"))
    dataset(path).file.close()
    layout = h5py.VirtualLayout(TABLE.shape, TABLE.dtype)
    layout[...] = h5py.VirtualSource(path, "x", TABLE.shape)
    file = h5py.File("virtual.h5", "w")
    file.create_virtual_dataset("y", layout)
    return file["y"]


FORMS: dict[str, tuple[Callable[[str], Any], str]] = {
    "zarr": (new_zarr, "x.zarr"),
    "wrapper": (by_wrapper, "x.zarr"),
    "fsspec": (by_fsspec, "x.zarr"),
    "memmap": (memory_map, "x.npy"),
    "view": (plain_view, "x.npy"),
    "buffer": (buffer, "x.npy"),
    "h5py": (dataset, "x.h5"),
    "virtual": (virtual, "x.h5"),
}


def contents() -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in sorted(Path().rglob("*")) if p.is_file()}


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.frameworks
@pytest.mark.parametrize("file_format", FORMS)
def test_the_output_must_not_be_an_array_object_given(file_format: str) -> None:
    make, path = FORMS[file_format]
    array = make(path)
    os.symlink(path, link := f"link{os.path.splitext(path)[1]}")
    before = contents()
    absolute = os.path.abspath(path)
    for out in (path, absolute, link):
        for call, line in (
            (lambda out: files.gather_file(array, [1], out), "gather: {} table"),
            (lambda out: files.gather_file(TABLE, array, out, mode="wrap"), "gather: {} indices"),
            (lambda out: files.gather_nd_file(array, [[1]], out), "gather_nd: {} table"),
            (
                lambda out: files.scatter_slices_file(TABLE, range(4), array, out),
                "scatter_slices: {} updates",
            ),
            (
                lambda out: files.scatter_slices_file(array, [1], 0, out),
                "scatter_slices: {} table; with its path, in_place=True changes the table itself",
            ),
            (
                lambda out: files.reduce_file(array, [0, 1, 0, 1], out),
                "reduce_file: {} values",
            ),
        ):
            with pytest.raises(ValueError) as caught:
                call(out)
            same = f"the output {out} is the same file as the"
            assert str(caught.value) == line.format(same)
    assert contents() == before
    assert bits(files.gather_file(array, [1])) == bits(np.asarray(array[1:2]))


def test_an_output_above_or_below_the_array_given() -> None:
    zarr = pytest.importorskip("zarr", reason=MISSING.format("zarr"))
    group = zarr.create_group("g.zarr")
    array = group.create_array("a/x", shape=TABLE.shape, dtype=TABLE.dtype)
    array[...] = TABLE
    before = contents()
    for out in ("g.zarr", "g.zarr/a", "g.zarr/a/x", "g.zarr/a/x/y"):
        with pytest.raises(ValueError, match=f"the output {out} is the same file as the table"):
            files.gather_file(array, [1], out)
    assert contents() == before
    files.gather_file(array, [1], "g.zarr/a/y.zarr")  # next to it
    assert bits(zarr.open_array("g.zarr/a/y.zarr")[...]) == bits(TABLE[1:2])


@pytest.mark.frameworks
def test_arrays_that_are_not_local_files() -> None:
    """Arrays in memory, in stores in memory, at URLs and in closed files are not local files."""
    assert files_of(TABLE) == []
    assert files_of(memory_map("x.npy").copy()) == []
    closed = dataset("x.h5")
    closed.file.close()
    assert files_of(closed) == []
    zarr = pytest.importorskip("zarr", reason=MISSING.format("zarr"))
    assert files_of(zarr.create_array({}, shape=(1,), dtype="i8")) == []
    fsspec = pytest.importorskip("fsspec", reason=MISSING.format("fsspec"))
    store = zarr.storage.FsspecStore.from_url("memory://x.zarr")
    assert files_of(zarr.create_array(store, shape=(1,), dtype="i8")) == []
    fsspec.filesystem("memory").rm("/x.zarr", recursive=True)
    with zarr.storage.ZipStore("x.zip", mode="w") as store:
        array = zarr.create_array(store, shape=(1,), dtype="i8")
        assert files_of(array) == [os.path.realpath("x.zip")]


@pytest.mark.parametrize("file_format", ["zarr", "memmap"])
def test_a_table_that_is_changed_in_place(file_format: str) -> None:
    make, path = FORMS[file_format]
    array = make(path)
    before = contents()
    with pytest.raises(ValueError) as caught:
        files.scatter_slices_file(path, range(4), array, path, in_place=True)
    assert (
        str(caught.value) == f"scatter_slices: the updates are stored in the table's file, {path}"
    )
    assert contents() == before
    other = make(f"other{os.path.splitext(path)[1]}")
    files.scatter_slices_file(path, [1], other[:1], path, in_place=True)
    assert bits(files.gather_file(path, [1])) == bits(TABLE[:1])


@pytest.mark.parametrize(
    ("call", "line"),
    [
        (
            lambda: files.gather_file(TABLE, "i.npy", "o.npy", resume=True),
            "gather: a run can be resumed when all operands are files, the table is an array",
        ),
        (
            lambda: files.gather_file(np.ma.array([1, 2]), [0]),
            "gather: the table is a masked array, whose mask would be lost",
        ),
        (
            lambda: files.scatter_slices_file(TABLE, [0], np.ma.array([1, 2, 3])),
            "scatter_slices: the updates are a masked array, whose mask would be lost",
        ),
    ],
)
def test_the_verb_goes_with_the_operand(call: Callable[[], Any], line: str) -> None:
    np.save("i.npy", np.array([0]))
    with pytest.raises((TypeError, ValueError)) as caught:
        call()
    assert str(caught.value) == line


def test_an_array_object_runs_the_codecs_of_its_package() -> None:
    """As docs/files.md states, only paths are read within the bounds of this package."""
    zarr = pytest.importorskip("zarr", reason=MISSING.format("zarr"))
    numcodecs = pytest.importorskip("numcodecs", reason=MISSING.format("numcodecs"))

    class Mine(numcodecs.Delta):  # type: ignore[misc,name-defined]  # it is not typed
        codec_id = "mine"

    numcodecs.register_codec(Mine)
    filters = [Mine(dtype="i8")]
    file_format = {"zarr_format": 2, "filters": filters, "compressors": None}
    array = zarr.create_array("x.zarr", shape=(5,), chunks=(2,), dtype="i8", **file_format)
    array[...] = np.arange(5)
    assert files.gather_file(array, [3, 1]).tolist() == [3, 1]
    with pytest.raises(ValueError, match="the codec 'mine' is not supported"):
        files.gather_file("x.zarr", [3, 1])
    del numcodecs.registry.codec_registry["mine"]
