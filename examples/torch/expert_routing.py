"""A mixture of experts: each token is sent to the two experts that its router prefers.

    python examples/torch/expert_routing.py

`gatherum.gather` sorts the tokens by expert, so that each expert processes one block of rows.
`gatherum.scatter_slices` adds the weighted outputs to their tokens.
"""

import torch
from torch import Tensor, nn

import gatherum

TOKENS, WIDTH, EXPERTS, CHOSEN = 512, 32, 8, 2


class Mixture(nn.Module):
    """A router, and experts of one linear layer each."""

    def __init__(self, width: int, experts: int, chosen: int) -> None:
        super().__init__()
        self.router = nn.Linear(width, experts)
        self.experts = nn.ModuleList(nn.Linear(width, width) for _ in range(experts))
        self.chosen = chosen

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the weighted sum of the outputs of each token's experts."""
        weights, numbers = self.router(tokens).softmax(-1).topk(self.chosen, dim=-1)
        order = numbers.flatten().argsort(stable=True)
        owner = order // self.chosen  # the token of each row
        rows = gatherum.gather(tokens, owner)
        sizes = numbers.flatten().bincount(minlength=len(self.experts)).tolist()
        blocks = rows.split(sizes)
        answers = torch.cat([f(block) for f, block in zip(self.experts, blocks, strict=True)])
        shares = gatherum.gather(weights.flatten(), order)
        return gatherum.scatter_slices(
            torch.zeros_like(tokens), owner, answers * shares[:, None], reduction="add"
        )


def plainly(mixture: Mixture, tokens: Tensor) -> Tensor:
    """Compute the same token by token."""
    weights, numbers = mixture.router(tokens).softmax(-1).topk(mixture.chosen, dim=-1)
    return torch.stack([
        sum((w * mixture.experts[int(k)](token) for w, k in zip(ws, ks, strict=True)),
            torch.zeros_like(token))
        for token, ws, ks in zip(tokens, weights, numbers, strict=True)
    ])  # fmt: skip


def main() -> None:
    """Compare both versions, gradients included."""
    torch.manual_seed(3)
    mixture = Mixture(WIDTH, EXPERTS, CHOSEN)
    tokens = torch.randn(TOKENS, WIDTH)
    answers = {}
    for version in (mixture, lambda tokens: plainly(mixture, tokens)):
        mixture.zero_grad()
        leaf = tokens.clone().requires_grad_()
        result = version(leaf)
        result.square().sum().backward()
        answers[version] = [result, leaf.grad, *(p.grad for p in mixture.parameters())]
    routed, plain = answers.values()
    for one, other in zip(routed, plain, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-3)
    print(f"{TOKENS} tokens to {CHOSEN} of {EXPERTS} experts each")
    print(f"answers and {len(routed) - 1} gradients are those of the loop over tokens")


if __name__ == "__main__":
    main()
