"""The rules for tests that need packages which only one session of nox installs.

Tests in the folders of tests/frameworks except `cuda` are tests of frameworks. Other tests that
need a package of `nox -s frameworks` or `nox -s cuda` have the mark `frameworks` or `cuda`. A test
without the mark that is skipped because the package is missing fails.
"""

import re
import sys
from collections.abc import Collection, Generator, Sequence
from importlib.abc import MetaPathFinder
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest

from source import ROOT

FOLDER = ROOT / "tests" / "frameworks"
PACKAGES = {
    "frameworks": {
        "aiohttp", "dask", "distributed", "expecttest", "fsspec", "jax", "mypy", "netCDF4",
        "numpy_groupies", "obstore", "onnxscript", "pandas", "polars", "pyarrow", "scipy", "torch",
        "xarray",
    },
    "cuda": {"cuda"},
}  # fmt: skip

# The texts by which modules mark tests as slow.
SLOW = "mark.slow", "CHECKS_CORE", "COPIES_CORE"


def is_in_framework_folder(path: Path) -> bool:
    """Return True for modules whose tests all need a framework."""
    return path.is_relative_to(FOLDER) and not path.is_relative_to(FOLDER / "cuda")


def marks_in(path: Path) -> set[str]:
    """Return the marks of `PACKAGES` that a module uses."""
    text = path.read_text(encoding="utf-8")
    marks = {mark for mark in PACKAGES if f"mark.{mark}" in text}
    return marks | ({"frameworks"} if is_in_framework_folder(path) else set())


class MissingPackages(MetaPathFinder):
    """Records the names of packages that no other finder finds."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> None:
        """Record the name, and find nothing."""
        if any(name in packages for packages in PACKAGES.values()):
            self.names.add(name)


missing = MissingPackages()
sys.meta_path.append(missing)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests in folders of frameworks."""
    for item in items:
        if is_in_framework_folder(item.path):
            item.add_marker("frameworks")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skip the import of modules without a selected test."""
    if collection_path.suffix != ".py":
        return None
    selected = config.option.markexpr
    if selected.startswith("frameworks"):
        return None if "frameworks" in marks_in(collection_path) else True
    if selected.startswith("slow and not release"):  # lists of samples mark tests as `release`
        text = collection_path.read_text(encoding="utf-8")
        return None if any(mark in text for mark in SLOW) else True
    return None


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Fail for modules that are skipped without a package, and have no test with its mark."""
    missing.names.clear()
    report = yield
    if report.skipped:
        fail_if_forgotten(report, marks_in(collector.path))
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Forget the packages that earlier tests looked for."""
    missing.names.clear()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail for tests that are skipped without a package, and have not its mark."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail"):
        fail_if_forgotten(report, {mark.name for mark in item.iter_markers()})
    return report


def fail_if_forgotten(
    report: pytest.TestReport | pytest.CollectReport, marks: Collection[str]
) -> None:
    """Turn a skip into a failure if it looked for a missing package, or its reason names one."""
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
    words = set(re.findall(r"\w+", reason))
    for mark, packages in PACKAGES.items():
        named = {name for name in packages & words if not find_spec(name)}
        if (absent := packages & missing.names | named) and mark not in marks:
            report.outcome = "failed"
            report.longrepr = f"skipped without {', '.join(sorted(absent))}: add the mark `{mark}`"
            return
