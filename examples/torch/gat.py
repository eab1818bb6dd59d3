"""A graph attention layer (GAT): softmax over the edges that end at a node, then a weighted sum.

    python examples/torch/gat.py

Each edge has a score for each head. The softmax of the scores over the edges of a node are the
weights of its neighbours; `gatherum.aggregate` computes the weighted sum without storing messages.
"""

import torch
from torch import Tensor, nn

import gatherum

NODES, EDGES, FEATURES, HEADS, CLASSES = 400, 3_000, 16, 4, 3


class Attention(nn.Module):
    """Graph attention with several heads, whose results are averaged."""

    def __init__(self, features: int, out: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.project = nn.Linear(features, heads * out, bias=False)
        self.source = nn.Parameter(torch.randn(heads, out) / out**0.5)
        self.target = nn.Parameter(torch.randn(heads, out) / out**0.5)

    def forward(self, nodes: Tensor, sources: Tensor, targets: Tensor) -> Tensor:
        """Return new features for all nodes."""
        n = nodes.shape[0]
        values = self.project(nodes).reshape(n, self.heads, -1)
        of_source, of_target = (
            (values * vector).sum(-1) for vector in (self.source, self.target)
        )  # a node's part of the score, as a source and as a target
        scores = gatherum.gather(of_source, sources) + gatherum.gather(of_target, targets)
        scores = nn.functional.leaky_relu(scores, 0.2)
        shares = gatherum.groups.transform(scores, targets, "softmax", size=n)
        return gatherum.aggregate(values, sources, targets, n, "add", shares).mean(1)


def train(steps: int) -> list[float]:
    """Learn classes of nodes whose neighbours mostly have the same class; return the losses."""
    torch.manual_seed(4)
    classes = torch.randint(CLASSES, (NODES,))
    nodes = nn.functional.one_hot(classes, CLASSES).float() @ torch.randn(CLASSES, FEATURES)
    nodes = nodes + 2 * torch.randn(NODES, FEATURES)
    sources, targets = torch.randint(NODES, (2, EDGES))
    alike = classes[sources] == classes[targets]
    kept = alike | (torch.rand(EDGES) < 0.2)
    sources, targets = sources[kept], targets[kept]

    layer = Attention(FEATURES, CLASSES, HEADS)
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.05)
    losses = []
    for _ in range(steps):
        loss = nn.functional.cross_entropy(layer(nodes, sources, targets), classes)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())

    result = layer(nodes, sources, targets)
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(nodes, sources, targets), result)
    right = (result.argmax(1) == classes).float().mean()
    print(f"after {steps} steps {right:.0%} of the nodes are classified right")
    return losses


def main() -> None:
    """Train a layer on one thread and on two."""
    before = gatherum.get_num_threads(), torch.get_num_threads()
    torch.set_num_threads(1)  # torch's own products depend on the number of its threads
    losses = []
    for threads in (1, 2):
        gatherum.set_num_threads(threads)
        losses.append(train(60))
    gatherum.set_num_threads(before[0])
    torch.set_num_threads(before[1])
    print(f"the loss falls from {losses[0][0]:.2f} to {losses[0][-1]:.2f}")
    assert losses[0][-1] < 0.7 * losses[0][0]
    assert losses[0] == losses[1]
    print("on two threads each loss has the same bits")


if __name__ == "__main__":
    main()
