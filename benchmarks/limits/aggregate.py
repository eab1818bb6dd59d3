"""Compare `aggregate` with the three calls and SciPy's CSR product, in turns in one process.

python benchmarks/limits/aggregate.py [--threads 1] [--clock cpu] [--rounds 7]
"""

import sys
from pathlib import Path

import numpy as np

import gatherum

sys.path.insert(0, str(Path(__file__).parent))
from turns import arguments, report

NODES, EDGES, WIDTH = 100_000, 1_000_000, 64


def main() -> None:
    """Print the medians."""
    options = arguments(__doc__)
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((NODES, WIDTH)).astype("f4")
    sources, targets = rng.integers(0, NODES, (2, EDGES))
    weights = rng.standard_normal(EDGES).astype("f4")
    start = np.zeros_like(rows)

    def three(scaled: bool, include_self: bool = True) -> object:
        messages = gatherum.gather(rows, sources)
        if scaled:
            np.multiply(messages, weights[:, None], out=messages)
        return gatherum.scatter_slices(
            start, targets, messages, reduction="add", include_self=include_self
        )

    runs = {
        "gather, scatter": lambda: three(False),
        "aggregate": lambda: gatherum.aggregate(rows, sources, targets, NODES, "add"),
        "gather, multiply, scatter": lambda: three(True),
        "aggregate with weights": lambda: gatherum.aggregate(
            rows, sources, targets, NODES, "add", weights
        ),
    }
    assert np.array_equal(three(True, False), runs["aggregate with weights"]())
    try:
        from scipy.sparse import csr_matrix
    except ImportError:
        print("SciPy is not installed")
    else:
        shape = NODES, NODES
        matrix = csr_matrix((weights, (targets, sources)), shape)
        runs["SciPy, matrix built"] = lambda: matrix @ rows
        runs["SciPy, matrix and product"] = lambda: (
            csr_matrix((weights, (targets, sources)), shape) @ rows
        )
    report(runs, options)


main()
