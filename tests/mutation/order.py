"""A plugin of pytest for the runner: tests that are likely to fail come first, long ones last.

`GATHERUM_ORDER` names a file of JSON: `likely`, tests by their names, in order; `seconds`, a file
with what each test took, which is written when a run has passed. Of a test with many parameters one
in the middle comes before the rest: most mutants die in seconds then, and not in half a minute. The
files that are named first come before the others, unless a test there has very many parameters.
"""

import json
import os
from pathlib import Path

import pytest

ORDER = json.loads(Path(os.environ["GATHERUM_ORDER"]).read_text(encoding="utf-8"))
SECONDS = Path(ORDER["seconds"])
LONG = 4.0  # seconds
LIKELIEST, FEW = 2, 60  # the first files of tests; parameters
took: dict[str, float] = {}


def seconds() -> dict[str, float]:
    """Return what each test took when it last passed."""
    return json.loads(SECONDS.read_text(encoding="utf-8")) if SECONDS.exists() else {}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the tests in order."""
    known = seconds()
    places = {name: place for place, name in enumerate(ORDER["likely"])}
    functions: dict[str, list[str]] = {}
    for item in items:
        functions.setdefault(item.nodeid.partition("[")[0], []).append(item.nodeid)
    middle = {names[len(names) // 2] for names in functions.values()}
    files = list(dict.fromkeys(item.nodeid.partition("::")[0] for item in items))[:LIKELIEST]

    def rank(item: pytest.Item) -> tuple[int, int]:
        if item.nodeid in places:
            return 0, places[item.nodeid]
        function = item.nodeid.partition("[")[0]
        is_early = function.partition("::")[0] in files and len(functions[function]) <= FEW
        is_long = known.get(item.nodeid, 0) > LONG
        return (3 if is_long else 1 if is_early else 2), item.nodeid not in middle

    items.sort(key=rank)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add up what setup, call and teardown of a test take."""
    took[report.nodeid] = took.get(report.nodeid, 0) + report.duration


def pytest_sessionfinish(exitstatus: int) -> None:
    """Keep the seconds of a run in which every test has passed."""
    if exitstatus == 0:
        fresh = SECONDS.with_suffix(f".{os.getpid()}")
        fresh.write_text(json.dumps(seconds() | took), encoding="utf-8")
        fresh.replace(SECONDS)
