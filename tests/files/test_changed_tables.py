"""An open table whose files change: every call raises an OSError that names `reload`."""

import asyncio
import os
import pickle
import shutil
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from files.open_tables import TABLE, forked
from files.storage import FORMATS, MISSING, put
from files.web import Web, serving
from gatherum import files
from gatherum.files.open_table import state
from gatherum.files.remote import store
from samples import every

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quick_sync", "watched_closely")]

ARROW = ("parquet", "arrow", "stream")
CACHED = ("npy", "hdf5 chunks", "zarr3", "parquet")
QUANTIZED = ("codes", "scales", "zero points")
REMOTE = ("npy", "safetensors", "zarr3", "shards")
KINDS = [
    *FORMATS, *ARROW, *(f"{file_format}, cached" for file_format in CACHED), "npy, direct",
    *(f"quantized {part}, {file_format}" for part in QUANTIZED for file_format in ("npy", "zarr3")),
    *(f"{file_format}, at a URL" for file_format in REMOTE),
]  # fmt: skip
FORKED = ("npy", "hdf5 chunks", "zarr3", "parquet", "quantized codes, npy")
WITHOUT_VERSIONS = ("zarr3, at a URL", "shards, at a URL")
SCALES = np.ones((300, 1), np.float32)
CODES = TABLE.astype(np.uint8)


def write(folder: Path, table_type: str, array: Any) -> str:
    """Write a table of a kind, replacing an old one, and return its path."""
    file_format = table_type.partition(",")[0]
    if file_format not in ARROW:
        shutil.rmtree(folder / "t.zarr", ignore_errors=True)
        return put(folder, "t", array, file_format)
    pyarrow = pytest.importorskip("pyarrow", reason=MISSING.format("pyarrow"))
    from pyarrow import parquet

    values = pyarrow.array(array.reshape(-1))
    rows = pyarrow.FixedSizeListArray.from_arrays(values, array.shape[1])
    table, path = pyarrow.table({"wanted": rows}), folder / f"t.{file_format}"
    if file_format == "parquet":
        parquet.write_table(table, path, row_group_size=50)
    else:
        begin = pyarrow.ipc.new_file if file_format == "arrow" else pyarrow.ipc.new_stream
        with begin(path, table.schema) as writer:
            writer.write_table(table, 50)
    return f"{path}:wanted"


def require_urls() -> None:
    for package in ("fsspec", "aiohttp"):
        pytest.importorskip(package, reason=MISSING.format(package))


@pytest.fixture
def web(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    """Serve the folder of a test."""
    monkeypatch.setattr(store, "FIRST_PAUSE", 0.001)
    monkeypatch.setattr(state, "FAR", -1.0)
    with serving(tmp_path) as web:
        yield web


class Case:
    """An open table, and the array whose files a test changes."""

    def __init__(self, folder: Path, web: Web, table_type: str) -> None:
        self.folder = folder
        if table_type.startswith("quantized"):
            _, part, file_format = (
                table_type.replace(",", "").replace("zero points", "zeros").split()
            )
            parts = {"codes": CODES, "scales": SCALES, "zeros": SCALES.astype(np.uint8)}
            self.array, self.table_type = parts[part], file_format
            paths = {
                name: write(folder, file_format, array)
                if name == part
                else put(folder, name, array)
                for name, array in parts.items()
            }
            self.table = files.open(
                paths["codes"], scales=paths["scales"], zero_points=paths["zeros"]
            )
            return
        self.array, self.table_type = TABLE, table_type
        path = write(folder, table_type, TABLE)
        if table_type.endswith("URL"):
            require_urls()
            path = web.url(path)
        cache = "1MiB" if table_type.endswith("cached") else "0"
        self.table = files.open(path, cache=cache, direct=table_type.endswith("direct"))

    @property
    def files(self) -> list[Path]:
        return [path for path in self.folder.rglob("*") if path.is_file() and "t." in str(path)]

    def again(self, array: Any) -> None:
        write(self.folder, self.table_type, array)


def cut(case: Case) -> None:
    for path in case.files:
        os.truncate(path, path.stat().st_size // 2)


def emptied(case: Case) -> None:
    for path in case.files:
        os.truncate(path, 0)


def garbled(case: Case) -> None:
    for path in case.files:
        with path.open("r+b") as file:
            file.write(b"\xa5" * path.stat().st_size)


def garbled_behind(case: Case) -> None:
    for path in case.files:
        size = path.stat().st_size
        with path.open("r+b") as file:
            file.seek(size // 3)
            file.write(b"\xa5" * (size // 2))


def removed(case: Case) -> None:
    for path in case.files:
        path.unlink()
    shutil.rmtree(case.folder / "t.zarr", ignore_errors=True)


def replaced(case: Case) -> None:
    other = case.folder / "new"
    other.mkdir()
    write(other, case.table_type, case.array + 1)
    for path in other.iterdir():
        if path.is_dir():
            shutil.rmtree(case.folder / path.name)
        os.replace(path, case.folder / path.name)


def other_values(case: Case) -> None:
    case.again(case.array + 1)


def other_shape(case: Case) -> None:
    case.again(case.array[:5])


def longer(case: Case) -> None:
    case.again(np.concatenate([case.array] * 2))


def other_dtype(case: Case) -> None:
    case.again(case.array.astype(np.int16))


CHANGES = (
    cut, emptied, garbled, garbled_behind, removed, replaced, other_values, other_shape, longer,
    other_dtype,
)  # fmt: skip


def calls_of(table: Any) -> dict[str, Callable[[], object]]:
    """Return each lookup of a table."""
    order = np.arange(300)[::-1].reshape(-1, 1)
    calls = {
        "gather": lambda: table.gather([250]),
        "gather row 0": lambda: table.gather([0]),
        "gather nothing": lambda: table.gather([]),
        "gather many": lambda: table.gather(np.arange(9000) % 300),
        "gather axis 1": lambda: table.gather([1], axis=1),
        "gather clip": lambda: table.gather([999], mode="clip"),
        "rows": lambda: list(table.rows([[1], [2]])),
        "rows axis 1": lambda: list(table.rows([[1], [2]], axis=1)),
        "submit": lambda: table.submit([1]).result(),
        "gather_async": lambda: asyncio.run(table.gather_async([1, 2])),
        "prefetch": lambda: table.prefetch([1]),
        "invalid": lambda: table.gather([300]),
    }
    if "Quantized" in type(table).__name__:
        return calls
    return calls | {
        "gather_nd": lambda: table.gather_nd([[0, 1]]),
        "gather_elements": lambda: table.gather_elements(order),
    }


def check(error: BaseException, name: str) -> None:
    assert isinstance(error, OSError), (name, error)
    assert "Table.reload opens it again" in getattr(error, "__notes__", ()), (name, error)


@pytest.mark.frameworks
@pytest.mark.parametrize(("table_type", "change"), every(3, product(KINDS, CHANGES)))
def test_every_call_on_a_table_that_changed(
    tmp_path: Path, web: Web, table_type: str, change: Callable[[Case], None]
) -> None:
    if table_type in WITHOUT_VERSIONS and change in (replaced, other_values):
        pytest.skip("the metadata of the array are the same, and chunks at a URL are not checked")
    case = Case(tmp_path, web, table_type)
    table = case.table
    calls = calls_of(table)
    calls["gather"]()
    begun = table.rows([n % 300] for n in range(5000))
    next(begun)
    change(case)
    for number, path in enumerate(case.files, 1):
        os.utime(path, ns=(number, number))  # clocks may be coarse
    for name, call in [("rows begun", lambda: list(begun)), *calls.items()]:
        with pytest.raises(Exception) as caught:
            call()
        check(caught.value, name)
    table.close()


@pytest.mark.frameworks
@pytest.mark.parametrize("table_type", ["hdf5 chunks", "zarr3", "parquet"])
@pytest.mark.parametrize("target", [None, "o.npy"])
def test_a_run_whose_table_is_damaged_meanwhile(
    tmp_path: Path, table_type: str, target: str | None
) -> None:
    table = np.random.default_rng(0).integers(0, 1 << 30, (6000, 60))
    case, path = Case.__new__(Case), write(tmp_path, table_type, table)
    case.folder = tmp_path

    def damage(*_: int) -> None:
        for file in case.files:
            if file.stat().st_mtime_ns != 7:
                with file.open("r+b") as opened:
                    opened.write(b"\xa5" * file.stat().st_size)
                os.utime(file, ns=(7, 7))

    out: Any = target and tmp_path / target
    indices = np.arange(6000)[::-1]
    with pytest.raises(OSError, match="changed while it was being read"):
        files.gather_file(path, indices, out, memory="1MiB", progress=damage)
    assert out is None or not out.exists()


@pytest.mark.frameworks
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
@pytest.mark.parametrize(("table_type", "change"), every(3, product(FORKED, CHANGES)))
def test_a_child_whose_parent_opened_another_file(
    tmp_path: Path, table_type: str, change: Callable[[Case], None]
) -> None:
    case = Case(tmp_path, None, table_type)  # type: ignore[arg-type]
    case.table.gather([1])
    change(case)
    for number, path in enumerate(case.files, 1):
        os.utime(path, ns=(number, number))

    def child() -> None:
        with pytest.raises(OSError, match=r"changed since|No such file|there is no") as caught:
            case.table.gather([1])
        check(caught.value, "child")

    assert forked(child) == 0


@pytest.mark.frameworks
def test_a_table_is_open_after_its_rows_are_given_up(tmp_path: Path, web: Web) -> None:
    require_urls()
    table = files.open(web.url(put(tmp_path, "t", TABLE)))
    begun = table.rows([n % 300] for n in range(5000))
    next(begun)
    begun.close()
    assert table.gather([3]).tolist() == TABLE[[3]].tolist()
    assert pickle.loads(pickle.dumps(table)).gather([3]).tolist() == TABLE[[3]].tolist()


@pytest.mark.frameworks
def test_a_failing_server_is_not_reported_as_a_changed_table(tmp_path: Path, web: Web) -> None:
    require_urls()
    table = files.open(web.url(put(tmp_path, "t", np.zeros((9000, 8)))))
    web.fail("503", times=99)
    with pytest.raises(OSError, match="the server answered 503") as caught:
        table.gather([8000])
    assert not hasattr(caught.value, "__notes__")
