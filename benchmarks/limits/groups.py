"""Compare `groups.reduce` and `groups.aggregate` with numpy_groupies, in turns in one process.

python benchmarks/limits/groups.py [--threads 1] [--clock cpu] [--rounds 7] [--dtype float32]
                                   [--func var std]
"""

import sys
from functools import partial
from pathlib import Path

import numpy as np

import gatherum
from gatherum.groups import namespace

sys.path.insert(0, str(Path(__file__).parent))
from turns import parser, report

VALUES, GROUPS = 10_000_000, 10_000
FUNCTIONS = ("sum", "mean", "max", "var", "argmax")


def composed(*arguments: object) -> object:
    """Run `reduce` without the core's kernel of squared distances."""
    kernel, namespace.squares_and_counts = namespace.squares_and_counts, lambda *_: None
    try:
        return gatherum.groups.reduce(*arguments)
    finally:
        namespace.squares_and_counts = kernel


def main() -> None:
    """Print the medians."""
    arguments = parser(__doc__)
    arguments.add_argument("--dtype", default="float64")
    arguments.add_argument("--func", nargs="+", default=FUNCTIONS)
    options = arguments.parse_args()
    rng = np.random.default_rng(0)
    values = rng.standard_normal(VALUES).astype(options.dtype)
    groups = rng.integers(0, GROUPS, VALUES)
    try:
        from numpy_groupies import aggregate_np
    except ImportError:
        print("numpy_groupies is not installed")
        aggregate_np = None
    runs = {}
    for func in options.func:
        runs[f"reduce, {func}"] = partial(gatherum.groups.reduce, values, groups, GROUPS, func)
        if func in ("var", "std"):
            runs[f"reduce, {func}, composed"] = partial(composed, values, groups, GROUPS, func)
        ours = partial(gatherum.groups.aggregate, groups, values, func, GROUPS)
        runs[f"aggregate, {func}"] = ours
        if aggregate_np is not None:
            theirs = partial(aggregate_np, groups, values, func, GROUPS)
            rtol = 1e-10 if options.dtype == "float64" else 1e-3
            assert np.allclose(ours(), theirs(), rtol)
            runs[f"numpy_groupies, {func}"] = theirs
    report(runs, options)


main()
