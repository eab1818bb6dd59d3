"""The list of commands, help, completion, `info` and `verify`."""

import re
import sys

import pytest

import gatherum
from command_lines import shell
from gatherum._command import verify_cases
from gatherum._model.modes import MODES

click = pytest.importorskip("click", reason="install the command line: pip install click rich")
pytest.importorskip("rich", reason="install the command line: pip install click rich")
import gatherum._command.cli.files  # noqa: E402  # whose files the tests replace
from gatherum._command import cli  # noqa: E402

GATHERS = ["gather", "gather-elements", "gather-nd"]
SCATTERS = ["scatter-slices", "scatter-elements", "scatter-nd"]


def test_info_is_the_configuration(run, capfd):
    status, out, err = run("info")
    gatherum.show_config()
    assert (status, err) == (0, "")
    assert out == capfd.readouterr().out


def test_verify_says_how_many_digests_agree(run, monkeypatch):
    rows = [("gather", "int8", "none"), ("gather", "int16", "none")]
    monkeypatch.setattr(verify_cases, "case_rows", lambda: iter(rows))
    status, out, err = run("verify")
    assert (status, err) == (0, "")
    assert out.startswith("2 of 2 digests as published (level ")


def test_verify_names_different_digests(run, monkeypatch):
    monkeypatch.setattr(verify_cases, "case_rows", lambda: iter([("gather", "int8", "none")]))
    monkeypatch.setattr("gatherum._command.verify.row_digest", lambda *_: "0" * 32)
    status, out, _ = run("verify")
    assert status == 1
    assert out.startswith("gather/int8/none: differs from the published digest\n0 of 1 ")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("gatherum ver", {"plain,verify"}),
        ("gatherum explain sc", {f"plain,{name}" for name in SCATTERS}),
        ("gatherum gather --mode ", {f"plain,{mode}" for mode in MODES}),
        (
            "gatherum scatter-nd --reduction m",
            {f"plain,m{end}" for end in ("ul", "ax", "in", "ean")},
        ),
        ("gatherum check m.onnx --feature-level 4", {"plain,4_0", "plain,4_1"}),
        ("gatherum gather tab", {"file,tab"}),
    ],
)
def test_shells_complete(folder, words, expected):
    line = {"COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    done = shell(
        *(sys.executable, "-m", "gatherum"), cwd=folder, _GATHERUM_COMPLETE="bash_complete", **line
    )
    assert set(done.stdout.split()) == expected


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_completion_is_a_script_for_the_shell(run, name):
    status, out, err = run("completion", name)
    assert (status, err) == (0, "")
    assert f"_GATHERUM_COMPLETE={name}_complete" in out


COMMANDS = [
    *GATHERS,
    *SCATTERS,
    "groups",
    "vectors",
    "check",
    "run",
    "explain",
    "verify",
    "info",
    "completion",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example(run, command):
    status, out, err = run(command, "--help")
    assert (status, err) == (0, "")
    assert re.search(rf"Example: .*gatherum {command}", out)
    whole = re.findall(r"^ *(Example: .*)$", cli.commands.commands[command].help, re.MULTILINE)
    assert re.findall(r"^ *(Example: .*)$", out, re.MULTILINE) == whole  # complete lines
    assert set(COMMANDS) == set(cli.commands.commands)


def test_the_list_of_commands_is_whole(run):
    status, out, err = run("--help")
    assert (status, err) == (0, "")
    listed = out.partition("Commands:")[2]
    assert re.findall(r"^  ([a-z-]+)  ", listed, re.MULTILINE) == sorted(COMMANDS)
    assert "..." not in listed


def test_the_module_runs(folder):
    done = shell(sys.executable, "-m", "gatherum", "--version")
    assert (done.returncode, done.stdout) == (0, f"gatherum {gatherum.__version__}\n")
    done = shell(sys.executable, "-m", "gatherum", "gather", "no.npy", "rows.npy", "-o", "out.npy")
    assert (done.returncode, done.stderr) == (1, "gatherum: no.npy: No such file or directory\n")
