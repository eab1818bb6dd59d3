"""A layer of a graph network: neighbours' messages, their mean and their maximum.

    python examples/torch/message_passing.py

Each node receives the features of the nodes that have an edge to it. Scatters with a reduction
compute their mean and maximum; nodes without incoming edges get zeros.
"""

import torch
from torch import Tensor, nn

import gatherum

NODES, EDGES, FEATURES = 2_000, 16_000, 32


class Layer(nn.Module):
    """Combine a node's features with the mean and the maximum of its neighbours' features."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.mix = nn.Linear(3 * features, features)

    def forward(self, nodes: Tensor, sources: Tensor, targets: Tensor) -> Tensor:
        """Return new features for all nodes."""
        messages = gatherum.gather(nodes, sources)
        nothing = nodes.new_zeros(()).expand(nodes.shape)  # one zero, expanded without memory
        mean, largest = (
            gatherum.scatter_slices(
                nothing, targets, messages, reduction=reduction, include_self=False
            )
            for reduction in ("mean", "max")
        )
        mixed: Tensor = self.mix(torch.cat((nodes, mean, largest), dim=1))
        return mixed.relu()


def main() -> None:
    """Run a layer forward and backward, eagerly and compiled."""
    torch.manual_seed(2)
    nodes = torch.randn(NODES, FEATURES, requires_grad=True)
    sources, targets = torch.randint(NODES, (2, EDGES))
    layer = Layer(FEATURES)

    result = layer(nodes, sources, targets)
    result.square().mean().backward()
    print(f"{EDGES} messages between {NODES} nodes: {tuple(result.shape)}")
    assert nodes.grad is not None
    silent = NODES - len(targets.unique())
    print(f"{silent} nodes receive nothing; the gradient is finite: {nodes.grad.isfinite().all()}")

    compiled = torch.compile(layer, fullgraph=True, dynamic=True, backend="aot_eager")
    torch.testing.assert_close(compiled(nodes, sources, targets), result)
    fewer = sources[:500], targets[:500]
    torch.testing.assert_close(compiled(nodes, *fewer), layer(nodes, *fewer))
    print("compiled, for any number of edges, it gives the same")


if __name__ == "__main__":
    main()
