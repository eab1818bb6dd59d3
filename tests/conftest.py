"""Fixtures of all tests. Settings that a test changes are restored after it."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, settings

import gatherum
import session_marks
from source import ROOT, SOURCE
from sparse_files import Space

# Processes that a shell starts in the background ignore Ctrl-C, and so would their children.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A slow machine is not a failure. CI uses the same examples every time; other runs draw new ones.
settings.register_profile(
    "gatherum",
    deadline=None,
    derandomize="CI" in os.environ,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("gatherum")


def pytest_configure(config: pytest.Config) -> None:
    """Use the hooks of `session_marks`."""
    config.pluginmanager.register(session_marks)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests that run only before a release as slow, too."""
    for item in items:
        if item.get_closest_marker("release"):
            item.add_marker("slow")


@pytest.fixture
def settings_restored() -> Iterator[None]:
    """Restore the number of threads and the cap of the output cache."""
    threads, limit = gatherum.get_num_threads(), gatherum.get_output_cache_limit()
    yield
    gatherum.set_num_threads(threads)
    gatherum.set_output_cache_limit(limit)


@pytest.fixture
def python() -> Callable[..., "subprocess.CompletedProcess[str]"]:
    """Run code in a fresh Python with the given environment variables."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GATHERUM_")}

    def run(code: str, **environment: str) -> "subprocess.CompletedProcess[str]":
        path = os.pathsep.join([SOURCE, str(ROOT / "tests" / "support")])
        return subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
            env=clean | {"PYTHONPATH": path} | environment,
        )

    return run


@pytest.fixture
def space(tmp_path):
    """Make sparse files."""
    spaces = []

    def make(nbytes):
        spaces.append(Space(tmp_path / f"{len(spaces)}.bytes", nbytes))
        return spaces[-1]

    yield make
    for one in spaces:
        os.unlink(one.path)
