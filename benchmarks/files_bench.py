"""Read rows of a table on disk: compare gatherum.files with numpy.memmap indexing.

    python benchmarks/files_bench.py --gib 8 --memory 400MiB --limit 1GiB --json files.json
    python benchmarks/files_bench.py --show files.json
    python benchmarks/files_bench.py --gib 0.5 --repeat 7 --sizes 4 32 1024 65536

Creates its files in --folder (a table of rows of 128 float32, or --row-bytes, and indices), runs
every case in separate processes, one after the other and in turns, and prints medians. Both do
the same work: write the rows that an index file names to a new .npy file, flushed to the disk.
numpy.memmap may use all memory. gatherum gets --limit bytes of anonymous memory (RLIMIT_DATA), or
runs in the memory cgroup --cgroup, whose limit includes the page cache. "Cold" runs start without
the files in the page cache: the whole cache is dropped if this is permitted (root), otherwise file
by file. "Warm" runs start after the table was read completely. With --sizes, warm tables with rows
of each of these sizes are measured, and the CPU time is shown.
"""

import argparse
import json
import os
import platform
import resource
import shlex
import statistics
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

PAGE = 4096

OURS = """
import json, sys, time
from gatherum.files import gather_file
def disk():
    return int(open("/proc/self/io").read().split("read_bytes: ")[1].split()[0])
before, cpu = disk(), time.process_time()
stats = gather_file(*sys.argv[1:4], memory=sys.argv[4])
cpu = time.process_time() - cpu
print(json.dumps({"seconds": stats.seconds, "read": stats.bytes_read,
                  "written": stats.bytes_written, "peak": stats.peak_memory,
                  "cpu": cpu, "disk": disk() - before}))
"""

PEER = """
import json, os, resource, sys, time
import numpy as np
start, cpu = time.perf_counter(), time.process_time()
table = np.load(sys.argv[1], mmap_mode="r")
rows = table[np.load(sys.argv[2])]
indexed = time.perf_counter() - start
with open(sys.argv[3], "wb") as out:
    np.save(out, rows)
    out.flush()
    os.fsync(out.fileno())
print(json.dumps({"seconds": time.perf_counter() - start, "indexed": indexed,
                  "cpu": time.process_time() - cpu,
                  "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))
"""


def make_files(folder: Path, rows: int, columns: int, counts: dict[str, int]) -> None:
    """Write the table and the indices, unless they exist."""
    table = folder / "table.npy"
    if not table.exists() or np.load(table, mmap_mode="r").shape != (rows, columns):
        rng = np.random.default_rng(0)
        step = 1 << 16
        with table.open("wb") as out:
            header = {"descr": "<f4", "fortran_order": False, "shape": (rows, columns)}
            np.lib.format.write_array_header_1_0(out, header)
            for start in range(0, rows, step):
                out.write(rng.random((min(step, rows - start), columns), np.float32).tobytes())
            out.flush()
            os.fsync(out.fileno())
    for name, count in counts.items():
        np.save(folder / f"{name}.npy", np.random.default_rng(1).integers(0, rows, count))


def drop_caches(folder: Path) -> str:
    """Drop the files from the page cache; return the method."""
    os.sync()
    try:
        Path("/proc/sys/vm/drop_caches").write_text("3")
    except OSError:
        for path in folder.iterdir():
            fd = os.open(path, os.O_RDONLY)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(fd)
        return "posix_fadvise"
    return "drop_caches"


def warm(table: Path) -> None:
    """Read a table into the page cache."""
    with table.open("rb", buffering=0) as file:
        buffer = bytearray(8 << 20)
        while file.readinto(buffer):
            pass


def run(program: str, arguments: list[str], limits: argparse.Namespace | None) -> dict[str, Any]:
    """Run one case in a new process, within the limits if any are given."""
    most = size(limits.limit) if limits is not None and limits.limit else resource.RLIM_INFINITY

    def restrict() -> None:
        if limits is not None and limits.cgroup:
            (limits.cgroup / "cgroup.procs").write_text(str(os.getpid()))
        resource.setrlimit(resource.RLIMIT_DATA, (most, resource.RLIM_INFINITY))

    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True, text=True, check=True, preexec_fn=restrict,
    )  # fmt: skip
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def measure(folder: Path, options: argparse.Namespace, name: str, cold: bool) -> dict[str, Any]:
    """Run gatherum and the peer in turns, and return the medians."""
    inputs = [str(folder / "table.npy"), str(folder / f"{name}.npy")]
    runs: dict[str, list[dict[str, Any]]] = {"ours": [], "peer": []}
    for _ in range(options.repeat):
        for who, program, extra, capped in (
            ("peer", PEER, [], None),
            ("ours", OURS, [options.memory], options),
        ):
            out = folder / f"{who}.npy"
            # both create a new file: the peer would otherwise overwrite truncated pages
            out.unlink(missing_ok=True)
            if cold:
                drop_caches(folder)
            else:
                warm(folder / "table.npy")
            arguments = [*inputs, str(out), *extra]
            runs[who].append(run(program, arguments, capped))
    check(folder)
    case = {
        f"{who}_{key}": statistics.median(result[key] for result in results)
        for who, results in runs.items()
        for key in results[0]
    }
    indices = np.load(inputs[1])
    starts = 128 + indices * options.row_bytes
    first, last = starts // PAGE, (starts + options.row_bytes - 1) // PAGE
    pages = np.unique(np.concatenate([first, last])).size * PAGE
    return {
        "case": name,
        "cache": "cold" if cold else "warm",
        "rows": indices.size,
        **case,
        "runs": {who: [r["seconds"] for r in results] for who, results in runs.items()},
        # the bytes read from the device, and the pages that hold wanted rows
        "read_over_pages": case["ours_disk"] / (pages + indices.nbytes) if cold else 0.0,
        "time_over_indexing": case["ours_seconds"] / case["peer_indexed"],
        "time_over_same_job": case["ours_seconds"] / case["peer_seconds"],
        "cpu_over_same_job": case["ours_cpu"] / case["peer_cpu"],
        "row_bytes": options.row_bytes,
    }


def check(folder: Path) -> None:
    """Compare the two results byte by byte."""
    ours, peer = (np.load(folder / f"{who}.npy", mmap_mode="r") for who in ("ours", "peer"))
    for start in range(0, len(ours), 1 << 16):
        part = slice(start, start + (1 << 16))
        if ours[part].tobytes() != peer[part].tobytes():
            raise SystemExit("the two results differ")


def size(text: str) -> int:
    """Read a size as gatherum does."""
    from gatherum.files.resources.resources import Budget

    return Budget.parse("files_bench", text).total


def show(cases: list[dict[str, Any]]) -> None:
    """Print a table of the cases."""
    print(
        f"{'case':14} {'cache':5} {'rows':>9} {'ours s':>8} {'memmap s':>9} {'+ save s':>9} "
        f"{'ours/memmap':>11} {'ours/same job':>13} {'ours MiB':>9} {'memmap MiB':>10} "
        f"{'read/pages':>10}"
    )
    for c in cases:
        print(
            f"{c['case']:14} {c['cache']:5} {c['rows']:9,} {c['ours_seconds']:8.2f} "
            f"{c['peer_indexed']:9.2f} {c['peer_seconds']:9.2f} {c['time_over_indexing']:11.2f} "
            f"{c['time_over_same_job']:13.2f} {c['ours_peak'] / 2**20:9.0f} "
            f"{c['peer_peak'] / 2**20:10.0f} {c['read_over_pages']:10.2f}"
        )


def show_sizes(cases: list[dict[str, Any]]) -> None:
    """Print a table of warm cases by the size of a row, with the fastest and the slowest run."""
    print(
        f"{'row':>6} {'case':6} {'rows':>11} {'ours ms':>20} {'memmap + save ms':>20} "
        f"{'time':>5} {'CPU time':>8}"
    )
    for c in cases:
        spread = {
            who: "{:.0f} ({:.0f}-{:.0f})".format(
                *(1e3 * statistic(runs) for statistic in (statistics.median, min, max))
            )
            for who, runs in c["runs"].items()
        }
        print(
            f"{c['row_bytes']:6} {c['case']:6} {c['rows']:11,} {spread['ours']:>20} "
            f"{spread['peer']:>20} {c['time_over_same_job']:5.2f} {c['cpu_over_same_job']:8.2f}"
        )


def markdown(report: dict[str, Any]) -> str:
    """Return a report as a table for the documentation, with its command and machine."""
    on = report["machine"]
    lines = [
        f"Medians of {len(report['cases'][0]['runs']['ours'])} runs on {report['date'][:10]}, on "
        f"{on['system']}, {on['processors']} processors, {on['memory'] / 2**30:.0f} GiB, "
        f"Python {on['python']}, NumPy {on['numpy']}, load average {on['load'][1]:.0f}. "
        "The command was:",
        "",
        f"    {report['command']}",
        "",
        "| rows | cache | gatherum | memmap indexing | and saved | gatherum / indexing "
        "| gatherum / saved | gatherum, memory | memmap, memory | read / pages |",
        "|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for c in report["cases"]:
        share = f"{c['read_over_pages']:.2f}" if c["cache"] == "cold" else "-"
        lines.append(
            f"| {c['rows']:,} | {c['cache']} | {c['ours_seconds']:.2f} s "
            f"| {c['peer_indexed']:.2f} s | {c['peer_seconds']:.2f} s "
            f"| {c['time_over_indexing']:.2f} | {c['time_over_same_job']:.2f} "
            f"| {c['ours_peak'] / 2**20:.0f} MiB | {c['peer_peak'] / 2**20:,.0f} MiB | {share} |"
        )
    return "\n".join(lines)


def machine() -> dict[str, Any]:
    """Describe the machine and the command of the measurement."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "system": platform.platform(),
        "processors": len(os.sched_getaffinity(0)),
        "memory": memory,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "load": os.getloadavg(),
    }


def main() -> None:
    """Create the files, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gib", type=float, default=2.0, help="size of the table in GiB")
    parser.add_argument(
        "--row-bytes", type=int, default=512, help="bytes of a row, a multiple of 4"
    )
    parser.add_argument(
        "--sizes", type=int, nargs="+", help="sizes of rows, each a multiple of 4: warm cases alone"
    )
    parser.add_argument("--memory", default="400MiB", help="gatherum's memory budget")
    parser.add_argument("--limit", help="limit of gatherum's anonymous memory, such as 1GiB")
    parser.add_argument("--cgroup", type=Path, help="a memory cgroup for gatherum's runs")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=Path("files-bench"))
    parser.add_argument("--keep", action="store_true", help="keep the files")
    parser.add_argument("--json", type=Path, help="write the numbers to a file")
    parser.add_argument("--show", type=Path, help="print such a file as Markdown, and do nothing")
    options = parser.parse_args()
    if options.show:
        print(markdown(json.loads(options.show.read_text())))
        return
    options.folder.mkdir(parents=True, exist_ok=True)
    started = time.perf_counter()
    cases = []
    for row_bytes in options.sizes or [options.row_bytes]:
        options.row_bytes = row_bytes
        rows = int(options.gib * 2**30) // options.row_bytes
        counts = {"dense": rows // 4, "sparse": rows // 160}
        make_files(options.folder, rows, options.row_bytes // 4, counts)
        caches = (False,) if options.sizes else (True, False)
        cases += [
            measure(options.folder, options, name, cold) for name in counts for cold in caches
        ]
    (show_sizes if options.sizes else show)(cases)
    report = {
        "command": shlex.join(["python", "benchmarks/files_bench.py", *sys.argv[1:]]),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "cold": drop_caches(options.folder),
        "seconds": time.perf_counter() - started,
        "cases": cases,
    }
    if options.json:
        options.json.write_text(json.dumps(report, indent=2) + "\n")
    if not options.keep:
        for name in ("table", *counts, "ours", "peer"):
            (options.folder / f"{name}.npy").unlink()
        options.folder.rmdir()


if __name__ == "__main__":
    main()
