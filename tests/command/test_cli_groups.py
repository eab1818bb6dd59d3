"""The command `groups`: its results, its errors, and its advice on keys."""

import io
import sys
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from command_lines import npy

pytest.importorskip("click", reason="install the command line: pip install click rich")

NUMBER = "number other keys with gatherum.groups.factorize(keys)"
CENTS = "write decimals as integers, such as cents"


@pytest.fixture
def values(folder):
    """Write four values, and groups and keys for them."""
    np.save("values.npy", np.arange(4.0))
    np.save("shop.npy", np.array([2, 0, 2, 1]))
    np.save("prices.npy", np.array([1.5, 2.5, 1.5, 0.5]))
    Path("words.csv").write_text("key\na\nb\na\nc\n")
    Path("prices.csv").write_text("1.5\n2.5\n1.5\n0.5\n")


def test_results(run):
    np.save("shop.npy", np.array([0, 2, 2, 0]))
    Path("shop.csv").write_text("0,2,2,0\n")
    assert run("groups", "table.npy", "shop.npy", "-o", "o.npy", "--func", "mean")[0] == 0
    assert np.load("o.npy")[0].tolist() == [4.5, 5.5, 6.5]
    assert np.isnan(np.load("o.npy")[1]).all()
    for groups in ("shop.npy", "shop.csv"):
        assert run("groups", groups, "--func", "count", "--size", "4") == (0, "[2 0 2 0]\n", "")
    result = run("groups", "table.npy", "shop.csv", "--func", "max", "--fill-value", "-1")
    assert result == (0, "[[ 9. 10. 11.]\n [-1. -1. -1.]\n [ 6.  7.  8.]]\n", "")
    assert run("groups", "table.npy")[0::2] == (
        2, "gatherum: Missing argument 'GROUPS'. See gatherum groups --help.\n",
    )  # fmt: skip
    assert run("groups", "table.npy", "shop.npy", "--size", "2")[0::2] == (
        1, "gatherum: groups: group 2 is not in [0, 2) (groups[1])\n",
    )  # fmt: skip
    status, _, line = run("groups", "table.npy", "shop.npy", "-o", "o.npy", "--no-clobber")
    assert (status, "exists already" in line) == (1, True)


def test_streams(run, stdin, monkeypatch):
    shop = np.array([0, 2, 2, 0])
    np.save("shop.npy", shop)
    summed = "[[ 9. 11. 13.]\n [ 0.  0.  0.]\n [ 9. 11. 13.]]\n"
    for arguments, content, expected in (
        ("- shop.npy", npy(np.load("table.npy")), summed),
        ("table.npy -", npy(shop), summed),
        ("table.npy -", b"0 2 2 0", summed),
        ("- --func count", b"0 2 2 0", "[2 0 2]\n"),
    ):
        stdin(content)
        assert run("groups", *arguments.split()) == (0, expected, "")
    stdin(npy(shop))
    with monkeypatch.context() as patch:
        stream = io.TextIOWrapper(io.BytesIO())
        patch.setattr(sys, "stdout", stream)
        assert run("groups", "-", "--func", "count", "-o", "-", "--no-clobber")[::2] == (0, "")
        assert stream.buffer.getvalue() == npy(np.array([2, 0, 2]))
    message = "VALUES and GROUPS cannot both be standard input. See gatherum groups --help."
    assert run("groups", "-", "-") == (2, "", f"gatherum: {message}\n")
    stdin(b"0 x")
    message = f"standard input, line 1: expected integers, got '0 x'; {NUMBER}"
    assert run("groups", "table.npy", "-") == (1, "", f"gatherum: {message}\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("values.npy shop.npy --size 2", "group 2 is not in [0, 2) (groups[0])"),
        ("values.npy shop.npy --axis 3", "`axis` must be in [-1, 1), got 3"),
        ("table.npy shop.npy --axis 1",
         "`groups` must have shape (3,), or that of `values`, (4, 3), got (4,)"),
    ],
)  # fmt: skip
def test_messages_name_the_command(run, values, arguments, message):
    assert run("groups", *arguments.split()) == (1, "", f"gatherum: groups: {message}\n")


def test_the_error_for_an_unknown_file_names_text_files(run):
    *_, err = run("groups", "table.npy", "rows.dat")
    assert err.endswith(". GROUPS may also be a .csv, .tsv or .txt file\n")


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ("prices.npy", f"groups: `groups` must have an integer dtype, got float64; {CENTS}"),
        ("words.csv", f"words.csv, line 2: expected integers, got 'a'; {NUMBER}"),
        ("prices.csv", f"prices.csv, line 1: expected integers, got '1.5'; {CENTS}"),
    ],
)
def test_keys_that_are_not_integers(run, values, groups, message):
    assert run("groups", "values.npy", groups) == (1, "", f"gatherum: {message}\n")


@pytest.mark.frameworks
def test_a_column_of_decimals(run, values):
    arrow = pytest.importorskip("pyarrow", reason="install pyarrow to test columns")
    from pyarrow import parquet

    prices = arrow.array([Decimal("1.50")] * 4)
    parquet.write_table(arrow.table({"prices": prices}), "t.parquet")
    assert run("groups", "values.npy", "t.parquet:prices") == (
        1,
        "",
        "gatherum: t.parquet:prices: a column of decimal128(3, 2), expected numbers, bools, times "
        f"without a zone, or lists of these; {CENTS}\n",
    )
