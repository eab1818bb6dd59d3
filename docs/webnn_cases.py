"""Run WebNN test cases on pywebnn, an implementation of WebNN for Python over ONNX Runtime.

    gatherum vectors cases --format webnn
    python docs/webnn_cases.py cases

prints the number of cases of each operator that pass, and the cases that fail. It needs pywebnn,
but not gatherum.
"""

import json
import re
import sys
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

NAMES = ("input", "indices", "updates")


class NotThere(Exception):
    """pywebnn has no such operator."""


def run(op: str, *inputs: Any, **options: Any) -> Any:
    """Build a graph of one operator, compute it, and return the output in the input's dtype."""
    context = import_module("webnn").ML().create_context(device_type="cpu")
    builder = context.create_graph_builder()
    if (method := getattr(builder, _snake(op), None)) is None:
        raise NotThere(op)
    arrays = [np.asarray(one) for one in inputs]
    arrays[2:] = [np.asarray(one, arrays[0].dtype) for one in inputs[2:]]
    feeds = dict(zip(NAMES, arrays, strict=False))
    operands = [builder.input(name, one.shape, one.dtype.name) for name, one in feeds.items()]
    graph = builder.build({"output": method(*operands, **options)})
    # compute returns float64 for operands of any dtype
    return np.asarray(context.compute(graph, feeds)["output"], arrays[0].dtype)


def _snake(op: str) -> str:
    """Return pywebnn's name of a method: scatterND is scatter_nd."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", op).lower()


def outcome(graph: dict[str, Any]) -> str:
    """Run the graph of a case. Return "passed", or the wrong answer or error as text."""
    (step,) = graph["operators"]
    inputs = [_array(tensor) for tensor in graph["inputs"].values()]
    options = next((part["options"] for part in step["arguments"] if "options" in part), {})
    expected = _array(graph["expectedOutputs"][step["outputs"]])
    try:
        result = run(step["name"], *inputs, **options)
    except NotThere:
        return "not there"
    except Exception as error:  # an error is a result
        return type(error).__name__
    return compared(result, expected)


def compared(actual: Any, expected: Any) -> str:
    """Return "passed" for arrays of the same bits, or both arrays."""
    alike = (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    if alike and actual.tobytes() == expected.tobytes():
        return "passed"
    return f"{actual.tolist()}, not {expected.tolist()}"


def _array(tensor: dict[str, Any]) -> Any:
    kind = tensor["descriptor"]
    return np.array(tensor["data"], kind["dataType"]).reshape(kind["shape"])


def main() -> int:
    """Run the cases of a folder."""
    counts: Counter[tuple[str, str]] = Counter()
    for file in sorted(set(Path(sys.argv[1]).glob("*.json")) - {Path(sys.argv[1], "cases.json")}):
        for test in json.loads(file.read_text())["tests"]:
            what = outcome(test["graph"])
            short = what if what in ("passed", "not there") else "failed"
            counts[file.stem, short] += 1
            if short == "failed":
                print(f"{test['name']}: {what}")
    for (operator, short), count in sorted(counts.items()):
        print(f"{operator}: {count} {short}")
    return int(any(short == "failed" for _, short in counts))


if __name__ == "__main__":
    sys.exit(main())
