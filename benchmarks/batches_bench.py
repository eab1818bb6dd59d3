"""Read rows of a table for one batch of indices after another: gatherum.files.rows and its peers.

    python benchmarks/batches_bench.py [--row-bytes 512] [--rounds 5] [--batches 64 1024 65536]

The table (512 MiB, in a .npy file, warm) and 256,000 indices are the same in every case: one large
gather, `rows` on batches of the given sizes, and `table[batch]` of a numpy.memmap. They run in
turns in one process. The script prints medians and their range, and the throughput relative to the
large gather.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from gatherum.files import gather_file, rows

COUNT = 256_000


def cases(path: Path, indices: np.ndarray, size: int) -> dict[str, Callable[[], int]]:
    """Return the timed calls; each returns the number of bytes that it read."""
    mapped = np.load(path, mmap_mode="r")
    batches = [indices[at : at + size] for at in range(0, indices.size, size)]
    return {
        "large gather": lambda: gather_file(path, indices).nbytes,
        "rows": lambda: sum(batch.nbytes for batch in rows(path, batches)),
        "memmap": lambda: sum(np.asarray(mapped[batch]).nbytes for batch in batches),
    }


def timed(calls: dict[str, Callable[[], int]], rounds: int) -> dict[str, list[float]]:
    """Run the calls in turns, one round to warm up, and return seconds."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    sizes = set()
    for number in range(rounds + 1):
        for name in list(calls)[:: -1 if number % 2 else 1]:
            began = time.perf_counter()
            sizes.add(calls[name]())
            if number:
                times[name].append(time.perf_counter() - began)
    assert len(sizes) == 1, sizes
    return times


def main() -> None:
    """Create the table, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--row-bytes", type=int, default=512, help="a multiple of 4")
    parser.add_argument("--mib", type=int, default=512, help="size of the table")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batches", type=int, nargs="+", default=[64, 256, 1024, 8192, 65536])
    options = parser.parse_args()
    length = (options.mib << 20) // options.row_bytes
    rng = np.random.default_rng(0)
    print("| indices a batch | large gather | rows | memmap | rows' throughput, large gather 1 |")
    print("|--:|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "table.npy")
        np.save(path, rng.random((length, options.row_bytes // 4), np.float32))
        indices = rng.integers(0, length, COUNT)
        for size in options.batches:
            times = timed(cases(path, indices, size), options.rounds)
            middle = {name: statistics.median(runs) for name, runs in times.items()}
            cells = [
                f"{1e3 * middle[name]:.0f} ms ({1e3 * min(runs):.0f}-{1e3 * max(runs):.0f})"
                for name, runs in times.items()
            ]
            share = middle["large gather"] / middle["rows"]
            print(f"| {size:,} | {' | '.join(cells)} | {share:.2f} |", flush=True)


if __name__ == "__main__":
    main()
