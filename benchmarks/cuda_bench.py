"""Compare gatherum on a CUDA device with torch, CuPy, torch_scatter and the device's limits.

    python benchmarks/cuda_bench.py                        # everything, about three minutes
    python benchmarks/cuda_bench.py --only rows --rounds 15
    python benchmarks/cuda_bench.py --scale 0.1 --json results.json

All libraries run in turns in one process. A time is the median of the rounds, by CUDA events,
followed by the quartiles. gatherum runs in mode "raise", which waits for the device, and in mode
"drop", which does not. Results are compared first: moved data must be equal, torch's sums may
differ by rounding. "Of floor" is the time to move the bytes of the call at the bandwidth of copies
on the device, divided by gatherum's time. The floor of a fold consists of a radix sort with 8 bits
per pass and one pass over the updates.
"""

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

import gatherum
import gatherum.cuda
from gatherum.cuda.explain import copy_bandwidth

Call = Callable[[], Any]
GPU = torch.device("cuda")


@dataclass
class Case:
    """One comparison: gatherum's calls by mode, other calls by name, and the goals.

    Attributes
    ----------
    floor : int
        Bytes that must be read and written.
    of_floor : float
        The goal: the minimum fraction of the floor's speed.
    peer, ratio : str, float
        A peer, and the minimum desired ratio of its time to gatherum's.
    """

    name: str
    ours: Callable[[str], Any]
    peers: dict[str, Call]
    floor: int
    of_floor: float | None
    peer: str | None
    ratio: float | None
    exact: bool = True
    times: dict[str, list[float]] = field(default_factory=dict)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--scale", type=float, default=1.0, help="of the number of indices")
    parser.add_argument("--json", help="also write the times to this file")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("cuda_bench: needs a CUDA device that torch sees", file=sys.stderr)
        return 1
    torch.manual_seed(0)
    speed = copy_bandwidth()
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, gatherum "
          f"{gatherum.__version__}, {options.rounds} rounds, scale {options.scale:g}; a copy moves "
          f"{speed / 1e9:.0f} GB/s, read and written\n")  # fmt: skip
    print(
        "| case | ours | ours, no wait | of floor | others | goals |\n|---|---:|---:|---:|---|---|"
    )
    cases = []
    for make in (rows, elements, rows_set, adds, row_adds, bins):
        for case in make(options.scale):
            if options.only in case.name:
                print(measured(case, options.rounds, speed), flush=True)
                cases.append({"case": case.name, "floor": case.floor / speed, **case.times})
        torch.cuda.empty_cache()
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"device": torch.cuda.get_device_name(), "copy": speed, "cases": cases}, file)
    return 0


def measured(case: Case, rounds: int, speed: float) -> str:
    """Compare results, measure times in turns, and return a row of the table."""
    calls = {"ours": lambda: case.ours("raise"), "no wait": lambda: case.ours("drop"), **case.peers}
    answers = {name: call() for name, call in calls.items()}
    for name, answer in answers.items():
        compare(case, name, answers["ours"], answer)
    del answers
    case.times = {name: [] for name in calls}
    for number in range(rounds):
        for name in list(calls)[:: 1 if number % 2 else -1]:
            case.times[name].append(seconds(calls[name]))
    medians = {name: statistics.median(times) for name, times in case.times.items()}
    of_floor = case.floor / speed / medians["no wait"]
    others = "; ".join(
        f"{name} {shown(case.times[name])} ({medians[name] / medians['no wait']:.2f}x)"
        for name in case.peers
    )
    goals = []
    if case.of_floor is not None:
        goals.append(f"{case.of_floor:.0%} of floor{missed(of_floor, case.of_floor)}")
    if case.peer in case.peers and case.ratio is not None:
        ratio = medians[case.peer] / medians["no wait"]
        goals.append(f"{case.ratio:.2f}x of {case.peer}{missed(ratio, case.ratio)}")
    ours, quick = shown(case.times["ours"]), shown(case.times["no wait"])
    return f"| {case.name} | {ours} | {quick} | {of_floor:.0%} | {others} | {', '.join(goals)} |"


def missed(measured: float, goal: float) -> str:
    return "" if measured >= goal else " (missed)"


def seconds(call: Call) -> float:
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    begin.record()
    call()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / 1e3


def shown(times: list[float]) -> str:
    low, middle, high = statistics.quantiles(times, n=4) if len(times) > 1 else times * 3
    return f"{1e3 * middle:.3f} ms ({1e3 * low:.3f}-{1e3 * high:.3f})"


def compare(case: Case, name: str, ours: Tensor, other: Any) -> None:
    """gatherum must be exact in every mode; other libraries add in another order."""
    other = torch.as_tensor(other, device=GPU)
    if case.exact or name in ("ours", "no wait"):
        assert torch.equal(ours, other), f"{case.name}: {name} differs"
    else:
        torch.testing.assert_close(ours, other, rtol=1e-3, atol=1e-2)


def peers_of(**calls: Call | None) -> dict[str, Call]:
    """Omit the calls of packages that are not installed."""
    return {name.replace("_", " "): call for name, call in calls.items() if call is not None}


def with_cupy(function: Callable[..., Any], *tensors: Tensor) -> Call | None:
    """Return a call of a function on CuPy's arrays of the same memory."""
    if not find_spec("cupy"):
        return None
    import cupy

    arrays = [cupy.asarray(tensor) for tensor in tensors]
    return lambda: function(cupy, *arrays)


def with_torch_scatter(src: Tensor, index: Tensor, size: int) -> Call | None:
    if not find_spec("torch_scatter"):
        return None
    import torch_scatter

    return lambda: torch_scatter.scatter_sum(src, index, 0, dim_size=size)


def deterministic(call: Call) -> Call:
    """Return a call under torch's deterministic mode."""

    def run() -> Any:
        torch.use_deterministic_algorithms(True)
        try:
            return call()
        finally:
            torch.use_deterministic_algorithms(False)

    return run


def moved(op: str, *operands: Tensor, **more: Any) -> int:
    return gatherum.plan(op, *operands, **more).bytes


def rows(scale: float) -> Iterator[Case]:
    """Rows of 512 bytes, as in embeddings."""
    n = int(scale * (1 << 20))
    table, index = torch.randn(n, 128, device=GPU), torch.randint(n, (n,), device=GPU)
    peers = peers_of(
        index_select=lambda: table.index_select(0, index),
        cupy_take=with_cupy(lambda cupy, t, i: cupy.take(t, i, axis=0), table, index),
    )
    yield Case("rows of 512 B, 2^20", lambda mode: gatherum.gather(table, index, mode=mode), peers,
               moved("gather", table, index), 0.88, "index select", 0.95)  # fmt: skip


def elements(scale: float) -> Iterator[Case]:
    """One element per index, near its position or anywhere in its row."""
    n = int(scale**0.5 * (1 << 13))
    table = torch.randn(n, n, device=GPU)
    near = (torch.arange(n, device=GPU) + torch.randint(-8, 9, (n, n), device=GPU)).clamp(0, n - 1)
    for name, index, goal in (
        ("local", near, 0.7),
        ("random", torch.randint(n, (n, n), device=GPU), 0.5),
    ):
        peers = peers_of(
            gather=lambda index=index: torch.gather(table, 1, index),
            cupy_take_along_axis=with_cupy(
                lambda cupy, t, i: cupy.take_along_axis(t, i, axis=1), table, index
            ),
        )
        yield Case(
            f"gather_elements 2^26 f32, {name}",
            lambda mode, index=index: gatherum.gather_elements(table, index, 1, mode=mode),
            peers, moved("gather_elements", table, index, axis=1), goal, None, None,
        )  # fmt: skip


def set_rows(table: Any, index: Any, updates: Any) -> Any:
    table[index] = updates
    return table


def added(cupy: Any, table: Any, index: Any, updates: Any) -> Any:
    result = table.copy()
    cupy.add.at(result, index, updates)
    return result


def rows_set(scale: float) -> Iterator[Case]:
    """Rows written in place; the last duplicate is stored, which torch does not guarantee."""
    n = int(scale * (1 << 20))
    table, updates = torch.randn(n, 128, device=GPU), torch.randn(n, 128, device=GPU)
    index = torch.randperm(n, device=GPU)
    tuples = index[:, None]
    peers = peers_of(
        index_put_=lambda: table.index_put_((index,), updates),
        cupy_set=with_cupy(lambda _, t, i, u: set_rows(t, i, u), table, index, updates),
    )
    peers["index put, racy"] = peers.pop("index put ")
    yield Case(
        "scatter_nd rows of 512 B set, 2^20",
        lambda mode: gatherum.scatter_nd(table, tuples, updates, mode=mode, out=table),
        peers, moved("scatter_nd", table, tuples, updates, out=table), None, "index put, racy",
        1 / 1.25,
    )  # fmt: skip


def fold_floor(n: int, destinations: int, row: int, result: int) -> int:
    """The bytes of a radix sort of n pairs of 4 and 4 bytes, and of a pass over rows and result."""
    passes = -(-destinations.bit_length() // 8)
    return 8 * n + passes * 2 * 8 * n + 8 * n + row * n + 2 * result


def fold(name: str, table: Tensor, index: Tensor, updates: Tensor, of_floor: float | None,
         ratio: float) -> Case:  # fmt: skip
    size = table.shape[0]
    peers = peers_of(
        torch_deterministic=deterministic(lambda: table.index_add(0, index, updates)),
        torch_racy=lambda: table.index_add(0, index, updates),
        cupy_add_at_racy=with_cupy(added, table, index, updates),
        torch_scatter=with_torch_scatter(updates, index, size),
    )
    floor = fold_floor(len(index), size, updates[0].numel() * 4, table.numel() * 4)
    return Case(
        name,
        lambda mode: gatherum.scatter_slices(table, index, updates, reduction="add", mode=mode),
        peers, floor, of_floor, "torch deterministic", ratio, exact=False,
    )  # fmt: skip


def adds(scale: float) -> Iterator[Case]:
    n, size = int(scale * (1 << 26)), int(scale * (1 << 24))
    operands = torch.randint(size, (n,), device=GPU), torch.randn(n, device=GPU)
    yield fold("float32 add, 2^26 into 2^24", torch.zeros(size, device=GPU), *operands, 0.5, 2.0)


def row_adds(scale: float) -> Iterator[Case]:
    n = int(scale * (1 << 22))
    operands = torch.randint(100_000, (n,), device=GPU), torch.randn(n, 64, device=GPU)
    yield fold("float32 add, 2^22 rows of 64 into 100k", torch.zeros(100_000, 64, device=GPU),
               *operands, 0.5, 2.0)  # fmt: skip


def bins(scale: float) -> Iterator[Case]:
    n = int(scale * 20_000_000)
    operands = torch.randint(256, (n,), device=GPU), torch.randn(n, device=GPU)
    yield fold("20M adds into 256", torch.zeros(256, device=GPU), *operands, None, 1.0)


if __name__ == "__main__":
    sys.exit(main())
