"""An embedding with repeated words: lookups, and a gradient that is the same on every run.

    python examples/torch/embedding.py

Word vectors are gathered from a table with `gatherum.gather`. Its gradient adds up, for each word,
the gradients of all occurrences of the word, in the order of the text.
"""

import torch

import gatherum

WORDS, WIDTH = 1_000, 64


def gradient(table: torch.Tensor, text: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Return the gradient of a loss with respect to the table."""
    leaf = table.clone().requires_grad_()
    vectors = gatherum.gather(leaf, text)
    (vectors * weights).sum().backward()
    assert leaf.grad is not None
    return leaf.grad


def main() -> None:
    """Compare with torch's embedding, and with other numbers of threads."""
    generator = torch.Generator().manual_seed(1)
    table = torch.randn(WORDS, WIDTH, generator=generator)
    # A few words make up most of a text.
    text = (WORDS * torch.rand(20_000, generator=generator) ** 4).long()
    weights = torch.randn(len(text), WIDTH, generator=generator)
    print(f"{len(text)} lookups of {len(text.unique())} words")

    result = gradient(table, text, weights)
    leaf = table.clone().requires_grad_()
    (torch.nn.functional.embedding(text, leaf) * weights).sum().backward()
    torch.testing.assert_close(result, leaf.grad, rtol=1e-4, atol=1e-4)
    print("the gradient is torch's, to rounding")

    threads = gatherum.get_num_threads()
    for number in (1, 2, 7):
        gatherum.set_num_threads(number)
        assert torch.equal(gradient(table, text, weights), result)
    gatherum.set_num_threads(threads)
    print("and the same bits on 1, 2 and 7 threads")


if __name__ == "__main__":
    main()
