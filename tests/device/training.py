"""Call torch's operators inside `reproducible` on the host and twice on a device; train twice.

Each line names a call or a model, followed by ok, or by the difference or the error. The results
and gradients of a call must have the same bits in both runs on the device and on the host (but not
dot products, which torch computes). A model's parameters must have the same bits after two
trainings on the device.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

# cuBLAS needs this for equal bits in every run. torch reads it at the first product.
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
sys.path.append(str(Path(__file__).parents[1] / "frameworks" / "torch"))

import torch
from reproducible_calls import calls, operands, run
from surface import difference, report, result_of
from torch import Tensor

from gatherum.torch import reproducible, torch_scatter

GPU = torch.device("cuda")
STEPS = 20
DOT_PRODUCTS = ("embedding_bag weights",)  # calls with a gradient by torch
SIZES = {"few": (60, 7), "many": (20_000, 300)}  # updates and rows


def of_calls() -> Iterator[tuple[str, str]]:
    """Yield the outcomes of all operators, with few updates and with many."""
    for size, (n, rows) in SIZES.items():
        host, device = (calls(n, rows, device=each) for each in ("cpu", GPU))
        tensors = operands(n, rows)
        for name in host:
            if name in DOT_PRODUCTS:
                host[name] = device[name]
            yield f"{name}, {size} updates", outcome(host[name], device[name], tensors)


def outcome(
    expected: Callable[..., Any], device: Callable[..., Any], tensors: tuple[Tensor, ...]
) -> str:
    """Run a call as expected and twice on the device. Return ok, or the difference."""
    on_device = tuple(each.to(GPU) for each in tensors)
    with reproducible():
        first = result_of(run, (expected, *(on_device if expected is device else tensors)))
        results = [result_of(run, (device, *on_device)) for _ in range(2)]
    return next(filter(None, (compared(first, result) for result in results)), "ok")


def compared(first: Any, second: Any) -> str:
    """Return "" for lists of tensors with the same bits, else the difference or an error."""
    for each in (first, second):  # none of these calls may raise, so equal errors are not ok
        if isinstance(each, str):
            return each[:200]
    return difference(tuple(each.cpu() for each in first), tuple(second))


class Recommender(torch.nn.Module):
    """Bags of items with weights, and the score of a user's row."""

    def __init__(self) -> None:
        super().__init__()
        self.bags = torch.nn.EmbeddingBag(300, 16, mode="sum")
        self.users = torch.nn.Embedding(50, 16)

    def forward(self, inputs: Tensor, pairs: Tensor) -> Tensor:
        """Return the scores of bags of 30 items; the sources of the pairs are the items."""
        items, starts = pairs[0] % 300, torch.arange(0, pairs.shape[1], 30, device=pairs.device)
        weights = torch.linspace(0, 1, len(items), device=pairs.device)
        bags = self.bags(items, starts, per_sample_weights=weights)
        return bags * self.users(torch.arange(len(bags), device=pairs.device) % 50)


def models() -> Iterator[tuple[str, Callable[[], torch.nn.Module]]]:
    """Yield the models, those of PyTorch Geometric if it is installed."""
    yield "Recommender", Recommender
    sys.modules["torch_scatter"] = torch_scatter
    try:
        layers = import_module("torch_geometric.nn")
    except ImportError:
        return
    yield "GCNConv", lambda: layers.GCNConv(16, 8)
    yield "GATConv", lambda: layers.GATConv(16, 8, heads=2)
    yield "SAGEConv max", lambda: layers.SAGEConv(16, 8, aggr="max")


def of_models() -> Iterator[tuple[str, str]]:
    """Yield the outcomes of two trainings of each model."""
    for name, model in models():
        first, second = (result_of(trained, (model,)) for _ in range(2))
        yield f"{STEPS} steps of {name}, twice", compared(first, second) or "ok"


def trained(model: Callable[[], torch.nn.Module]) -> list[Tensor]:
    """Return the parameters after training on a random graph."""
    torch.manual_seed(0)
    nodes, pairs = torch.randn(1000, 16, device=GPU), torch.randint(1000, (2, 30_000), device=GPU)
    with reproducible():
        module = model().to(GPU)
        optimizer = torch.optim.SGD(module.parameters(), 1e-4, momentum=0.9)
        for _ in range(STEPS):
            optimizer.zero_grad()
            module(nodes, pairs).square().sum().backward()
            optimizer.step()
    return [each.detach() for each in module.parameters()]


def main() -> int:
    """Make the calls, and return whether one has failed."""
    warnings.simplefilter("ignore")
    counts = {"calls": 0, "wrong": 0}
    for outcomes in (of_calls, of_models):
        for name, words in outcomes():
            report(name, words, counts)
    print(f"{counts['wrong']} of {counts['calls']} calls went wrong")
    return int(counts["wrong"] > 0)


if __name__ == "__main__":
    sys.exit(main())
