"""Compare the bits of parts of a training step on several numbers of torch's threads.

    python benchmarks/torch_bits.py [--threads 1,4]

Each part runs eagerly and in a graph of inductor, which needs a C++ compiler, in a few minutes. The
table shows whether results differ from the results on the first number of threads, whether inductor
changes them, and whether a repeated call of the graph changes them.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch._inductor.utils import fresh_cache

import gatherum
from gatherum.torch import reproducible

F = torch.nn.functional
ROWS, WIDTH, PLACES = 20_000, 64, 5_000
Results = dict[str, torch.Tensor]
Bits = dict[str, bytes]


@dataclass
class Graph:
    """Parts that are compiled together: a function of leaves to named results."""

    function: Callable[..., Results]
    leaves: dict[str, torch.Tensor]
    gradients: bool = False
    context: Callable[[], AbstractContextManager[Any]] = nullcontext

    def run(self, function: Callable[..., Results]) -> Bits:
        """Return the bits of the results, or of the gradients of the leaves."""
        leaves = [leaf.clone().requires_grad_(self.gradients) for leaf in self.leaves.values()]
        with self.context():
            results = function(*leaves)
            if self.gradients:
                seeds = [_random(*each.shape, seed=7) for each in results.values()]
                gradients = torch.autograd.grad(list(results.values()), leaves, seeds)
                results = dict(zip(self.leaves, gradients, strict=True))
        return {name: each.detach().numpy().tobytes() for name, each in results.items()}

    def compiled_run(self) -> tuple[Bits, Bits]:
        """Return the bits of two calls of a new graph of inductor."""
        torch._dynamo.reset()
        with fresh_cache():
            compiled = torch.compile(self.function, fullgraph=True)
            return self.run(compiled), self.run(compiled)


def _random(*shape: int, seed: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def graphs() -> Iterator[Graph]:
    """Yield the graphs of the table."""
    generator = torch.Generator().manual_seed(1)
    i = torch.randint(PLACES, (ROWS,), generator=generator)
    j = torch.randint(PLACES, (ROWS,), generator=generator)
    x, table = _random(ROWS, WIDTH, seed=2), _random(PLACES, WIDTH, seed=3)
    w, b = _random(WIDTH, WIDTH, seed=4), _random(WIDTH, seed=5)
    images, filters = _random(4, 3, 64, 64, seed=6), _random(8, 3, 3, 3, seed=8)

    def forward(x: torch.Tensor, table: torch.Tensor) -> Results:
        return {
            "gatherum: gather": gatherum.gather(table, i),
            "gatherum: scatter": gatherum.scatter_slices(table, i, x, reduction="add"),
            "gatherum: aggregate": gatherum.aggregate(table, i, j, PLACES, "mean"),
            "gatherum: groups": gatherum.groups.reduce(x, i, PLACES, "var"),
            "gatherum: relu(gather * 2 + 1)": (gatherum.gather(table, i) * 2 + 1).relu(),
            "x * 2 + 1, relu, sigmoid": (x * 2 + 1).relu().sigmoid(),
            "x @ w": x @ w,
            "exp": x.exp(),
            "tanh": x.tanh(),
            "gelu": F.gelu(x),
            "softmax": x.softmax(-1),
            "layer_norm": F.layer_norm(x, (WIDTH,), b, b),
            "cross_entropy": F.cross_entropy(x, i % WIDTH),
            "conv2d": F.conv2d(images, filters),
            "x.sum(1)": x.sum(1),
            "x.sum(0)": x.sum(0),
            "x.sum()": x.sum(),
            "x.mean()": x.mean(),
            "torch's index_add": table.index_add(0, i, x),
        }

    yield Graph(forward, {"x": x, "table": table})

    def backward(*leaves: torch.Tensor) -> Results:
        taken, scattered, edges, linear, bias, scale, kernel, embedded = leaves
        return {
            "gather": gatherum.gather(taken, i),
            "scatter": gatherum.scatter_slices(table, i, scattered, reduction="add"),
            "aggregate": gatherum.aggregate(edges, i, j, PLACES, "max"),
            "linear": F.linear(x, linear, bias),
            "layer_norm": F.layer_norm(x, (WIDTH,), scale, b),
            "conv2d": F.conv2d(images, kernel),
            "embedding": F.embedding(i, embedded),
        }

    leaves = {
        "gradient of gatherum's gather": table,
        "gradient of gatherum's scatter": x,
        "gradient of gatherum's aggregate": table,
        "gradient of Linear's weight": w,
        "gradient of Linear's bias": b,
        "gradient of LayerNorm's weight": b,
        "gradient of Conv2d's weight": filters,
        "gradient of torch's embedding": table,
    }
    yield Graph(backward, leaves, gradients=True)

    def ordered(data: torch.Tensor, embedded: torch.Tensor) -> Results:
        return {"index_add": data.index_add(0, i, x), "embedding": F.embedding(i, embedded)}

    names = "index_add in reproducible()", "embedding in reproducible()"
    ordered_leaves = {f"gradient of {name}": table for name in names}
    yield Graph(ordered, ordered_leaves, gradients=True, context=reproducible)
    yield Graph(
        lambda x, table: {names[0]: table.index_add(0, i, x)},
        {"x": x, "table": table},
        context=reproducible,
    )


def compare(graph: Graph, threads: list[int]) -> Iterator[tuple[str, list[str]]]:
    """Yield the name of each part, and the causes that change its bits."""
    eager: dict[int, Bits] = {}
    compiled: dict[int, tuple[Bits, Bits]] = {}
    for number in threads:
        torch.set_num_threads(number)
        eager[number], compiled[number] = graph.run(graph.function), graph.compiled_run()
    first = threads[0]
    for name, bits in eager[first].items():
        yield (
            name,
            [
                _same(bits == eager[n][name] for n in threads),
                _same(eager[n][name] == compiled[n][0][name] for n in threads),
                _same(compiled[first][0][name] == compiled[n][0][name] for n in threads),
                _same(compiled[n][0][name] == compiled[n][1][name] for n in threads),
            ],
        )


def _same(equal: Iterator[bool]) -> str:
    return "same" if all(equal) else "different"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--threads", default="1,4", help="numbers of threads of torch")
    arguments = parser.parse_args()
    threads = [int(number) for number in arguments.threads.split(",")]
    print(f"torch {torch.__version__}, {threads} threads of torch")
    print(
        "| part | threads | inductor instead of eager | threads, inductor |",
        end="",
    )
    print(" the same graph again |\n|---|---|---|---|---|")
    for graph in graphs():
        for name, answers in compare(graph, threads):
            print("|", " | ".join([name, *answers]), "|", flush=True)


if __name__ == "__main__":
    main()
