"""Print tables of wheel sizes and import times, compared with NumPy's.

    python benchmarks/footprint.py [--runs 40] [WHEEL ...]

Each new process imports NumPy, then gatherum, and uses `gatherum.gather` for the first time,
which imports the core. Times are printed as median and quartiles. The size of a wheel is given for
the file and for the unpacked content; NumPy's wheel is downloaded.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import numpy as np

IMPORTS = """
import time
def now(): return time.perf_counter(), time.process_time()
def spent(since): return [1e3 * (b - a) for a, b in zip(since, now())]
start = now()
import numpy
of_numpy = spent(start)
start = now()
import gatherum
of_gatherum = spent(start)
start = now()
gatherum.gather
print(*of_numpy, *of_gatherum, *spent(start))
"""


def main() -> None:
    """Measure, and print Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("wheels", nargs="*", type=Path)
    options = parser.parse_args()
    rows = [run() for _ in range(options.runs + 1)][1:]  # the first one may compile modules
    columns = [spread(list(column)) for column in zip(*rows, strict=True)]
    print("| import | wall time | processor time |\n| --- | ---: | ---: |")
    print(f"| `import numpy` | {columns[0]} | {columns[1]} |")
    print(f"| then `import gatherum` | {columns[2]} | {columns[3]} |")
    print(f"| first use of `gatherum.gather` | {columns[4]} | {columns[5]} |")
    if not options.wheels:
        return
    print("\n| wheel | file | unpacked |\n| --- | ---: | ---: |")
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", folder]
        subprocess.run([*pip, "--only-binary=:all:", f"numpy=={np.__version__}"], check=True)
        for wheel in [*options.wheels, *Path(folder).glob("*.whl")]:
            with zipfile.ZipFile(wheel) as members:
                unpacked = sum(member.file_size for member in members.infolist())
            sizes = f"{wheel.stat().st_size / 1e6:.1f} MB | {unpacked / 1e6:.1f} MB"
            print(f"| `{wheel.name}` | {sizes} |")


def run() -> list[float]:
    """Return the milliseconds of one new process: wall and CPU time of each step."""
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS], check=True, capture_output=True, text=True
    )
    return [float(word) for word in done.stdout.split()]


def spread(times: list[float]) -> str:
    """Return the median, and the quartiles in brackets."""
    low, middle, high = statistics.quantiles(times, n=4)
    return f"{middle:.1f} ms ({low:.1f} to {high:.1f})"


if __name__ == "__main__":
    main()
