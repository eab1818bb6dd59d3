"""Time very small calls, relative to the time of their alternatives.

    python benchmarks/small_calls.py                  # every pair
    python benchmarks/small_calls.py gather elements  # the pairs whose name contains a word
    python benchmarks/small_calls.py --rounds 2001

In each round, both calls of a pair run in a loop of about 0.2 ms, one after the other. The script
prints the median and the quartiles of the rounds' ratios, and the median time of both calls.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from statistics import median, quantiles
from typing import Any

import numpy as np
from bench.tiny import Loop

import gatherum as g


@dataclass(frozen=True)
class Pair:
    """A small call, its alternative, and the goal for the ratio of their times."""

    name: str
    call: str
    other: str
    goal: float


LOOP = 0.0002  # seconds: shorter than the time slices of a busy machine
INDEXING_GOAL = 2.2 if sys.version_info < (3, 12) else 1.5
PAIRS = (
    Pair("gather of 5", "gather(d, i)", "d[i]", INDEXING_GOAL),
    Pair("gather of 5, mode", "gather(d, i, mode='wrap')", "np.take(d, i, mode='wrap')", 1.0),
    Pair("elements 8x8", "gather_elements(s, j)", "np.take_along_axis(s, j, 0)", 0.1),
    Pair("elements 8x8, axis 1", "gather_elements(s, j, 1)", "np.take_along_axis(s, j, 1)", 0.1),
    Pair("scatter_elements 8x8", "scatter_elements(s, j, u)",
         "o = s.copy(); np.put_along_axis(o, j, u, 0)", 0.1),
    Pair("scatter_nd add of 100", "scatter_nd(d, n, v, reduction='add')",
         "o = d.copy(); np.add.at(o, m, v)", 0.5),
    Pair("scatter_slices add of 100", "scatter_slices(d, m, v, reduction='add')",
         "o = d.copy(); np.add.at(o, m, v)", 0.5),
    Pair("list / array", "gather(d, l)", "gather(d, i)", 3.0),
    Pair("Plan.run / call", "p.run(d, i)", "gather(d, i)", 1.0),
)  # fmt: skip


def operands() -> dict[str, Any]:
    """Return the names that the calls use."""
    rng = np.random.default_rng(0)
    d, v = rng.random(100, dtype="f4"), rng.random(100, dtype="f4")
    i, m = rng.integers(0, 100, 5), rng.integers(0, 100, 100)
    arrays = {"d": d, "v": v, "i": i, "m": m, "n": m[:, None].copy(), "l": i.tolist()}
    s, u = rng.random((8, 8), dtype="f4"), rng.random((8, 8), dtype="f4")
    arrays |= {"s": s, "u": u, "j": rng.integers(0, 8, (8, 8))}
    functions = (g.gather, g.gather_elements, g.scatter_elements, g.scatter_nd, g.scatter_slices)
    return {"np": np, **arrays, **{f.__name__: f for f in functions}, "p": g.plan("gather", d, i)}


def measure(pair: Pair, names: dict[str, Any], rounds: int) -> str:
    """Return a line: the ratio with its quartiles, the goal, and both times in nanoseconds."""
    loops = Loop(pair.call, names, LOOP), Loop(pair.other, names, LOOP)
    times = [(loops[0].seconds(), loops[1].seconds()) for _ in range(rounds)]
    low, middle, high = quantiles((call / other for call, other in times), n=4)
    ours, theirs = (median(column) * 1e9 for column in zip(*times, strict=True))
    return (
        f"{pair.name:26} {middle:6.3f} [{low:.3f}-{high:.3f}]  goal {pair.goal:<4}"
        f"  {ours:6.0f} / {theirs:6.0f} ns"
    )


def main() -> None:
    """Measure the pairs that the command line selects."""
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--rounds", type=int, default=501)
    options = parser.parse_args()
    chosen = [p for p in PAIRS if not options.names or any(n in p.name for n in options.names)]
    print(f"Python {sys.version.split()[0]}, NumPy {np.__version__}")
    for pair in chosen:
        print(measure(pair, operands(), options.rounds), flush=True)


if __name__ == "__main__":
    main()
