"""Calls on files: accepted arguments, errors, reports and memory."""

import os
import re
import shutil
import subprocess
import sys
import threading
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gatherum
from files.storage import get, leftovers, put, put_tensor, put_zarr
from gatherum import files
from gatherum.files.formats import locate
from gatherum.files.resources.disk import DiskFile
from gatherum.files.resources.resources import Budget
from samples import every

pytestmark = pytest.mark.slow


def test_index_errors_are_those_of_the_operators(tmp_path: Path) -> None:
    table = np.zeros((6, 4, 5), np.float32)
    cases: list[tuple[str, tuple[int, ...], dict[str, Any]]] = [
        ("gather", (3, 5), {"axis": 1}),
        ("gather", (), {"axis": -1}),
        ("gather_elements", (6, 4, 5), {"axis": 2}),
        ("gather_nd", (6, 7, 2), {"batch_dims": 1}),
    ]
    for op, shape, call in cases:
        indices = np.zeros(shape, np.int16)
        flat = indices.reshape(-1)
        flat[flat.size * 2 // 3] = -100
        flat[-1:] = 99
        paths = put(tmp_path, "t", table), put(tmp_path, "i", indices)
        with pytest.raises(IndexError) as expected:
            getattr(gatherum, op)(table, indices, **call)
        with pytest.raises(IndexError) as caught:
            getattr(files, op + "_file")(*paths, tmp_path / "o.npy", memory="64KiB", **call)
        assert str(caught.value) == str(expected.value)
        assert sorted(os.listdir(tmp_path)) == ["i.npy", "t.npy"]


@pytest.mark.parametrize("mode", ["clip", "wrap"])
def test_nothing_can_be_clipped_into_an_empty_dimension(tmp_path: Path, mode: str) -> None:
    paths = put(tmp_path, "t", np.zeros((0, 3))), put(tmp_path, "i", np.array([4]))
    with pytest.raises(IndexError) as expected:
        gatherum.gather(np.zeros((0, 3)), np.array([4]), mode=mode)
    with pytest.raises(IndexError) as caught:
        files.gather_file(*paths, tmp_path / "o.npy", mode=mode)
    assert str(caught.value) == str(expected.value)


def test_indices_are_checked_also_when_the_result_is_empty(tmp_path: Path) -> None:
    for shape, axis in (((0, 3), 1), ((3, 0), 0)):
        paths = put(tmp_path, "t", np.zeros(shape)), put(tmp_path, "i", np.array([0, 3]))
        with pytest.raises(IndexError, match="index 3 is out of bounds") as caught:
            files.gather_file(*paths, tmp_path / "o.npy", axis)
        assert f"axis {axis} of size 3 (indices[1])" in str(caught.value)


@pytest.mark.parametrize(
    ("call", "error_type", "line"),
    [
        ({"axis": 2}, ValueError, "gather: `axis` must be in [-2, 2), got 2"),
        ({"axis": 0.5}, TypeError, "gather: `axis` must be an integer, got 0.5"),
        (
            {"mode": "none"},
            ValueError,
            "gather: `mode` must be one of 'raise', 'clip', 'wrap', 'fill', 'drop', got 'none'",
        ),
        (
            {"mode": "fill", "fill_value": 0.1},
            ValueError,
            "gather: `fill_value` must be an integer where `data` is int64, got 0.1",
        ),
        (
            {"memory": "1KiB"},
            ValueError,
            "gather: `memory` must be at least 64 KiB, got 1024 bytes",
        ),
        (
            {"memory": "much"},
            ValueError,
            "gather: `memory` must be a size such as '512MiB', got 'much'",
        ),
        ({"memory": 2**60}, ValueError, f"gather: `memory` must be less than 1 EiB, got {2**60}"),
        (
            {"spill_dir": "/nowhere"},
            FileNotFoundError,
            "gather: `spill_dir` must be a directory that exists, got /nowhere",
        ),
    ],
)
def test_attributes(
    tmp_path: Path, call: dict[str, Any], error_type: type[Exception], line: str
) -> None:
    table = put(tmp_path, "t", np.zeros((4, 3), int))
    for indices in ([0], []):
        where = put(tmp_path, "i", np.array(indices, int))
        for out in ({"out": tmp_path / "o.npy"}, {}):
            with pytest.raises(error_type) as caught:
                files.gather_file(table, where, **out, **call)
            assert str(caught.value) == line
            assert sorted(os.listdir(tmp_path)) == ["i.npy", "t.npy"]


@pytest.mark.parametrize("dtype", ["float64", "bool", "m8[s]"])
def test_indices_of_other_dtypes(tmp_path: Path, dtype: str) -> None:
    paths = put(tmp_path, "t", np.zeros(4)), put(tmp_path, "i", np.zeros(2, dtype))
    with pytest.raises(TypeError, match="gather: `indices` must have an integer dtype"):
        files.gather_file(*paths, tmp_path / "o.npy")


def test_the_output_must_not_be_an_input(tmp_path: Path) -> None:
    table = put(tmp_path, "t", np.zeros((4, 3)))
    indices = put(tmp_path, "i", np.array([[0]]))
    updates = put(tmp_path, "u", np.zeros((1, 3)))
    (tmp_path / "link.npy").symlink_to(table)
    for out in (table, str(tmp_path / "link.npy")):
        with pytest.raises(ValueError) as caught:
            files.gather_nd_file(table, indices, out)
        assert str(caught.value) == f"gather_nd: the output {out} is the same file as the table"
        with pytest.raises(ValueError, match="in_place=True changes the table itself"):
            files.scatter_nd_file(table, indices, updates, out)
    with pytest.raises(ValueError, match="is the same file as the indices"):
        files.gather_nd_file(table, indices, indices)
    with pytest.raises(ValueError, match="in place the output is the table"):
        files.scatter_nd_file(table, indices, updates, tmp_path / "o.npy", in_place=True)


def test_an_output_that_would_destroy_something(tmp_path: Path) -> None:
    paths = put(tmp_path, "t", np.zeros((4, 3), np.float32)), put(tmp_path, "i", np.array([0]))
    several = put_tensor(str(tmp_path / "m.safetensors"), np.zeros(3, np.float32))
    group = tmp_path / "g.zarr"
    put_zarr(str(group / "inner"), np.zeros(3))
    home = tmp_path / "home"
    home.mkdir()
    (home / "letter").write_text("dear")
    for out, line in (
        (several, "holds other tensors ('a', 'z'), which a new file would lose"),
        (str(tmp_path / "m.safetensors"), "name the tensor to write after a colon"),
        (str(group), "would replace a directory"),
        (f"{home}/.", f"the output {home}/. would replace a directory: {home}: not a Zarr array ("),
        (str(tmp_path / "x.npz:a"), "cannot be written, .npz files are read only"),
    ):
        with pytest.raises(ValueError) as caught:
            files.gather_file(*paths, out)
        assert line in str(caught.value)
    with pytest.raises(FileNotFoundError):
        files.gather_file(*paths, tmp_path / "no" / "o.npy")
    assert (home / "letter").read_text() == "dear"
    assert leftovers(tmp_path) == []


def test_a_new_output_keeps_the_mode_of_the_old_one(tmp_path: Path) -> None:
    paths = put(tmp_path, "t", np.arange(4)), put(tmp_path, "i", np.array([2]))
    out = tmp_path / "o.npy"
    out.write_bytes(b"old")
    out.chmod(0o600)
    (tmp_path / "link.npy").symlink_to(out)
    files.gather_file(*paths, tmp_path / "link.npy")
    assert (tmp_path / "link.npy").is_symlink()
    assert out.stat().st_mode & 0o777 == 0o600
    assert np.load(out).tolist() == [2]


def test_statistics_and_progress(tmp_path: Path) -> None:
    table = np.zeros((4096, 256), np.float32)
    paths = put(tmp_path, "t", table), put(tmp_path, "i", np.arange(0, 4096, 64))
    reports: list[tuple[int, int]] = []
    stats = files.gather_file(
        *paths, tmp_path / "o.npy", progress=lambda done, expected: reports.append((done, expected))
    )
    assert reports[-1] == (64 * 1024, 64 * 1024)
    assert all(done <= expected for done, expected in reports)
    assert stats.rows == 64
    assert 64 * 1024 <= stats.bytes_read <= 64 * 1024 + 5000  # headers and indices
    assert stats.bytes_written == 64 * 1024 + 128
    assert stats.chunks_touched == 64
    closing = str(stats).split(", ")
    assert closing[0] == "64 rows"
    assert "chunks" not in str(stats)
    assert closing[4].startswith("peak memory ")


def test_chunks_are_counted_where_there_are_some(tmp_path: Path) -> None:
    table = put_zarr(str(tmp_path / "t.zarr"), np.arange(12.0).reshape(6, 2))
    indices = put(tmp_path, "i", np.array([5]))
    assert ", 1 chunk touched, " in str(files.gather_file(table, indices, tmp_path / "o.npy"))


@pytest.mark.parametrize("in_place", [False, True])
def test_every_table_of_a_zarr_group(tmp_path: Path, in_place: bool) -> None:
    path = put_zarr(str(tmp_path / "g.zarr" / "inner"), np.arange(12.0).reshape(6, 2))
    other = put_zarr(str(tmp_path / "g.zarr" / "other"), np.arange(3.0))
    before = sorted((p.name, p.read_bytes()) for p in Path(other).rglob("*") if p.is_file())
    indices, updates = put(tmp_path, "i", np.array([[5]])), put(tmp_path, "u", np.ones((1, 2)))
    out = path if in_place else str(tmp_path / "g.zarr" / "result")
    files.scatter_nd_file(path, indices, updates, out, in_place=in_place)
    assert leftovers(tmp_path / "g.zarr") == []
    zarr = pytest.importorskip("zarr", reason="install zarr")
    assert zarr.open_array(out, mode="r")[...].tolist()[4:] == [[8.0, 9.0], [1.0, 1.0]]
    after = sorted((p.name, p.read_bytes()) for p in Path(other).rglob("*") if p.is_file())
    assert after == before


@pytest.mark.parametrize(
    ("text", "total"),
    [("64KiB", 65536), ("3 GiB", 3 << 30), ("2GB", 2 * 10**9), ("70000", 70_000), (70000, 70000)],
)
def test_sizes(text: str | int, total: int) -> None:
    assert Budget.parse("gather", text).total == total


@pytest.mark.parametrize("text", ["1_0GiB", "\u0661GiB", "\u00a01GiB", "1 000MiB", "+1GiB", "1_0"])
def test_texts_that_are_not_sizes_raise(text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f"a size such as '512MiB', got {text!r}")):
        Budget.parse("gather", text)


def test_locations(tmp_path: Path) -> None:
    there = locate("a:b.safetensors:x.npz:y")
    assert there.format.name == "safetensors"
    assert (there.file, there.member) == ("a:b.safetensors", "x.npz:y")
    (tmp_path / "t.npz:odd.npy").write_bytes(b"")
    assert locate(tmp_path / "t.npz:odd.npy").format.name == "npy"
    assert locate("x.zarr/array").format.name == "zarr"
    with pytest.raises(TypeError):
        locate(b"x.npy")  # type: ignore[arg-type]


LARGE = """
import sys
from gatherum import files
stats = getattr(files, sys.argv[1])(*sys.argv[2:], memory="64MiB")
print(stats.peak_memory)
"""


@pytest.mark.parametrize("op", every(2, ["gather_file", "gather_elements_file", "scatter_nd_file"]))
def test_the_resident_set_stays_within_twice_the_budget(tmp_path: Path, op: str) -> None:
    rng = np.random.default_rng(0)
    table = put(tmp_path, "t", np.zeros((400_000, 128), np.float32))  # 200 MiB
    operands = [table]
    if op == "gather_elements_file":
        operands.append(put(tmp_path, "i", rng.integers(0, 400_000, (60_000, 128))))
    elif op == "gather_file":
        operands.append(put(tmp_path, "i", rng.integers(0, 400_000, 600_000)))
    else:
        operands.append(put(tmp_path, "i", rng.integers(0, 400_000, (500_000, 1))))
        operands.append(put(tmp_path, "u", np.ones((500_000, 128), np.float32)))
    path = str(Path(gatherum.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", LARGE, op, *operands, str(tmp_path / "o.npy")],
        capture_output=True, text=True, check=True, env=os.environ | {"PYTHONPATH": path},
    )  # fmt: skip
    assert int(done.stdout) <= 2 * (64 << 20) + 150_000_000
    shutil.rmtree(tmp_path)


@pytest.mark.parametrize(
    ("reduction", "shape"), every(3, product(["add", "mean"], [(1 << 15, 1 << 10), (1, 1 << 25)]))
)
def test_accumulators_of_a_large_chunk_stay_within_memory(
    tmp_path: Path, shape: tuple[int, int], reduction: str
) -> None:
    # the chunk is half of the budget, and its accumulators and counts would exceed the budget
    requests = 40_000 if shape[0] > 1 else 5
    rows = np.random.default_rng(0).integers(0, shape[0], (requests, 1))
    table = put_zarr(str(tmp_path / "t.zarr"), np.ones(shape, np.int8), chunks=shape)
    operands = [table, put(tmp_path, "i", rows), put(tmp_path, "u", np.array([3], np.int8))]
    path = str(Path(gatherum.__file__).parents[1])
    run = LARGE.replace('"64MiB"', f'"64MiB", reduction="{reduction}", include_self=False')
    done = subprocess.run(
        [sys.executable, "-c", run, "scatter_nd_file", *operands, str(tmp_path / "o.zarr")],
        capture_output=True, text=True, check=True, env=os.environ | {"PYTHONPATH": path},
    )  # fmt: skip
    assert int(done.stdout) <= 2 * (64 << 20) + 150_000_000
    taken = np.bincount(rows[:, 0], minlength=shape[0])
    folded = np.where(taken, 3 * taken if reduction == "add" else 3, 1).astype(np.int8)
    assert np.array_equal(get(str(tmp_path / "o.zarr")), np.broadcast_to(folded[:, None], shape))
    shutil.rmtree(tmp_path)


def test_indices_larger_than_memory(tmp_path: Path) -> None:
    table = put(tmp_path, "t", np.arange(250, dtype=np.uint8))
    places = np.zeros(25_000_000, np.int64)  # 200 MB
    places[-1] = 3
    operands = [table, put(tmp_path, "i", places), str(tmp_path / "o.npy")]
    path = str(Path(gatherum.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", LARGE.replace("64MiB", "8MiB"), "gather_file", *operands],
        capture_output=True, text=True, check=True, env=os.environ | {"PYTHONPATH": path},
    )  # fmt: skip
    assert int(done.stdout) <= 2 * (8 << 20) + 150_000_000 < places.nbytes
    assert np.array_equal(np.load(operands[2]), places)
    shutil.rmtree(tmp_path)


def test_an_output_that_fits_in_memory_is_written_and_synced_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(3)
    table = rng.random((8192, 128), np.float32)
    rows = rng.integers(0, len(table), 4000)
    np.save(tmp_path / "table.npy", table)
    np.save(tmp_path / "rows.npy", rows)
    synced: list[str] = []
    monkeypatch.setattr(DiskFile, "sync", lambda file: synced.append(file.path))
    out = tmp_path / "out.npy"
    written: list[int] = []
    write = DiskFile.write_from

    def noted(file: DiskFile, at: int, data: memoryview | bytes) -> None:
        written.append(len(data))
        write(file, at, data)

    monkeypatch.setattr(DiskFile, "write_from", noted)
    stats = files.gather_file(tmp_path / "table.npy", tmp_path / "rows.npy", out, memory="3MiB")
    assert np.load(out).tobytes() == table[rows].tobytes()
    assert stats.bytes_written == out.stat().st_size
    assert written == [128, 4000 * 512]
    assert synced == [f"{out}.partial"]


def test_one_window_starts_no_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = np.arange(40000, dtype=np.int32).reshape(10000, 4)
    path = put(tmp_path, "table", table)
    started: list[threading.Thread] = []
    start = threading.Thread.start

    def noted(thread: threading.Thread) -> None:
        started.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", noted)
    for rows, threads in ((np.array([7, -1, 7]), 0), (np.arange(10000)[::-1].copy(), 2)):
        files.gather_file(path, rows, tmp_path / "o.npy", memory="64KiB")
        assert np.array_equal(np.load(tmp_path / "o.npy"), table[rows])
        assert len(started) == threads
