"""Measure gatherum on this machine, and compare it with the installed libraries.

python benchmarks/run.py --scale 0.1 --peers numpy
"""

from __future__ import annotations

import argparse
import sys

from bench.command import main


def run() -> int:
    """Read the command line and run the benchmark."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--only", action="append", help="run these workloads: names, parts or patterns"
    )
    parser.add_argument("--json", help="write the report as JSON")
    parser.add_argument(
        "--scale", type=float, default=1.0, help="size relative to the full workloads"
    )
    parser.add_argument("--rounds", type=int, default=7, help="timed runs of each library, at most")
    parser.add_argument("--peers", help="names, separated by commas; by default all installed")
    options = parser.parse_args()
    families = None if options.peers is None else options.peers.split(",")
    try:
        main(options.only, options.json, options.scale, options.rounds, families)
    except (ValueError, MemoryError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(run())
