"""Columns of Parquet and Arrow files: reads by row groups, and errors."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gatherum
from files.storage import MISSING, bits, leftovers
from gatherum import files
from gatherum.files.formats import arrow
from source import SOURCE

pyarrow = pytest.importorskip("pyarrow", reason=MISSING.format("pyarrow"))
feather = pytest.importorskip("pyarrow.feather")
parquet = pytest.importorskip("pyarrow.parquet")
pytestmark = [pytest.mark.frameworks, pytest.mark.usefixtures("quick_sync")]
FILE_FORMATS = ("parquet", "arrow", "feather", "stream")
VECTORS = np.random.default_rng(0).random((1000, 4)).astype(np.float32)
NUMBERS = np.arange(1000)
NULLS = (
    "group 0 must be without nulls, got some; write it anew after pyarrow's fill_null or drop_null"
)


@pytest.fixture(params=FILE_FORMATS)
def parquet_path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Make a file with columns of many kinds, in four row groups."""
    lists = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(VECTORS.ravel()), 4)
    some = [None if i == 400 else [1.0, 2.0] for i in range(1000)]
    table = pyarrow.table(
        {
            "vectors": lists,
            "numbers": NUMBERS,
            "halves": VECTORS[:, 0].astype(np.float16),
            "texts": ["a"] * 1000,
            "ragged": pyarrow.array([[1, 2]] * 999 + [[1]]),
            "missing": pyarrow.array([None, 1] * 500),
            "holes": pyarrow.array([[1.0, None]] * 1000, pyarrow.list_(pyarrow.float32(), 2)),
            "some missing": pyarrow.array(some, pyarrow.list_(pyarrow.float32(), 2)),
        }
    )
    try:
        return write(tmp_path, table, request.param)
    except pyarrow.ArrowNotImplementedError:  # older versions write no missing lists of fixed size
        column = pyarrow.array(some, pyarrow.list_(pyarrow.float32()))
        return write(tmp_path, table.set_column(7, "some missing", column), request.param)


def write(folder: Path, table: Any, file_format: str, rows: int = 300) -> Path:
    """Write a table to a file with row groups of the given size."""
    path = folder / f"t.{'arrow' if file_format == 'stream' else file_format}"
    if file_format == "parquet":
        parquet.write_table(table, path, row_group_size=rows)
    elif file_format == "stream":
        with pyarrow.ipc.new_stream(path, table.schema) as writer:
            writer.write_table(table, rows)
    else:
        compression = "lz4" if file_format == "feather" else "uncompressed"
        feather.write_feather(table, path, chunksize=rows, compression=compression)
    return path


@pytest.mark.parametrize("memory", ["64KiB", "1GiB"])
@pytest.mark.parametrize(
    ("column", "array"),
    [("vectors", VECTORS), ("numbers", NUMBERS), ("halves", VECTORS[:, 0].astype(np.float16))],
)
def test_columns(parquet_path: Path, column: str, array: Any, memory: str) -> None:
    indices = np.random.default_rng(1).integers(-1000, 1000, (40, 3))
    result = files.gather_file(f"{parquet_path}:{column}", indices, memory=memory)
    assert bits(result) == bits(gatherum.gather(array, indices))
    out = parquet_path.parent / "o.npy"
    updates = array[:5]
    files.scatter_slices_file(
        f"{parquet_path}:{column}", np.arange(5) * 7, updates, out, memory=memory, reduction="max"
    )
    expected = gatherum.scatter_slices(array, np.arange(5) * 7, updates, reduction="max")
    assert bits(np.load(out)) == bits(expected)
    assert leftovers(parquet_path.parent) == []


def test_a_column_as_indices_and_updates(parquet_path: Path) -> None:
    table = np.zeros((1000, 4), np.float32)
    path = str(parquet_path)
    result = files.scatter_slices_file(table, f"{path}:numbers", f"{path}:vectors")
    assert bits(result) == bits(VECTORS)


@pytest.mark.parametrize(
    ("column", "line"),
    [
        ("texts", "a column of string, expected numbers, bools, times without a zone, or lists "),
        ("ragged", "group 3: has a list of 1 items, the first row one of 2"),
        ("missing", NULLS),
        ("some missing", NULLS.replace("0", "1")),
        ("holes", NULLS),
        ("nope", "the file has no such column; it holds 'vectors', 'numbers', "),
        (None, "name one of its 8 columns after a colon: 'vectors', "),
    ],
)
def test_unsupported_columns_raise_one_line(
    parquet_path: Path, column: str | None, line: str
) -> None:
    path = str(parquet_path) if column is None else f"{parquet_path}:{column}"
    with pytest.raises(TypeError if "nulls" in line else ValueError) as caught:
        files.gather_file(path, np.array([0, 400, 999]))
    assert str(caught.value).startswith(f"{path}: {line}")


INTS = np.arange(48, dtype=np.int16).reshape(8, 3, 2)
COLUMNS: dict[str, tuple[Any, Any]] = {
    "bools": (pyarrow.array([True, False] * 4), np.array([True, False] * 4)),
    "lists": (pyarrow.array(INTS[:, 0].tolist(), pyarrow.list_(pyarrow.int16())), INTS[:, 0]),
    "large": (pyarrow.array(INTS[:, 0].tolist(), pyarrow.large_list(pyarrow.int16())), INTS[:, 0]),
    "nested": (
        pyarrow.array(INTS.tolist(), pyarrow.list_(pyarrow.list_(pyarrow.int16()))),
        INTS,
    ),
    "fixed in open": (
        pyarrow.array(INTS.tolist(), pyarrow.list_(pyarrow.list_(pyarrow.int16(), 2))),
        INTS,
    ),
    "open in fixed": (
        pyarrow.array(INTS.tolist(), pyarrow.list_(pyarrow.list_(pyarrow.int16()), 3)),
        INTS,
    ),
    "lists of bools": (pyarrow.array((INTS[:, 0] > 9).tolist()), INTS[:, 0] > 9),
    "empty lists": (
        pyarrow.array([[]] * 8, pyarrow.list_(pyarrow.list_(pyarrow.int16()))),
        np.zeros((8, 0, 0), np.int16),
    ),
    "tensors": (
        pyarrow.ExtensionArray.from_storage(
            pyarrow.fixed_shape_tensor(pyarrow.int16(), (3, 2)),
            pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(INTS.ravel()), 6),
        ),
        INTS,
    ),
    "tensors in order": (
        pyarrow.ExtensionArray.from_storage(
            pyarrow.fixed_shape_tensor(pyarrow.int16(), (3, 2), permutation=(0, 1)),
            pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(INTS.ravel()), 6),
        ),
        INTS,
    ),
    "tensors of an array": (pyarrow.FixedShapeTensorArray.from_numpy_ndarray(INTS), INTS),
    "tensors of vectors": (
        pyarrow.FixedShapeTensorArray.from_numpy_ndarray(INTS[:, 0]),
        INTS[:, 0],
    ),
    "times": (pyarrow.array(np.arange(8).astype("M8[us]")), np.arange(8).astype("M8[us]")),
    "spans": (pyarrow.array(np.arange(8).astype("m8[ms]")), np.arange(8).astype("m8[ms]")),
    "days": (pyarrow.array(np.arange(8).astype("M8[D]")), np.arange(8).astype("M8[D]")),
    "a": (pyarrow.array([{"b": -1, "c": 0.5}] * 8), None),
    "a.b": (pyarrow.array(np.arange(8)), np.arange(8)),
    "c.d": (pyarrow.array(np.arange(8) * 2), np.arange(8) * 2),
    "c": (pyarrow.array(np.arange(8) * 3), np.arange(8) * 3),
}


@pytest.mark.parametrize("file_format", FILE_FORMATS)
def test_columns_that_become_arrays(tmp_path: Path, file_format: str) -> None:
    table = pyarrow.table({name: column for name, (column, _) in COLUMNS.items()})
    path, indices = write(tmp_path, table, file_format, rows=3), np.array([7, 2, 0, 7])
    for name, (_, expected) in COLUMNS.items():
        if expected is not None:
            result = files.gather_file(f"{path}:{name}", indices)
            assert bits(result) == bits(expected[indices]), name
    with pytest.raises(ValueError, match="a: a column of struct<b: int64, c: double>, expected n"):
        files.gather_file(f"{path}:a", indices)


@pytest.mark.parametrize("file_format", FILE_FORMATS)
@pytest.mark.parametrize("order", [(1, 0), (2, 0, 1), (0, 2, 1)])
def test_tensors_whose_dimensions_are_permuted(
    tmp_path: Path, file_format: str, order: tuple[int, ...]
) -> None:
    shape = (3, 2, 4)[: len(order)]
    storage = pyarrow.array(np.zeros((5, *shape)).reshape(5, -1).tolist(),
                            pyarrow.list_(pyarrow.float64(), int(np.prod(shape))))  # fmt: skip
    tensors = pyarrow.fixed_shape_tensor(pyarrow.float64(), shape, permutation=order)
    column = pyarrow.ExtensionArray.from_storage(tensors, storage)
    path = write(tmp_path, pyarrow.table({"x": column}), file_format)
    with pytest.raises(ValueError) as caught:
        files.gather_file(f"{path}:x", np.array([0]))
    assert str(caught.value) == (
        f"{path}:x: a column of tensors with the permutation {list(order)}, expected dimensions in "
        "their order; write the column anew from a C-contiguous array"
    )


@pytest.mark.parametrize("file_format", FILE_FORMATS)
@pytest.mark.parametrize(
    ("rows", "line"),
    [
        ([], "has no row that says how long its lists are"),
        ([[[1], [2]], [[1]]], "group 0: has a list of 1 items, the first row one of 2"),
        ([[[1], [2]], [[1], [2, 3]]], "group 0: has a list of 2 items, the first row one of 1"),
        ([None, [[1]]], NULLS),
        ([[None, [1]]], NULLS),
        ([[[1]], [[None]]], NULLS),
        ([[[1]], None], NULLS),
    ],
)
def test_lists_of_unequal_length_raise(
    tmp_path: Path, file_format: str, rows: Any, line: str
) -> None:
    column = pyarrow.array(rows, pyarrow.list_(pyarrow.list_(pyarrow.int32())))
    path = write(tmp_path, pyarrow.table({"x": column}), file_format)
    with pytest.raises(TypeError if "nulls" in line else ValueError) as caught:
        files.gather_file(f"{path}:x", np.array([0]))
    assert str(caught.value) == f"{path}:x: {line}"


def test_a_stream_with_dictionaries(tmp_path: Path) -> None:
    words = pyarrow.array(["a", "b", "a"] * 100).dictionary_encode()
    table = pyarrow.table({"words": words, "numbers": np.arange(300)})
    path = tmp_path / "t.arrow"
    options = pyarrow.ipc.IpcWriteOptions(emit_dictionary_deltas=True)
    with pyarrow.ipc.new_stream(path, table.schema, options=options) as writer:
        writer.write_table(table, 70)
        more = pyarrow.array(["a", "b", "c"]).dictionary_encode()  # new words in between
        writer.write_table(pyarrow.table({"words": more, "numbers": np.arange(300, 303)}))
    indices = np.array([302, 0, 150, 299])
    assert files.gather_file(f"{path}:numbers", indices).tolist() == indices.tolist()
    path.write_bytes(path.read_bytes()[:-8])  # a writer that was interrupted leaves no footer
    assert files.gather_file(f"{path}:numbers", indices).tolist() == indices.tolist()


def test_a_batch_of_a_stream_must_fit_in_the_budget(tmp_path: Path) -> None:
    table = pyarrow.table({"x": np.arange(10), "large": [bytes(100_000)] * 10})
    path = write(tmp_path, table, "stream")
    with pytest.raises(ValueError, match=r"one batch has 1\d{6} bytes, too much for a memory"):
        files.gather_file(f"{path}:x", np.array([0]), memory="1MiB")


@pytest.mark.parametrize("file_format", ["arrow", "stream"])
def test_offsets_that_leave_their_buffers(tmp_path: Path, file_format: str) -> None:
    path = write(tmp_path, pyarrow.table({"x": [[1, 2], [3, 4]]}), file_format)
    content, offsets = path.read_bytes(), np.array([0, 2, 4], np.int32)
    assert content.count(offsets.tobytes()) == 1
    for start, stop in ((2_000_000_000, 2_000_000_002), (2, 6)):
        hostile = np.array([start, start + 2, stop], np.int32)
        path.write_bytes(content.replace(offsets.tobytes(), hostile.tobytes()))
        with pytest.raises(ValueError, match=r"t\.arrow:x: .*(?i:offset|length)"):
            files.gather_file(f"{path}:x", np.array([1]))


def test_the_first_version_of_feather(tmp_path: Path) -> None:
    (tmp_path / "t.feather").write_bytes(b"FEA1" + bytes(64) + b"FEA1")
    with pytest.raises(ValueError, match="x: cannot be read: Feather's version 1 is not read"):
        files.gather_file(f"{tmp_path}/t.feather:x", np.array([0]))


@pytest.mark.parametrize("file_format", FILE_FORMATS)
def test_content_determines_the_format_for_any_suffix(tmp_path: Path, file_format: str) -> None:
    path = write(tmp_path, pyarrow.table({"x": NUMBERS}), file_format)
    for suffix in ("parquet", "arrow", "feather"):
        path = path.rename(path.with_suffix(f".{suffix}"))
        assert files.gather_file(f"{path}:x", np.array([7, 5])).tolist() == [7, 5]


def test_read_only(parquet_path: Path) -> None:
    path, ones = f"{parquet_path}:vectors", np.ones((1, 4), np.float32)
    why = "cannot be written, columns of Parquet and Arrow are read only"
    with pytest.raises(ValueError, match=why):
        files.gather_file(VECTORS, np.array([0]), path)
    with pytest.raises(ValueError, match=why):
        files.scatter_slices_file(path, np.array([0]), ones, path, in_place=True)


@pytest.mark.parametrize("keep", [0, 10, 3000, -10])
def test_damaged_files(parquet_path: Path, keep: int) -> None:
    parquet_path.write_bytes(parquet_path.read_bytes()[:keep])
    with pytest.raises(ValueError) as caught:
        files.gather_file(f"{parquet_path}:vectors", np.array([0]))
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(f"{parquet_path}:vectors: cannot be read: ")


@pytest.mark.parametrize("rows", [1000, 300])
def test_an_open_table_copies_no_group(
    tmp_path: Path, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    lists = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(VECTORS.ravel()), 4)
    path = write(tmp_path, pyarrow.table({"vectors": lists}), "parquet", rows)
    copies: list[Any] = []
    read: list[int] = []
    original = arrow.ArrowColumn.read_box

    def read_box(self: Any, box: Any) -> Any:
        copies.append(box[0])
        return original(self, box)

    monkeypatch.setattr(arrow.ArrowColumn, "read_box", read_box)
    with files.open(f"{path}:vectors") as table:
        for _ in range(2):
            assert bits(table.gather([999, 5, 7])) == bits(VECTORS[[999, 5, 7]])
            read.append(table.stats().bytes_read)
    assert (read[0] == read[1]) == (rows == 1000)
    assert len(copies) == (0 if rows == 1000 else 4)  # rows of several groups are copied


def test_a_group_that_is_too_large(parquet_path: Path) -> None:
    big = np.zeros((20_000, 4))
    lists = pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(big.ravel()), 4)
    parquet.write_table(pyarrow.table({"x": lists}), parquet_path.parent / "big.parquet")
    big_path = parquet_path.parent / "big.parquet"
    with pytest.raises(ValueError) as caught:
        files.gather_file(big_path, np.array([0]), memory="1MiB")
    assert str(caught.value) == (
        f"{big_path}: one row group has 1280000 bytes, too much for a memory budget of 1048576 "
        "bytes (twice the row group is needed); write the file with a smaller row_group_size"
    )


def test_a_fifo(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "t.parquet")
    with pytest.raises(OSError, match="is a FIFO, not a regular file"):
        files.gather_file(tmp_path / "t.parquet", np.array([0]))


def test_without_pyarrow(parquet_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError) as caught:
        files.gather_file(f"{parquet_path}:numbers", np.array([0]))
    assert str(caught.value) == "Parquet and Arrow files need pyarrow: pip install pyarrow"


def test_columns_need_no_pandas(parquet_path: Path) -> None:
    """Some functions of pyarrow import pandas."""
    code = (
        "import sys\n"
        "class NoPandas:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'pandas':\n"
        "            raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, NoPandas())\n"
        "import numpy as np; from gatherum import files\n"
        f"print(files.gather_file({f'{parquet_path}:numbers'!r}, np.array([3, 1])))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60,
        env=os.environ | {"PYTHONPATH": SOURCE},
    )  # fmt: skip
    assert done.stdout == "[3 1]\n", done.stderr


def test_errors_for_columns_without_a_dtype_suggest_code(tmp_path):
    from decimal import Decimal

    prices = pyarrow.array([Decimal("1.5"), Decimal(2)], pyarrow.decimal128(6, 2))
    path = f"{tmp_path}/t.parquet"
    parquet.write_table(pyarrow.table({"price": prices, "shop": ["a", "b"]}), path)
    for column, line in (
        ("price", "lists of these; write decimals as integers, such as cents"),
        ("shop", "lists of these; number other keys with gatherum.groups.factorize(keys)"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="a column of") as caught:
            files.gather_file(f"{path}:{column}", [0])
        assert str(caught.value).endswith(line)
