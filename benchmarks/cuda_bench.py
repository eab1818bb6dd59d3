"""Compare gatherum on a CUDA device with torch, CuPy, torch_scatter and the device's limits.

    python benchmarks/cuda_bench.py                        # everything
    python benchmarks/cuda_bench.py --only 'rows of 512' --rounds 15
    python benchmarks/cuda_bench.py --scale 0.1 --json results.json

All libraries run in turns in one process, and results are compared first: moved data must be equal,
torch's sums may differ by rounding. Times are medians of the rounds, followed by the quartiles.

Device time does not include the host: a call is captured in a CUDA graph, in mode "drop", and the
graph is replayed between two CUDA events. Calls that cannot be captured, such as those of CuPy, are
timed between two events without a graph; these times, marked "with host", include gaps in which the
device waits for the host. Host time is the time until a call returns, on an idle device. In mode
"raise" this includes the wait for the device.

"Of floor" is the time to move the bytes of the call at the bandwidth of copies on the device,
divided by gatherum's device time. The floor of a fold consists of a radix sort with 8 bits per pass
and one pass over the updates. Goals in milliseconds are for an H100 and `--scale 1`.
"""

import argparse
import statistics
import sys
import time
from typing import Any

import cuda_program
import torch
from cuda_cases import CASES, GPU, Call, Case
from torch import Tensor

import gatherum
from gatherum.cuda.explain import copy_bandwidth


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--scale", type=float, default=1.0, help="of the number of indices")
    options = cuda_program.parse(parser)
    torch.manual_seed(0)
    speed = copy_bandwidth()
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, gatherum "
          f"{gatherum.__version__}, {options.rounds} rounds, scale {options.scale:g}; a copy moves "
          f"{speed / 1e9:.0f} GB/s, read and written\n")  # fmt: skip
    print("| case | ours | of floor | others | host: ours, drop / raise | host: others | goals |")
    print("|---|---:|---:|---|---:|---|---|")
    cases = []
    for make in CASES:
        for case in make(options.scale):
            if options.only in case.name:
                if options.scale != 1:
                    case.goal = None
                print(measured(case, options.rounds, speed), flush=True)
                cases.append({"case": case.name, "floor": case.floor / speed, **case.times})
        torch.cuda.empty_cache()
    cuda_program.write(options.json, copy=speed, cases=cases)
    return 0


class Timed:
    """A call, and the graph of it, if one can be captured."""

    def __init__(self, name: str, call: Call) -> None:
        self.call = call
        waits = name == "raise" or name.startswith("cupy")
        # A replay writes the result of the capture again, so the result must last.
        self.graph, self._result = (None, None) if waits else captured(call)

    def on_device(self) -> float:
        """Return the time between two events in seconds."""
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        begin.record()
        self.call() if self.graph is None else self.graph.replay()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) / 1e3

    def on_host(self) -> float:
        """Return the time until the call returns in seconds."""
        torch.cuda.synchronize()
        begin = time.perf_counter()
        self.call()
        return time.perf_counter() - begin


def captured(call: Call) -> tuple[Any, Any]:
    """Return a graph of a call and its result, or None twice if it cannot be captured."""
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            result = call()
    except Exception as why:  # any library's error: the call is then timed without a graph
        torch.cuda.synchronize()
        print(f"not captured: {str(why).splitlines()[0][:120]}", file=sys.stderr)
        return None, None
    return graph, result


def measured(case: Case, rounds: int, speed: float) -> str:
    """Compare results, measure times in turns, and return a row of the table."""
    calls = {"drop": lambda: case.ours("drop"), "raise": lambda: case.ours("raise"), **case.peers}
    answers = {name: call() for name, call in calls.items()}
    for name, answer in answers.items():
        compare(case, name, answers["drop"], answer)
    del answers
    timed = {name: Timed(name, call) for name, call in calls.items()}
    case.times = {clock: {name: [] for name in calls} for clock in ("device", "host")}
    for number in range(rounds):
        for name in list(calls)[:: 1 if number % 2 else -1]:
            case.times["device"][name].append(timed[name].on_device())
            case.times["host"][name].append(timed[name].on_host())
    return row_of(case, timed, speed)


def row_of(case: Case, timed: dict[str, Timed], speed: float) -> str:
    """Return the row of the table for measured times."""
    device, host = case.times["device"], case.times["host"]
    medians = {name: statistics.median(times) for name, times in device.items()}
    ours = medians["drop"]
    of_floor = case.floor / speed / ours
    others = "; ".join(
        f"{name} {shown(device[name])} ({medians[name] / ours:.2f}x)"
        + ("" if timed[name].graph else " with host")
        for name in case.peers
    )
    goals = []
    if case.of_floor is not None:
        goals.append(f"{case.of_floor:.0%} of floor{missed(of_floor, case.of_floor)}")
    if case.peer in case.peers and case.ratio is not None:
        ratio = medians[case.peer] / ours
        goals.append(f"{case.ratio:.2f}x of {case.peer}{missed(ratio, case.ratio)}")
    if case.goal is not None:
        goals.append(f"{case.goal:g} ms on an H100{missed(case.goal, 1e3 * ours)}")
    waits = {name: f"{1e6 * statistics.median(times):.0f} us" for name, times in host.items()}
    on_host = "; ".join(f"{name} {waits[name]}" for name in case.peers)
    return (
        f"| {case.name} | {shown(device['drop'])} | {of_floor:.0%} | {others} "
        f"| {waits['drop']} / {waits['raise']} | {on_host} | {', '.join(goals)} |"
    )


def missed(measured: float, goal: float) -> str:
    return "" if measured >= goal else " (missed)"


def shown(times: list[float]) -> str:
    low, middle, high = statistics.quantiles(times, n=4) if len(times) > 1 else times * 3
    return f"{1e3 * middle:.3f} ms ({1e3 * low:.3f}-{1e3 * high:.3f})"


def compare(case: Case, name: str, ours: Tensor, other: Any) -> None:
    """gatherum must be exact in every mode; other libraries add in another order."""
    other = torch.as_tensor(other, device=GPU)
    if case.exact or name in ("drop", "raise"):
        assert torch.equal(ours, other), f"{case.name}: {name} differs"
    elif case.close:
        torch.testing.assert_close(ours, other, rtol=1e-3, atol=1e-2)


if __name__ == "__main__":
    sys.exit(main())
