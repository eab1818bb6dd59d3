"""The commands that gather, scatter and reduce files, and their progress."""

import io
import re
import sys

import numpy as np
import pytest

from command_lines import Terminal, shell
from source import ROOT

click = pytest.importorskip("click", reason="install the command line: pip install click rich")
pytest.importorskip("rich", reason="install the command line: pip install click rich")
from gatherum.files.resources import progress as progress_of_files  # noqa: E402

EXAMPLES = ROOT / "examples"
TABLE = np.arange(12.0).reshape(4, 3)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["gather", "table.npy", "rows.npy"], TABLE[[2, 0, 2]]),
        (["gather", "table.npy", "rows.npy", "--axis", "1"], TABLE[:, [2, 0, 2]]),
        (
            ["gather", "table.npy", "bad.npy", "--mode", "fill", "--fill-value", "-2.5"],
            np.array([TABLE[1], [-2.5] * 3]),
        ),
        (
            ["gather", "table.npy", "bad.npy", "--mode", "clip"],
            TABLE[[1, 3]],
        ),
        (
            ["gather-elements", "table.npy", "columns.npy", "--axis", "1"],
            np.array([[2.0], [3], [7], [10]]),
        ),
        (["gather-nd", "table.npy", "points.npy"], np.array([1.0, 11, 1])),
        (
            ["gather-nd", "table.npy", "columns.npy", "--batch-dims", "1"],
            np.array([2.0, 3, 7, 10]),
        ),
        (
            ["scatter-nd", "table.npy", "points.npy", "ones.npy", "--reduction", "add"],
            TABLE + np.array([[0, 2, 0], [0, 0, 0], [0, 0, 0], [0, 0, 1]]),
        ),
        (
            [
                *["scatter-nd", "table.npy", "points.npy", "ones.npy"],
                *["--reduction", "add", "--exclude-self"],
            ],
            np.array([[0, 2, 2], [3, 4, 5], [6, 7, 8], [9, 10, 1.0]]),
        ),
        (
            ["scatter-slices", "table.npy", "rows.npy", "ones.npy", "--reduction", "add"],
            TABLE + np.array([[1], [0], [2], [0]]),
        ),
        (
            ["scatter-elements", "table.npy", "columns.npy", "four.npy", "--axis", "1"],
            np.array([[0, 1, 1], [1, 4, 5], [6, 1, 8], [9, 1, 11.0]]),
        ),
    ],
)
def test_operators_on_files(run, arguments, expected):
    status, out, err = run(*arguments, "-o", "out.npy")
    assert (status, err) == (0, "")
    assert out.startswith("out.npy: ")
    result = np.load("out.npy")
    assert result.dtype == expected.dtype
    assert result.tolist() == expected.tolist()


def test_a_scatter_in_place(run):
    arguments = ["scatter-nd", "table.npy", "points.npy", "ones.npy", "--in-place"]
    assert run(*arguments)[0] == 0
    assert np.load("table.npy")[[0, 3], [1, 2]].tolist() == [1, 1]
    assert run(*arguments, "-o", "out.npy") == (
        2,
        "",
        "gatherum: --in-place changes TABLE, so it takes no --out. "
        "See gatherum scatter-nd --help.\n",
    )


def blocks_of_readme(language):
    text = (EXAMPLES.parent / "README.md").read_text()
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def test_the_first_command_of_the_readme_prints_the_output_shown(folder, run):
    *_, command = blocks_of_readme("bash")[0].strip().split(" && .venv/bin/gatherum ")
    (folder / "examples").symlink_to(EXAMPLES)
    status, out, err = run(*command.split())
    assert (status, err) == (0, "")
    assert out == blocks_of_readme("text")[0]
    assert "Jupiter" in out


def test_ci_runs_the_second_command_of_the_readme():
    command = (
        r"""awk '/^```bash$/ { block++; inside = 1; next } """
        r"""/^```$/ { inside = 0 } inside && block == 2' README.md"""
    )
    assert command in (EXAMPLES.parent / ".ci" / "run").read_text()
    done = shell("bash", "-c", command, cwd=EXAMPLES.parent)
    assert done.stdout == blocks_of_readme("bash")[1]
    assert done.stdout.endswith(".venv/bin/nox -s test\n")


def test_remedies_are_flags(run, folder):
    scatter = ["scatter-slices", "table.npy", "rows.npy", "ones.npy"]
    assert run(*scatter, "-o", "table.npy") == (
        1,
        "",
        "gatherum: scatter-slices: the output table.npy is the same file as the table; --in-place "
        "changes the table itself\n",
    )
    journal = folder.resolve() / "out.npy.partial.journal"
    journal.write_text('{"gatherum": 0}\n')
    assert run(*scatter, "-o", "out.npy", "--resume") == (
        1,
        "",
        f"gatherum: {journal}: cannot resume, it was written by another version (without --resume "
        "the run starts over)\n",
    )


def test_progress_shows_bytes_rate_and_time_left(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(sys, "stderr", Terminal())
    with progress_of_files.progress_shown(True, "gather table.npy") as progress:
        progress.phase("gathering")
        for moved in (0, 1 << 20, 3 << 20):
            progress(moved, 4 << 20)
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", sys.stderr.getvalue())
    line = r"gather table\.npy: gathering \S+ 3\.0 of 4\.0 MiB, \d+(\.\d)? [KMGT]?i?B/s 0:00:0\d"
    assert re.search(line, shown), shown
    assert "?" not in shown


def test_a_summary_begins_with_the_result(run, folder):
    status, out, _ = run("gather", "table.npy", "rows.npy", "-o", "out.npy")
    result = np.load("out.npy")
    assert status == 0
    assert out.startswith(f"out.npy: float64 {result.shape}, {result.nbytes} B; 3 rows, read ")
    status, out, _ = run("groups", "rows.npy", "--func", "count", "-o", "counts.npy")
    assert out.startswith(f"counts.npy: int64 {np.load('counts.npy').shape}, ")


def test_no_progress_without_a_terminal(run, folder, monkeypatch):
    from gatherum import files

    asked = []
    monkeypatch.setattr(files, "gather_file", lambda *_, **call: asked.append(call["progress"]))
    for terminal, more in ((False, ()), (True, ()), (True, ("--no-progress",))):
        monkeypatch.setattr(sys, "stderr", Terminal() if terminal else io.StringIO())
        run("gather", "table.npy", "rows.npy", "-o", "out.npy", *more)
    assert asked == [False, True, False]
