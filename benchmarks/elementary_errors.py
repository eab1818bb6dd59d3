"""Measure the errors of the core's `exp` and `log`, in units of the last place.

    python benchmarks/elementary_errors.py [--count 1_000_000_000] [--step 1] [--seed 0]

All float32 values, or every `--step`-th bit pattern, are compared with NumPy's float64, and
`--count` random float64 values with NumPy's long double, which must have more bits than float64.
Half of the random values have exponents of every size. The other half is uniform in the range with
finite results, for exp, or near 1, for log. The script uses one thread and needs some minutes.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

import gatherum
from gatherum._derivatives import elementary

Floats = NDArray[Any]
CHUNK = 1 << 15
LEAST, MOST = -745.14, 709.79  # outside of this range exp is 0 or infinite
FUNCTIONS = ("exp", "log")


def float32(step: int) -> Iterator[Floats]:
    """Yield the values of all or some bit patterns, in chunks."""
    for start in range(0, 1 << 32, CHUNK * step):
        bits = np.arange(start, min(start + CHUNK * step, 1 << 32), step, np.int64)
        yield bits.astype(np.uint32).view(np.float32)


def float64(function: str, count: int, seed: int) -> Iterator[Floats]:
    """Yield random values, in chunks."""
    rng = np.random.default_rng(seed)
    for start in range(0, count, CHUNK):
        size = min(CHUNK, count - start)
        half = size // 2
        even = rng.uniform(LEAST, MOST, half) if function == "exp" else rng.uniform(0.5, 2, half)
        bits = rng.integers(0, 1 << 63, size - half, np.uint64)
        if function == "exp":  # magnitudes from 2^-60 to 2^10, with either sign
            exponent = np.uint64(1023 - 60) + (bits >> np.uint64(52)) % np.uint64(70)
            sign = rng.integers(0, 2, size - half, np.uint64) << np.uint64(63)
            bits = sign | exponent << np.uint64(52) | bits & np.uint64((1 << 52) - 1)
        yield np.concatenate([even, bits.view(np.float64)])


def worst(function: str, values: Floats, wide: Any) -> tuple[float, Any, int]:
    """Return the largest error of the finite results, its position, and their number."""
    results = getattr(elementary, function)(values)
    exact = getattr(np, function)(values.astype(wide))
    near = exact.astype(values.dtype)
    fine = np.isfinite(near) & np.isfinite(results)
    other = np.flatnonzero(fine & (near != results))  # the errors of the rest are at most 0.5
    if not other.size:
        return 0.5, None, int(fine.sum())
    unit = np.spacing(np.abs(near[other])).astype(wide)
    errors = np.abs((results[other].astype(wide) - exact[other]) / unit)
    at = int(errors.argmax())
    return float(errors[at]), values[other[at]], int(fine.sum())


def report(function: str, chunks: Iterator[Floats], wide: Any) -> str:
    """Return the cells of one line."""
    most, where, number = 0.0, None, 0
    for values in chunks:
        error, at, counted = worst(function, values, wide)
        number += counted
        if error > most:
            most, where = error, at
    return f"{number:,} | {most:.4f} | {where!r}"


def main() -> None:
    """Measure, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=1_000_000_000, help="of float64 values")
    parser.add_argument("--step", type=int, default=1, help="between bit patterns of float32")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if np.finfo(np.longdouble).nmant < 63:
        raise SystemExit("long double has no more bits than float64 here")
    gatherum.set_num_threads(1)
    print("| function | dtype | finite results | largest error, ulp | of |\n|---|---|--:|--:|--:|")
    with np.errstate(all="ignore"):
        for function in FUNCTIONS:
            cells = report(function, float64(function, options.count, options.seed), np.longdouble)
            print(f"| {function} | float64 | {cells} |", flush=True)
        for function in FUNCTIONS:
            cells = report(function, float32(options.step), np.float64)
            print(f"| {function} | float32 | {cells} |", flush=True)


if __name__ == "__main__":
    main()
