"""Run the long tests of Dask arrays: faults in the middle of calls, and digests of many chunks.

    python tests/faults.py                 # all of them, half an hour
    python tests/faults.py -k killed -x    # with arguments of pytest

`nox -s faults` installs the requirements and runs this. The last line is a summary. Exit status 1:
a test failed.
"""

from __future__ import annotations

import sys
from pathlib import Path

from gatherum._system import native
from sanitized import tried

FOLDER = Path(__file__).with_name("frameworks") / "dask_faults"


def main() -> int:
    """Run the tests, and print a summary."""
    level = native.level()
    files = sorted(str(path) for path in FOLDER.glob("*.py"))
    status, end = tried(level, [*files, *sys.argv[1:]])
    print(f"faults: {level} {end}")
    return int(status != 0)


if __name__ == "__main__":
    sys.exit(main())
