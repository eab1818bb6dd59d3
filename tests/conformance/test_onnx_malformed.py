"""Models that are wrong, or so large that ONNX's own inference would crash."""

from __future__ import annotations

import pytest

pytest.importorskip("onnx", reason="install onnx to check ONNX models")

import onnx
from onnx import helper, parser

import gatherum.onnx.graphs
from gatherum.onnx import check_model

HEAD = '<ir_version: 8, opset_import: ["": 18]> '


def lookup(table: str, indices: str, node: str = "Gather(t, i)") -> onnx.ModelProto:
    return parser.parse_model(
        f"{HEAD} g (float[{table}] t, int64[{indices}] i) => (y) {{ y = {node} }}"
    )


def with_size(model: onnx.ModelProto, operand: int, dimension: int, size: int) -> onnx.ModelProto:
    model.graph.input[operand].type.tensor_type.shape.dim[dimension].dim_value = size
    return model


@pytest.mark.parametrize(("operand", "name"), [(0, "`data` ('t')"), (1, "`indices` ('i')")])
def test_a_negative_size_is_an_unknown_one(operand: int, name: str) -> None:
    model = with_size(lookup("2,3", "2", "GatherND(t, i)"), operand, 0, -1)
    (report,) = check_model(model)
    assert report.answer == "unknown"
    assert report.reasons == (f"unknown: the size of {name} on dimension 0",)
    assert model.graph.input[operand].type.tensor_type.shape.dim[0].dim_value == -1


def test_negative_batch_dims_are_rejected() -> None:
    (report,) = check_model(lookup("2,3", "2,1", "GatherND <batch_dims=-5> (t, i)"))
    assert (report.op_type, report.answer) == ("GatherND", "rejected")
    assert report.reasons == ("no valid ONNX: `batch_dims` must be in [0, 2), got -5",)


def test_batch_dims_of_a_function_are_bound_before_they_are_judged() -> None:
    text = """<ir_version: 8, opset_import: ["": 18, "own": 1]>
    g (float[2,3] t, int64[2,1] i) => (y) { y = own.pick <b = BATCH> (t, i) }
    <domain: "own", opset_import: ["": 18]>
    pick <b> (t, i) => (o) { o = GatherND <batch_dims: int = @b> (t, i) }"""
    (good,) = check_model(parser.parse_model(text.replace("BATCH", "1")))
    (bad,) = check_model(parser.parse_model(text.replace("BATCH", "-5")))
    assert good.answer == "accepted"
    assert bad.reasons == ("no valid ONNX: `batch_dims` must be in [0, 2), got -5",)


@pytest.mark.parametrize("name", ["axis", "reduction"])
def test_a_reference_outside_of_a_function_is_invalid(name: str) -> None:
    model = parser.parse_model(
        HEAD + "g (float[4] t, int64[2] i, float[2] u) => (y) { y = ScatterElements(t, i, u) }"
    )
    attribute = helper.make_attribute(name, 0 if name == "axis" else "add")
    attribute.ref_attr_name = "a"
    model.graph.node[0].attribute.append(attribute)
    (report,) = check_model(model)
    assert report.reasons == (
        f"no valid ONNX: `{name}` refers to an attribute of a function, "
        "and there is none around it",
    )


def test_the_values_of_long_vectors_are_not_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    # ONNX would make an object for each of the 2^40 entries.
    (report,) = check_model(lookup(str(1 << 40), "2"))
    assert report.answer == "rejected"
    followed = []
    infer = onnx.shape_inference.infer_shapes
    monkeypatch.setattr(
        gatherum.onnx.graphs.onnx.shape_inference,
        "infer_shapes",
        lambda model, data_prop=False: (followed.append(data_prop), infer(model))[1],
    )
    check_model(lookup("5", "2"))
    check_model(lookup(str(1 << 20), "2"))
    branch = "{ y = If (c) <then_branch = b () => (float[1048576] o) { o = Identity (t) }, "
    branch += "else_branch = d () => (float[1048576] p) { p = Identity (t) }> }"
    check_model(parser.parse_model(HEAD + f"g (bool c, float[n] t) => (y) {branch}"))
    assert followed == [False, True, False, False]
