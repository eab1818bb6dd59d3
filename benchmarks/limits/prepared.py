"""Compare prepared calls with plain calls, in turns in one process.

python benchmarks/limits/prepared.py [--threads 1] [--clock cpu] [--rounds 7]
"""

import sys
from pathlib import Path

import numpy as np

import gatherum

sys.path.insert(0, str(Path(__file__).parent))
from turns import arguments, report


def main() -> None:
    """Print the medians."""
    options = arguments(__doc__)
    rng = np.random.default_rng(0)
    runs = {}

    def compare(name: str, shape: tuple[int, ...], updates: int, reduction: str) -> None:
        data = np.zeros(shape, "f4")
        indices = rng.integers(0, shape[0], updates)
        values = rng.standard_normal((updates, *shape[1:])).astype("f4")
        prepared = gatherum.prepare("scatter_slices", data, indices, reduction=reduction)
        runs[name] = lambda: gatherum.scatter_slices(data, indices, values, reduction=reduction)
        runs[f"{name}, prepared"] = lambda: prepared(data, values)
        assert np.array_equal(runs[name](), prepared(data, values))

    compare("row add 1M x 64 into 100k", (100_000, 64), 1_000_000, "add")
    compare("row mean 1M x 64 into 100k", (100_000, 64), 1_000_000, "mean")
    compare("add 5M into 256 bins", (256,), 5_000_000, "add")
    compare("add 5M into 10k bins", (10_000,), 5_000_000, "add")
    compare("add 5M into 100k bins", (100_000,), 5_000_000, "add")
    compare("add 5M into 1M bins", (1_000_000,), 5_000_000, "add")
    report(runs, options)


main()
