"""Show a report that ``benchmarks/run.py --json`` wrote.

python benchmarks/show.py results.json --markdown
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from bench.records import by_least
from bench.report import markdown, readme, show


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the command line and show the report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("file", type=Path, help="what `run.py --json` wrote")
    parser.add_argument("--least", action="store_true", help="least times instead of medians")
    parser.add_argument("--markdown", action="store_true", help="the tables as Markdown")
    parser.add_argument(
        "--readme", action="store_true", help="some cases as Markdown, for a README"
    )
    options = parser.parse_args(arguments)
    report = json.loads(options.file.read_text())
    if options.least:
        cases = [by_least(record) for record in report["cases"]]
        report = {**report, "cases": cases, "statistic": "least times"}
    if options.readme:
        sys.stdout.write(readme(report))
    elif options.markdown:
        sys.stdout.write(markdown(report))
    else:
        show(report)
    return 0


if __name__ == "__main__":
    sys.exit(main())
