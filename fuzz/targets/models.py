"""ONNX models: serialized models with wrong bytes, and nodes of any form.

Even first bytes are followed by a serialized model, odd ones by choices that make a model of a few
nodes. The check returns a report for every gather and scatter node, or raises one ValueError.
"""

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
import onnx.parser
from onnx import helper

from gatherum import onnx as door
from gatherum.directml import FeatureLevel

from .commands import checked
from .source import Source

SCATTERS = ("Scatter", "ScatterElements", "ScatterND")
FAMILY = ("Gather", "GatherElements", "GatherND", *SCATTERS)
TYPES = (1, 7, 6, 10, 11, 9, 16, 8, 14, 0, 22, 17)  # float int64 int32 float16 double bool …
SIZES: tuple[Any, ...] = (2, 3, 1, 2, 4, 3, 2, 1, 0, "n", None, 1 << 40, -1)
OPSETS = (18, 18, 18, 18, 13, 16, 11, 1, 9, 12, 24, 0, 99, -1)
NAMES = ("table", "ids", "new", "", "missing", "out")
WORDS = """
    axis batch_dims reduction none add If Loop Constant then_branch else_branch body value ai.onnx
    table ids
"""
FIELDS = (b"\x08\x07", b"\x10\x0d", b"\x3a", b"\x0a\x04axis\x18\x01\xa0\x01\x02")
DICTIONARY = (*FIELDS, *(word.encode() for word in (*FAMILY, *WORDS.split())))
TEXTS = (
    "g (float[4,3] table, int64[2] ids) => (float[2,3] y) { y = Gather <axis=0> (table, ids) }",
    "g (float[n,3] table, int64[2,1] ids) => (y) { y = GatherND <batch_dims=0> (table, ids) }",
    "g (float[4,3] table, int64[4,3] ids) => (y) { y = GatherElements <axis=1> (table, ids) }",
    "g (float[4,3] table, int64[2,1] ids, float[2,3] new) => (y) "
    '{ y = ScatterND <reduction="add"> (table, ids, new) }',
    "g (float16[4,3] table, int32[2,3] ids, float16[2,3] new) => (y) "
    "{ y = ScatterElements <axis=0> (table, ids, new) }",
    "g (bool c, float[4,3] table, int64[2] ids) => (y) { y = If (c) "
    "<then_branch = a () => (float[2,3] t) { t = Gather (table, ids) }, "
    "else_branch = b () => (float[2,3] e) { e = Gather (table, ids) }> }",
)
FUNCTION = """<ir_version: 8, opset_import: ["": 18, "own": 1]>
g (float[4,3] table, int64[2] ids) => (y) { y = own.pick <a=1> (table, ids) }
<domain: "own", opset_import: ["": 18]>
pick <a> (t, i) => (o) { o = Gather <axis: int = @a> (t, i) }"""


def run(data: bytes) -> str:
    """Check a model."""
    source = Source(data)
    form = source.below(4)
    level = source.choice(tuple(FeatureLevel))
    model: Any = source.rest() if form % 2 == 0 else _drawn(source)
    if form == 2:
        return checked(model, ".onnx", level)
    try:
        reports = door.check_model(model, level, sizes={"n": 4} if form == 3 else None)
    except ValueError as error:
        text = str(error)
        assert text.startswith("check_model: ") and "\n" not in text, f"not one line: {error!r}"
        return "refused"
    for report in reports:
        assert report.accepted is not False or report.reasons, report
        assert report.op_type in FAMILY, report
        assert all(reason and "\n" not in reason for reason in report.reasons), report
    json.loads(door.reports_to_json(reports))
    assert door.report_lines(reports)
    return (
        " ".join(sorted({f"{report.op_type} {report.answer}" for report in reports})) or "no node"
    )


def seeds() -> Iterator[bytes]:
    """Yield serialized models and random choices."""
    rng = np.random.RandomState(22)
    for _ in range(400):
        yield bytes([rng.choice((1, 3)), rng.randint(15)]) + rng.bytes(rng.randint(10, 80))
    head = '<ir_version: 8, opset_import: ["": 18]>\n'
    for text in (*(head + text for text in TEXTS), FUNCTION):
        model = onnx.parser.parse_model(text)
        for form in (0, 2):
            yield bytes([form, 14]) + model.SerializeToString()
    yield b"\x00\x00"
    yield b"\x00\x00\x3a\x00"


# --- A model of the right form


def _drawn(source: Source) -> onnx.ModelProto:
    """Return a model of a few nodes."""
    nodes = [_node(source, i) for i in range(1 + source.below(2))]
    if source.once_in(6):
        nodes = [_wrapped(source, nodes)]
    inputs = [_value(source, name) for name in ("table", "ids", "new") if not source.once_in(12)]
    graph = helper.make_graph(nodes, "g", inputs, [onnx.ValueInfoProto(name="out0")])
    if source.once_in(4):
        shape = [source.choice((2, 1, 4)) for _ in range(source.below(3))]
        values = [source.choice((0, 1, 3, -1)) for _ in range(int(np.prod(shape)))]
        graph.initializer.append(helper.make_tensor("ids", 7, shape, values))
    opset = source.choice(OPSETS)
    imports = [
        onnx.OperatorSetIdProto(domain=source.choice(("", "", "ai.onnx", "own")), version=opset)
    ]
    return onnx.ModelProto(ir_version=8, graph=graph, opset_import=imports)


def _node(source: Source, number: int) -> onnx.NodeProto:
    op = source.choice(FAMILY)
    inputs = ["table", "ids", "new"][: 3 if op in SCATTERS else 2]
    variant = source.below(10)
    if variant == 1:
        inputs = inputs[:-1]
    elif variant == 2:
        inputs.append("new")
    elif variant == 3:
        inputs[source.below(len(inputs))] = source.choice(NAMES)
    elif variant == 4 and number:
        inputs[0] = "out0"
    node = onnx.NodeProto(op_type=op, input=inputs, output=[f"out{number}"])
    if source.once_in(5):
        node.name = source.take(3).decode("latin1")
    for _ in range(source.below(3)):
        node.attribute.append(_attribute(source, op))
    if source.once_in(16):
        node.domain = source.choice(("ai.onnx", "own"))
    return node


def _attribute(source: Source, op: str) -> onnx.AttributeProto:
    own = {"GatherND": "batch_dims", "ScatterND": "reduction"}.get(op, "axis")
    name = source.choice((own, own, own, own, "axis", "batch_dims", "reduction", "odd"))
    if source.below(8):
        value = source.choice(("none", "add") if name == "reduction" else (0, 1, -1, 2))
    else:
        value = source.choice(("max", 1.5, 1 << 62, -(1 << 63), b"\xff", [1], "none", 3))
    attribute = helper.make_attribute(name, value)
    if source.once_in(20):
        attribute.type = source.choice((2, 1, 3, 0, 7))
    if source.once_in(24):
        attribute.ref_attr_name = "a"
    return attribute


def _value(source: Source, name: str) -> onnx.ValueInfoProto:
    elements = (7, 6)[source.below(2)] if name == "ids" else 1
    if source.once_in(5):
        elements = source.choice(TYPES)
    if source.once_in(10):
        return onnx.ValueInfoProto(name=name)
    shape = None if source.once_in(10) else [source.choice(SIZES) for _ in range(source.below(5))]
    return helper.make_tensor_value_info(name, elements, shape)


def _wrapped(source: Source, nodes: list[onnx.NodeProto]) -> onnx.NodeProto:
    """Wrap the nodes in an If or a Loop."""
    outputs = [onnx.ValueInfoProto(name="out0")]
    body = helper.make_graph(nodes, "body", [], outputs)
    if source.once_in(2):
        return helper.make_node("If", ["new"], ["y"], then_branch=body, else_branch=body)
    return helper.make_node("Loop", ["ids", "new", "table"], ["y"], body=body)
