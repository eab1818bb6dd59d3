"""Look up rows of a quantized table: compare gather_quantized with PyTorch and with `gather`.

    python benchmarks/quantized_bench.py [--rows 400000] [--width 512] [--indices 100000]

Each case reads random rows of a table in memory and dequantizes them: int8 with a scale for each
row, float8_e4m3fn with a scale for each 128, and 4 bits with a scale for each 32. PyTorch uses
`index_select`, a conversion and a product, as a user would write it. Both run in turns in one
process; the results are compared first. `gather` copies the rows without dequantizing them.
"""

import argparse
import time
from collections.abc import Callable
from functools import partial

import ml_dtypes
import numpy as np
import torch
from turns import Case, measured, seconds, shown

import gatherum

Call = Callable[[], object]


def lookup(
    codes: np.ndarray, scales: np.ndarray, indices: np.ndarray, dtype: str, bits: int
) -> Call:
    """Return gatherum's call."""
    block = codes.shape[1] * 8 // bits // scales.shape[1]
    packed = {"bits": bits} if bits < 8 else {}
    return lambda: gatherum.gather_quantized(
        codes, indices, scales, block_size=block, dtype=dtype, **packed
    )


def composed(
    codes: np.ndarray, scales: np.ndarray, indices: np.ndarray, dtype: str, bits: int
) -> Call:
    """Return the equivalent call of PyTorch's functions."""
    table = torch.from_numpy(codes.view(np.uint8))
    factors, rows = torch.from_numpy(scales), torch.from_numpy(indices)
    result, code_dtype = getattr(torch, dtype), getattr(torch, codes.dtype.name)

    def call() -> torch.Tensor:
        taken = table.index_select(0, rows)
        if bits == 4:
            values = torch.stack([taken & 15, taken >> 4], -1).float() - 8
        else:
            values = taken.view(code_dtype).float()
        blocks = values.view(len(rows), factors.shape[1], -1)
        product = blocks * factors.index_select(0, rows).float()[..., None]
        return product.view(len(rows), -1).to(result)

    return call


def main() -> None:
    """Create the tables, compare the results, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--width", type=int, default=512, help="values of a row, a multiple of 128")
    parser.add_argument("--indices", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    n, width = options.rows, options.width
    codes = rng.integers(0, 120, (n, width), np.int8)  # excludes the codes of NaN
    tables = {
        "int8, a scale for each row": (codes, rng.random((n, 1), np.float32), 8),
        "float8_e4m3fn, for each 128": (
            codes.view(ml_dtypes.float8_e4m3fn),
            rng.random((n, width // 128), np.float32),
            8,
        ),
        "4 bits, for each 32, float16": (
            codes.view(np.uint8)[:, : width // 2].copy(),
            rng.random((n, width // 32)).astype(np.float16),
            4,
        ),
    }
    torch.set_num_threads(gatherum.get_num_threads())
    print("| table, result, indices | PyTorch | gather_quantized | ratio | goal |")
    print("|---|--:|--:|--:|--:|")
    for name, (table, scales, bits) in tables.items():
        for dtype in ("float32", "float16", "bfloat16"):
            for count in (options.indices, 64):
                indices = rng.integers(0, n, count)
                ours, theirs = (
                    make(table, scales, indices, dtype, bits) for make in (lookup, composed)
                )
                actual, expected = torch.from_numpy(ours().astype(np.float32)), theirs()
                assert torch.equal(actual, expected.float())
                title = f"{name}, {dtype}, {count}"
                case = Case(
                    title, 2.0 if count > 64 else 1.0, ours, [theirs], 1 if count > 64 else 200
                )
                print(measured(case, options.rounds), flush=True)
    indices = rng.integers(0, n, options.indices)
    copy = partial(gatherum.gather, codes, indices)
    alone = [seconds(copy, 1, time.perf_counter) for _ in range(options.rounds)]
    print(f"\n`gather` of {options.indices} int8 rows alone: {shown(alone)}")


if __name__ == "__main__":
    main()
