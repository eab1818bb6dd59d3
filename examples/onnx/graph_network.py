"""A small graph network in ONNX, with and without gatherum's operators in the evaluator.

The network recommends items. It maps names to rows of an embedding table (two lookups), exchanges
messages between neighbours along the edges of a graph (a lookup and a scatter with `add`),
and writes the learned features of the items back into a memory (a scatter without a reduction).

    python examples/onnx/graph_network.py [--save model.onnx]

It requires gatherum and the package `onnx`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from gatherum.onnx import check_model, reference_ops, report_lines

CATALOGUE, ITEMS, EDGES, WIDTH, CLASSES = 5_000, 1_500, 12_000, 32, 8


def build_model() -> onnx.ModelProto:
    """Build the network with random weights."""
    rng = np.random.default_rng(7)

    def weights(*shape: int) -> np.ndarray:
        return (rng.standard_normal(shape) / np.sqrt(shape[-1])).astype(np.float32)

    initializers = {
        "row_of_name": rng.permutation(CATALOGUE),  # int64, as framework exporters write it
        "embedding": weights(CATALOGUE, WIDTH),
        "mix": weights(WIDTH, WIDTH),
        "head": weights(WIDTH, CLASSES),
        "silence": np.zeros((ITEMS, WIDTH), np.float32),
        "last": np.array([-1]),
    }
    node = helper.make_node
    nodes = [
        node("Gather", ["row_of_name", "names"], ["rows"], name="rename"),
        node("Gather", ["embedding", "rows"], ["items"], name="embed"),
        node("Gather", ["items", "sources"], ["messages"], name="send"),
        node("Unsqueeze", ["targets", "last"], ["target_tuples"]),
        node("ScatterND", ["silence", "target_tuples", "messages"], ["heard"],
             name="receive", reduction="add"),
        node("MatMul", ["heard", "mix"], ["mixed"]),
        node("Add", ["items", "mixed"], ["updated"]),
        node("Relu", ["updated"], ["learnt"]),
        node("Unsqueeze", ["rows", "last"], ["row_tuples"]),
        node("ScatterND", ["embedding", "row_tuples", "learnt"], ["memory"], name="remember"),
        node("MatMul", ["learnt", "head"], ["scores"]),
    ]  # fmt: skip
    graph = helper.make_graph(
        nodes,
        "graph_network",
        [
            helper.make_tensor_value_info("names", TensorProto.INT64, [ITEMS]),
            helper.make_tensor_value_info("sources", TensorProto.INT32, [EDGES]),
            helper.make_tensor_value_info("targets", TensorProto.INT64, [EDGES]),
        ],
        [
            helper.make_tensor_value_info("scores", TensorProto.FLOAT, [ITEMS, CLASSES]),
            helper.make_tensor_value_info("memory", TensorProto.FLOAT, [CATALOGUE, WIDTH]),
        ],
        [numpy_helper.from_array(array, name) for name, array in initializers.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    return model


def make_inputs() -> dict[str, np.ndarray]:
    """Choose random items and edges between them; many edges end at the same item."""
    rng = np.random.default_rng(8)
    return {
        "names": rng.choice(CATALOGUE, ITEMS, replace=False),
        "sources": rng.integers(0, ITEMS, EDGES, dtype=np.int32),
        "targets": rng.integers(0, ITEMS, EDGES),
    }


def fastest(call: Callable[[], object], repeats: int = 5) -> float:
    """Return the minimum of some times, in seconds."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def compare(model: onnx.ModelProto) -> tuple[float, float]:
    """Run both models, check that the results are equal, and return both times."""
    inputs = make_inputs()
    plain = ReferenceEvaluator(model)
    ours = ReferenceEvaluator(model, new_ops=reference_ops())
    for name, theirs, result in zip(
        ours.output_names, plain.run(None, inputs), ours.run(None, inputs), strict=True
    ):
        if theirs.tobytes() != result.tobytes():
            raise SystemExit(f"{name} differs")
        print(f"{name:<8} {result.shape!s:<12} equal, bit for bit")
    return fastest(lambda: plain.run(None, inputs)), fastest(lambda: ours.run(None, inputs))


def main() -> None:
    """Compare, then print which DirectML feature levels accept the gathers and scatters."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--save", metavar="FILE", help="write the model, for `gatherum check FILE`")
    options = parser.parse_args()
    model = build_model()
    without, with_ops = compare(model)
    print(f"ONNX's reference operators  {1e3 * without:8.2f} ms")
    print(f"reference_ops()             {1e3 * with_ops:8.2f} ms")
    for level in ("2_1", "3_0", "4_1"):
        print(f"\nDirectML feature level {level}")
        print("\n".join(report_lines(check_model(model, level))))
    if options.save:
        onnx.save(model, options.save)


if __name__ == "__main__":
    main()
