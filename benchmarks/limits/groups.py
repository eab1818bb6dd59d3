"""Compare `groups.reduce` and `groups.aggregate` with numpy_groupies, in turns in one process.

python benchmarks/limits/groups.py [--threads 1] [--clock cpu] [--rounds 7]
"""

import sys
from functools import partial
from pathlib import Path

import numpy as np

import gatherum

sys.path.insert(0, str(Path(__file__).parent))
from turns import arguments, report

VALUES, GROUPS = 10_000_000, 10_000
FUNCTIONS = ("sum", "mean", "max", "var", "argmax")


def main() -> None:
    """Print the medians."""
    options = arguments(__doc__)
    rng = np.random.default_rng(0)
    values = rng.standard_normal(VALUES)
    groups = rng.integers(0, GROUPS, VALUES)
    try:
        from numpy_groupies import aggregate_np
    except ImportError:
        print("numpy_groupies is not installed")
        aggregate_np = None
    runs = {}
    for func in FUNCTIONS:
        runs[f"reduce, {func}"] = partial(gatherum.groups.reduce, values, groups, GROUPS, func)
        ours = partial(gatherum.groups.aggregate, groups, values, func, GROUPS)
        runs[f"aggregate, {func}"] = ours
        if aggregate_np is not None:
            theirs = partial(aggregate_np, groups, values, func, GROUPS)
            assert np.allclose(ours(), theirs(), rtol=1e-10)
            runs[f"numpy_groupies, {func}"] = theirs
    report(runs, options)


main()
