"""An open table: results equal to the operators in memory, `out`, opening and closing."""

import os
import pickle
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gatherum
from files.open_tables import CACHES, TABLE, forked
from files.storage import FORMATS, bits, put
from gatherum import files
from gatherum.files.open_table import state

pytestmark = pytest.mark.usefixtures("quick_sync", "watched_closely")


# ------------------------------------------------------------------ the same answers


@pytest.mark.slow
@pytest.mark.parametrize("cache", CACHES)
@pytest.mark.parametrize("file_format", [*FORMATS, "array"])
def test_every_gather_has_the_bits_of_the_operator(
    tmp_path: Path, file_format: str, cache: str
) -> None:
    operand = TABLE if file_format == "array" else put(tmp_path, "t", TABLE, file_format)
    expected = TABLE.astype(">i4") if file_format == "big-endian" else TABLE
    rng = np.random.default_rng(1)
    with files.open(operand, cache=cache) as table:
        assert (table.shape, table.dtype, table.nbytes) == ((300, 8), expected.dtype, 9600)
        assert table.path == ("" if file_format == "array" else str(operand).partition(":")[0])
        for shape in [(30,), (), (4, 5), (0,), (200,), (1,)]:
            rows = rng.integers(-300, 300, shape)
            for _ in range(2):  # from the file, and perhaps from the cache
                assert bits(table.gather(rows)) == bits(gatherum.gather(expected, rows))
        wide = rng.integers(-900, 900, (4, 9))
        for mode, fill in [("clip", 0), ("wrap", 7), ("fill", 0), ("drop", 7), ("fill", 0)]:
            call: dict[str, Any] = {"mode": mode, "fill_value": fill}
            result = table.gather(wide, **call)
            assert bits(result) == bits(gatherum.gather(expected, wide, **call))
        columns = rng.integers(0, 8, 5)
        assert bits(table.gather(columns, 1)) == bits(gatherum.gather(expected, columns, 1))
        points = np.stack([rng.integers(0, 300, 9), rng.integers(0, 8, 9)], 1)
        assert bits(table.gather_nd(points)) == bits(gatherum.gather_nd(expected, points))
        order = rng.integers(0, 300, (5, 8))
        result = table.gather_elements(order)
        assert bits(result) == bits(gatherum.gather_elements(expected, order))
        batches = [rows, columns, order]
        for result, batch in zip(table.rows(batches), batches, strict=True):
            assert bits(result) == bits(gatherum.gather(expected, batch))


@pytest.mark.parametrize("cache", ["0", "1MiB"])
def test_indices_of_every_kind(tmp_path: Path, cache: str) -> None:
    table = files.open(put(tmp_path, "t", TABLE), cache=cache)
    rows = [3, 0, 299, 3]
    for dtype in ("i1", "u1", "<i2", ">i2", "u4", ">i4", "i8", ">i8", "u8"):
        some = np.array([3, 0, 99, 3], dtype)
        assert bits(table.gather(some)) == bits(TABLE[[3, 0, 99, 3]])
    for indices in (rows, tuple(rows), np.array(rows)[::-1], np.array([rows, rows]).T, 7):
        assert bits(table.gather(indices)) == bits(gatherum.gather(TABLE, indices))
    assert bits(table.gather(put(tmp_path, "i", np.array(rows)))) == bits(TABLE[rows])
    many = np.arange(9000) % 300
    assert bits(table.gather(many)) == bits(TABLE[many])


@pytest.mark.parametrize("shape", [(5,), (0, 3), (4, 0), (2, 3, 4, 5)])
@pytest.mark.parametrize("cache", ["0", "1MiB"])
def test_tables_of_every_shape(tmp_path: Path, shape: tuple[int, ...], cache: str) -> None:
    array = np.arange(np.prod(shape), dtype=np.float64).reshape(shape)
    for file_format in ("npy", "fortran"):
        table = files.open(put(tmp_path, "t", array, file_format), cache=cache)
        rows = np.zeros((2, 0 if shape[0] == 0 else 3), np.int64)
        assert bits(table.gather(rows)) == bits(gatherum.gather(array, rows))
        result = table.gather([0, 99, -1], mode="fill", fill_value=2.5)
        expected = gatherum.gather(array, [0, 99, -1], mode="fill", fill_value=2.5)
        assert bits(result) == bits(expected)
    scalar = files.open(put(tmp_path, "s", np.array(1.0)))
    with pytest.raises(ValueError, match="at least 1 dimension"):
        scalar.gather([0])


@pytest.mark.parametrize("cache", ["0", "1MiB"])
@pytest.mark.parametrize(
    ("indices", "call"),
    [([300], {}), ([0, -301], {}), ([[0, 1], [2, 2**40]], {}), ([-1], {"negative": False}),
     ([0.5], {}), ([True], {}), ([[1], [2, 3]], {}), ("no", {}), ([2**70], {}),
     ([0], {"axis": 2}), ([0], {"axis": 1.5}), ([0], {"mode": "no"}),
     ([0], {"negative": 1}), ([0], {"mode": "fill", "fill_value": "x"}),
     ([9], {"mode": "drop", "fill_value": 2**40}), ([-1], {"mode": "raise", "negative": None}),
     (np.array([2**63 + 1], np.uint64), {}), (np.ma.masked_array([1], [True]), {})],
)  # fmt: skip
def test_errors_equal_the_errors_in_memory(
    tmp_path: Path, cache: str, indices: Any, call: dict[str, Any]
) -> None:
    path = put(tmp_path, "t", TABLE)
    table = files.open(path, cache=cache)
    with pytest.raises(Exception) as expected:
        files.gather_file(path, indices, **call)
    for _ in range(2):
        with pytest.raises(type(expected.value)) as caught:
            table.gather(indices, **call)
        assert str(caught.value) == str(expected.value)
    if not call:
        with pytest.raises(type(expected.value)):
            table.submit(indices).result()
    assert bits(table.gather([5])) == bits(TABLE[[5]])


# ------------------------------------------------------------------------------- out


@pytest.mark.parametrize("cache", ["0", "1MiB"])
@pytest.mark.parametrize("file_format", ["npy", "zarr3"])
def test_rows_land_where_the_caller_wants_them(
    tmp_path: Path, file_format: str, cache: str
) -> None:
    table = files.open(put(tmp_path, "t", TABLE, file_format), cache=cache)
    rows = np.array([7, 0, -1, 7])
    expected = gatherum.gather(TABLE, rows)
    for out in (
        np.empty((4, 8), np.int32),
        np.empty((4, 16), np.int32)[:, ::2],
        np.empty((8, 4), np.int32).T,
        np.empty(129, np.uint8)[1:].view(np.int32).reshape(4, 8),
    ):
        for _ in range(2):
            out[...] = -1
            assert table.gather(rows, out=out) is out
            assert np.array_equal(out, expected)
    out = np.empty((4, 1), np.int32)
    assert table.gather_elements([[1], [2], [3], [-1]], out=out) is out
    assert np.array_equal(out, TABLE[[1, 2, 3, -1], :1])
    points = np.empty(2, np.int32)
    assert table.gather_nd([[1, 2], [-1, -1]], out=points) is points
    assert points.tolist() == [TABLE[1, 2], TABLE[-1, -1]]


@pytest.mark.parametrize("cache", ["0", "1MiB"])
def test_an_out_that_does_not_fit(tmp_path: Path, cache: str) -> None:
    table = files.open(put(tmp_path, "t", TABLE), cache=cache)
    frozen = np.empty((1, 8), np.int32)
    frozen.flags.writeable = False
    rows = np.zeros(1, np.int64)
    overlapping = np.zeros(5, np.int64)
    wrong: list[tuple[Any, Any]] = [
        (rows, np.empty((2, 8), np.int32)), (rows, np.empty((1, 8), np.int64)), (rows, frozen),
        (rows, np.broadcast_to(np.zeros((1, 1), np.int32), (1, 8))), (rows, [1]),
        (overlapping[:1], overlapping[:4].view(np.int32).reshape(1, 8)), (rows, "out.npy"),
        (rows, np.ma.masked_array(np.zeros((1, 8), np.int32))),
    ]  # fmt: skip
    for indices, out in wrong:
        with pytest.raises((TypeError, ValueError)) as expected:
            gatherum.gather(TABLE, indices, out=out)
        with pytest.raises(type(expected.value)) as caught:
            table.gather(indices, out=out)
        assert str(caught.value) == str(expected.value)


@pytest.mark.parametrize("count", [2, 100_000])
@pytest.mark.parametrize("cache", ["0", "1MiB"])
@pytest.mark.parametrize("file_format", ["npy", "zarr3"])
def test_out_is_not_touched_where_an_index_is_refused(
    tmp_path: Path, file_format: str, cache: str, count: int
) -> None:
    table = files.open(put(tmp_path, "t", TABLE, file_format), cache=cache)
    table.gather([0, 1])
    rows = np.zeros(count, np.int64)
    rows[-1] = 300
    out = np.full((count, 8), -7, np.int32)
    with pytest.raises(IndexError, match="index 300 is out of bounds"):
        table.gather(rows, out=out)
    assert (out == -7).all()


def test_padding_moves_too(tmp_path: Path) -> None:
    padded = np.dtype({"names": ["a"], "formats": ["i1"], "offsets": [0], "itemsize": 8})
    array = TABLE.view(padded)
    table = files.open(array)
    out = np.zeros((4, 4), padded)[::2]
    table.gather([1, 2], out=out)
    expected = gatherum.gather(array, [1, 2]).tobytes()
    assert out.view("V8").tobytes() == table.gather([1, 2]).tobytes() == expected


# ------------------------------------------------------------------------ opened, closed


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs /proc: run on Linux")
@pytest.mark.parametrize("file_format", ["npy", "npz", "deflated", "zarr3", "hdf5"])
def test_nothing_stays_open(tmp_path: Path, file_format: str) -> None:
    path = put(tmp_path, "t", TABLE, file_format)
    before = len(os.listdir("/proc/self/fd"))
    with files.open(path, cache="1MiB") as table:
        table.submit([1]).result()
        rows = table.rows([[1], [2]])
        next(rows)
    table.close()
    rows.close()
    assert len(os.listdir("/proc/self/fd")) == before
    del table
    dropped = files.open(path)
    dropped.gather([1])
    del dropped
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_closed_table_says_so(tmp_path: Path) -> None:
    path = put(tmp_path, "t", TABLE)
    table = files.open(path)
    assert repr(table) == f"<Table {path}: int32 (300, 8)>"
    table.close()
    assert repr(table) == f"<closed Table {path}>"
    for name, use in {
        "gather": lambda: table.gather([0]), "gather_nd": lambda: table.gather_nd([[0]]),
        "gather_elements": lambda: table.gather_elements([[0]]), "stats": table.stats,
        "rows": lambda: table.rows([[0]]), "submit": lambda: table.submit([0]),
        "prefetch": lambda: table.prefetch([0]), "shape": lambda: table.shape,
        "dtype": lambda: table.dtype, "nbytes": lambda: table.nbytes, "with": table.__enter__,
        "reload": table.reload, "pickle": lambda: pickle.dumps(table),
    }.items():  # fmt: skip
        with pytest.raises(ValueError, match=rf"^{name}: the table .*t\.npy is closed$"):
            use()


def test_rows_end_where_the_table_is_closed(tmp_path: Path) -> None:
    table = files.open(put(tmp_path, "t", TABLE))
    begun, other = table.rows(iter([[1], [2], [3]])), table.rows([[1]])
    assert bits(next(begun)) == bits(TABLE[[1]])
    table.close()
    for rows in (begun, other):
        with pytest.raises(ValueError, match=r"^rows: the table .*t\.npy is closed$"):
            next(rows)


def test_a_callback_closes_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state.State, "are_resident", lambda *_: False)
    for readers in (1, 3):
        table = files.open(put(tmp_path, "t", TABLE), readers=readers)
        raised: list[Exception] = []
        begin, called = threading.Event(), threading.Event()

        def close(_: Any, table: Any = table, raised: Any = raised, called: Any = called) -> None:
            try:
                table.close()
                table.close()
            except Exception as error:
                raised.append(error)
            called.set()

        waiting = table._start(begin.wait)
        waiting.add_done_callback(close)
        others = [table.submit([n]) for n in range(50)]
        begin.set()
        assert called.wait(20)
        for number, other in enumerate(others):
            assert bits(other.result(20)) == bits(TABLE[[number]])
        with pytest.raises(ValueError, match=r"^submit: .* is closed$"):
            table.submit([0])
        for thread in threading.enumerate():
            if thread.name == "gatherum-close":
                thread.join(20)
        assert raised == []
        with pytest.raises(ValueError, match=r"^gather: .* is closed$"):
            table.gather([0])


@pytest.mark.parametrize("file_format", ["npy", "npz", "zarr3", "hdf5", "safetensors"])
def test_another_directory(
    tmp_path: Path, file_format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = put(tmp_path, "t", TABLE, file_format)
    (tmp_path / "other").mkdir()
    put(tmp_path / "other", "t", TABLE + 1, file_format)
    monkeypatch.chdir(tmp_path)
    table = files.open(os.path.relpath(path))
    monkeypatch.chdir(tmp_path / "other")
    assert bits(table.gather([3])) == bits(TABLE[[3]])
    assert table.path == path.partition(":")[0]
    table.reload()
    assert bits(table.gather([3])) == bits(TABLE[[3]])
    assert bits(pickle.loads(pickle.dumps(table)).gather([3])) == bits(TABLE[[3]])
    if hasattr(os, "fork"):
        assert forked(lambda: check_one(table)) == 0


def check_one(table: Any) -> None:
    assert bits(table.gather([3])) == bits(TABLE[[3]])


def test_a_link_with_dots_is_resolved_by_the_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "far/inner").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "far/inner")
    put(tmp_path / "far", "t", TABLE)
    put(tmp_path, "t", TABLE + 1)
    monkeypatch.chdir(tmp_path)
    table = files.open("link/../t.npy")
    assert np.array_equal(np.load(table.path), TABLE)
    for opened in (table, pickle.loads(pickle.dumps(table))):
        assert bits(opened.gather([3])) == bits(TABLE[[3]])


@pytest.mark.parametrize("cache", CACHES)
@pytest.mark.parametrize("order", ["C", "F", "strided"])
def test_an_array_in_memory_is_read_as_it_is(order: str, cache: str) -> None:
    array = np.asarray(TABLE, order="F" if order == "F" else "C").copy(order="K")
    array = np.repeat(array, 2, 1)[:, ::2] if order == "strided" else array
    table = files.open(array, cache=cache)
    for _ in range(3):
        assert bits(table.gather([3, 3])) == bits(array[[3, 3]])
        table.prefetch([3])
        array += 1
    assert table.stats().cached_bytes == 0
    for indices in ([1], np.arange(299, -1, -1)):
        out = array[: len(indices)]
        with pytest.raises(ValueError, match=r"^gather: `out` must not share memory with `data`"):
            table.gather(indices, out=out)


@pytest.mark.parametrize("error", [TypeError, ValueError])
def test_an_error_for_the_bytes_of_a_changed_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    monkeypatch.setattr(state, "NEAR", 100.0)  # seconds in which a call without an error is trusted
    path = put(tmp_path, "t", TABLE)
    with files.open(path) as table:
        table.gather([1])
        np.save(path, TABLE[:5])

        def decode() -> None:
            raise error("damaged")

        with pytest.raises(OSError, match="changed while it was being read"):
            table._opened("gather").read(decode)


def test_arguments_of_open(tmp_path: Path) -> None:
    path = put(tmp_path, "t", TABLE)
    with pytest.raises(
        ValueError, match="open: `cache` must be a size such as '512MiB', got 'much'"
    ):
        files.open(path, cache="much")
    with pytest.raises(
        ValueError, match="open: `cache` must hold at least one row, 41 bytes, got 40"
    ):
        files.open(path, cache=40)
    with pytest.raises(TypeError, match="open: `cache` must be a str or an int, got NoneType"):
        files.open(path, cache=None)  # type: ignore[arg-type]
    for readers in (0, 5000):
        with pytest.raises(ValueError, match=f"`readers` must be from 1 to 1024, got {readers}"):
            files.open(path, readers=readers)
    with pytest.raises(TypeError, match="open: `readers` must be an integer"):
        files.open(path, readers=1.5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="open: `data` must be an array, got object"):
        files.open(object())
    with pytest.raises(FileNotFoundError):
        files.open(tmp_path / "none.npy")
    with pytest.raises(TypeError, match=r"^open: `storage_options` must be a dict"):
        files.open(path, storage_options=3)  # type: ignore[arg-type]
