"""`reduce_file` on columns of decimals: the results and refusals of `groups.reduce`."""

import csv
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gatherum import groups
from gatherum._command.cli import run
from gatherum.files import gather_file, reduce_file

arrow: Any = pytest.importorskip("pyarrow", reason="install pyarrow to test columns")
parquet: Any = pytest.importorskip("pyarrow.parquet", reason="install pyarrow to test columns")

pytestmark = [pytest.mark.frameworks, pytest.mark.usefixtures("quick_sync")]
RANDOM = np.random.default_rng(11)
LENGTH = 500
GROUPS = RANDOM.integers(0, 9, LENGTH)
FUNCTIONS: Any = ["sum", "mean", "max", "min", "count"]
CENTS = RANDOM.integers(-(10**8), 10**8, LENGTH).tolist()
LARGE = RANDOM.integers(2**61, 2**63 - 1, LENGTH).tolist()  # the sums have more than 64 bits
WIDE = [n * 10**15 - 7 for n in LARGE]
COLUMNS: dict[str, tuple[Any, list[int]]] = {
    "decimal32": (arrow.decimal32(9, 2), CENTS),
    "decimal64": (arrow.decimal64(18, 4), CENTS),
    "decimal128": (arrow.decimal128(12, 2), CENTS),
    "large": (arrow.decimal128(38, 2), LARGE),
    "wide": (arrow.decimal128(38, 0), WIDE),
    "decimal256": (arrow.decimal256(60, 3), WIDE),
}


def column_of(name: str) -> Any:
    arrow_type, integers = COLUMNS[name]
    return arrow.array([Decimal(n).scaleb(-arrow_type.scale) for n in integers], arrow_type)


def put(folder: Path, columns: dict[str, Any], suffix: str = "parquet") -> str:
    path, table = str(folder / f"t.{suffix}"), arrow.table(columns)
    if suffix == "parquet":
        parquet.write_table(table, path, row_group_size=64)
    else:
        with arrow.ipc.new_file(path, table.schema) as file:
            file.write_table(table, max_chunksize=64)
    return path


def text(results: dict[str, Any]) -> dict[str, list[str]]:
    return {name: [str(number) for number in array] for name, array in results.items()}


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_the_numbers_are_those_in_memory(tmp_path: Path, name: str, suffix: str) -> None:
    column = column_of(name)
    path = put(tmp_path, {"price": column, "shop": GROUPS}, suffix)
    more: Any = {"size": 12, "fill_value": Decimal("0.5")}
    for func in (FUNCTIONS, *([func] for func in FUNCTIONS)):
        options = more | ({"fill_value": 3} if "count" in func else {})
        expected = groups.reduce(column, GROUPS, func=func, **options)
        memory = "1MiB" if COLUMNS[name][1] is WIDE else "64KiB"
        result = reduce_file(f"{path}:price", f"{path}:shop", func=func, memory=memory, **options)
        assert text(result) == text(expected)
    every_other = np.where(GROUPS % 2, GROUPS, -1)
    one = reduce_file(f"{path}:price", every_other, size=9, mode="drop")
    assert one.tolist() == groups.reduce(column, every_other, 9, mode="drop").tolist()


@pytest.mark.parametrize("name", ["decimal64", "large", "wide"])
def test_decimals_in_memory(tmp_path: Path, name: str) -> None:
    column, numbers = column_of(name), column_of(name).to_pylist()
    expected = text(groups.reduce(column, GROUPS, func=FUNCTIONS))
    for values in (np.array(numbers, object), numbers, column):
        assert text(reduce_file(values, GROUPS, func=FUNCTIONS)) == expected
    table = np.array(numbers, object).reshape(2, -1)
    options: dict[str, Any] = {"func": FUNCTIONS, "size": 12, "axis": 1, "fill_value": 3}
    lines = groups.reduce(table, GROUPS[:250], **options)
    found = reduce_file(table, GROUPS[:250], **options)
    assert {name: line.tolist() for name, line in found.items()} == {
        name: line.tolist() for name, line in lines.items()
    }
    out = tmp_path / "o.parquet"
    stats = reduce_file(np.array(numbers, object), np.array([f"s{n}" for n in GROUPS]), out)
    assert stats.rows == LENGTH
    assert parquet.read_table(out)["sum"].to_pylist() == groups.reduce(column, GROUPS).tolist()


def test_sums_are_read_again_only_if_they_may_wrap_around(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gatherum.files.formats import arrow_decimals

    parts: list[int] = []
    part_of = arrow_decimals.part_of

    def counted(word: Any, first: int, *arguments: Any, **more: Any) -> Any:
        parts.append(first)
        return part_of(word, first, *arguments, **more)

    monkeypatch.setattr(arrow_decimals, "part_of", counted)
    for name, firsts in (("decimal128", set()), ("large", {0, 32})):
        path = put(tmp_path, {"price": column_of(name), "shop": GROUPS})
        reduce_file(f"{path}:price", f"{path}:shop")
        assert set(parts) == firsts


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "csv"])
def test_keys_and_tables(tmp_path: Path, suffix: str) -> None:
    shops = [f"s{n}" for n in GROUPS]
    columns = {"price": column_of("large"), "cost": column_of("decimal64"), "shop": shops}
    path, out = put(tmp_path, columns), tmp_path / f"o.{suffix}"
    stats = reduce_file(f"{path}:price,cost", f"{path}:shop", out, func=["sum", "max"])
    assert stats.rows == LENGTH
    expected: dict[str, Any] = {"shop": sorted(set(shops))}
    for name in ("price", "cost"):
        results = groups.reduce(columns[name], GROUPS, func=["sum", "max"])
        expected |= {f"{name}_{func}": result.tolist() for func, result in results.items()}
    if suffix == "csv":
        rows = list(csv.reader(out.read_text().splitlines()))
        table: dict[str, Any] = dict(zip(rows[0], zip(*rows[1:], strict=True), strict=True))
        assert all(list(map(str, expected[name])) == list(table[name]) for name in expected)
    else:
        content = parquet.read_table(out) if suffix == "parquet" else arrow.ipc.open_file(out)
        content = content if suffix == "parquet" else content.read_all()
        assert content.to_pydict() == expected
        assert content["price_sum"].type == arrow.decimal128(38, 2)


def test_a_sum_of_more_than_38_digits(tmp_path: Path) -> None:
    prices = arrow.array([Decimal(10**38 - 1)] * 2, arrow.decimal128(38, 0))
    path, out = put(tmp_path, {"price": prices}), tmp_path / "o.parquet"
    reduce_file(f"{path}:price", [0, 0], out)
    assert parquet.read_table(out)["sum"].to_pylist() == [2 * (10**38 - 1)]


def test_decimals_in_files_have_the_errors_of_decimals_in_memory(tmp_path: Path) -> None:
    path = f"{put(tmp_path, {'price': column_of('decimal128')})}:price"
    calls: list[tuple[dict[str, Any], str]] = [
        ({"func": "prod"}, "`func` 'prod' is not defined for decimals, only 'sum', 'mean'"),
        ({"weights": np.ones(LENGTH)}, "`weights` must not be given for decimals"),
        ({"fill_value": 0.5}, "`fill_value` must be a Decimal or an integer, got 0.5"),
        ({"func": "max", "size": 12}, "group 9 "),
        ({"func": "max", "size": 8}, "group 8 "),
    ]  # fmt: skip
    for options, message in calls:
        with pytest.raises((TypeError, ValueError, IndexError)) as in_memory:
            groups.reduce(column_of("decimal128"), GROUPS, **options)
        with pytest.raises(type(in_memory.value)) as refused:
            reduce_file(path, GROUPS, **options)
        assert str(refused.value) == str(in_memory.value).replace("groups.reduce", "reduce_file")
        assert message in str(refused.value)
        with pytest.raises(type(in_memory.value), match=re.escape(str(refused.value))):
            reduce_file(np.array(column_of("decimal128").to_pylist(), object), GROUPS, **options)
    out = tmp_path / "o.npy"
    message = f"reduce_file: {out} cannot contain decimals; write a .parquet, .arrow, .feather"
    with pytest.raises(ValueError, match=re.escape(message)):
        reduce_file(path, GROUPS, out)
    assert not out.exists()
    for fill in (Decimal("NaN"), Decimal("-Infinity")):
        with pytest.raises(ValueError, match=r"cannot be written: The string '.+' is not a"):
            reduce_file(path, GROUPS, tmp_path / "o.parquet", size=12, fill_value=fill)
        with pytest.raises(ValueError, match="`fill_value` must convert exactly to the dtype of"):
            reduce_file(path, GROUPS, func="count", size=12, fill_value=fill)
    missing = f"{put(tmp_path, {'price': arrow.array([Decimal(1), None])})}:price"
    with pytest.raises(TypeError, match="group 0 must be without nulls, got some; write it anew"):
        reduce_file(missing, [0, 0])
    wide = f"{put(tmp_path, {'price': column_of('wide')})}:price"
    message = "`func` 'sum' of dtype decimal128 needs all values in memory, 68000 bytes"
    with pytest.raises(ValueError, match=re.escape(message)):
        reduce_file(wide, GROUPS, memory="64KiB")
    with pytest.raises(ValueError, match="write decimals as integers, such as cents"):
        gather_file(wide, [0], out)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prices = arrow.array([Decimal("0.10"), Decimal("0.20"), Decimal("5.00")])
    path = put(tmp_path, {"price": prices, "shop": ["b", "b", "a"], "number": [0, 0, 1]})
    assert run(["groups", f"{path}:price", f"{path}:shop", "--func", "sum,mean"]) == 0
    assert capsys.readouterr().out == "shop   sum  mean\n   a  5.00  5.00\n   b  0.30  0.15\n"
    assert run(["groups", f"{path}:price", f"{path}:number"]) == 0
    assert capsys.readouterr().out == "[0.30 5.00]\n"


def test_a_fill_value_of_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prices = arrow.array([Decimal("0.10"), Decimal("12345678901234567890.20")])
    columns = {"price": prices, "weight": [1.5, 2.5], "shop": [0, 2]}
    path = put(tmp_path, columns)

    def printed(values: str, fill: str, func: str = "max") -> str:
        arguments = [f"{path}:{values}", f"{path}:shop", "--func", func, "--fill-value", fill]
        status = run(["groups", *arguments])
        output = capsys.readouterr()
        return output.err if status else output.out

    for fill in ("0.50", " 5e-1", "98765432109876543210.5", "-7", "1e3"):
        exact = Decimal(fill.strip())
        assert printed("price", fill) == f"[0.10 {exact} 12345678901234567890.20]\n"
    assert printed("price,weight", "0.50").split()[4:6] == ["0.50", "0.5"]
    assert printed("price", "5.00", "count") == "[1 5 1]\n"
    for fill, found in (("nan", "nan"), ("1_0", "'1_0'"), ("1j", "1j"), ("-inf", "-inf")):
        message = f"gatherum: groups: `fill_value` must be a Decimal or an integer, got {found}\n"
        assert printed("price", fill) == message
    message = "gatherum: groups: `fill_value` must convert exactly to the dtype of the result"
    assert printed("price", "0.50", "count").startswith(message)
