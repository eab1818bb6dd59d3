"""Test vectors for ONNX: its loader and checker accept them, and they cover each operator."""

import json
import sys

import pytest

from gatherum._model.operators import OPERATORS
from gatherum.conformance import onnx as of_onnx
from gatherum.conformance import vectors, write
from strategies import same_bits


@pytest.mark.parametrize("opset", [11, 13, 16, 18])
def test_onnx_runs_them_by_its_own_loader(tmp_path, opset):
    onnx = pytest.importorskip("onnx", reason="install onnx to run its models")
    from onnx import numpy_helper
    from onnx.backend.test.loader import load_model_tests

    from gatherum.onnx import backend

    count = write(tmp_path, "onnx", opset=opset)
    cases = {case.name: case for case in vectors("onnx", opset=opset)}
    assert len(cases) == count > 50
    loaded = load_model_tests(data_dir=str(tmp_path.parent), kind=tmp_path.name)
    for test in loaded:
        model = onnx.load(f"{test.model_dir}/model.onnx")
        tensors = [read(numpy_helper, onnx, f"{test.model_dir}/test_data_set_0/input_{n}.pb")
                   for n in range(len(model.graph.input))]  # fmt: skip
        expected = read(numpy_helper, onnx, f"{test.model_dir}/test_data_set_0/output_0.pb")
        assert same_bits(backend.run_model(model, tensors)[0], expected), test.name
    for path in tmp_path.rglob("*.onnx"):
        onnx.checker.check_model(onnx.load(path), full_check=True)
    errors = [case for case in cases.values() if case.error]
    refusing = {"gather", "gather_elements", "gather_nd", "scatter_elements"}  # open in ScatterND
    assert {case.operator for case in errors} == refusing
    assert {path.name for path in tmp_path.glob("*.onnx")} == {
        f"refused_{case.name}.onnx" for case in errors
    }
    assert len(loaded) + len(errors) == count
    for row in json.loads((tmp_path / "cases.json").read_text()):
        paths = [row["model"], *row["inputs"], *([row["output"]] if "output" in row else [])]
        assert all((tmp_path / path).is_file() for path in paths)
        case = cases[row["name"]]
        arrays = [read(numpy_helper, onnx, tmp_path / path) for path in row["inputs"]]
        assert all(map(same_bits, arrays, case.operands.values()))
    reductions = {case.attributes.get("reduction", "none") for case in cases.values()}
    assert ("add" in reductions, "max" in reductions) == (opset >= 16, opset >= 18)


def test_onnx_has_enough_cases_of_each_kind():
    cases = list(vectors("onnx"))
    assert len(cases) >= 150
    plain = [case for case in cases if not case.error]
    for operator in {case.operator for case in cases}:
        mine = [case for case in plain if case.operator == operator]
        assert len({case.operands["data"].dtype for case in mine}) == 14
        assert len({case.operands["data"].ndim for case in mine}) >= 4
        assert any(0 in case.operands["data"].shape for case in mine)
        assert any(0 in case.operands["indices"].shape for case in mine)
        assert any(case.operands["indices"].size and case.operands["indices"].min() < 0
                   for case in mine)  # fmt: skip
        if not OPERATORS[operator].takes_tuples:
            assert {case.attributes.get("axis", 0) for case in mine} >= {-3, -2, 0, 1, 2}
            assert {case.operands["indices"].dtype.name for case in mine} == {"int32", "int64"}


def test_onnx_has_dtypes_and_opsets_that_there_are(monkeypatch):
    assert list(vectors("onnx", rule="plain", dtype="M8[s]")) == []
    assert {case.operator for case in vectors("onnx", opset=1)} == {"gather"}
    with pytest.raises(ValueError) as raised:
        vectors("onnx", op="gather_nd", opset=10)
    assert str(raised.value) == "vectors: `opset` must be at least 11 for gather_nd, got 10"
    newest = of_onnx._newest_opset()
    assert len(list(vectors("onnx", opset=newest))) > 150
    with pytest.raises(ValueError) as raised:
        vectors("onnx", opset=newest + 1)
    message = f"vectors: `opset` must be in [1, {newest + 1}), got {newest + 1}"
    assert str(raised.value) == message
    monkeypatch.setitem(sys.modules, "onnx", None)
    assert of_onnx._newest_opset() == of_onnx._LATEST


def read(numpy_helper, onnx, path):
    tensor = onnx.TensorProto()
    with open(path, "rb") as file:
        tensor.ParseFromString(file.read())
    return numpy_helper.to_array(tensor)
