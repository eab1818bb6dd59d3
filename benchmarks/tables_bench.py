"""Look up rows in a table that stays open: compare gatherum.files.open with its peers.

    python benchmarks/tables_bench.py [--gib 2] [--row-bytes 512] [--rounds 1000] [--cold 60]
    python benchmarks/tables_bench.py --only-threads [--requests 20000]
    python benchmarks/tables_bench.py --only-memory --gib 0.06

Small lookups run in turns in one process: fancy indexing of a memory map, a Table without and with
a row cache, and gather_file. Times are medians and 99th percentiles in microseconds, with their
ratios to the memory map. Cold lookups start without the file in the page cache. Then threads read
single cold rows, compared with a raw reader that reads the same bytes without checks. Last, threads
request warm rows from the table without a cache, with 1, 2, 4 and 8 threads in turns.
With --only-memory, tables in memory are compared with gatherum.gather on the memory map: the
medians over blocks of calls, in microseconds of processor time with the quartiles.
"""

import argparse
import mmap
import os
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import gatherum
from gatherum import files

ASKED = 64
IN_FLIGHT = (1, 4, 16, 64)
THREADS = (1, 2, 4, 8)
Lookup = Callable[[NDArray[np.int64]], object]


def make_table(path: Path, rows: int, width: int) -> None:
    """Write the table, and flush it to the disk: only then can it leave the page cache."""
    table = np.lib.format.open_memmap(path, "w+", np.float32, (rows, width))
    for start in range(0, rows, 1 << 16):
        part = table[start : start + (1 << 16)]
        part[...] = np.arange(start, start + len(part), dtype=np.float32)[:, None]
    table.flush()
    with path.open("rb") as file:
        os.fsync(file.fileno())


class Bench:
    """The compared calls, on one table."""

    def __init__(self, path: Path, row_bytes: int, cache: str) -> None:
        self.path, self.row_bytes = path, row_bytes
        self.map = np.load(path, mmap_mode="r")
        self.rows = len(self.map)
        self.table, self.cached = files.open(path), files.open(path, cache=cache)
        self.file = os.open(path, os.O_RDONLY)
        self.rng = np.random.default_rng(0)
        shares = np.cumsum(np.arange(1, self.rows + 1) ** -1.1)
        self.shares, self.order = shares / shares[-1], self.rng.permutation(self.rows)

    def uniform(self, calls: int, asked: int = ASKED) -> list[NDArray[np.int64]]:
        """Return uniformly distributed indices."""
        return list(self.rng.integers(0, self.rows, (calls, asked)))

    def zipf(self, calls: int) -> list[NDArray[np.int64]]:
        """Return indices that often repeat a few rows, at random positions."""
        return list(self.order[np.searchsorted(self.shares, self.rng.random((calls, ASKED)))])

    def drop(self) -> None:
        """Drop the file from the page cache."""
        self.map._mmap.madvise(mmap.MADV_DONTNEED)
        os.posix_fadvise(self.file, 0, 0, os.POSIX_FADV_DONTNEED)

    def lookups(self) -> dict[str, Lookup]:
        """Return the calls that run in turns."""
        return {
            "memory map": lambda rows: self.map[rows],
            "table": self.table.gather,
            "table with a row cache": self.cached.gather,
            "gather_file": lambda rows: files.gather_file(self.path, rows),
        }

    def turns(self, indices: list[NDArray[np.int64]], *, cold: bool = False) -> str:
        """Time all lookups, and return cells of the table."""
        calls = self.lookups()
        took: dict[str, list[int]] = {name: [] for name in calls}
        for number, rows in enumerate(indices):
            for name in list(calls)[:: -1 if number % 2 else 1]:
                if cold:
                    self.drop()
                began = time.perf_counter_ns()
                calls[name](rows)
                took[name].append(time.perf_counter_ns() - began)
        marks = {name: np.percentile(runs, (50, 99)) / 1e3 for name, runs in took.items()}
        first = marks["memory map"]
        return " | ".join(
            f"{half:,.1f}, {most:,.0f} ({half / first[0]:.2g}, {most / first[1]:.2g})"
            for half, most in marks.values()
        )

    def per_second(self, read: Callable[[int], object], threads: int, reads: int) -> float:
        """Return the number of cold rows that threads read per second."""
        numbers = self.rng.integers(0, self.rows, (threads, reads // threads))
        self.drop()

        def work(mine: NDArray[np.int64]) -> None:
            for number in mine.tolist():
                read(number)

        began = time.perf_counter()
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(work, numbers))
        return numbers.size / (time.perf_counter() - began)

    def raw(self, number: int) -> object:
        """Read one row with minimal overhead."""
        return os.pread(self.file, self.row_bytes, 128 + number * self.row_bytes)

    def one(self, number: int) -> object:
        """Look up one row."""
        return self.table.gather(np.array([number]))

    def requests(self, threads: int, requests: int, asked: int) -> tuple[float, float]:
        """Return the number of warm requests that threads make per second of wall time, and the
        microseconds of processor time that one takes.
        """
        streams = [self.uniform(requests // threads, asked) for _ in range(threads)]

        def work(mine: list[NDArray[np.int64]]) -> None:
            for rows in mine:
                self.table.gather(rows)

        with ThreadPoolExecutor(threads) as pool:
            began, used = time.perf_counter(), time.process_time()
            list(pool.map(work, streams))
            took, used = time.perf_counter() - began, time.process_time() - used
        count = sum(map(len, streams))
        return count / took, 1e6 * used / count

    def by_threads(self, requests: int, asked: int, rounds: int = 5) -> str:
        """Return a row: the medians of requests per second and processor time, by threads."""
        runs = [[self.requests(n, requests, asked) for n in THREADS] for _ in range(rounds)]
        cells = np.median(runs, axis=0)
        return " | ".join(f"{rate:,.0f} ({micros:.0f})" for rate, micros in cells)

    def together(self, table: files.Table, reads: int) -> float:
        """Return the number of cold rows that one thread reads per second, 64 per call."""
        calls = self.uniform(reads // ASKED)
        self.drop()
        began = time.perf_counter()
        for rows in calls:
            table.gather(rows)
        return len(calls) * ASKED / (time.perf_counter() - began)

    def direct(self, readers: int, reads: int) -> float:
        """Return the same for reads that bypass the page cache."""
        with files.open(self.path, direct=True, readers=readers) as table:
            return self.together(table, reads)


def main() -> None:
    """Create the table, measure, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--gib", type=float, default=2.0, help="size of the table")
    parser.add_argument("--row-bytes", type=int, default=512, help="a multiple of 4")
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--cold", type=int, default=60, help="rounds of cold lookups")
    parser.add_argument("--warm", type=int, default=100_000, help="lookups that fill the cache")
    parser.add_argument("--reads", type=int, default=4000, help="cold rows that threads read")
    parser.add_argument("--cache", default="128MiB", help="size of the row cache")
    parser.add_argument("--requests", type=int, default=20_000, help="warm requests of all threads")
    parser.add_argument("--only-threads", action="store_true", help="measure only these")
    parser.add_argument("--only-memory", action="store_true", help="measure only tables in memory")
    parser.add_argument("--folder", help="where to put the table")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path = Path(folder, "table.npy")
        make_table(path, int(options.gib * (1 << 30)) // options.row_bytes, options.row_bytes // 4)
        bench = Bench(path, options.row_bytes, options.cache)
        if options.only_threads:
            show_threads(bench, options.requests)
            return
        if options.only_memory:
            show_memory(bench)
            return
        print(f"| lookup | {' | '.join(bench.lookups())} |")
        print("|---|--:|--:|--:|--:|")
        if options.cold:
            print(f"| 64 rows, cold | {bench.turns(bench.uniform(options.cold), cold=True)} |")
        bench.map.max()  # from here on, the page cache is warm
        for rows in bench.zipf(options.warm):
            bench.cached.gather(rows)
        print(f"| 64 rows, Zipf | {bench.turns(bench.zipf(options.rounds))} |")
        print(f"| 64 rows | {bench.turns(bench.uniform(options.rounds))} |")
        print(f"| 1 row | {bench.turns(bench.uniform(options.rounds, 1))} |")
        print(f"\n{bench.cached.stats()}\n")
        del bench.map
        bench.map = np.load(path, mmap_mode="r")
        print("| cold rows a second | " + " | ".join(f"{n} readers" for n in IN_FLIGHT) + " |")
        print("|---|--:|--:|--:|--:|")
        for name, read in {"raw reader": bench.raw, "table, 1 row a call": bench.one}.items():
            cells = [f"{bench.per_second(read, n, options.reads):,.0f}" for n in IN_FLIGHT]
            print(f"| {name} | {' | '.join(cells)} |", flush=True)
        cells = [f"{bench.direct(n, options.reads):,.0f}" for n in IN_FLIGHT]
        print(f"| direct, one thread, 64 rows a call | {' | '.join(cells)} |")
        rate = bench.together(bench.table, options.reads)
        print(f"\n64 rows a call from one thread: {rate:,.0f} cold rows a second\n")
        show_threads(bench, options.requests)


def show_threads(bench: Bench, requests: int) -> None:
    """Print the requests per second of several threads."""
    bench.map.max()  # fill the page cache
    print(f"| requests a second (us) | {' | '.join(f'{n} threads' for n in THREADS)} |")
    print("|---|--:|--:|--:|--:|")
    for asked in (1, 16, ASKED):
        print(f"| {asked} rows | {bench.by_threads(requests, asked)} |", flush=True)


def show_memory(bench: Bench, blocks: int = 60, calls: int = 200) -> None:
    """Print the times of tables in memory, which are measured in turns."""
    whole = files.open(bench.path, cache=bench.rows * (bench.row_bytes + 9))
    for start in range(0, bench.rows, 4096):
        whole.gather(np.arange(start, min(start + 4096, bench.rows)))
    lookups: dict[str, Lookup] = {
        "gatherum.gather on the memory map": lambda rows: gatherum.gather(bench.map, rows),
        "table of the memory map": files.open(bench.map).gather,
        "table with all rows cached": whole.gather,
        "table": bench.table.gather,
    }
    print("| rows | " + " | ".join(lookups) + " |")
    print("|---|" + "--:|" * len(lookups))
    for asked in (1, ASKED):
        took: dict[str, list[float]] = {name: [] for name in lookups}
        for block in range(blocks):
            indices = bench.uniform(calls, asked)
            for name in list(lookups)[:: -1 if block % 2 else 1]:
                lookups[name](indices[0])
                began = time.thread_time()
                for rows in indices:
                    lookups[name](rows)
                took[name].append(1e6 * (time.thread_time() - began) / calls)
        quartiles = [np.percentile(runs, (25, 50, 75)) for runs in took.values()]
        base = quartiles[0][1]
        cells = [f"{q[1]:.1f} ({q[0]:.1f} to {q[2]:.1f}), {q[1] / base:.2f}" for q in quartiles]
        print(f"| {asked} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
