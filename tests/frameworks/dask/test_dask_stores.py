"""Files as sources, and Zarr arrays changed in place."""

import errno
import os
import subprocess
import sys
from itertools import count
from pathlib import Path

import numpy as np
import pytest

import gatherum

da = pytest.importorskip("dask.array", reason="install Dask: pip install 'dask[array]'")
zarr = pytest.importorskip("zarr", reason="install zarr")
import dask  # noqa: E402

import gatherum.dask  # noqa: E402
from files.storage import fail_at, fail_notes  # noqa: E402
from gatherum.dask import store_changes  # noqa: E402
from gatherum.files.formats.zarr.arrays import ZarrArray  # noqa: E402

DATA = np.arange(143, dtype=np.int32).reshape(13, 11)
INDICES = np.array([12, 0, 12, 5, -1, 5, 5])
UPDATES = np.arange(77, dtype=np.int32).reshape(7, 11)
EXPECTED = gatherum.scatter_slices(DATA, INDICES, UPDATES, reduction="add")


def store_at(path, data=DATA, **more):
    stored = zarr.create_array(path, shape=data.shape, dtype=data.dtype, chunks=(4, 5), **more)
    stored[...] = data
    return stored


@pytest.fixture
def stored(tmp_path):
    return store_at(tmp_path / "a.zarr")


def files(folder):
    names = [path for path in Path(folder).rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in names}


@pytest.mark.parametrize("format_name", ["npy", "fortran", "npz", "safetensors", "zarr", "zarr2"])
def test_every_format_is_a_source(format_name, tmp_path):
    path = tmp_path / f"x.{format_name}"
    if format_name == "npy":
        np.save(path, DATA)
    elif format_name == "fortran":
        path = tmp_path / "f.npy"
        np.save(path, np.asfortranarray(DATA))
    elif format_name == "npz":
        np.savez(path, one=DATA, two=DATA[:3])
        path = f"{path}:one"
    elif format_name == "safetensors":
        numpy = pytest.importorskip("safetensors.numpy", reason="install safetensors")
        numpy.save_file({"w": DATA}, path)
        path = f"{path}:w"
    else:
        path = tmp_path / f"{format_name}.zarr"
        store_at(path, zarr_format=2 if format_name == "zarr2" else 3)
    for chunks in ("auto", 3, ((13, 0), (5, 6))):
        x = gatherum.dask.from_file(path, chunks=chunks)
        assert (x.shape, x.dtype) == (DATA.shape, DATA.dtype)
        np.testing.assert_array_equal(x.compute(), DATA)
        for part in (np.s_[2:9:3], np.s_[::-2, 4], np.s_[-1, 3:3], np.s_[11:2:-4, ::5]):
            np.testing.assert_array_equal(x[part].compute(), DATA[part])
        result = gatherum.gather(x, da.from_array(INDICES, chunks=2))
        np.testing.assert_array_equal(result.compute(), DATA[INDICES])
    assert gatherum.dask.from_file(path).name == gatherum.dask.from_file(path).name


def test_a_file_that_changed_is_not_read(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, DATA)
    x = gatherum.dask.from_file(path)
    np.save(path, DATA[:3])
    with pytest.raises(OSError, match=r"x.npy: changed since it was opened"):
        x.compute()
    with path.open("r+b") as file:
        file.truncate(40)
    with pytest.raises(OSError, match=r"x.npy: changed since it was opened"):
        x.compute()


def test_a_compressed_member_is_refused(tmp_path):
    path = tmp_path / "x.npz"
    np.savez_compressed(path, one=DATA)
    with pytest.raises(ValueError) as caught:
        gatherum.dask.from_file(f"{path}:one")
    assert str(caught.value) == (
        f"from_file: {path}:one is compressed, so that no part of it can be read alone; write it "
        "with np.savez or np.save"
    )


@pytest.mark.parametrize("op", ["scatter_slices", "scatter_nd", "scatter_elements"])
def test_in_place(op, tmp_path, stored):
    indices, updates = INDICES, UPDATES
    if op == "scatter_nd":
        indices = INDICES[:, None]
    if op == "scatter_elements":
        indices = np.repeat(INDICES[:, None], 11, axis=1)
    run = getattr(gatherum.dask, f"{op}_into")
    lazy = da.from_array(indices, chunks=2), da.from_array(updates, chunks=(3, 4))
    assert run(stored, *lazy, reduction="add") is None
    np.testing.assert_array_equal(stored[...], EXPECTED)
    again = store_at(tmp_path / "b.zarr")
    run(str(tmp_path / "b.zarr"), indices, updates, reduction="add")
    np.testing.assert_array_equal(again[...], EXPECTED)
    assert sorted(os.listdir(tmp_path)) == ["a.zarr", "b.zarr"]


def test_only_chunks_that_change_are_written_each_once(tmp_path, stored, monkeypatch):
    boxes = []
    write = ZarrArray.write_box
    monkeypatch.setattr(
        ZarrArray,
        "write_box",
        lambda self, box, values: boxes.append(box) or write(self, box, values),
    )
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "a.zarr").rglob("c/*/*")}
    gatherum.dask.scatter_nd_into(stored, [[0, 0], [1, 1], [0, 0]], 7)
    assert boxes == [(slice(0, 4), slice(0, 5))]
    after = {path: path.stat().st_mtime_ns for path in (tmp_path / "a.zarr").rglob("c/*/*")}
    assert before.keys() == after.keys()
    changed = [path for path in before if before[path] != after[path]]
    assert [str(path)[-5:] for path in changed] == ["c/0/0"]


def test_shards_are_written_whole(tmp_path):
    stored = zarr.create_array(
        tmp_path / "s.zarr", shape=DATA.shape, dtype=DATA.dtype, chunks=(2, 11), shards=(6, 11)
    )
    stored[...] = DATA
    gatherum.dask.scatter_slices_into(stored, INDICES, UPDATES, reduction="add")
    np.testing.assert_array_equal(stored[...], EXPECTED)


def test_an_invalid_index_leaves_the_array_as_it_was(tmp_path, stored):
    before = files(tmp_path)
    with pytest.raises(IndexError, match=r"^scatter_slices: index 13 .* \(indices\[1\]\)$"):
        gatherum.dask.scatter_slices_into(stored, [0, 13], UPDATES[:2])
    with pytest.raises(ValueError, match="must have shape"):
        gatherum.dask.scatter_slices_into(stored, [0], UPDATES)
    assert files(tmp_path) == before


def test_invalid_stores_raise(tmp_path):
    for store in (DATA, da.from_array(DATA), zarr.array(DATA), 1):
        with pytest.raises(TypeError, match=r"^scatter_nd_into: `store` must be a Zarr array in a"):
            gatherum.dask.scatter_nd_into(store, [[0]], 1)
    with pytest.raises(FileNotFoundError):
        gatherum.dask.scatter_nd_into(tmp_path / "none.zarr", [[0]], 1)


class Killed(BaseException):
    pass


@pytest.mark.parametrize("step", ["stage", "seal", "lay", "mark", "remove_files"])
def test_a_run_that_is_killed_and_repeated_gives_the_same(step, tmp_path, stored, monkeypatch):
    """Stop before each step, then resume, and run once more."""

    def die(*_, **__):
        raise Killed

    with monkeypatch.context() as patch:
        if step in ("lay", "mark"):
            patch.setattr(store_changes, {"lay": "lay_chunks", "mark": "mark"}[step], die)
        elif step == "stage":
            patch.setattr(ZarrArray, "write_box", die)
        else:
            patch.setattr(store_changes.Build, step, die)
        with pytest.raises(Killed):
            gatherum.dask.scatter_slices_into(stored, INDICES, UPDATES, reduction="add")
    if step in ("stage", "seal"):
        np.testing.assert_array_equal(stored[...], DATA)
    elif step != "lay":
        with pytest.raises(ValueError, match="complete it with resume=True first"):
            gatherum.dask.scatter_slices_into(stored, INDICES, UPDATES, reduction="add")
    for _ in range(2):
        gatherum.dask.scatter_slices_into(stored, INDICES, UPDATES, reduction="add", resume=True)
        np.testing.assert_array_equal(stored[...], EXPECTED)
    assert os.listdir(tmp_path) == ["a.zarr"]


def test_a_process_that_is_killed(tmp_path, stored):
    """A real SIGKILL while chunks are staged: the array is unchanged, and a repeat completes."""
    code = f"""
import os, signal, numpy as np, gatherum, gatherum.dask
from gatherum.files.formats.zarr.arrays import ZarrArray
write, done = ZarrArray.write_box, []
def kill(self, box, values):
    write(self, box, values)
    done.append(box)
    if len(done) == 2:
        os.kill(os.getpid(), signal.SIGKILL)
ZarrArray.write_box = kill
gatherum.dask.scatter_slices_into({str(tmp_path / "a.zarr")!r}, np.array({INDICES.tolist()}),
    np.array({UPDATES.tolist()}, np.int32), reduction="add")
"""
    path = os.pathsep.join(sys.path)
    done = subprocess.run(
        [sys.executable, "-c", code], check=False, timeout=120,
        env=os.environ | {"PYTHONPATH": path, "DASK_SCHEDULER": "synchronous"},
    )  # fmt: skip
    assert done.returncode == -9
    np.testing.assert_array_equal(stored[...], DATA)
    gatherum.dask.scatter_slices_into(stored, INDICES, UPDATES, reduction="add")
    np.testing.assert_array_equal(stored[...], EXPECTED)
    assert os.listdir(tmp_path) == ["a.zarr"]


def test_no_update_is_applied_twice_where_no_note_is_kept(tmp_path, stored, monkeypatch):
    """Without the note of a completed run: an error before anything is written, or no resume."""
    call = stored, INDICES, UPDATES
    before = files(tmp_path)
    with monkeypatch.context() as patch:
        fail_notes(patch, 1, errno.ENOSPC)
        with pytest.raises(OSError, match="cannot keep a note of the run in an ext") as caught:
            gatherum.dask.scatter_slices_into(*call, reduction="add")
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, str(tmp_path / "a.zarr"))
    assert files(tmp_path) == before
    fail_notes(monkeypatch, 1, errno.ENOTSUP)
    gatherum.dask.scatter_slices_into(*call, reduction="add")
    with pytest.raises(ValueError, match=r"^scatter_slices: cannot resume in place, .* keeps no"):
        gatherum.dask.scatter_slices_into(*call, reduction="add", resume=True)
    np.testing.assert_array_equal(stored[...], EXPECTED)
    assert os.listdir(tmp_path) == ["a.zarr"]


@pytest.mark.slow
def test_an_error_at_any_step_leaves_nothing_or_is_completed(tmp_path, monkeypatch):
    """Let every second call that moves data or changes the disk fail, each in a separate run."""
    for at in count(1, 2):
        folder = tmp_path / str(at)
        stored = store_at(folder / "a.zarr")
        before = files(folder)
        with monkeypatch.context() as patch, dask.config.set(scheduler="synchronous"):
            calls, failed = fail_at(patch, at), False
            try:
                gatherum.dask.scatter_slices_into(stored, INDICES, UPDATES, reduction="add")
            except OSError as error:
                assert str(folder) in str(error), calls
                failed = True
        if (journal := folder / "a.zarr.partial.journal").exists():
            assert journal.read_text().endswith('{"ready": true}\n'), calls
            gatherum.dask.scatter_slices_into(
                stored, INDICES, UPDATES, reduction="add", resume=True
            )
        elif failed:
            assert files(folder) == before, calls
            continue
        # Every step succeeded, or the failing one made a folder that existed.
        np.testing.assert_array_equal(stored[...], EXPECTED)
        assert os.listdir(folder) == ["a.zarr"], calls
        if len(calls) < at:
            break
    assert at > 50  # many steps were tried
