"""docs/onnx_cases.py runs ONNX vectors on packages, including one that hangs or dies."""

import importlib
import json
import os
import signal
import sys

import pytest

from gatherum.conformance import vectors, write
from source import ROOT

pytest.importorskip("onnx", reason="install onnx to run its models")


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs")
    return importlib.import_module("onnx_cases")


def test_cases_run_on_the_reference_and_are_counted_by_rule(tmp_path, script, monkeypatch, capsys):
    # one expected result is made wrong
    write(tmp_path, "onnx", op="scatter_elements", rule="outside")
    rows = json.loads((tmp_path / "cases.json").read_text())
    assert [row["error"] for row in rows] == ["IndexError"] * 5
    write(tmp_path / "more", "onnx", op="scatter_elements", rule="negative")
    (plain,) = json.loads((tmp_path / "more" / "cases.json").read_text())
    name = f"test_{plain['name']}"
    (tmp_path / "more" / name).rename(tmp_path / name)
    output = tmp_path / name / "test_data_set_0" / "output_0.pb"
    assert output == tmp_path / plain["output"]
    output.write_bytes(output.with_name("input_0.pb").read_bytes())
    (tmp_path / "cases.json").write_text(json.dumps([*rows, plain]))
    monkeypatch.setattr(sys, "argv", ["onnx_cases.py", str(tmp_path), "onnx"])
    assert script.main() == 1
    printed = capsys.readouterr().out
    assert f"onnx: {plain['name']}: [[" in printed
    assert printed.count("onnx: ") == 1
    assert "| `outside` | 5 | 0 |\n| `negative` | 1 | 1 |\n| all | 6 | 1 |\n" in printed


def test_an_answer_is_judged(tmp_path, script, monkeypatch):
    write(tmp_path, "onnx", op="gather", rule="outside")
    refused = str(tmp_path), json.loads((tmp_path / "cases.json").read_text())[0]
    assert script.outcome("onnx", *refused) == "passed"

    def unable(model):
        raise NotImplementedError("complex64")

    monkeypatch.setitem(script.LOADS, "onnx", lambda model: lambda feeds: feeds["data"])
    assert script.outcome("onnx", *refused).endswith(", not an error")
    monkeypatch.setitem(script.LOADS, "onnx", unable)  # it rejects the model, not the index
    assert script.outcome("onnx", *refused) == "NotImplementedError: complex64"


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="a process is stopped by a signal")
def test_a_process_that_hangs_or_dies_is_replaced(tmp_path, script, monkeypatch):
    write(tmp_path, "onnx", op="gather", rule="negative")
    case = str(tmp_path), json.loads((tmp_path / "cases.json").read_text())[0]
    child = script.Child("onnx")
    try:
        assert child.ask(*case) == "passed"
        os.kill(child.process.pid, signal.SIGSTOP)
        with monkeypatch.context() as patch:
            patch.setattr(script, "LIMIT", 0.1)
            assert child.ask(*case) == "no answer in 0.1 seconds"
        assert child.ask(str(tmp_path / "nowhere"), case[1]) == "the process crashed"
        assert child.ask(*case) == "passed"
    finally:
        child.stop()
    assert child.process is None


def test_stored_results_are_compared(script, monkeypatch, capsys, tmp_path):
    """Results of the same version must be equal; those of another one may differ."""
    kept = json.loads(script.KEPT.read_text())
    now = {"cases": kept["cases"], "packages": {"onnx": dict(kept["packages"]["onnx"])}}
    monkeypatch.setattr(script, "observe", lambda: now)
    assert script.check() == 0
    (fails, *others) = kept["packages"]["onnx"]["fails"]
    now["packages"]["onnx"]["fails"] = dict.fromkeys(others, "outside") | {
        "gather_plain_0": "plain"
    }
    assert script.check() == 1
    assert f"{fails} passes\n" in (printed := capsys.readouterr().err)
    assert "gather_plain_0 fails\n" in printed
    now["packages"]["onnx"]["version"] = "99"
    assert script.check() == 0
    assert "gather_plain_0 fails (another version)" in capsys.readouterr().err
    now["cases"] = now["cases"] | {"plain": 1}
    assert script.check() == 1
    monkeypatch.setattr(script, "KEPT", tmp_path / "kept.json")
    assert script.keep() == script.check() == 0


def test_without_a_package_the_cases_alone_are_compared(script, monkeypatch, capsys):
    monkeypatch.setattr(script, "find_spec", lambda name: None)
    assert script.check() == 0
    count = len(list(vectors("onnx")))
    line = f"{count} cases of no package compared with onnx_cases.json\n"
    assert capsys.readouterr().out == line


def test_the_kept_failures_are_of_cases_that_there_are(script):
    kept = json.loads(script.KEPT.read_text())
    rules = {case.name: case.rule for case in vectors("onnx")}
    for record in kept["packages"].values():
        assert record["fails"].items() <= rules.items()
    rendering = importlib.import_module("rendering.onnx_cases")
    failing = {rule for record in kept["packages"].values() for rule in record["fails"].values()}
    others = [rule for rule in rules.values() if rule not in failing]
    line = f"| the other {len(set(others))} | {len(others)} | 0 | 0 |"
    assert line in rendering.render()
