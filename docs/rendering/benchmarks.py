"""The benchmarks' tables, from their last reports."""

import json
import runpy
from pathlib import Path
from typing import Any

from gatherum.bench import report

FOLDER = Path(__file__).parents[2] / "benchmarks"


def render() -> str:
    """Return everyone's times in the last report of ``gatherum bench``."""
    return report.markdown_of_times(_last())


def render_goals() -> str:
    """Return what ``python -m gatherum.bench.report benchmarks/results.json --markdown`` prints."""
    return report.markdown(_last())


def _last() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / "results.json").read_text())
    return found


def render_files() -> str:
    """Return what ``python benchmarks/files_bench.py --show benchmarks/files.json`` prints."""
    markdown = runpy.run_path(str(FOLDER / "files_bench.py"))["markdown"]
    return str(markdown(json.loads((FOLDER / "files.json").read_text())))
