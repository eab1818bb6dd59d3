"""`Evaluator` with a mode for indices out of bounds; "clip" is the behaviour of WebNN."""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="install onnx for gatherum.onnx: pip install onnx")

from onnx import helper, parser  # noqa: E402

import gatherum  # noqa: E402
from gatherum._model.operators import OPERATORS  # noqa: E402
from gatherum.onnx import Evaluator, reference_ops  # noqa: E402

MODEL = parser.parse_model(
    """<ir_version: 10, opset_import: ["": 18, "local": 1]>
    g (string[3] x, int64[u] i, bool b) => (y, z) {
        y = local.f(x, i)
        z = If (b) <then_branch = t () => (s) { s = Gather(x, i) },
                    else_branch = e () => (r) { r = local.f(x, i) }>
    }
    <domain: "local", opset_import: ["": 18]>
    f (x, i) => (y) { y = Gather(x, i) }"""
)
X, I = np.array(["a", "b", "c"], object), np.array([2, 5, -7, -1])  # noqa: E741


def test_clip_is_webnn():
    cases = gatherum.vectors(format="webnn")
    for case in cases:
        attributes = {k: v for k, v in case.attributes.items() if k != "mode"}
        operands = dict(case.operands)
        if operands["indices"].dtype == np.uint32 or case.operator.endswith("_nd"):
            operands["indices"] = operands["indices"].astype(np.int64)  # required by ONNX
        name = OPERATORS[case.operator].onnx
        node = helper.make_node(name, list(operands), ["y"], **attributes)
        imports = [helper.make_opsetid("", 18)]
        function = helper.make_function("l", "f", list(operands), ["y"], [node], imports)
        (result,) = Evaluator(function, mode="clip").run(None, operands, attributes={})
        assert result.dtype == case.expected.dtype, case.name
        assert result.shape == case.expected.shape, case.name
        assert result.tobytes() == case.expected.tobytes(), case.name
        if case.rule == "outside":
            with pytest.raises(IndexError, match="is out of bounds"):
                Evaluator(function).run(None, operands, attributes={})


@pytest.mark.parametrize(
    ("mode", "strings"), [("clip", "ccac"), ("wrap", "cccc"), ("fill", "c--c"), ("drop", "c--c")]
)
@pytest.mark.parametrize("branch", [True, False])
def test_a_mode_holds_in_bodies_and_functions(mode, strings, branch):
    feeds = {"x": X, "i": I, "b": np.array(branch)}
    for result in Evaluator(MODEL, mode=mode).run(None, feeds):
        assert result.tolist() == [letter.strip("-") for letter in strings]


@pytest.mark.parametrize(
    ("mode", "answer"), [("clip", [3, 20, 2]), ("wrap", [10, 20, 3]), ("fill", [10, 20, 30]),
                         ("drop", [10, 20, 30])],
)  # fmt: skip
def test_scatters(mode, answer):
    node = helper.make_node("ScatterElements", ["x", "i", "u"], ["y"])
    function = helper.make_function(
        "l", "f", ["x", "i", "u"], ["y"], [node], [helper.make_opsetid("", 18)]
    )
    feeds = {"x": np.array([10, 20, 30]), "i": np.array([4, 5, -9]), "u": np.array([1, 2, 3])}
    if mode == "wrap":
        feeds["i"] = np.array([5, 8, -4])
    (result,) = Evaluator(function, mode=mode).run(None, feeds, attributes={})
    assert result.tolist() == answer


def test_the_default_is_an_error():
    feeds = {"x": X, "i": I, "b": np.array(True)}
    for options in ({}, {"mode": "raise"}, {"mode": None}):
        with pytest.raises(IndexError, match="index 5 is out of bounds"):
            Evaluator(MODEL, **options).run(None, feeds)
    assert Evaluator.mode == "raise"


def test_negative_indices_before_opset_11():
    model = parser.parse_model(
        '<ir_version: 4, opset_import: ["": 10]>'
        "g (float[3] x, int64[2] i) => (y) { y = Gather(x, i) }"
    )
    feeds = {"x": np.float32([1, 2, 3]), "i": np.array([-1, 9])}
    assert Evaluator(model, mode="clip").run(None, feeds)[0].tolist() == [1, 3]


def test_the_mode_is_checked():
    with pytest.raises(ValueError, match=r"^Evaluator: `mode` must be one of 'raise', 'clip', .*"):
        Evaluator(MODEL, mode="bounce")


def test_evaluators_of_two_modes_do_not_meet():
    clip, fill = Evaluator(MODEL, mode="clip"), Evaluator(MODEL, mode="fill")
    assert (clip.mode, fill.mode, Evaluator(MODEL).mode) == ("clip", "fill", "raise")
    assert isinstance(clip, Evaluator)
    assert type(clip).__name__ == "Evaluator"
    more = Evaluator(MODEL, mode="clip", new_ops=reference_ops())
    assert more.run(None, {"x": X, "i": I, "b": np.array(True)})[1].tolist() == ["c", "c", "a", "c"]
