"""Errors of the command name its subcommands and the kinds of files."""

from pathlib import Path

import numpy as np
import pytest

cli = pytest.importorskip("gatherum._command.cli", reason="install click: pip install click rich")

ARRAYS = "names no kind of output: expected 'x.npy', 'model.safetensors:tensor', 'x.h5:dataset'"
ZARR = "a Zarr directory such as 'x.zarr'"
OUTPUTS = f"{ARRAYS} or {ZARR}"
TABLES = f"{ARRAYS}, {ZARR}, 'x.parquet', 'x.arrow', 'x.feather' or 'x.csv'"


@pytest.fixture
def run(tmp_path, monkeypatch, capfd):
    """Run a command line in a folder of small files. Return the status and the error."""
    monkeypatch.chdir(tmp_path)
    np.save("table.npy", np.arange(12.0).reshape(4, 3))
    np.save("values.npy", np.arange(4.0))
    np.save("rows.npy", np.array([2, 0, 2, 1]))
    np.save("prices.npy", np.array([1.5, 2.5, 1.5, 0.5]))
    Path("words.csv").write_text("key\na\nb\na\nc\n")
    Path("out").write_text("text")

    def call(line):
        status = cli.run(line.split())
        out, err = capfd.readouterr()
        assert out == ""
        return status, err

    return call


@pytest.mark.frameworks
@pytest.mark.parametrize(
    "line",
    [
        "gather table.npy rows.npy -o {}",
        "gather table.npy rows.npy -o {} --no-clobber",
        "gather table.npy rows.npy -o {} --workers 2",
        "scatter-slices table.npy rows.npy table.npy -o {}",
        "groups values.npy rows.npy -o {}",
        "groups values.npy rows.npy -o {} --no-clobber",
    ],
)
@pytest.mark.parametrize("out", ["out.txt", "none", "out"])
def test_an_output_of_no_kind(run, line, out):
    if "--workers" in line:
        pytest.importorskip("distributed", reason="install dask distributed")
    outputs = TABLES if line.startswith("groups") else OUTPUTS
    assert run(line.format(out)) == (1, f"gatherum: '{out}' {outputs}\n")
    assert Path("out").read_text() == "text"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("gather-nd table.npy prices.npy -o o.npy",
         "gather-nd: `indices` must have an integer dtype, got float64"),
        ("gather-elements table.npy rows.npy -o o.npy",
         "gather-elements: `indices` must have as many dimensions as `data`, 2, got 1"),
        ("scatter-slices table.npy rows.npy rows.npy -o o.npy",
         "scatter-slices: `updates` must have the dtype of `data`, float64, got int64"),
        ("explain scatter-nd --data 4 --indices 2x2",
         "scatter-nd: the last dimension of `indices` must be at most 1, the dimensions of `data` "
         "that are not batch dimensions, got 2"),
    ],
)  # fmt: skip
def test_messages_name_the_command(run, line, message):
    assert run(line) == (1, f"gatherum: {message}\n")


def test_advice_is_for_keys_of_groups_only(run):
    line = "gatherum: words.csv, line 2: expected integers, got 'a'\n"
    assert run("gather table.npy words.csv -o o.npy") == (1, line)
