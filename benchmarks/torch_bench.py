"""Compare gatherum on tensors with PyTorch's own functions, forward and backward.

    python benchmarks/torch_bench.py                       # everything, about five minutes
    python benchmarks/torch_bench.py --only tiny --rounds 15
    python benchmarks/torch_bench.py --scale 0.1 --threads 2
    python benchmarks/torch_bench.py --only costs          # torch_scatter's functions side by side

Both libraries run in turns in one process, alternating which runs first. A time is the median of
the rounds, followed by the quartiles. If torch has several methods, the fastest is timed. Results
and gradients are compared first: moved data must be equal, sums may differ by rounding, since
torch adds in another order. "torch / ours" is the speedup of gatherum, followed by its goal.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterator

import torch
from torch import Tensor
from turns import Call, Case, measured, seconds

import gatherum
import gatherum.torch as gtorch
from gatherum.torch import torch_scatter


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--scale", type=float, default=1.0, help="of the sizes of large cases")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    gatherum.set_num_threads(options.threads)
    torch.manual_seed(0)
    print(f"torch {torch.__version__}, gatherum {gatherum.__version__}, {options.threads} threads, "
          f"{options.rounds} rounds, scale {options.scale:g}\n")  # fmt: skip
    if options.only == "costs":
        costs(options.scale, options.rounds)
        return 0
    print("| case | torch | ours | torch / ours | goal |\n|---|---:|---:|---:|---:|")
    for make in (tiny, segments, recorded, compiled, message_passing, embedding, rows):
        for case in make(options.scale, options.only):
            check(case)
            print(measured(case, options.rounds), flush=True)
    return 0


def costs(scale: float, rounds: int) -> None:
    """Print the time of each torch_scatter function relative to a segment sum, on one thread."""
    torch.set_num_threads(1)
    gatherum.set_num_threads(1)
    edges, nodes = int(200_000 * scale), int(20_000 * scale)
    src, index = torch.randn(edges, 32), torch.randint(nodes, (edges,))
    pointer = torch.searchsorted(index.sort()[0], torch.arange(nodes + 1))
    calls = {"segment_csr": lambda: torch_scatter.segment_csr(src, pointer),
             "segment_max_csr": lambda: torch_scatter.segment_max_csr(src, pointer),
             "scatter, max": lambda: torch_scatter.scatter(src, index, 0, None, nodes, "max"),
             "gather_csr": lambda: torch_scatter.gather_csr(src[:nodes], pointer)}  # fmt: skip
    for name in ("sum", "mean", "mul", "max", "std", "softmax", "logsumexp"):
        take = getattr(torch_scatter, f"scatter_{name}")
        more = {} if name in ("std", "softmax") else {"dim_size": nodes}
        calls[f"scatter_{name}"] = lambda take=take, more=more: take(src, index, 0, **more)
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            times[name].append(seconds(call, 1, time.process_time))
    print("| function | beside segment_csr |\n|---|---:|")
    for name, durations in times.items():
        ratios = (one / other for one, other in zip(durations, times["segment_csr"], strict=True))
        print(f"| {name} | {statistics.median(ratios):.1f} |")


def check(case: Case) -> None:
    """Compare the tensors that all calls return."""
    mine = case.ours()
    for peer in case.peers:
        for one, other in zip(tensors(mine), tensors(peer()), strict=True):
            torch.testing.assert_close(one, other, rtol=case.tolerance, atol=case.tolerance)


def tensors(result: object) -> list[Tensor]:
    return [t for t in (result if isinstance(result, tuple) else (result,)) if t is not None]


def tiny(_: float, only: str) -> Iterator[Case]:
    """Calls without gradients that measure only the overhead."""
    if only not in "tiny":
        return
    x, i = torch.randn(20), torch.randint(20, (5,))
    e, k, u = torch.randn(8, 8), torch.randint(8, (8, 8)), torch.randn(8, 8)
    yield Case("tiny: gather of 5", 1 / 1.1, lambda: gatherum.gather(x, i),
               [lambda: x.index_select(0, i)], 3000)  # fmt: skip
    yield Case("tiny: gather_elements 8x8", 1 / 0.95, lambda: gatherum.gather_elements(e, k),
               [lambda: e.gather(0, k)], 3000)  # fmt: skip
    yield Case("tiny: scatter_elements add 8x8", 1 / 0.95,
               lambda: gatherum.scatter_elements(e, k, u, reduction="add"),
               [lambda: e.scatter_add(0, k, u)], 3000)  # fmt: skip


def segments(_: float, only: str) -> Iterator[Case]:
    """Compare tiny calls of torch_scatter's functions with PyTorch's equivalents."""
    if only not in "segments":
        return
    x, pointer = torch.randn(8, requires_grad=True), torch.tensor([0, 3, 5, 8])
    rows, index = torch.randn(8, 4, requires_grad=True), torch.randint(5, (8,))

    def ours() -> Tensor:
        return torch_scatter.segment_csr(x, pointer)

    def theirs() -> Tensor:
        return torch._segment_reduce(x, "sum", offsets=pointer, unsafe=False)

    def scatter() -> Tensor:
        return torch_scatter.scatter(rows, index, 0, dim_size=5)

    def composed() -> Tensor:
        return rows.new_zeros(5, 4).scatter_add_(0, index[:, None].expand(-1, 4), rows)

    for name, leaf, mine, peer in (
        ("segment_csr of 8", x, ours, theirs), ("scatter of 8x4", rows, scatter, composed)
    ):  # fmt: skip
        alone = torch.no_grad()
        yield Case(f"segments: {name}", 1 / 1.3, alone(mine), [alone(peer)], 3000)
        both = backward([leaf], mine, peer, torch.ones_like(peer()))
        yield Case(f"segments: {name}, and backward", 1 / 1.3, *both, 500)


def recorded(_: float, only: str) -> Iterator[Case]:
    """The same calls with gradients."""
    if only not in "recorded":
        return
    x, i = torch.randn(20, requires_grad=True), torch.randint(20, (5,))
    yield Case("recorded: gather of 5, forward", 1 / 3, lambda: gatherum.gather(x, i),
               [lambda: x.index_select(0, i)], 1000)  # fmt: skip
    calls = backward(
        [x], lambda: gatherum.gather(x, i), lambda: x.index_select(0, i), torch.ones(5)
    )
    yield Case("recorded: gather of 5, and backward", 1 / 1.4, *calls, 500)


def compiled(_: float, only: str) -> Iterator[Case]:
    """A tiny call in a compiled graph, compiled by this version of the package."""
    if only not in "compiled":
        return
    from torch._inductor.utils import fresh_cache

    x, i = torch.randn(20), torch.randint(20, (5,))
    ours = torch.compile(gtorch.gather, fullgraph=True)
    theirs = torch.compile(lambda x, i: x.index_select(0, i), fullgraph=True)
    with fresh_cache():
        ours(x, i), theirs(x, i)
    yield Case("compiled: gather of 5", 1 / 1.3, lambda: ours(x, i), [lambda: theirs(x, i)], 2000)


def backward(leaves: list[Tensor], ours: Callable[[], Tensor], *others: object
             ) -> tuple[Call, list[Call]]:  # fmt: skip
    """Return calls that run forward and backward, and return the result and the gradients."""
    *peers, coming = others

    def both(call: Callable[[], Tensor]) -> Call:
        def run() -> tuple[Tensor, ...]:
            for leaf in leaves:
                leaf.grad = None
            result = call()
            result.backward(coming)
            return result.detach(), *(leaf.grad for leaf in leaves)

        return run

    return both(ours), [both(peer) for peer in peers]


def message_passing(scale: float, only: str) -> Iterator[Case]:
    """1M edges, 100k nodes, 64 features: gather from sources, add at targets."""
    if only not in "message passing":
        return
    nodes, edges, width = int(100_000 * scale), int(1_000_000 * scale), 64
    sources, targets = torch.randint(nodes, (2, edges))
    for dtype, goal in ((torch.float32, 2.5), (torch.bfloat16, 3.5)):
        x = torch.randn(nodes, width).to(dtype).requires_grad_()
        coming = torch.randn(nodes, width).to(dtype)
        wide = targets[:, None].expand(-1, width)
        calls = backward(
            [x],
            lambda x=x: gtorch.scatter(gtorch.gather(x, sources), targets, 0, dim_size=nodes),
            lambda x=x: torch.zeros_like(x).index_add(0, targets, x.index_select(0, sources)),
            lambda x=x, w=wide: torch.zeros_like(x).scatter_add(0, w, x.index_select(0, sources)),
            coming,
        )
        yield Case(f"message passing {named(dtype)}", goal, *calls, tolerance=rounding(dtype))


def embedding(scale: float, only: str) -> Iterator[Case]:
    """A table of 500k x 128, 200k lookups, of which one fifth are repeated."""
    if only not in "embedding":
        return
    rows, lookups, width = int(500_000 * scale), int(200_000 * scale), 128
    once = torch.randperm(rows)[: int(0.8 * lookups)]
    text = torch.cat((once, once[: lookups - len(once)]))[torch.randperm(lookups)]
    for dtype, goal in ((torch.float32, 2.2), (torch.bfloat16, 1.6)):
        table = torch.randn(rows, width).to(dtype).requires_grad_()
        coming = torch.randn(lookups, width).to(dtype)
        calls = backward(
            [table],
            lambda t=table: gtorch.gather(t, text),
            lambda t=table: torch.nn.functional.embedding(text, t),
            lambda t=table: t.index_select(0, text),
            coming,
        )
        yield Case(f"embedding {named(dtype)}", goal, *calls, tolerance=rounding(dtype))


def rows(scale: float, only: str) -> Iterator[Case]:
    """1M rows of 64 into 100k destinations."""
    if only not in "rows mean max mul":
        return
    places, count, width = int(100_000 * scale), int(1_000_000 * scale), 64
    index = torch.randint(places, (count,))
    wide = index[:, None].expand(-1, width)
    src = torch.randn(count, width, requires_grad=True)
    coming = torch.randn(places, width)
    for word, goal in (("mean", 3.5), ("amax", 1.8), ("mul", 1.0)):
        start = torch.full((places, width), float(word == "mul"))
        theirs = "prod" if word == "mul" else word
        calls = backward(
            [src],
            lambda w=word: gtorch.scatter(src, index, 0, dim_size=places, reduce=w),
            lambda s=start, t=theirs: s.scatter_reduce(0, wide, src, t, include_self=t == "prod"),
            coming,
        )
        yield Case(f"rows {word}", goal, *calls)


def named(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def rounding(dtype: torch.dtype) -> float:
    """torch rounds bfloat16 after each addition, so its sums have larger errors."""
    return 1e-3 if dtype == torch.float32 else 0.3


if __name__ == "__main__":
    sys.exit(main())
