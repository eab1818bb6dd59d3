"""Compare `aggregate` of a CSR matrix with SciPy's and torch's products, in turns in one process.

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

NODES, EDGES, WIDTHS, DTYPES = 100_000, 1_000_000, (1, 8, 32, 64, 128), ("float32", "float64")


def main() -> None:
    """Print the medians."""
    options = arguments(__doc__)
    rng = np.random.default_rng(0)
    ends = rng.integers(0, NODES, (2, EDGES))
    for dtype in DTYPES:
        matrix = csr_array((rng.standard_normal(EDGES).astype(dtype), ends), (NODES, NODES))
        for width in WIDTHS:
            rows = rng.standard_normal((NODES, width)).astype(dtype)
            runs = {
                "aggregate": lambda rows=rows, matrix=matrix: gatherum.aggregate(
                    rows, matrix, None, None, "add"
                ),
                "SciPy": lambda rows=rows, matrix=matrix: matrix @ rows,
            } | of_torch(matrix, rows, options.threads)
            for run in runs.values():
                np.testing.assert_allclose(run(), matrix @ rows, rtol=1e-3, atol=1e-3)
            report({f"{name}, {width} {dtype}": run for name, run in runs.items()}, options)


def of_torch(matrix: csr_array, rows: np.ndarray, threads: int) -> dict[str, object]:
    """Return torch's product if torch is installed."""
    try:
        import torch
    except ImportError:
        return {}
    torch.set_num_threads(threads)
    warnings.filterwarnings("ignore", message=".*[Ss]parse")
    parts = (torch.from_numpy(part) for part in (matrix.indptr, matrix.indices, matrix.data))
    tensor, data = torch.sparse_csr_tensor(*parts, matrix.shape), torch.from_numpy(rows)
    return {"torch": lambda: tensor @ data}


main()
