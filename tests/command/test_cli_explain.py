"""The command `explain`, and its pictures."""

import re
import sys

import numpy as np
import pytest

import gatherum
from command_lines import Terminal
from source import ROOT

click = pytest.importorskip("click", reason="install the command line: pip install click rich")
pytest.importorskip("rich", reason="install the command line: pip install click rich")
import gatherum._command.cli.files  # noqa: E402  # whose files the tests replace
from gatherum._command import cli  # noqa: E402

EXAMPLES = ROOT / "examples"


def test_explain_prints_and_draws_the_same_as_python(run, folder):
    arguments = ["--data", "2x3x4", "--indices", "5", "--axis", "1", "--svg", "picture.svg"]
    status, out, err = run("explain", "gather", *arguments)
    explanation = gatherum.explain("gather", ((2, 3, 4), "f4"), ((5,), "i8"), axis=1)
    assert (status, err) == (0, "")
    assert out == f"{explanation}\n\n{explanation.text()}\n\nPicture: picture.svg\n"
    assert (folder / "picture.svg").read_text(encoding="utf-8") == explanation.svg()


def test_explain_fits_the_terminal_and_has_colours(monkeypatch):
    arguments = [
        "explain",
        "scatter-nd",
        "--data",
        "6",
        "--values",
        "0,2,2,5",
        "--reduction",
        "add",
    ]
    monkeypatch.setenv("COLUMNS", "60")
    for variable, coloured in (("GATHERUM_UNUSED", True), ("NO_COLOR", False)):
        monkeypatch.setenv(variable, "1")
        monkeypatch.setattr(sys, "stdout", Terminal())
        assert cli.run(arguments) == 0
        out = sys.stdout.getvalue()
        assert ("\x1b[38;5;" in out) == coloured
        plain = re.sub(r"\x1b\[[0-9;]*m", "", out)
        assert max(map(len, plain.splitlines())) <= 60
        assert (
            """
    for i in range(4):
        x = check(indices[8*i], 6)
        out[4*x] = add(out[4*x], updates[4*i])  # 4 bytes
    # check(x, n): x in [-n, n), counted from the end below
    # 0; else an IndexError

"""
            in plain
        )
        explanation = gatherum.explain("scatter_nd", ((6,), "f4"), np.array([[0], [2], [2], [5]]),
                                       ((4,), "f4"), reduction="add")  # fmt: skip
        assert plain.endswith(f"\n{explanation.text(60)}\n")
        words = f"{explanation} {explanation.text(60)}".replace("#", "").split()
        assert plain.replace("#", "").split() == words


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["gather_nd", "--data", "4x3", "--values", "0,2,2,7"],
         "  found     4 entries, 1 invalid"),
        (["gather", "--data", "table.npy", "--indices", "rows.npy"], "  data      float64 (4, 3)"),
        (["gather", "--data", "table.npy", "--values", "rows.npy"], "  found     3 entries, 0"),
        (["gather", "--data", "9", "--values", "1,2,3,4", "--indices", "2x2"], "float32 (2, 2)"),
        (["gather-nd", "--data", "scalar", "--indices", "3x0"], "gather_nd -> float32 (3,)"),
        (["scatter-nd", "--data", "2x3x4", "--indices", "2x7x1", "--batch-dims", "1"],
         "  updates   float32 (2, 7, 4)"),
        (["scatter-elements", "--data", "4x3", "--indices", "columns.npy", "--axis", "1"],
         "  updates   float32 (4, 1)"),
        (["scatter-nd", "--data", "table.npy", "--indices", "points.npy", "--updates", "ones.npy",
          "--reduction", "mean", "--exclude-self"], "reduction='mean', include_self=False"),
        (["gather", "--data", "9", "--values", "200", "--index-dtype", "uint8", "--mode", "fill",
          "--fill-value", "nan", "--no-negative"], "mode='fill', negative=False"),
    ],
)  # fmt: skip
def test_explain_takes_shapes_lists_and_files(run, arguments, expected):
    status, out, err = run("explain", *arguments)
    assert (status, err) == (0, "")
    assert expected in out


def test_explain_names_the_kernels_of_a_device(run):
    operands = ["--data", "100000x64", "--indices", "1000000"]
    fold = ["--reduction", "add", "--mode", "drop", "--device", "cuda"]
    status, out, err = run("explain", "scatter-slices", *operands, *fold)
    assert (status, err) == (0, "")
    expected = """
  device    cuda
  launches  gather + keys + sort + fold + fold_long + fold_long + fold_long: the updates are \
sorted by destination, then folded in order
    gather         copies the data; 16 bytes at a time; 32-bit offsets
    keys           computes the destination number of each update; int64 indices; 32-bit offsets
    sort           sorts the updates by destination: launches for each digit of the keys; \
keys of 4 bytes, payload of 4 bytes
    fold           folds each destination's updates in order, by a thread; add of float32; \
4 items at a time; 32-bit offsets
    fold_long      folds destinations with more than 16 updates, by a warp; add of float32; \
4 items at a time; 32-bit offsets
    fold_long      folds destinations with more than 512 updates, by a block; add of float32; \
4 items at a time; 32-bit offsets
    fold_long      folds destinations with more than 8192 updates, by a block; add of float32; \
4 items at a time; 32-bit offsets
  moves     571,200,000 bytes, scratch 17,003,520 bytes

Loops"""
    assert expected in out
    status, out, _ = run("explain", "gather", "--data", "9", "--values", "1,9", "--device", "cuda")
    assert status == 0
    assert "    gather         moves the items that the indices address; int64 indices; 4 by" in out
    assert "  raises    IndexError: gather: index 9 is out of bounds for axis 0 of size 9" in out


def test_the_floor_of_a_device_needs_one(run, monkeypatch):
    def no_driver(*_):
        raise RuntimeError("no CUDA device answers")

    monkeypatch.setattr("gatherum.cuda.explain.open_driver", no_driver)
    arguments = ["gather", "--data", "9", "--indices", "3", "--device", "cuda", "--floor"]
    status, out, err = run("explain", *arguments)
    assert (status, err) == (1, "gatherum: no CUDA device answers\n")
    assert "  launches  gather: every item" in out


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["take", "--data", "2", "--indices", "3"], 2,
         "Invalid value for 'OP': 'take' is not one of 'gather', 'gather-elements', 'gather-nd', "
         "'scatter-slices', 'scatter-elements', 'scatter-nd'."),
        (["gather", "--data", "2xa", "--indices", "3"], 2,
         "Invalid value for '--data': must be sizes such as 2x3x4, scalar, a .npy file or -, got "
         "'2xa'."),
        (["gather", "--data", "2", "--values", "1,b"], 2,
         "Invalid value for '--values': must be integers such as 0,2,2,7, a .npy file or -, got "
         "'1,b'."),
        (["gather", "--data", "2"], 2, "Missing option '--indices' (or '--values')."),
        (["gather", "--data", "2", "--values", "-1", "--index-dtype", "u1"], 2,
         "--values must fit into --index-dtype uint8."),
        (["gather", "--data", "2", "--values", "1", "--indices", "rows.npy"], 2,
         "--values and a file of --indices exclude each other."),
        (["gather", "--data", "2", "--indices", "1", "--batch-dims", "0"], 2,
         "gather takes --axis, not --batch-dims."),
        (["gather", "--data", "2", "--indices", "1", "--updates", "2"], 2,
         "gather takes no --updates."),
        (["gather", "--data", "2", "--indices", "1", "--updates", str(EXAMPLES / "planets.npy")], 2,
         "gather takes no --updates."),
        (["gather", "--data", "2", "--indices", "1", "--reduction", "add"], 2,
         "gather takes no --reduction."),
        (["gather", "--data", "2", "--indices", "1", "--exclude-self"], 2,
         "gather takes no --exclude-self."),
        (["gather", "--data", "2", "--indices", "1", "--dtype", "float31"], 2,
         "Invalid value for '--dtype': must be a dtype such as float32, got 'float31'."),
        (["gather", "--data", "2x3", "--indices", "1", "--axis", "2"], 1,
         "gather: `axis` must be in [-2, 2), got 2"),
        (["scatter-nd", "--data", "2", "--indices", "1x1", "--updates", "3"], 1,
         "scatter-nd: `updates` must have shape (1,), got (3,)"),
        (["gather", "--data", "9", "--values", "1,2,3", "--indices", "2x2"], 1,
         "explain: --values must be 4 numbers for indices of shape (2, 2), got 3"),
        (["gather", "--data", "9", "--indices", "3", "--mode", "wrap", "--fill-value", "1"], 2,
         "--fill-value is for --mode fill or drop, got --mode wrap."),
        (["gather", "--data", "none.npy", "--indices", "3"], 1,
         "none.npy: No such file or directory"),
        (["gather", "--data", "empty.npy", "--indices", "3"], 1,
         "empty.npy: not a .npy file (no \\x93NUMPY at its beginning)"),
    ],
)  # fmt: skip
def test_errors_of_explain(run, folder, arguments, status, message):
    (folder / "empty.npy").touch()
    if status == 2:
        message += " See gatherum explain --help."
    assert run("explain", *arguments) == (status, "", f"gatherum: {message}\n")


def test_a_picture_creates_no_folder(run, folder):
    arguments = "gather", "--data", "2x3", "--indices", "2", "--svg", "missing/x.svg"
    message = f"missing/x.svg: the directory {folder.resolve()}/missing does not exist"
    assert run("explain", *arguments) == (1, "", f"gatherum: {message}\n")
    with pytest.raises(FileNotFoundError) as raised:
        gatherum.explain("gather", (2, 3), (2,)).save("missing/x.svg")
    assert str(raised.value) == message
    assert not (folder / "missing").exists()


def test_a_picture_replaces_no_operand(run, folder):
    before = (folder / "rows.npy").read_bytes()
    arguments = "gather", "--data", "table.npy", "--values", "rows.npy", "--svg", "./rows.npy"
    message = "gatherum: explain: the picture ./rows.npy is the same file as --values\n"
    assert run("explain", *arguments) == (1, "", message)
    assert (folder / "rows.npy").read_bytes() == before
