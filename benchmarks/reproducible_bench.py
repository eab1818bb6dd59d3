"""Measure torch's operators outside of and inside `gatherum.torch.reproducible`.

    python benchmarks/reproducible_bench.py [--device cuda] [--runs 15] [--only TEXT]
        [--sizes samples,small,middle,large] [--threads 1]

The three are timed in turn; the table has medians in microseconds, and the median of the ratios of
the second to the first. The third uses torch's switch for deterministic algorithms. The size
"samples" runs torch's own samples of each operator (OpInfo), which are small; it needs the package
expecttest. With one thread, the times are processor times, which other programs affect less.
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch

import gatherum
from gatherum.torch import reproducible

F = torch.nn.functional


@contextmanager
def switch() -> Any:
    """Use torch's own deterministic algorithms."""
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


WAYS: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "torch": nullcontext,
    "reproducible": reproducible,
    "use_deterministic_algorithms": switch,
}


def cases(n: int, size: int, width: int, device: str) -> dict[str, Callable[[], Any]]:
    """Return calls with `n` rows of updates into `size` rows."""
    i = torch.randint(size, (n,), device=device)
    table, updates = torch.rand(size, width, device=device), torch.rand(n, width, device=device)
    wide, odd = i[:, None].expand(n, width), torch.randint(size, (n, width), device=device)
    flat, values = torch.rand(size, device=device), torch.rand(n, device=device)
    bags = torch.arange(0, n, 10, device=device)
    leaf = table.clone().requires_grad_()
    taken, embedded = leaf[i], F.embedding(i, leaf)
    selected, bagged = leaf.index_select(0, i), F.embedding_bag(i, leaf, bags)
    seed = torch.ones_like(bagged)
    out = torch.empty_like(table)
    sparse = torch.sparse_coo_tensor(i[None], updates, (size, width), check_invariants=False)
    lengths = torch.full((max(n // 10, 1),), 10 if n >= 10 else n, device=device)

    def gradient(of: torch.Tensor, seed: torch.Tensor) -> Callable[[], Any]:
        return lambda: torch.autograd.grad(of, leaf, seed, retain_graph=True)

    return {
        "index_add": lambda: torch.index_add(table, 0, i, updates),
        "index_add_": lambda: table.index_add_(0, i, updates),
        "index_add_ of numbers": lambda: flat.index_add_(0, i, values),
        "index_add_ with alpha": lambda: table.index_add_(0, i, updates, alpha=0.5),
        "index_add, out": lambda: torch.index_add(table, 0, i, updates, out=out),
        "scatter_add_ expanded": lambda: table.scatter_add_(0, wide, updates),
        "scatter_add_ elements": lambda: table.scatter_add_(0, odd, updates),
        "scatter": lambda: torch.scatter(table, 0, odd, updates),
        "scatter_reduce amax": lambda: torch.scatter_reduce(table, 0, odd, updates, "amax"),
        "scatter_reduce mean": lambda: torch.scatter_reduce(table, 0, wide, updates, "mean"),
        "scatter_reduce prod": lambda: torch.scatter_reduce(table, 0, odd, updates, "prod"),
        "index_reduce amax": lambda: torch.index_reduce(table, 0, i, updates, "amax"),
        "index_copy": lambda: torch.index_copy(table, 0, i, updates),
        "x[i] = y": lambda: table.index_put_((i,), updates),
        "x[i] += y, accumulated": lambda: table.index_put_((i,), updates, accumulate=True),
        "x[i, j] accumulated": lambda: table.index_put_(
            (i, odd[:, 0] % width), values, accumulate=True
        ),
        "put_ accumulated": lambda: flat.put_(i, values, accumulate=True),
        "bincount": lambda: torch.bincount(i, values, size),
        "gradient of x[i]": gradient(taken, updates),
        "gradient of index_select": gradient(selected, updates),
        "gradient of embedding": gradient(embedded, updates),
        "embedding_bag": lambda: F.embedding_bag(i, table, bags),
        "gradient of embedding_bag": gradient(bagged, seed),
        "coalesce": sparse.coalesce,
        "segment_reduce": lambda: torch.segment_reduce(
            updates[: int(lengths.sum())], "sum", lengths=lengths, axis=0
        ),
    }


OPERATORS = (
    "index_add", "scatter_add", "scatter", "scatter_reduce", "index_reduce", "index_put",
    "index_copy", "put", "nn.functional.embedding_bag",
)  # fmt: skip


def samples(device: str) -> dict[str, Callable[[], Any]]:
    """Return a call for each operator that runs all of torch's samples."""
    from torch.testing._internal.common_methods_invocations import op_db

    def all_of(op: Any) -> Callable[[], Any]:
        given = list(op.sample_inputs(device, torch.float32))

        def run() -> None:
            for sample in given:
                op(sample.input, *sample.args, **sample.kwargs)

        return run

    return {op.full_name: all_of(op) for op in op_db if op.name in OPERATORS}


def timed(call: Callable[[], Any], repeats: int, device: str) -> float:
    """Return the microseconds of one call."""
    if device != "cpu":
        torch.cuda.synchronize()
    alone = device == "cpu" and torch.get_num_threads() == 1
    clock = time.thread_time if alone else time.perf_counter
    start = clock()
    for _ in range(repeats):
        call()
    if device != "cpu":
        torch.cuda.synchronize()
    return (clock() - start) / repeats * 1e6


def measured(call: Callable[[], Any], runs: int, device: str) -> tuple[dict[str, float], float]:
    """Return the median of each way, NaN where torch's switch raises, and the median ratio."""
    once = timed(call, 1, device)
    repeats = max(1, min(200, int(2000 / max(timed(call, 3, device), 0.1 * once, 1))))
    times: dict[str, list[float]] = {way: [] for way in WAYS}
    for _ in range(runs):
        for way, context in WAYS.items():
            with context():
                try:
                    call()
                    times[way].append(timed(call, repeats, device))
                except RuntimeError:
                    times[way].append(float("nan"))
    ratios = [one / other for one, other in zip(times["reproducible"], times["torch"], strict=True)]
    return {way: statistics.median(each) for way, each in times.items()}, statistics.median(ratios)


SIZES = {"small": (8, 5, 5), "middle": (5_000, 500, 16), "large": (1_000_000, 100_000, 64)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--only", default="")
    parser.add_argument("--sizes", default=",".join(["samples", *SIZES]))
    parser.add_argument("--threads", type=int, default=0)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    if options.threads:
        torch.set_num_threads(options.threads)
        gatherum.set_num_threads(options.threads)
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, {options.device}\n")
    print("| size | call | torch | reproducible | use_deterministic_algorithms | ratio |")
    print("| --- | --- | ---: | ---: | ---: | ---: |")
    for name in options.sizes.split(","):
        sized = name in SIZES
        calls = cases(*SIZES[name], options.device) if sized else samples(options.device)
        for title, call in calls.items():
            if options.only in title:
                runs = min(options.runs, 5) if name == "large" else options.runs
                times, ratio = measured(call, runs, options.device)
                shown = " | ".join(f"{each:.4g}" for each in times.values())
                print(f"| {name} | {title} | {shown} | {ratio:.2f} |", flush=True)


if __name__ == "__main__":
    main()
