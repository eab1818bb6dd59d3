"""Explanations describe the calls: loops, costs, reasons and values."""

import re

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import gatherum
from gatherum._system import bandwidth
from gatherum._system.bandwidth import Bandwidth
from pictures import explanation_of, texts_of
from sizes import family
from strategies import OPERATORS, calls

F4, I8 = "f4", "i8"


def test_an_explanation_contains_the_text_of_the_plan():
    explanation = gatherum.explain("gather", ((2, 3, 4), F4), ((5,), I8), axis=1)
    plan = gatherum.plan("gather", ((2, 3, 4), F4), ((5,), I8), axis=1)
    assert explanation.plan == plan
    lines = str(explanation).splitlines()
    assert lines[:5] == [*plan.call_lines(), "  kernel    gather_lines"]
    assert lines[5] == f"  algorithm direct: {plan.reason}"
    assert lines[6] == "  moves     360 bytes, scratch 0 bytes"
    assert lines[7:] == [
        "",
        "Loops (offsets and steps in bytes):",
        "    for i in range(2):",
        "        for j in range(5):",
        "            x = check(indices[8*j], 3)",
        "            out[80*i + 16*j] = data[48*i + 16*x]  # 16 bytes",
        "    # check(x, n): x in [-n, n), counted from the end below 0; else an IndexError",
    ]


def test_bandwidth_is_measured_only_for_the_floor(monkeypatch):
    measured = []
    read = Bandwidth(20e9, "by hand")
    monkeypatch.setattr(bandwidth, "quick_read", lambda threads: measured.append(threads) or read)
    explanation = gatherum.explain("gather", ((2, 3, 4), F4), ((5,), I8), axis=1)
    assert (str(explanation), explanation._repr_html_(), measured) == (
        str(explanation),
        explanation._repr_html_(),
        [],
    )
    assert explanation.floor() == (18e-9, "20 GB/s, measured: by hand")
    assert explanation.floor_line() == (
        "floor: 18 ns for 360 bytes at 20 GB/s, measured: by hand; the call itself takes longer"
    )
    assert len(measured) == 2


def test_the_bandwidth_is_measured_once():
    first, second = (gatherum.explain("gather", ((4,), F4), ((2,), I8)).floor() for _ in range(2))
    assert first == second


LOOPS = [
    (
        ("scatter_nd", ((50, 70), "f2"), ((9, 1), I8), ((9, 70), "f2")),
        {"reduction": "mean"},
        """out = a copy of data
for i in range(9):
    x = check(indices[8*i], 50)
    out[140*x] = mean(out[140*x], updates[140*i])  # 140 bytes, folded in float32 and rounded \
once, summed, and divided by the count at the end""",
    ),
    (
        ("scatter_nd", ((5, 7), "f8"), ((3, 2), "u2"), ((), "f8")),
        {"reduction": "add", "include_self": False, "out": ((5, 7), "f8")},
        """for i in range(3):
    x = check(indices[4*i], 5)
    y = check(indices[4*i + 2], 7)
    out[56*x + 8*y] = add(out[56*x + 8*y], updates[0])  # 8 bytes, the first update takes the \
old value's place""",
    ),
    (
        ("scatter_slices", ((5, 7, 4), F4), ((3, 2), "i4"), ((5, 3, 2, 4), F4)),
        {"axis": 1, "reduction": "add"},
        """out = a copy of data
for i in range(5):
    for j in range(6):
        x = check(indices[4*j], 7)
        out[112*i + 16*x] = add(out[112*i + 16*x], updates[96*i + 16*j])  # 16 bytes""",
    ),
    (
        ("gather_nd", ((5, 7), "f8", (56, -8)), ((3, 2), I8)),
        {},
        """for i in range(3):
    x = check(indices[16*i], 5)
    y = check(indices[16*i + 8], 7)
    out[8*i] = data[56*x - 8*y]  # 8 bytes""",
    ),
    (
        ("scatter_elements", ((4,), F4), ((0,), I8), ((0,), F4)),
        {},
        "out = a copy of data\n# nothing moves: a dimension is empty",
    ),
    (
        ("gather_nd", ((2, 3), F4), ((4, 0), I8)),
        {},
        "for i in range(4):\n    out[24*i] = data[0]  # 24 bytes",
    ),
]


@pytest.mark.parametrize(("operands", "attributes", "loops"), LOOPS)
def test_loops(operands, attributes, loops):
    assert gatherum.explain(*operands, **attributes).loops == loops


@pytest.mark.parametrize("op", OPERATORS)
@given(data=st.data())
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_the_loops_compute_the_result_of_the_operator(op, data):
    """Run the pseudo-code itself on bytes."""
    call = data.draw(calls([op], invalid=0.0))
    kwargs = {**call.kwargs, "reduction": "none"} if "scatter" in op else dict(call.kwargs)
    kwargs.pop("fill_value", None)
    args = [np.array(operand, order="C") for operand in call.args]
    if len(args) > 2:  # a Python number has the dtype of the data
        args[2] = args[2].astype(args[0].dtype)
    if 0 in args[0].shape:  # no valid index exists
        return
    explanation = gatherum.explain(op, *args, **kwargs)
    expected = getattr(gatherum, op)(*args, **kwargs)
    assert run_loops(explanation, args, kwargs) == expected.tobytes()


def run_loops(explanation, args, kwargs):
    """Interpret the lines of an explanation on flat bytes."""
    memory = {name: bytearray(array.tobytes()) for name, array in zip("diu", args, strict=False)}
    memory["out"] = bytearray(
        memory["d"] if len(args) > 2 else np.zeros(explanation.plan.shape, args[0].dtype).tobytes()
    )
    index_dtype = args[1].dtype

    def load(offset):
        text = bytes(memory["i"][offset : offset + index_dtype.itemsize])
        return int(np.frombuffer(text, index_dtype)[0])

    def check(value, size):
        mode = kwargs.get("mode", "raise")
        if kwargs.get("negative", True) and index_dtype.kind == "i" and -size <= value < 0:
            return value + size
        return min(max(value, 0), size - 1) if mode == "clip" else value % size

    names = {"data": "d", "updates": "u", "out": "out"}
    code = []
    for line in explanation.loops.splitlines():
        if line.startswith(("out = a copy", "#")):
            continue
        statement, _, remark = line.partition("  # ")
        statement = re.sub(r"indices\[(.*?)\]", r"load(\1)", statement)
        moved = re.fullmatch(r"( *)out\[(.*)\] = (\w+)\[(.*)\]", statement)
        if moved:
            indent, target, source, offset = moved.groups()
            size = int(remark.split()[0])
            statement = f"{indent}move({target}, {names[source]!r}, {offset}, {size})"
        code.append(statement)

    def move(target, source, offset, size):
        memory["out"][target : target + size] = memory[source][offset : offset + size]

    exec("\n".join(code), {"load": load, "check": check, "move": move})
    return bytes(memory["out"])


REASONS = {
    "direct": ("gather", ((8,), F4), ((3,), I8)),
    "prefetched": ("gather", ((4096, 4096), F4), ((4096,), I8), 1),
    "streamed": ("gather", ((4096, 4096), F4), ((4096,), I8)),
    "packed": ("gather_elements", ((4096, 4096), F4), ((4096, 4096), I8)),
    "accumulators": ("scatter_nd", ((1000,), F4), ((10**6, 1), I8), ((10**6,), F4)),
    "partitioned": ("scatter_nd", ((10**7,), F4), ((10**7, 1), I8), ((10**7,), F4)),
    "by_destination": ("scatter_nd", ((1000, 9), "f2"), ((100, 1), I8), ((100, 9), "f2")),
}


@pytest.mark.parametrize("algorithm", REASONS)
def test_explain_prints_the_reason_for_the_algorithm(algorithm):
    op, data, indices, *others = REASONS[algorithm]
    attributes = {"reduction": "add"} if op.startswith("scatter") else {}
    if op == "gather" and others:
        attributes, others = {"axis": others[0]}, []
    plan = gatherum.plan(op, data, indices, *others, **attributes)
    assert family(plan.algorithm) == algorithm
    words = {
        "direct": "other algorithms are faster from",
        "prefetched": "indices reads from 16,384 bytes",
        "streamed": "stores that bypass the cache",
        "packed": "different columns of 4,096 items",
        "accumulators": "which are few enough for an accumulator of 4 bytes each",
        "partitioned": "which do not fit in the cache",
        "by_destination": "first grouped by destination",
    }
    assert words[algorithm] in plan.reason
    assert f"algorithm {plan.algorithm}: {plan.reason}\n" in str(gatherum.explain(plan))


def test_values_are_reported_and_invalid_ones_explained():
    explanation = gatherum.explain("gather", np.arange(3), [0, 2, 0, 7])
    assert "  found     4 entries, 1 invalid (first at [3]), 1 duplicate (first at [2])" in str(
        explanation
    )
    sentence = "gather: index 7 is out of bounds for axis 0 of size 3 (indices[3])"
    assert f"  raises    IndexError: {sentence}" in str(explanation)
    assert sentence in " ".join(texts_of(explanation.svg()))
    assert "IndexError" in texts_of(explanation.svg())
    clipped = gatherum.explain("gather", np.arange(3), [0, 2, 0, 7], mode="clip")
    assert (clipped.refusal, clipped.report.invalid) == ("", 1)
    assert "7\N{RIGHTWARDS ARROW}2" in texts_of(clipped.svg())


@pytest.mark.parametrize("op", OPERATORS)
@given(data=st.data())
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_the_refusal_is_the_sentence_that_the_call_raises(op, data):
    call = data.draw(calls([op], invalid=0.2))
    explanation = explanation_of(call)
    try:
        call.run(gatherum)
    except IndexError as raised:
        assert explanation.refusal == str(raised)
    else:
        assert explanation.refusal == ""


def test_explain_accepts_a_plan_and_the_arguments_of_plan():
    plan = gatherum.plan("gather", ((3,), I8), ((2,), I8), mode="fill")
    assert gatherum.explain(plan).indices is None
    data, indices = np.arange(3), np.array([1, 9])
    explanation = gatherum.explain(plan, data, indices, fill_value=-5)
    assert explanation.data is data
    assert "-5" in texts_of(explanation.svg())
    assert gatherum.explain("gather", [1, 2], []).report.entries == 0
    scattered = gatherum.explain("scatter_nd", [1.0, 2.0], [[1]], 5)
    assert scattered.updates.dtype == np.float64


@pytest.mark.parametrize(
    ("arguments", "attributes", "error_type", "sentence"),
    [
        (("gather",), {}, TypeError,
         "explain: `data` and `indices` must be given with an operator's name"),
        (("gather", [1.0], [0.5]), {}, TypeError,
         "gather: `indices` must have an integer dtype, got float64; write "
        "indices.astype(np.int64)"),
        (("gather", [1], [0]), {"mode": "fill", "fill_value": 0.5}, ValueError,
         "gather: `fill_value` must be an integer where `data` is int64, got 0.5"),
        (("scatter_nd", [1], [[0]], [1, 2]), {}, ValueError,
         "scatter_nd: `updates` must have shape (1,), got (2,)"),
        (("take", [1], [0]), {}, ValueError,
         "explain: `op` must be one of 'gather', 'gather_elements', 'gather_nd', "
         "'scatter_slices', 'scatter_elements', 'scatter_nd', got 'take'"),
        (("a plan", np.arange(4)), {}, ValueError,
         "gather: the plan was made for `data` int64 (3,), got int64 (4,)"),
        (("a plan", [1, 2, 3]), {}, TypeError,
         "gather: `data` must be a numpy.ndarray without a mask, got list"),
        (("a plan",), {"axis": 0}, TypeError,
         "explain: unknown attribute 'axis'; it takes 'fill_value'"),
        (("a filling plan",), {"fill_value": 0.5}, ValueError,
         "gather: `fill_value` must be an integer where `data` is int64, got 0.5"),
    ],
)  # fmt: skip
def test_invalid_arguments_of_explain_raise(arguments, attributes, error_type, sentence):
    op, *operands = arguments
    if op.endswith("plan"):
        mode = "fill" if "filling" in op else "raise"
        op = gatherum.plan("gather", ((3,), I8), ((2,), I8), mode=mode)
    with pytest.raises(error_type) as caught:
        gatherum.explain(op, *operands, **attributes)
    assert str(caught.value) == sentence
