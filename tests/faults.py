"""Run the long tests of Dask's arrays: faults in the middle of calls, and digests of many chunks.

    python tests/faults.py                 # all of them, half an hour
    python tests/faults.py -k killed -x    # what pytest is told

`nox -s faults` installs what they need and runs this. The last line says what came of it. Exit
status 1: a test has failed.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path

from gatherum import native
from records import Run
from sanitized import tried

FOLDER = Path(__file__).with_name("dask_faults")


def main() -> int:
    """Run the tests, and sum up."""
    given, told = arguments()
    run = Run("faults", f"nox -s faults -- {shlex.join(sys.argv[1:])}") if given.record else None
    level = native.level()
    files = sorted(str(path) for path in FOLDER.glob("*.py"))
    status, end = tried(level, [*files, *told])
    line = f"faults: {level} {end}"
    print(line)
    if run is not None:
        run.ended(line, (level,))
    return int(status != 0)


def arguments() -> tuple[argparse.Namespace, list[str]]:
    """Return what the command line says, and what of it is for pytest."""
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("--record", action="store_true", help="write how it ended to records.toml")
    given, told = parser.parse_known_args()
    if given.record and told:
        parser.error("--record is for a run of all tests")
    return given, told


if __name__ == "__main__":
    sys.exit(main())
