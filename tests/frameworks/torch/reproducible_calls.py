"""Calls of torch's gather and scatter operators, for the tests of `reproducible`."""

from tensors import torch

import gatherum

F = torch.nn.functional
MODES = {"sum": {}, "mean": {}, "max": {}}


def calls(n=1000, size=50, width=4, seed=0, device="cpu"):
    """Return functions of a table and updates by name; each index occurs many times."""
    make = torch.Generator().manual_seed(seed)
    i = torch.randint(0, size, (n,), generator=make).to(device)
    j, wide = i % width, i[:, None].expand(n, width)
    odd = (i[:, None] * 7 + torch.arange(width, device=device)) % size
    bags = torch.arange(0, n, 10, device=device)
    lengths = torch.tensor([n // 2, 0, n - n // 2], device=device)
    mask = torch.arange(size, device=device) % 2 == 0

    def bag(x, u, mode, **more):
        return F.embedding_bag(i, x, bags, mode=mode, **more)

    def weighted(x, u):
        return bag(x, u, "sum", per_sample_weights=u[:, 0])

    def sparse(x, u):
        at = torch.stack([i, j])
        return (
            torch.sparse_coo_tensor(at, u[:, 0], (size, width), check_invariants=False)
            .coalesce()
            .to_dense()
            + x
        )

    def counted(x, u):
        return torch.bincount(i, u[:, 0].detach(), size)[:, None] * x

    result = {
        "index_add": lambda x, u: torch.index_add(x, 0, i, u),
        "index_add alpha": lambda x, u: torch.index_add(x, 0, i, u, alpha=2),
        "scatter_add": lambda x, u: torch.scatter_add(x, 0, wide, u),
        "scatter_add elements": lambda x, u: torch.scatter_add(x, 0, odd, u),
        "scatter": lambda x, u: torch.scatter(x, 0, odd, u.detach()),
        "scatter reduce": lambda x, u: torch.scatter(x.detach(), 0, odd, u.detach(), reduce="add"),
        "scatter value": lambda x, u: torch.scatter(x.detach(), 0, odd, 1.1, reduce="multiply"),
        "index_copy": lambda x, u: torch.index_copy(x, 0, i, u.detach()),
        "put": lambda x, u: torch.put(x, i, u[:, 0], accumulate=True),
        "put last": lambda x, u: torch.put(x, i, u[:, 0].detach()),
        "add at": lambda x, u: x.index_put((i,), u, accumulate=True),
        "add at two": lambda x, u: x.index_put((i, j), u[:, 0], accumulate=True),
        "add at mask": lambda x, u: x.index_put(
            (mask, j[:1]), x[: (size + 1) // 2, 0], accumulate=True
        ),
        "assign": lambda x, u: x.index_put((i,), u.detach()),
        "x[i]": lambda x, u: x[i] * u,
        "x[i, j]": lambda x, u: x[i, j] * u[:, 0],
        "x[:, j]": lambda x, u: x[:, j],
        "x[:, None, j]": lambda x, u: x[:, None][:, :, j],
        "take": lambda x, u: x.take(i) * u[:, 0],
        "gather": lambda x, u: x.gather(0, odd) * u,
        "index_select": lambda x, u: x.index_select(0, i) * u,
        "embedding": lambda x, u: F.embedding(i, x, padding_idx=3) * u,
        "embedding scaled": lambda x, u: F.embedding(i, x, scale_grad_by_freq=True) * u,
        "embedding_bag weights": weighted,
        "embedding_bag padding": lambda x, u: bag(x, u, "mean", padding_idx=2),
        "bincount": counted,
        "coalesce": sparse,
    }
    for mode in MODES:
        result[f"embedding_bag {mode}"] = lambda x, u, mode=mode: bag(x, u, mode)
    for word in ("sum", "prod", "mean", "amax", "amin"):
        result[f"scatter_reduce {word}"] = lambda x, u, word=word: torch.scatter_reduce(
            x, 0, odd, u, word, include_self=word != "mean"
        )
        if word != "sum":
            result[f"index_reduce {word}"] = lambda x, u, word=word: torch.index_reduce(
                x, 0, i, u, word
            )
    for word in ("sum", "prod", "mean", "max", "min"):
        result[f"segment_reduce {word}"] = lambda x, u, word=word: torch.segment_reduce(
            u, word, lengths=lengths, axis=0
        )
    return result


def operands(n=1000, size=50, width=4, seed=1, dtype=torch.float32):
    """Return a table and updates whose sums depend on their order."""
    make = torch.Generator().manual_seed(seed)
    table = torch.randn(size, width, generator=make, dtype=dtype)
    updates = torch.randn(n, width, generator=make, dtype=dtype)
    return table, 1 + updates / 1000 if n > 10_000 else updates + 2


def run(call, table, updates):
    """Return the result of a call, and the gradients of its operands."""
    leaves = [each.detach().clone().requires_grad_() for each in (table, updates)]
    result = call(*leaves)
    if result.requires_grad:
        seed = torch.linspace(-1, 1, result.numel()).view(result.shape)
        result.backward(seed.to(result.device, result.dtype))
    return [result.detach(), *(leaf.grad for leaf in leaves if leaf.grad is not None)]


def bits(tensors):
    """Return the bytes of tensors."""
    return [bytes(each.resolve_conj().reshape(-1).view(torch.uint8).numpy()) for each in tensors]


class Threads:
    """Set the number of threads of torch and of the core, and restore them."""

    def __init__(self, count):
        self.count = count

    def __enter__(self):
        self.before = torch.get_num_threads(), gatherum.get_num_threads()
        torch.set_num_threads(self.count)
        gatherum.set_num_threads(self.count)

    def __exit__(self, *_):
        torch.set_num_threads(self.before[0])
        gatherum.set_num_threads(self.before[1])
