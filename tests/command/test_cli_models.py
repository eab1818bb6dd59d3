"""The commands `check` and `run`: DirectML descs and models."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from source import ROOT

click = pytest.importorskip("click", reason="install the command line: pip install click rich")
pytest.importorskip("rich", reason="install the command line: pip install click rich")

EXAMPLES = ROOT / "examples"


def test_check(run):
    page = str(EXAMPLES / "directml" / "scatter_nd.json")
    status, out, err = run("check", page)
    assert (status, err) == (0, "")
    assert out == "scatter_nd: SCATTER_ND: accepted by feature level 6_4\n"
    status, out, err = run("check", page, "--feature-level", "2_0")
    assert (status, err) == (1, "")
    assert out.splitlines()[0].startswith("scatter_nd: SCATTER_ND: rejected by feature level 2_0, ")
    assert run("check", "no.json") == (1, "", "gatherum: no.json: No such file or directory\n")
    status, out, err = run("check", "table.npy")
    assert (status, out) == (1, "")
    assert err.startswith("gatherum: ")
    assert err.count("\n") == 1


MODEL = {
    "resources": {
        "out": {"initialValuesDataType": "FLOAT32", "initialValues": [1, 2.5]},
        "answer": {"initialValuesDataType": "FLOAT32", "initialValues": [1, 2]},
    },
    "dispatchables": {},
}


def test_run_of_a_model(run, folder):
    page = str(EXAMPLES / "directml" / "scatter_nd.json")
    assert run("run", page) == (0, "Resource 'output': 1, 11, 3, 10, 9, 6, 7, 12\n", "")
    target = {"type": "writeFile", "resource": "out", "targetPath": "written.npy"}
    compare = {"type": "compare", "resource": "out", "expected": "answer"}
    Path("model.json").write_text(json.dumps(MODEL | {"commands": [target, compare]}))
    status, out, err = run("run", "model.json")
    assert (status, err) == (1, "")
    assert out.splitlines() == [
        "Resource 'out' written to 'written.npy'",
        "Resource 'out' differs from 'answer' in 1 of 2 elements: at [1] it has 2.5, expected 2",
    ]
    np.testing.assert_array_equal(np.load("written.npy"), np.float32([1, 2.5]))
    os.unlink("written.npy")
    Path("model.json").write_text(json.dumps(MODEL | {"commands": [target, {"type": "wait"}]}))
    status, out, err = run("run", "model.json")
    assert (status, out) == (1, "")
    assert err.startswith("gatherum: model.json: `commands[1].type` must be one of dispatch, ")
    assert err.count("\n") == 1
    assert not Path("written.npy").exists()
    assert run("run", "no.json") == (1, "", "gatherum: no.json: No such file or directory\n")
    Path("net.onnx").write_bytes(b"\x08\x0a\x12")
    assert run("run", "net.onnx") == (
        1, "", "gatherum: net.onnx is an ONNX model; `run` takes DirectML's models in JSON. "
        "`gatherum check` checks an ONNX model, and onnx.reference or onnxruntime runs it\n",
    )  # fmt: skip


def test_check_for_programs(run):
    page = str(EXAMPLES / "directml" / "scatter_nd.json")
    _, lines, _ = run("check", page, "--feature-level", "2_0")
    status, out, err = run("check", page, "--feature-level", "2_0", "--json")
    assert (status, err) == (1, "")
    assert json.loads(out) == {"accepted": False, "lines": lines.splitlines()}
    status, out, err = run("check", page, "--json")
    line = "scatter_nd: SCATTER_ND: accepted by feature level 6_4"
    assert (status, json.loads(out), err) == (0, {"accepted": True, "lines": [line]}, "")


def test_check_of_a_model(run):
    onnx = pytest.importorskip("onnx", reason="install onnx: pip install onnx")
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 18]>
        g (float[rows, 3] table, int64[2] ids) => (y) { [lookup] y = Gather(table, ids) }"""
    )
    onnx.save(model, "model.onnx")
    status, out, err = run("check", "model.onnx", "--size", "rows=5")
    assert (status, err) == (0, "")
    assert (
        out.splitlines()[-1]
        == "1 gather or scatter node: 1 accepted, 0 rejected, 0 unknown; other nodes are not judged"
    )
    status, out, err = run("check", "model.onnx", "--size", "rows=5", "--feature-level", "2_0")
    assert (status, err) == (1, "")
    assert (
        out.splitlines()[-1]
        == "1 gather or scatter node: 0 accepted, 1 rejected, 0 unknown; other nodes are not judged"
    )
    status, out, err = run("check", "model.onnx")
    assert (status, err) == (1, "")
    assert (
        out.splitlines()[-1]
        == "1 gather or scatter node: 0 accepted, 0 rejected, 1 unknown; other nodes are not judged"
    )
    status, out, err = run("check", "model.onnx", "--json")
    assert (status, err) == (1, "")
    answer = json.loads(out)
    assert answer["accepted"] is None
    assert [(node["name"], node["accepted"]) for node in answer["nodes"]] == [("lookup", None)]


def test_check_of_a_model_without_any_gather_or_scatter(run):
    onnx = pytest.importorskip("onnx", reason="install onnx: pip install onnx")
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 18]>
        g (bool b, float[3] x) => (y) {
            y = If (b) <then_branch = t () => (z) { z = Abs(x) },
                        else_branch = e () => (w) { w = Neg(x) }>
        }"""
    )
    onnx.save(model, "none.onnx")
    line = "the model has no gather or scatter node: it has Abs, If, Neg\n"
    assert run("check", "none.onnx") == (3, line, "")
    status, out, err = run("check", "none.onnx", "--json")
    assert (status, err) == (3, "")
    assert json.loads(out) == {"accepted": None, "nodes": [], "operators": ["Abs", "If", "Neg"]}
    Path("none.json").write_text(json.dumps({"dispatchables": {"b": {"type": "hlsl"}}}))
    line = "the model has no gather or scatter operator: it has b (hlsl)\n"
    assert run("check", "none.json") == (3, line, "")


def test_check_of_several_files(run):
    page = str(EXAMPLES / "directml" / "scatter_nd.json")
    gather = str(EXAMPLES / "directml" / "gather_elements.json")
    Path("none.json").write_text(json.dumps({"dispatchables": {}}))
    status, out, err = run("check", page, gather)
    assert (status, err) == (0, "")
    assert out.splitlines() == [
        f"{page}:",
        "scatter_nd: SCATTER_ND: accepted by feature level 6_4",
        f"{gather}:",
        "gather_elements: GATHER_ELEMENTS: accepted by feature level 6_4",
    ]
    assert run("check", page, "none.json")[0] == 3
    assert run("check", page, "none.json", gather, "--feature-level", "2_0")[0] == 1
    status, out, err = run("check", page, "none.json", "--json")
    assert (status, err) == (3, "")
    assert [(one["file"], one["accepted"]) for one in json.loads(out)] == [
        (page, True),
        ("none.json", None),
    ]
    assert run("check")[0] == 2
    assert run("check", page, "no.json")[2] == "gatherum: no.json: No such file or directory\n"


@pytest.mark.parametrize("level", ["3.0", "3_0", "DML_FEATURE_LEVEL_3_0", "LEVEL_3_0"])
def test_a_level_has_several_spellings(run, level):
    page = str(EXAMPLES / "directml" / "scatter_nd.json")
    line = "scatter_nd: SCATTER_ND: accepted by feature level 3_0\n"
    assert run("check", page, "--feature-level", level) == (0, line, "")
