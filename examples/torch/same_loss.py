"""Training with the same loss in two runs, and on one thread and on two.

    python examples/torch/same_loss.py

A small network learns node labels from a graph. gatherum computes all operations whose result
depends on the order of additions: the gradient of the embedding lookups, and the messages.
"""

import torch
from torch import nn

import gatherum
from gatherum.torch import scatter

NODES, EDGES, WORDS, WIDTH, STEPS = 3_000, 40_000, 200, 16, 15


def train() -> list[float]:
    """Train from the same initial state; return the loss of each step."""
    torch.manual_seed(4)
    words = torch.randint(WORDS, (NODES,))
    sources, targets = torch.randint(NODES, (2, EDGES))
    labels = words % 2
    table = nn.Parameter(torch.randn(WORDS, WIDTH))
    head = nn.Linear(WIDTH, 2)
    optimizer = torch.optim.Adam([table, *head.parameters()], lr=0.05)
    losses = []
    for _ in range(STEPS):
        nodes = gatherum.gather(table, words)
        heard = scatter(
            gatherum.gather(nodes, sources), targets, dim=0, dim_size=NODES, reduce="mean"
        )
        loss = nn.functional.cross_entropy(head(nodes + heard), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def main() -> None:
    """Train four times."""
    kept = gatherum.get_num_threads(), torch.get_num_threads()
    torch.set_num_threads(1)  # the gradients of torch's own weights depend on their number
    runs = []
    for threads in (1, 1, 2, 2):
        gatherum.set_num_threads(threads)
        runs.append(train())
    gatherum.set_num_threads(kept[0])
    torch.set_num_threads(kept[1])
    print(f"loss {runs[0][0]:.3f} -> {runs[0][-1]:.3f} in {STEPS} steps")
    assert runs[0][-1] < runs[0][0]
    assert all(run == runs[0] for run in runs)
    print("the same to the last bit, twice on one thread and twice on two")


if __name__ == "__main__":
    main()
