"""Compare a softmax over the edges of a graph, on tensors, with torch's composition, in turns.

python benchmarks/limits/softmax.py [--threads 2] [--clock cpu] [--rounds 9]
"""

import sys
from pathlib import Path

import torch

import gatherum

sys.path.insert(0, str(Path(__file__).parent))
from turns import arguments, report

NODES, EDGES, HEADS = 100_000, 1_000_000, 8


def main() -> None:
    """Print the medians."""
    options = arguments(__doc__)
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    scores = torch.randn(EDGES, HEADS, requires_grad=True)
    ends = torch.randint(0, NODES, (EDGES,))
    change = torch.randn(EDGES, HEADS)
    everywhere = ends[:, None].expand(EDGES, HEADS)

    def ours() -> torch.Tensor:
        return gatherum.groups.transform(scores, ends, "softmax", size=NODES)

    def composed() -> torch.Tensor:
        """Use scatter_reduce and index_select, as users of torch do."""
        start = torch.full((NODES, HEADS), -torch.inf)
        largest = start.scatter_reduce(0, everywhere, scores.detach(), "amax")
        powers = (scores - largest.index_select(0, ends)).exp()
        sums = torch.zeros(NODES, HEADS).scatter_reduce(0, everywhere, powers, "sum")
        return powers / sums.index_select(0, ends)

    runs = {}
    for name, function in {"gatherum": ours, "torch, composed": composed}.items():
        runs[f"{name}, forward"] = function
        runs[f"{name}, with backward"] = lambda of=function: torch.autograd.grad(
            of(), scores, change
        )
    torch.testing.assert_close(ours(), composed())
    report(runs, options)


main()
