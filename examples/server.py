"""Serve rows of a table on disk from eight threads, and print percentiles.

    python examples/server.py [--rows 1000000] [--requests 20000] [--cache 64MiB]

Each request reads 64 rows with a Zipf distribution, like words and items. The
threads share one table, like the threads of a server.
"""

import argparse
import os
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

import gatherum

THREADS, ASKED, FLOATS = 8, 64, 128


def make_table(path: str, rows: int) -> None:
    """Write rows of 512 bytes, in parts."""
    table = np.lib.format.open_memmap(path, "w+", np.float32, (rows, FLOATS))
    for start in range(0, rows, 1 << 16):
        part = table[start : start + (1 << 16)]
        part[...] = np.arange(start, start + len(part), dtype=np.float32)[:, None]
    table.flush()


class Popular:
    """Row numbers that often repeat a few popular rows, scattered over the table."""

    def __init__(self, rows: int, exponent: float = 1.1) -> None:
        weights = np.cumsum(np.arange(1, rows + 1) ** -exponent)
        self.shares = weights / weights[-1]
        self.order = np.random.default_rng(0).permutation(rows)

    def stream(self, seed: int, requests: int) -> list[NDArray[np.int64]]:
        """Return the indices of each request."""
        ranks = np.searchsorted(self.shares, np.random.default_rng(seed).random((requests, ASKED)))
        return list(self.order[ranks])


def serve(table: gatherum.files.Table, requests: list[NDArray[np.int64]]) -> float:
    """Serve requests, like one thread of a server; return the sum of all results."""
    total = 0.0
    answer = np.empty((ASKED, FLOATS), np.float32)
    for indices in requests:
        table.gather(indices, out=answer)
        total += float(answer[0, 0])
    return total


def main(arguments: list[str] | None = None) -> None:
    """Create a table, serve it, print the times."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--cache", default="64MiB")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "table.npy")
        make_table(path, options.rows)
        popular = Popular(options.rows)
        streams = [popular.stream(seed, options.requests // THREADS) for seed in range(THREADS)]
        with gatherum.files.open(path, cache=options.cache) as table:
            began = time.perf_counter()
            with ThreadPoolExecutor(THREADS) as threads:
                list(threads.map(serve, [table] * THREADS, streams))
            seconds, stats = time.perf_counter() - began, table.stats()
    print(stats)
    print(f"{stats.requests / seconds:,.0f} requests a second from {THREADS} threads")


if __name__ == "__main__":
    main()
