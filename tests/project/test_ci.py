"""The script that decides whether a change lands: its exit status depends on its lanes."""

import re
import shutil
import subprocess
import sys
import tomllib

import pytest

from session_marks import PACKAGES, SLOW
from source import ROOT

SCRIPT = ROOT / ".ci" / "run"


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize(
    ("first", "second", "third", "status", "last"),
    [
        ("true", "true", "true", 0, "--- third lane"),
        ("false", "true", "true", 1, "failed: first"),
        ("true", "false", "true", 1, "failed:  second"),
        ("true", "true", "false", 1, "failed:  third"),
        ("false", "false", "false", 1, "failed: first second third"),
    ],
)
def test_a_failure_in_any_lane_fails(tmp_path, first, second, third, status, last):
    text = SCRIPT.read_text()
    for lane, does in (("first", first), ("second", second), ("third", third)):
        text, replaced = re.subn(
            rf"^{lane}_lane\(\) {{\n.*?^}}$",
            f"{lane}_lane() {{ {does}; }}",
            text,
            flags=re.M | re.S,
        )
        assert replaced == 1
    (tmp_path / ".ci").mkdir()
    (tmp_path / ".ci" / "run").write_text(text)
    done = subprocess.run(
        ["bash", str(tmp_path / ".ci" / "run")], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.splitlines()[-1]) == (status, last), done.stderr


def test_the_folders_of_frameworks_shadow_no_framework():
    """pytest puts a test's folder on the path; ``frameworks`` holds one named ``torch``."""
    assert list((SCRIPT.parent.parent / "tests" / "frameworks").glob("*.py")) == []


def test_every_package_of_the_session_counts_as_a_framework():
    """A test that is skipped without one of them needs the mark `frameworks`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras, groups = project["project"]["optional-dependencies"], project["dependency-groups"]
    session = (ROOT / "noxfile.py").read_text().partition("def frameworks(")[2].partition("def ")[0]
    (chosen,) = re.findall(r'install\(session, "\[([a-z,]+)\]"', session)
    required = [*groups["frameworks"], *(row for name in chosen.split(",") for row in extras[name])]
    names = {re.split(r"[^\w]", row)[0] for row in required}
    assert names - PACKAGES["frameworks"] == {"flatbuffers"}  # which JAX imports, and no test


def test_the_session_of_slow_tests_knows_every_list_of_marks_that_contains_slow():
    """It imports only modules with one of the texts."""
    texts = [path.read_text() for path in (ROOT / "tests" / "support").glob("*.py")]
    lists = re.findall(r"^([A-Z_]+) = \[\s*pytest\.mark\.slow\b", "\n".join(texts), re.MULTILINE)
    assert {"mark.slow", *lists} == set(SLOW)


def test_a_skip_without_a_framework_needs_the_mark(tmp_path):
    """The rule of `session_marks`, with a package that is nowhere installed."""
    (tmp_path / "conftest.py").write_text(
        "import session_marks\n"
        "session_marks.PACKAGES['frameworks'] = {'nowhere'}\n"
        "def pytest_configure(config): config.pluginmanager.register(session_marks)\n"
    )
    skip = "pytest.importorskip('nowhere', reason='install it')"
    (tmp_path / "test_module.py").write_text(f"import pytest\n{skip}\n")
    (tmp_path / "test_tests.py").write_text(
        "import pytest\n"
        f"def test_forgotten(): {skip}\n"
        "@pytest.mark.skipif(True, reason='install nowhere to test it')\n"
        "def test_forgotten_in_a_condition(): pass\n"
        "@pytest.mark.skipif(True, reason='runs elsewhere')\n"
        "def test_skipped(): pass\n"
        "@pytest.mark.frameworks\n"
        f"def test_marked(): {skip}\n"
    )
    run = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)),
            *("-c", str(ROOT / "pyproject.toml"), "--continue-on-collection-errors"),
        ],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    said = "skipped without nowhere: add the mark `frameworks`"
    assert run.stdout.splitlines()[-1].startswith("1 failed, 2 skipped, 2 errors in"), run.stdout
    assert run.stdout.count(said) >= 3
