"""Render the numbers of ONNX cases that fail on other packages, from docs/onnx_cases.json."""

import json
from collections import Counter
from pathlib import Path

from .tables import table

KEPT = Path(__file__).parent.parent / "onnx_cases.json"
NAMES = {"onnx": "onnx.reference", "onnxruntime": "ONNX Runtime"}


def render() -> str:
    """Return a table of the rules whose cases fail, and one row for the rules that pass."""
    kept = json.loads(KEPT.read_text())
    cases, packages = kept["cases"], kept["packages"]
    failed = {name: Counter(record["fails"].values()) for name, record in packages.items()}
    wrong = [rule for rule in cases if any(counts[rule] for counts in failed.values())]
    others = [rule for rule in cases if rule not in wrong]
    head = ["rule", "cases"]
    head += [f"fail on {NAMES[name]} {record['version']}" for name, record in packages.items()]
    rows = [
        [f"`{rule}`", str(cases[rule]), *(str(counts[rule]) for counts in failed.values())]
        for rule in wrong
    ]
    remaining = str(sum(cases[rule] for rule in others))
    return table(head, [*rows, [f"the other {len(others)}", remaining, *("0" for _ in packages)]])
