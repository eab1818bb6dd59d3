"""Arrays in place of files: as any operand, and as the result."""

import io
import os
import sys
from array import array as typed
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import gatherum
from files.storage import MISSING, bits, put
from gatherum import files
from gatherum.files.resources import progress

pytestmark = pytest.mark.usefixtures("quick_sync")

CALLS: dict[str, tuple[tuple[int, ...], dict[str, Any]]] = {
    "gather": ((30,), {"axis": 1}),
    "gather_elements": ((20, 30, 4), {"axis": 1}),
    "gather_nd": ((50, 2), {}),
    "scatter_slices": ((30,), {"axis": 1, "reduction": "add"}),
    "scatter_elements": ((20, 30, 4), {"axis": 1, "reduction": "mean"}),
    "scatter_nd": ((50, 2), {"reduction": "none"}),
}
UPDATES = {"scatter_slices": (20, 30, 4), "scatter_elements": (20, 30, 4), "scatter_nd": (50, 4)}
FORMS = ("path", "array", "fortran", "strided", "memmap", "zarr", "h5py")


def operands(op: str) -> list[NDArray[Any]]:
    rng = np.random.default_rng(len(op))
    table = rng.random((20, 30, 4)).astype(np.float32)
    arrays = [table, rng.integers(-20, 20, CALLS[op][0])]
    return [*arrays, *([rng.random(UPDATES[op]).astype(np.float32)] if op in UPDATES else [])]


def in_form(folder: Path, name: str, array: NDArray[Any], file_format: str) -> Any:
    """Return an array in one of the forms that operands may have."""
    if file_format == "path":
        return put(folder, name, array)
    if file_format == "memmap":
        return np.load(put(folder, name, array), mmap_mode="r")
    if file_format == "strided":
        wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
        wide[..., ::2] = array
        return wide[..., ::2]
    if file_format == "zarr":
        package = pytest.importorskip("zarr", reason=MISSING.format("zarr"))
        chunks = tuple(max(1, n // 3) for n in array.shape)
        stored = package.create_array({}, shape=array.shape, chunks=chunks, dtype=array.dtype)
        stored[...] = array
        return stored
    if file_format == "h5py":
        package = pytest.importorskip("h5py", reason=MISSING.format("h5py"))
        file = package.File(io.BytesIO(), "w")
        return file.create_dataset(name, data=array, chunks=name != "indices" or None)
    return array if file_format == "array" else np.asfortranarray(array)


@pytest.mark.parametrize("file_format", FORMS)
@pytest.mark.parametrize("op", CALLS)
def test_every_operand_may_be_an_array(tmp_path: Path, op: str, file_format: str) -> None:
    arrays, call = operands(op), CALLS[op][1]
    expected = getattr(gatherum, op)(*arrays, **call)
    names = ("table", "indices", "updates")[: len(arrays)]
    pairs = zip(names, arrays, strict=True)
    passed = [in_form(tmp_path, name, array, file_format) for name, array in pairs]
    run = getattr(files, op + "_file")
    result = run(*passed, **call)
    assert type(result) is np.ndarray
    assert result.flags.c_contiguous
    assert result.flags.writeable
    assert bits(result) == bits(expected)
    stats = run(*passed, tmp_path / "out.npy", **call, memory="64KiB")
    assert stats.rows > 0
    assert bits(np.load(tmp_path / "out.npy")) == bits(expected)
    for array, value in zip(arrays, passed, strict=True):
        if file_format not in ("path", "zarr", "h5py"):
            assert np.array_equal(array, value)


@pytest.mark.parametrize("memory", ["64KiB", "1GiB"])
@pytest.mark.parametrize("file_format", ["npy", "fortran", "deflated", "zarr3", "shards"])
def test_files_of_every_form_become_arrays(tmp_path: Path, file_format: str, memory: str) -> None:
    rng = np.random.default_rng(1)
    table = rng.integers(0, 1 << 30, (60, 4, 30)).astype(np.int32)
    indices = rng.integers(-70, 70, (7, 9))
    path = put(tmp_path, "t", table, file_format)
    result = files.gather_file(path, indices, mode="fill", fill_value=-7, memory=memory)
    expected = gatherum.gather(table, indices, mode="fill", fill_value=-7)
    assert bits(result) == bits(expected)
    result = files.gather_file(path, indices, axis=2, mode="wrap", memory=memory)
    assert bits(result) == bits(gatherum.gather(table, indices, 2, mode="wrap"))
    assert [name for name in os.listdir(tmp_path) if not name.startswith("t.")] == []


@pytest.mark.parametrize("shape", [(0, 4), (4, 0), (0, 0)])
def test_nothing(shape: tuple[int, ...]) -> None:
    table, none = np.zeros(shape), np.zeros(0, np.int64)
    assert files.gather_file(table, none).shape == (0, shape[1])
    changed = files.scatter_slices_file(table, none, np.zeros((0, shape[1])))
    assert bits(changed) == bits(table)
    with pytest.raises(IndexError, match="index 9 is out of bounds"):
        files.gather_file(np.zeros((3, 0)), np.array([9]))


def test_a_table_with_its_result(tmp_path: Path) -> None:
    """The result is new memory, and an array in memory is not another operand's file."""
    table = np.arange(12.0).reshape(4, 3)
    result = files.scatter_slices_file(table, np.array([1]), table[:1])
    result[...] = -1
    assert table[1, 0] == 3.0
    assert bits(files.gather_file(table, np.arange(4))) == bits(table)


def test_an_index_error_is_that_of_the_operator() -> None:
    with pytest.raises(IndexError) as caught:
        files.gather_file(np.zeros((3, 2)), np.array([[0, 3]]))
    with pytest.raises(IndexError) as expected:
        gatherum.gather(np.zeros((3, 2)), np.array([[0, 3]]))
    assert str(caught.value) == str(expected.value)


EXPECTED = (
    "gather: the indices must be a path, an array in memory, or an array of Zarr or h5py, got "
)


@pytest.mark.parametrize(
    ("operand", "line"),
    [
        (None, EXPECTED + "NoneType"),
        (b"i.npy", EXPECTED + "bytes"),
        (np.ma.array([1, 2]), "gather: the indices are a masked array, whose mask would be lost"),
    ],
)
def test_invalid_operands_raise(operand: Any, line: str) -> None:
    with pytest.raises(TypeError) as caught:
        files.gather_file(np.zeros((3, 2)), operand)
    assert str(caught.value) == line


PATHS: list[Any] = [
    ["s0.npy", "s1.npy"],
    ("s0.npy",),
    [Path("s0.npy")],
    [["s0.npy"], ["s1.npy"]],
    [0, "s0.npy"],
    [b"s0.npy", b"s1.npy"],
    ["https://user:secret@host/x.npy"],
]


def calls_with(tmp_path: Path, paths: Any) -> dict[tuple[str, str], Callable[[], object]]:
    """Return calls with each operand of each function passed as a list of paths."""
    table, rows = put(tmp_path, "t", np.ones((4, 3), np.uint8)), [[0, 0, 0]]
    opened = files.open(table)
    return {
        ("gather", "table"): lambda: files.gather_file(paths, [0]),
        ("gather", "indices"): lambda: files.gather_file(table, paths),
        ("gather_nd", "table"): lambda: files.gather_nd_file(paths, [[0]]),
        ("gather_nd", "indices"): lambda: files.gather_nd_file(table, paths),
        ("gather_elements", "table"): lambda: files.gather_elements_file(paths, rows),
        ("gather_elements", "indices"): lambda: files.gather_elements_file(table, paths),
        ("scatter_slices", "table"): lambda: files.scatter_slices_file(paths, [0], 1),
        ("scatter_slices", "indices"): lambda: files.scatter_slices_file(table, paths, 1),
        ("scatter_slices", "updates"): lambda: files.scatter_slices_file(table, [0], paths),
        ("scatter_nd", "updates"): lambda: files.scatter_nd_file(table, [[0]], paths),
        ("scatter_elements", "updates"): lambda: files.scatter_elements_file(table, rows, paths),
        ("reduce_file", "values"): lambda: files.reduce_file(paths, [0]),
        ("reduce_file", "groups"): lambda: files.reduce_file(table, paths),
        ("rows", "table"): lambda: list(files.rows(paths, [[0]])),
        ("open", "table"): lambda: files.open(paths),
        ("open", "scales"): lambda: files.open(table, scales=paths),
        ("open", "zero_points"): lambda: files.open(table, scales=table, zero_points=paths),
        ("gather", "indices of a table"): lambda: opened.gather(paths),
        ("gather", "indices of a future"): lambda: opened.submit(paths).result(),
        ("gather_nd", "indices of a table"): lambda: opened.gather_nd(paths),
    }


@pytest.mark.parametrize("paths", PATHS, ids=repr)
def test_a_list_of_paths_raises(tmp_path: Path, paths: Any) -> None:
    for (op, operand), call in calls_with(tmp_path, paths).items():
        with pytest.raises(TypeError) as caught:
            call()
        assert str(caught.value) == (
            f"{op}: the {operand.split()[0]} must be one path or one array, got a "
            f"{type(paths).__name__} that contains strings or paths; call the function for each "
            "file, or pass numpy.array(strings) if the strings are the elements"
        )


def test_each_list_is_searched_once_per_level() -> None:
    paths: Any = "t.npy"
    for _ in range(40):  # 2**40 lists if each one was searched as often as it occurs
        paths = [paths, paths]
    with pytest.raises(TypeError, match="a list that contains strings or paths"):
        files.gather_file(paths, [0])


def test_strings_in_an_array_are_data() -> None:
    names = np.array(["s0.npy", "s1.npy"])
    assert files.gather_file(names, [1]).tolist() == ["s1.npy"]
    changed = files.scatter_slices_file(names, [0], np.array(["x.npyz"]))
    assert changed.tolist() == ["x.npyz", "s1.npy"]


def test_one_path_for_one_file(tmp_path: Path) -> None:
    table, paths = put(tmp_path, "t", np.ones((4, 3))), [str(tmp_path / "o.npy")]
    with pytest.raises(TypeError, match=r"^a file must be named by one str or path, got list$"):
        files.gather_file(table, [0], paths)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match=r"^gather: `spill_dir` must be one path, got list$"):
        files.gather_file(table, [0], spill_dir=[str(tmp_path)])  # type: ignore[call-overload]


@pytest.mark.parametrize(
    "indices",
    [[2, 0], (1,), range(3), 2, [], [[0], [1]], np.int8(1), typed("i", [3, 1])],
    ids=repr,
)
def test_operands_that_functions_accept(tmp_path: Path, indices: Any) -> None:
    table = np.arange(12.0).reshape(4, 3)
    path, out = put(tmp_path, "t", table), tmp_path / "o.npy"
    expected = gatherum.gather(table, indices)
    files.gather_file(path, indices, out)
    assert bits(np.load(out)) == bits(files.gather_file(path, indices)) == bits(expected)
    assert bits(files.gather_file(table.tolist(), indices)) == bits(expected)
    for updates in (7, 2.5, np.float64(3)):
        result = files.scatter_slices_file(path, indices, updates)
        assert bits(result) == bits(gatherum.scatter_slices(table, indices, updates))


@pytest.mark.frameworks
def test_series(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas", reason="install pandas: pip install pandas")
    path = put(tmp_path, "t", np.arange(12.0).reshape(4, 3))
    indices, updates = pandas.Series([3, 1]), pandas.Series([1.0, 2.0, 3.0])
    assert files.gather_file(path, indices)[:, 0].tolist() == [9, 3]
    assert files.scatter_slices_file(path, indices, updates)[1].tolist() == [1, 2, 3]
    with pytest.raises(TypeError, match="`indices` must be without nulls, got a "):
        files.gather_file(path, pandas.Series([3, None], dtype="Int64"))


@pytest.mark.parametrize(
    "call",
    [
        ([1.5], 0),
        (["a"], 0),
        ([True, False, True, True], 0),
        ([[0], [1, 2]], 0),
        ([2**64], 0),
        ([0], "a"),
        ([0], 1j),
        ([0], [[1], [1, 2]]),
        ([0], np.float32(1)),
        ([0], None),
    ],
    ids=repr,
)
def test_operands_that_functions_refuse(call: Any) -> None:
    table = np.arange(12).reshape(4, 3)
    with pytest.raises((TypeError, ValueError)) as expected:
        gatherum.scatter_slices(table, *call)
    with pytest.raises((TypeError, ValueError)) as caught:
        files.scatter_slices_file(table, *call)
    if call[0] != ["a"] and call[1] not in ("a", None):  # a path, and no operand
        assert str(caught.value) == str(expected.value)
        assert type(caught.value) is type(expected.value)


@pytest.mark.parametrize("dtype", [object, np.dtypes.StringDType()])
def test_objects_are_refused_as_in_memory(dtype: Any) -> None:
    table = np.array(["a", "b"], dtype)
    with pytest.raises(TypeError) as caught:
        files.gather_file(table, np.array([0]))
    with pytest.raises(TypeError) as expected:
        gatherum.gather(table, np.array([0]))
    assert str(caught.value) == str(expected.value)


def test_options_that_need_files(tmp_path: Path) -> None:
    table, indices, updates = np.zeros((3, 2)), np.array([[1]]), np.ones((1, 2))
    path, out = put(tmp_path, "t", table), str(tmp_path / "o.npy")
    lines = []
    for call in (
        lambda: files.gather_file(path, indices[0], out, resume=True),
        lambda: files.gather_file(path, indices[0], resume=True),
        lambda: files.scatter_nd_file(table, indices, updates, out, in_place=True),
        lambda: files.scatter_nd_file(path, indices, updates, in_place=True),
    ):
        with pytest.raises(ValueError) as caught:
            call()
        lines.append(str(caught.value))
    assert lines == [
        "gather: a run can be resumed when all operands are files, the indices are an array",
        "gather: a run without an output file cannot be resumed",
        "scatter_nd: only a table in a file can be changed in place",
        f"scatter_nd: in place the output is the table, {path}, got None",
    ]
    files.scatter_nd_file(path, indices, updates, path, in_place=True)
    assert np.array_equal(np.load(path), [[0, 0], [1, 1], [0, 0]])


def test_an_output_is_kept(tmp_path: Path) -> None:
    out = put(tmp_path, "o", np.arange(3))
    with pytest.raises(FileExistsError) as caught:
        files.gather_file(np.zeros(5), np.array([0]), out, overwrite=False)
    assert str(caught.value) == f"{out}: exists already, and overwrite=False keeps it"
    assert np.array_equal(np.load(out), np.arange(3))
    files.gather_file(np.zeros(5), np.array([0]), tmp_path / "new.npy", overwrite=False)
    files.gather_file(np.zeros(5), np.array([0]), out)
    assert np.array_equal(np.load(out), [0.0])


@pytest.mark.parametrize("rich", [True, False])
def test_a_bar(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], rich: bool
) -> None:
    if rich:
        pytest.importorskip("rich", reason=MISSING.format("rich"))
    else:
        monkeypatch.setitem(sys.modules, "rich.console", None)
    table, indices = np.arange(12.0), np.array([3, 4])
    assert np.array_equal(files.gather_file(table, indices, progress=True), [3, 4])
    assert capsys.readouterr().out == ""
    if not rich:
        files.gather_file(table, indices, progress=True)
        assert capsys.readouterr().err == "gather: gathering, 16 of 16 B\n"
    reports: list[tuple[int, int]] = []
    files.gather_file(table, indices, progress=lambda *moved: reports.append(moved))
    assert reports[-1] == (16, 16)


def test_a_notebook_without_widgets_has_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    console = pytest.importorskip("rich.console", reason=MISSING.format("rich"))
    monkeypatch.setattr(console, "_is_jupyter", lambda: True)
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    monkeypatch.setattr(progress, "find_spec", lambda name: None)
    path = put(tmp_path, "t", np.arange(1 << 20, dtype="f4"))
    files.gather_file(path, np.arange(1 << 19), tmp_path / "o.npy", progress=True)
    assert capsys.readouterr().err == "gather t.npy: gathering, 2.0 of 2.0 MiB\r\n"


@pytest.mark.parametrize("shape", [(0,), (1, 0)])
def test_empty_indices_in_memory_along_a_later_axis(tmp_path: Path, shape: tuple[int, ...]) -> None:
    table, empty = np.ones((20, 5), "f4"), np.zeros(shape, int)
    np.save(tmp_path / "t.npy", table)
    result = files.gather_file(tmp_path / "t.npy", empty, axis=1)
    assert result.shape == (20, *shape)
    updates = np.zeros((20, *shape), "f4")
    result = files.scatter_slices_file(tmp_path / "t.npy", empty, updates, axis=1)
    assert np.array_equal(result, table)
