"""The benchmark's tables, from its last report."""

import json
from pathlib import Path

from gatherum.bench import report

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results.json"


def render() -> str:
    """Return what ``python -m gatherum.bench.report benchmarks/results.json --markdown`` prints."""
    return report.markdown(json.loads(RESULTS.read_text()))
