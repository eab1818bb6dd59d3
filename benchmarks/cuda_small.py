"""Time small calls on a CUDA device against torch: microseconds of the host, on an idle device.

    python benchmarks/cuda_small.py                  # every call
    python benchmarks/cuda_small.py --json small.json

A time is the median of the rounds. A round makes some calls, and the clock stops before the round
waits for the device. So few calls do not fill the queue of launches, where a call would wait for
the device. `cuda_host.py` measures gatherum's part of these times without a device.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import cuda_program
import torch

import gatherum
from gatherum.torch import torch_scatter

Call = Callable[[], Any]
GPU = torch.device("cuda")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=41)
    parser.add_argument("--calls", type=int, default=50, help="calls of a round")
    options = cuda_program.parse(parser)
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}\n")
    print("| call | clip | raise | torch | torch's function |\n|---|---:|---:|---:|---|")
    rows = []
    for name, ours, peer_name, peer in calls():
        modes = {mode: (lambda mode=mode, ours=ours: ours(mode)) for mode in ("clip", "raise")}
        times = {
            label: microseconds(call, options.rounds, options.calls)
            for label, call in {**modes, "torch": peer}.items()
        }
        shown = " | ".join(f"{each:.1f}" for each in times.values())
        print(f"| {name} | {shown} | {peer_name} |", flush=True)
        rows.append({"call": name, "peer": peer_name, **times})
    cuda_program.write(options.json, calls=rows)
    return 0


def microseconds(call: Call, rounds: int, count: int) -> float:
    """Return the median over the rounds of the mean time of a call."""
    for _ in range(min(count, 20)):
        call()
    means = []
    for _ in range(rounds):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(count):
            call()
        means.append((time.perf_counter() - begin) / count)
    torch.cuda.synchronize()
    return 1e6 * statistics.median(means)


def calls() -> Iterator[tuple[str, Callable[[str], Any], str, Call]]:
    """Yield the name of a call, the call by mode, and a function of torch with its name."""
    torch.manual_seed(0)
    table, updates = torch.randn(10_000, 64, device=GPU), torch.randn(512, 64, device=GPU)
    index = torch.randint(10_000, (512,), device=GPU)
    whole, other = table.int(), updates.int()
    yield (
        "gather",
        lambda mode: gatherum.gather(table, index, mode=mode),
        "index_select",
        lambda: table.index_select(0, index),
    )
    for name, data, values, reduction, peer in (
        ("scatter without a reduction", table, updates, "none", "index_copy"),
        ("int32 add", whole, other, "add", "index_add"),
        ("float32 add", table, updates, "add", "index_add"),
    ):
        yield (
            name,
            lambda mode, a=data, b=values, fold=reduction: gatherum.scatter_slices(
                a, index, b, reduction=fold, mode=mode
            ),
            peer,
            lambda a=data, b=values, peer=peer: getattr(a, peer)(0, index, b),
        )
    yield from compositions()
    groups, values = torch.randint(1000, (20_000,), device=GPU), torch.randn(20_000, 64, device=GPU)
    yield (
        "torch_scatter.scatter sum, 20,000 x 64",
        lambda _: torch_scatter.scatter(values, groups, 0, dim_size=1000, reduce="sum"),
        "index_add",
        lambda: torch.zeros(1000, 64, device=GPU).index_add(0, groups, values),
    )
    zeros = torch.zeros(1000, 64, device=GPU)
    yield (
        "float32 add, 20,000 x 64",
        lambda mode: gatherum.scatter_slices(zeros, groups, values, reduction="add", mode=mode),
        "index_add",
        lambda: zeros.index_add(0, groups, values),
    )


def compositions() -> Iterator[tuple[str, Callable[[str], Any], str, Call]]:
    """Yield calls of several scatters: sums along edges, and softmax over groups."""
    n, size = 20_000, 1000
    sources, targets = (torch.randint(size, (n,), device=GPU) for _ in range(2))
    table, values = torch.randn(size, 64, device=GPU), torch.randn(n, 8, device=GPU)
    yield (
        "aggregate, 20,000 edges of rows of 64",
        lambda mode: gatherum.aggregate(table, sources, targets, size, "add", mode=mode),
        "index_add",
        lambda: torch.zeros_like(table).index_add_(0, targets, table[sources]),
    )
    places = targets[:, None].expand(n, 8)

    def softmax() -> torch.Tensor:
        zeros = torch.zeros(size, 8, device=GPU)
        largest = zeros.scatter_reduce(0, places, values, "amax", include_self=False)
        terms = (values - largest[targets]).exp()
        return terms / zeros.index_add(0, targets, terms)[targets]

    yield (
        "softmax of groups, 20,000 x 8",
        lambda mode: gatherum.groups.transform(values, targets, "softmax", size=size, mode=mode),
        "scatter_reduce, index_add",
        softmax,
    )


if __name__ == "__main__":
    sys.exit(main())
