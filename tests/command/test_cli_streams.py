"""The command with closed or full streams, an odd environment, or an interrupted start."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest

from command_lines import ENVIRONMENT
from gatherum._command import verify_cases
from source import ROOT

pytest.importorskip("click", reason="install the command line: pip install click rich")
pytest.importorskip("rich", reason="install the command line: pip install click rich")
from gatherum._command import cli

pytestmark = pytest.mark.skipif(
    not os.path.exists("/dev/full"), reason="a shell and /dev/full, as Linux has them"
)
PAGE = ROOT / "examples" / "directml" / "scatter_nd.json"
GATHER = ["gather", "table.npy", "rows.npy", "-o", "out.npy"]
SHAPES = ["--data", "table.npy", "--indices", "rows.npy"]
PRINTED = [
    GATHER,
    [*GATHER, "--print"],
    ["gather-elements", "table.npy", "columns.npy", "-o", "out.npy"],
    ["gather-nd", "table.npy", "columns.npy", "-o", "out.npy"],
    ["scatter-slices", "table.npy", "rows.npy", "ones.npy", "-o", "out.npy"],
    ["scatter-elements", "table.npy", "columns.npy", "columns.npy", "--in-place"],
    ["scatter-nd", "table.npy", "columns.npy", "ones.npy", "-o", "out.npy"],
    ["explain", "gather", *SHAPES],
    ["check", str(PAGE)],
    ["verify"],
    ["info"],
    ["completion", "bash"],
    ["gather", "--help"],
    ["--help"],
    ["--version"],
]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("table.npy", np.arange(12).reshape(4, 3))
    np.save("rows.npy", np.array([2, 0, 2]))
    np.save("columns.npy", np.array([[2], [0], [1], [1]]))
    np.save("ones.npy", np.ones(3, np.int64))


def shell(command, **environment):
    command = re.sub(r"\bgatherum(?= \w)", f"{sys.executable} -m gatherum", command)
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, check=False, timeout=60,
        env=ENVIRONMENT | environment,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


def full():
    return open("/dev/full", "w")


def closed():
    return os.fdopen(os.open(os.devnull, os.O_RDONLY), "w")


@pytest.mark.parametrize("arguments", PRINTED, ids=" ".join)
@pytest.mark.parametrize(
    ("stream", "why"), [(full, "No space left on device"), (closed, "Bad file descriptor")]
)
def test_an_output_that_cannot_be_printed(arguments, stream, why, monkeypatch, capfd):
    monkeypatch.setattr(verify_cases, "case_rows", lambda: iter([("gather", "int8", "none")]))
    with stream() as output:
        monkeypatch.setattr(sys, "stdout", output)
        assert cli.run(arguments) == 1
        monkeypatch.undo()
    assert capfd.readouterr() == ("", f"gatherum: standard output: {why}\n")


@pytest.mark.parametrize(
    ("arguments", "status"), [(GATHER, 0), (["nothing"], 2), (["info", "--no"], 2), (GATHER[:2], 2)]
)
def test_a_full_standard_error_changes_no_status(arguments, status, monkeypatch, capfd):
    with full() as output:
        monkeypatch.setattr(sys, "stderr", output)
        assert cli.run(arguments) == status
        monkeypatch.undo()
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("gatherum gather table.npy rows.npy -o out.npy 2>&- | cut -c-7", (0, "out.npy\n", "")),
        ("gatherum gather table.npy none.npy -o out.npy 2>&-", (1, "", "")),
        ("gatherum nothing 2>&-", (2, "", "")),
        ("gatherum nothing 2>/dev/full", (2, "", "")),
        (
            "gatherum gather table.npy rows.npy -o out.npy --print >&-",
            (1, "", "gatherum: standard output: Bad file descriptor\n"),
        ),
        (
            "gatherum info >/dev/full",
            (1, "", "gatherum: standard output: No space left on device\n"),
        ),
        ("gatherum info <&- >&- 2>&-", (1, "", "")),
    ],
)
def test_closed_streams(command, expected):
    assert shell(command) == expected
    if "rows.npy" in command:
        assert np.load("out.npy").tolist() == [[6, 7, 8], [0, 1, 2], [6, 7, 8]]


def test_a_progress_of_python_where_standard_error_is_closed(monkeypatch, capfd):
    """Python represents a closed stream by None: `print` would write to standard output."""
    from gatherum import files

    for rich in ("there", None):
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stderr", None)
            if rich is None:
                patch.setitem(sys.modules, "rich.console", None)
            files.gather_file("table.npy", "rows.npy", "out.npy", progress=True)
        assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("name", ["ISA", "NUM_THREADS", "OUTPUT_CACHE"])
def test_undecodable_bytes_in_a_variable(name):
    result = {
        "ISA": "one of .* here",
        "NUM_THREADS": "an integer",
        "OUTPUT_CACHE": "an integer",
    }[name]
    status, out, err = shell(f"export GATHERUM_{name}=$'\\xff'; gatherum info")
    assert (status, out) == (2, "")
    assert re.fullmatch(rf"gatherum: GATHERUM_{name} must be {result}, got '\\udcff'\n", err)


def test_undecodable_bytes_in_a_file_name():
    command = "gatherum gather table.npy rows.npy -o $'\\xff.npy'"
    status, out, err = shell(command, PYTHONIOENCODING="utf-8")
    assert (status, out[:11], err) == (0, "\\udcff.npy:", "")


INTERRUPTS = """
import signal, sys

class Interrupts:
    @staticmethod
    def find_spec(name, *_):
        if name == {name!r}:
            signal.raise_signal(signal.SIGINT)

sys.meta_path.insert(0, Interrupts)
"""


def interrupted(folder, name, *arguments):
    """Run Python, and send Ctrl-C to the process when it starts to import a module."""
    (folder / "sitecustomize.py").write_text(INTERRUPTS.format(name=name))
    path = os.pathsep.join([str(folder), ENVIRONMENT["PYTHONPATH"]])
    done = subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, check=False, timeout=60,
        env=ENVIRONMENT | {"PYTHONPATH": path},
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("as_script", [True, False])
@pytest.mark.parametrize(
    "name", ["gatherum._core", "numpy", "click", "rich", "gatherum._command.cli.files"]
)
def test_ctrl_c_while_the_command_is_imported(tmp_path, name, as_script):
    script = tmp_path / "gatherum"  # as pip writes it
    script.write_text("import sys\nfrom gatherum.__main__ import main\nsys.exit(main())\n")
    start = [script] if as_script else ["-m", "gatherum"]
    result = interrupted(tmp_path, name, *start, "info")
    assert result == (130, "", "gatherum: interrupted\n")


def test_ctrl_c_while_a_program_imports_the_package(tmp_path):
    """A program gets Python's own exception, and keeps its handler."""
    code = """
import signal, sys
try:
    import gatherum
except KeyboardInterrupt:
    sys.meta_path.pop(0)
import gatherum
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
"""
    assert interrupted(tmp_path, "gatherum._system.native", "-c", code) == (0, "", "")
