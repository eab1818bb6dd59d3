"""The rule for tests of frameworks, which only `nox -s frameworks` installs.

Tests in the folders of tests/frameworks except `cuda` are tests of frameworks. Others have the mark
`frameworks`. A test without it that is skipped because a framework is missing fails.
"""

import re
import sys
from collections.abc import Generator, Sequence
from importlib.abc import MetaPathFinder
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest

from source import ROOT

FOLDER = ROOT / "tests" / "frameworks"
FRAMEWORKS = frozenset(
    (
        "aiohttp", "dask", "distributed", "expecttest", "fsspec", "jax", "mypy", "netCDF4",
        "numpy_groupies", "obstore", "onnxscript", "pandas", "polars", "pyarrow", "scipy", "torch",
        "xarray",
    )
)  # fmt: skip


def is_in_framework_folder(path: Path) -> bool:
    """Return True for modules whose tests all need a framework."""
    return path.is_relative_to(FOLDER) and not path.is_relative_to(FOLDER / "cuda")


def has_framework_tests(path: Path) -> bool:
    """Return True for modules with a test that `nox -s frameworks` runs."""
    return is_in_framework_folder(path) or "mark.frameworks" in path.read_text(encoding="utf-8")


class MissingFrameworks(MetaPathFinder):
    """Records the names of frameworks that no other finder finds."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> None:
        """Record the name, and find nothing."""
        self.names |= {name} & FRAMEWORKS


missing = MissingFrameworks()
sys.meta_path.append(missing)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests in folders of frameworks."""
    for item in items:
        if is_in_framework_folder(item.path):
            item.add_marker("frameworks")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out modules without tests of frameworks if only such tests are selected."""
    if not config.option.markexpr.startswith("frameworks") or collection_path.suffix != ".py":
        return None
    return None if has_framework_tests(collection_path) else True


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Fail for modules that are skipped without a framework."""
    missing.names.clear()
    report = yield
    if report.skipped and not has_framework_tests(collector.path):
        fail_if_forgotten(report)
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Forget the frameworks that earlier tests looked for."""
    missing.names.clear()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail for tests that are skipped without a framework."""
    report = yield
    if report.skipped and not item.get_closest_marker("frameworks"):
        fail_if_forgotten(report)
    return report


def fail_if_forgotten(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Turn a skip into a failure if it looked for a missing framework, or its reason names one."""
    words = re.findall(r"\w+", str(report.longrepr))
    absent = missing.names | {
        name for name in FRAMEWORKS.intersection(words) if not find_spec(name)
    }
    if absent and not hasattr(report, "wasxfail"):
        names = ", ".join(sorted(absent))
        report.outcome = "failed"
        report.longrepr = f"skipped without {names}: add the mark `frameworks`"
