"""Compare `groups.reduce` and `groups.aggregate` with numpy_groupies, in turns in one process.

python benchmarks/limits/groups.py [--threads 1] [--clock cpu] [--rounds 7] [--dtype float32]
                                   [--func var std]

A nan form and its plain function run alternately, and the ratio of their times is printed. This
command puts NaN among the values, and reduces along the first axis of a table:

python benchmarks/limits/groups.py --func nanmean nanvar --shape 2922 16290 --groups 12 --nan 0.05
"""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import quantiles

import numpy as np

import gatherum
from gatherum.groups import namespace

sys.path.insert(0, str(Path(__file__).parent))
from turns import head, medians, parser, timed

FUNCTIONS = ("sum", "mean", "max", "var", "argmax")


def composed(*arguments: object) -> object:
    """Run `reduce` without the core's kernel of squared distances."""
    kernel, namespace.squares_and_counts = namespace.squares_and_counts, lambda *_: None
    try:
        return gatherum.groups.reduce(*arguments)
    finally:
        namespace.squares_and_counts = kernel


def peer() -> Callable[..., object] | None:
    """Return numpy_groupies' function, or None if it is not installed."""
    try:
        from numpy_groupies import aggregate_np
    except ImportError:
        print("numpy_groupies is not installed")
        return None
    return aggregate_np


def ratios(times: dict[str, list[float]], funcs: list[str]) -> None:
    """Print the ratios of nan forms to their plain functions in the same rounds."""
    for func in funcs:
        plain, form = (times[f"reduce, {name}"] for name in (func.removeprefix("nan"), func))
        if func.startswith("nan"):
            low, middle, high = quantiles([y / x for x, y in zip(plain, form, strict=True)])
            print(f"{func} / {func[3:]:<20}{middle:>8.2f}  ({low:.2f} to {high:.2f})")


def main() -> None:
    """Print the medians, and the ratios of nan forms."""
    arguments = parser(__doc__)
    arguments.add_argument("--dtype", default="float64")
    arguments.add_argument("--func", nargs="+", default=FUNCTIONS)
    arguments.add_argument("--shape", nargs="+", type=int, default=[10_000_000])
    arguments.add_argument("--groups", type=int, default=10_000, help="the number of groups")
    arguments.add_argument("--nan", type=float, default=0.0, help="the share of NaN")
    options = arguments.parse_args()
    rng, size = np.random.default_rng(0), options.groups
    values = rng.standard_normal(options.shape).astype(options.dtype)
    values[rng.random(options.shape) < options.nan] = np.nan
    groups = rng.integers(0, size, options.shape[0])
    aggregate_np = peer() if values.ndim == 1 and not options.nan else None
    runs: dict[str, Callable[[], object]] = {}
    for func in options.func:
        for name in (func.removeprefix("nan"), func):
            more = {"fill_value": -1} if "arg" in name else {}
            runs[f"reduce, {name}"] = partial(
                gatherum.groups.reduce, values, groups, size, name, **more
            )
        if func in ("var", "std"):
            runs[f"reduce, {func}, composed"] = partial(composed, values, groups, size, func)
        if values.ndim > 1 or options.nan:
            continue
        ours = partial(gatherum.groups.aggregate, groups, values, func, size)
        runs[f"aggregate, {func}"] = ours
        if aggregate_np is not None:
            theirs = partial(aggregate_np, groups, values, func, size)
            rtol = 1e-10 if options.dtype == "float64" else 1e-3
            assert np.allclose(ours(), theirs(), rtol)
            runs[f"numpy_groupies, {func}"] = theirs
    times = timed(runs, options)
    print(head(options))
    medians(times)
    ratios(times, options.func)


main()
