"""`aggregate` of a CSR matrix beside SciPy's product and torch's, in turns in one process.

python benchmarks/limits/sparse.py [--threads 2] [--clock cpu] [--rounds 9]
"""

import sys
import warnings
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

import gatherum

sys.path.insert(0, str(Path(__file__).parent))
from turns import arguments, report

NODES, EDGES, WIDTHS = 100_000, 1_000_000, (1, 8, 32, 64, 256)


def main() -> None:
    """Print the medians."""
    given = arguments(__doc__)
    rng = np.random.default_rng(0)
    ends = rng.integers(0, NODES, (2, EDGES))
    weights = rng.standard_normal(EDGES).astype("f4")
    matrix = csr_array((weights, ends), (NODES, NODES))
    runs = {}
    for width in WIDTHS:
        rows = rng.standard_normal((NODES, width)).astype("f4")
        runs[f"aggregate, rows of {width}"] = lambda rows=rows: gatherum.aggregate(
            rows, matrix, None, None, "add"
        )
        runs[f"SciPy, rows of {width}"] = lambda rows=rows: matrix @ rows
        np.testing.assert_allclose(*(run() for run in [*runs.values()][-2:]), rtol=1e-3, atol=1e-3)
        runs |= of_torch(matrix, rows, given.threads)
    report(runs, given)


def of_torch(matrix: csr_array, rows: np.ndarray, threads: int) -> dict[str, object]:
    """Return torch's product, where it is installed."""
    try:
        import torch
    except ImportError:
        return {}
    torch.set_num_threads(threads)
    warnings.filterwarnings("ignore", message=".*[Ss]parse")
    parts = (torch.from_numpy(part) for part in (matrix.indptr, matrix.indices, matrix.data))
    made, data = torch.sparse_csr_tensor(*parts, matrix.shape), torch.from_numpy(rows)
    return {f"torch, rows of {rows.shape[1]}": lambda: made @ data}


main()
