"""Time two methods of one task in turns, for the benchmarks of frameworks."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field

Call = Callable[[], object]


@dataclass
class Case:
    """One comparison: gatherum's call, a framework's methods, and the goal for the ratio."""

    name: str
    goal: float
    ours: Call
    peers: list[Call]
    loops: int = 1
    tolerance: float = 1e-3
    times: dict[str, list[float]] = field(default_factory=lambda: {"ours": [], "theirs": []})


Clock = Callable[[], float]


def measured(case: Case, rounds: int, clock: Clock = time.perf_counter) -> str:
    """Measure times in turns, alternating which runs first, and return a row of a table."""
    peer = min(case.peers, key=lambda call: min(seconds(call, case.loops, clock) for _ in range(2)))
    pair = [("ours", case.ours), ("theirs", peer)]
    for number in range(rounds):
        for name, call in pair[:: 1 if number % 2 else -1]:
            case.times[name].append(seconds(call, case.loops, clock))
    theirs, ours = case.times["theirs"], case.times["ours"]
    ratios = sorted(t / o for t, o in zip(theirs, ours, strict=True))
    low, _, high = statistics.quantiles(ratios, n=4) if rounds > 1 else ratios * 3
    ratio = statistics.median(theirs) / statistics.median(ours)
    met = "" if ratio >= case.goal else " (missed)"
    return (
        f"| {case.name} | {shown(theirs)} | {shown(ours)} | {ratio:.2f} ({low:.2f}-{high:.2f}) | "
        f"{case.goal:.2f}{met} |"
    )


def seconds(call: Call, loops: int, clock: Clock) -> float:
    start = clock()
    for _ in range(loops):
        call()
    return (clock() - start) / loops


def shown(times: list[float]) -> str:
    middle = statistics.median(times)
    return f"{1e6 * middle:.2f} us" if middle < 1e-3 else f"{1e3 * middle:.1f} ms"
