"""Groups of keys in files, and results as tables with names."""

import csv
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from files.storage import put
from gatherum import groups
from gatherum._command.cli import run
from gatherum.files import reduce_file
from gatherum.files.arguments.outputs import RunSettings
from gatherum.files.grouped import keys

arrow = pytest.importorskip("pyarrow", reason="install pyarrow to test columns")
parquet: Any = pytest.importorskip("pyarrow.parquet", reason="install pyarrow to test columns")

pytestmark = [pytest.mark.frameworks, pytest.mark.usefixtures("quick_sync")]
RANDOM = np.random.default_rng(3)
LENGTH = 500
SHOPS = [None if n == 7 else f"shop {n}" for n in RANDOM.integers(0, 30, LENGTH)]
DAYS = np.datetime64("2026-01-01") + RANDOM.integers(0, 9, LENGTH)
NUMBERS = RANDOM.integers(0, 20, LENGTH)
PRICES, AMOUNTS = RANDOM.standard_normal(LENGTH), RANDOM.integers(0, 99, LENGTH)
PRICES[::9] = np.nan


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the path of a table in small row groups. Labels are merged often."""
    monkeypatch.setattr(keys, "MERGED", 40)
    columns = {"shop": SHOPS, "day": DAYS, "number": NUMBERS, "price": PRICES, "amount": AMOUNTS}
    columns["kind"] = arrow.array(SHOPS).dictionary_encode()
    unused = arrow.DictionaryArray.from_arrays(
        arrow.array(np.resize([2, 0], LENGTH)), ["b", "x", "a"]
    )
    columns["unused"] = unused
    path = str(tmp_path / "t.parquet")
    parquet.write_table(arrow.table(columns), path, row_group_size=64)
    return path


@pytest.mark.parametrize("column", ["shop", "kind", "day", "unused"])
@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_keys_of_a_column(table: str, column: str, suffix: str) -> None:
    content = parquet.read_table(table)
    path = table
    if suffix == "arrow":
        path = table.replace("parquet", "arrow")
        unified = content.unify_dictionaries()
        with arrow.ipc.new_file(path, unified.schema) as file:
            file.write_table(unified, max_chunksize=64)
    numbers, labels = groups.factorize(content[column])
    expected = groups.reduce(PRICES, numbers, func=["sum", "nanmax", "count"], mode="drop")
    result = reduce_file(f"{path}:price", f"{path}:{column}", func=["sum", "nanmax", "count"])
    assert list(result) == [column, "sum", "nanmax", "count"]
    assert result[column].tolist() == labels.tolist()
    assert all(result[func].tobytes() == expected[func].tobytes() for func in expected)


def test_several_columns(table: str) -> None:
    numbers, (shops, days) = groups.factorize(arrow.array(SHOPS), DAYS)
    result: Any = reduce_file(f"{table}:price,amount", f"{table}:shop,day", func="last")
    assert list(result) == ["shop", "day", "price_last", "amount_last"]
    assert (result["shop"] == shops).all()
    assert (result["day"] == days).all()
    for name, values in (("price", PRICES), ("amount", AMOUNTS)):
        last = groups.reduce(values, numbers, func="last", mode="drop")
        assert result[f"{name}_last"].tobytes() == last.tobytes()


def test_statistics_of_several_columns(table: str, tmp_path: Path) -> None:
    def read(values: str | None, by: str, func: Any) -> int:
        stats = reduce_file(values, f"{table}:{by}", tmp_path / "o.parquet", func=func)
        assert (stats.rows, stats.seconds > 0) == (LENGTH, True)
        assert stats.bytes_written == (tmp_path / "o.parquet").stat().st_size
        return stats.bytes_read

    groups_of = read(None, "number", "count")
    of_price, of_amount = (read(f"{table}:{name}", "number", "sum") for name in ("price", "amount"))
    assert of_price > groups_of > 0
    assert of_amount > groups_of
    assert read(f"{table}:price,amount", "number", "sum") == of_price + of_amount
    keys_of = read(None, "shop", "count")
    assert keys_of > LENGTH
    assert read(f"{table}:price", "shop", "sum") == keys_of + of_price - groups_of


def test_statistics_of_functions_on_the_disk(tmp_path: Path) -> None:
    values, by = np.arange(3e4), np.arange(30_000)
    paths = put(tmp_path, "v", values), put(tmp_path, "g", by)
    out, more = tmp_path / "o.csv", {"memory": "64KiB", "spill_dir": tmp_path}
    one = reduce_file(*paths, out, func=["sum"], **more)  # type: ignore[arg-type]
    assert one.rows == 30_000
    assert one.bytes_read >= values.nbytes + by.nbytes
    two = reduce_file(*paths, out, func=["sum", "count"], **more)  # type: ignore[arg-type]
    assert two.rows == 30_000
    assert two.bytes_read > one.bytes_read


def test_keys_of_arrays(tmp_path: Path) -> None:
    words = np.array(["b", "a", "b", "c"])
    for by in (words, put(tmp_path, "words", words)):
        result: Any = reduce_file(np.array([1, 2, 3, 4]), by)
        assert [part.tolist() for part in result.values()] == [["a", "b", "c"], [2, 4, 4]]
    message = "reduce_file: `size` must not be given for keys, got 3"
    with pytest.raises(ValueError, match=re.escape(message)):
        reduce_file(np.array([1, 2, 3, 4]), words, size=3)


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "csv", "npy"])
def test_tables(table: str, tmp_path: Path, suffix: str) -> None:
    out = tmp_path / f"out.{suffix}"
    funcs: Any = ["nanmean", "count"]
    reduce_file(f"{table}:price", f"{table}:number", out, func=funcs)
    expected = groups.reduce(PRICES, NUMBERS, func=funcs)
    if suffix == "csv":
        rows = list(csv.reader(out.read_text().splitlines()))
        assert rows[0] == ["number", "nanmean", "count"]
        columns = dict(zip(rows[0], map(np.array, zip(*rows[1:], strict=True)), strict=True))
        result = {name: columns[name].astype(expected[name].dtype) for name in funcs}
    elif suffix == "npy":
        records = np.load(out)
        result = {name: records[name].copy() for name in records.dtype.names}
    else:
        open_file = parquet.read_table if suffix == "parquet" else arrow.ipc.open_file
        content = open_file(out)
        content = content if suffix == "parquet" else content.read_all()
        assert content["number"].to_pylist() == list(range(20))
        result = {name: content[name].to_numpy() for name in funcs}
    assert all(result[name].tobytes() == expected[name].tobytes() for name in funcs)
    with pytest.raises(FileExistsError):
        reduce_file(f"{table}:price", f"{table}:number", out, func=funcs, overwrite=False)


def test_columns_that_cannot_be_written_are_refused(table: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"output .* is the same file as the values"):
        reduce_file(f"{table}:price", f"{table}:number", table)
    values, message = np.ones((2, 3)), "takes results of one dimension, 'sum' has shape (2, 3)"
    with pytest.raises(ValueError, match=re.escape(message)):
        reduce_file(values, np.arange(2), tmp_path / "o.csv")
    for out in (tmp_path / "o.parquet", tmp_path / "o.arrow"):
        message = f"reduce_file: {out} has no columns of complex64; write a .npy or .csv file"
        with pytest.raises(ValueError, match=re.escape(message)):
            reduce_file(np.ones(2, np.complex64), np.arange(2), out)
    with pytest.raises(ValueError, match="the file has no such column"):
        reduce_file(f"{table}:price", f"{table}:shop,no")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t.parquet"]


def test_the_command(table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "o.csv")
    words = put(tmp_path, "w", np.array(["b", "a", "b"])), put(tmp_path, "v", np.array([1, 2, 4]))
    assert run(["groups", words[1], words[0], "--func", "sum,nanmax"]) == 0
    lines = "group  sum  nanmax\n    a    2       2\n    b    5       4\n"
    assert capsys.readouterr().out == lines
    assert run(["groups", f"{table}:price", f"{table}:shop", "-o", out, "--weights",
                f"{table}:amount", "--func", "nanmean"]) == 0  # fmt: skip
    start = f"{out}: 29 rows of shop, nanmean, {Path(out).stat().st_size} B; from 500 rows in "
    assert capsys.readouterr().out.startswith(start)
    assert run(["groups", f"{table}:price", f"{table}:shop", "-o", out, "--no-clobber"]) == 1
    assert capsys.readouterr().err == (
        f"gatherum: {out}: exists already, and --no-clobber keeps it\n"
    )
    assert run(["groups", words[1], words[0], "--func", "sum,maxx"]) == 2
    assert "'maxx' is not a function, such as max" in capsys.readouterr().err
    arguments = ["groups", words[1], words[0], "--func", "median,quantile"]
    assert run([*arguments, "--q", "0.75", "--method", "higher"]) == 0
    lines = "group  median  quantile\n    a     2.0         2\n    b     2.5         4\n"
    assert capsys.readouterr().out == lines
    assert run(arguments) == 1
    assert "`q` must be a number in [0, 1]" in capsys.readouterr().err
    assert run([*arguments, "--q", "x"]) == 1
    assert "for 'quantile', got 'x'" in capsys.readouterr().err


def test_pandas_is_not_imported(table: str) -> None:
    """pyarrow imports pandas to convert arrays, which takes longer than a short call."""
    pytest.importorskip("pandas", reason="install pandas to test whether it is imported")
    code = (
        "import sys; from gatherum.files import reduce_file; "
        "reduce_file(sys.argv[1] + ':price', sys.argv[1] + ':shop', func=['sum', 'nanmean']); "
        "reduce_file(None, sys.argv[1] + ':shop', func='count'); sys.exit('pandas' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code, table], check=True)


@pytest.mark.parametrize("memory", ["64KiB", "1GiB"])
@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_row_groups_with_many_distinct_keys_are_numbered_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, memory: str
) -> None:
    names = np.array([f"name {n}é" for n in range(4000)], object)
    names[5::97] = None
    column = arrow.array(names[RANDOM.integers(0, len(names), 6000)])
    content = arrow.table({"name": column, "number": np.arange(6000.0)})
    path = str(tmp_path / f"t.{suffix}")
    if suffix == "parquet":
        parquet.write_table(content, path, row_group_size=1000)
    else:
        with arrow.ipc.new_file(path, content.schema) as file:
            file.write_table(content, max_chunksize=1000)
    sizes: list[int] = []
    encoded = keys._encoded

    def note(part: Any) -> Any:
        sizes.append(len(part))
        return encoded(part)

    monkeypatch.setattr(keys, "_encoded", note)
    numbered = keys.number_keys(f"{path}:name", RunSettings(memory, None, False, True, None))
    assert numbered is not None
    numbers, labels = groups.factorize(column)
    assert numbered.numbers.tolist() == numbers.tolist()
    assert numbered.labels["name"].tolist() == labels.tolist()
    together = {"parquet": [1000, 5000], "arrow": [6000]}[suffix]
    assert (sizes[: len(together)] == together) == (memory == "1GiB")
    assert sum(sizes) >= 6000
