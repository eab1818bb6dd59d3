"""The example network, and the pages about ONNX."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from source import ROOT

pytest.importorskip("onnx", reason="install onnx to run the ONNX example")

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

from gatherum.onnx import check_model, reference_ops, report_lines
from gatherum.onnx.reference_ops import FAMILY
from gatherum.onnx.tensor_scatter import TensorScatter

PAGE = (ROOT / "docs/onnx.md").read_text()


@pytest.fixture(scope="module")
def example() -> Any:
    path = ROOT / "examples/onnx/graph_network.py"
    spec = importlib.util.spec_from_file_location("graph_network", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_equal_answers_with_and_without(example: Any) -> None:
    model, inputs = example.build_model(), example.make_inputs()
    plain = ReferenceEvaluator(model).run(None, inputs)
    ours = ReferenceEvaluator(model, new_ops=reference_ops())
    assert sum(isinstance(n, tuple(reference_ops())) for n in ours.rt_nodes_) == 5
    results = ours.run(None, inputs)
    assert [r.shape for r in results] == [(1500, 8), (5000, 32)]
    assert [r.tobytes() for r in results] == [p.tobytes() for p in plain]
    assert all(np.isfinite(r).all() for r in results)


def test_the_example_prints_both_times(
    example: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:  # fmt: skip
    path = tmp_path / "model.onnx"
    monkeypatch.setattr(sys, "argv", ["graph_network.py", "--save", str(path)])
    example.main()
    output = capsys.readouterr().out
    assert re.search(r"^scores   \(1500, 8\)    equal, bit for bit$", output, re.MULTILINE)
    assert re.search(r"^memory   \(5000, 32\)   equal, bit for bit$", output, re.MULTILINE)
    assert re.search(r"^ONNX's reference operators +\d+\.\d\d ms$", output, re.MULTILINE)
    assert re.search(r"^reference_ops\(\) +\d+\.\d\d ms$", output, re.MULTILINE)
    assert (
        "5 gather or scatter nodes: 4 accepted, 1 rejected, 0 unknown; other nodes are not judged"
        in output
    )
    assert check_model(path, "4_1") == check_model(example.build_model(), "4_1")


@pytest.mark.parametrize(
    ("level", "accepted"),
    [
        ("2_1", []),
        ("3_0", ["embed", "send", "remember"]),
        ("4_1", ["rename", "embed", "send", "remember"]),
    ],
)
def test_levels_of_the_example(example: Any, level: str, accepted: list[str]) -> None:
    reports = check_model(example.build_model(), level)
    assert [r.name for r in reports] == ["rename", "embed", "send", "receive", "remember"]
    assert [r.name for r in reports if r.accepted] == accepted
    assert all(r.accepted is not None for r in reports)
    first = {r.name: None if r.first_level is None else str(r.first_level) for r in reports}
    assert first == {
        "rename": "4_1", "embed": "3_0", "send": "3_0", "receive": None, "remember": "3_0",
    }  # fmt: skip


@pytest.mark.parametrize(("level", "accepted"), [("2_1", 0), ("3_0", 3), ("4_1", 4)])
def test_the_command_on_the_example(
    example: Any, python: Any, tmp_path: Path, level: str, accepted: int
) -> None:
    pytest.importorskip("click", reason="install click for the command line")
    path = tmp_path / "model.onnx"
    onnx.save(example.build_model(), path)
    arguments = ["gatherum", "check", str(path), "--feature-level", level]
    code = f"import sys, gatherum.__main__ as m; sys.argv = {arguments}; sys.exit(m.main())"
    done = python(code)
    assert (done.returncode, done.stderr) == (1, "")
    reports = check_model(path, level)
    assert done.stdout.splitlines() == report_lines(reports)
    assert done.stdout.splitlines()[-1] == (
        f"5 gather or scatter nodes: {accepted} accepted, {5 - accepted} rejected, 0 unknown; "
        "other nodes are not judged"
    )


def test_the_code_of_the_page_runs() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 7
    exec("\n".join(blocks), {})


def test_each_difference_of_the_page_is_a_test() -> None:
    """Read, not imported, so ONNX Runtime need not be installed for this test."""
    tests, quantized = (
        re.findall(r"^def (test_\w+)", Path(__file__).with_name(name).read_text(), re.MULTILINE)
        for name in ("test_onnx_runtime.py", "test_onnx_quantized.py")
    )
    agreeing = ["test_random_models", "test_both_refuse_an_index_out_of_bounds"]
    listed = re.findall(r"^\|.*`(test_\w+)` \|$", PAGE, re.MULTILINE)
    differing = [name for name in tests if name not in agreeing]
    assert listed[: len(differing)] == differing
    assert set(listed[len(differing) :]) < set(quantized)
    assert set(agreeing) < set(tests)


def test_the_versions_of_the_page_are_those_of_the_code() -> None:
    rows = re.findall(r"^\| (\w+) \| ([\d, ]+) \|", PAGE, re.MULTILINE)
    assert {name: [int(v) for v in versions.split(",")] for name, versions in rows} == {
        name: list(op.versions())
        for name, op in (FAMILY | {"TensorScatter": TensorScatter}).items()
    }
