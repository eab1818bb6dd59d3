"""The project's statements about systems and interpreters agree everywhere."""

import re
import tomllib

from source import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
CLASSIFIERS = PROJECT["project"]["classifiers"]
WHEELS = PROJECT["tool"]["cibuildwheel"]


def test_wheels_are_built_for_the_interpreters_that_are_named():
    named = {c.rpartition(" ")[2] for c in CLASSIFIERS if re.search(r"Python :: 3\.\d+$", c)}
    built = {re.sub(r"cp3(\d+)t?-\*", r"3.\1", pattern) for pattern in WHEELS["build"]}
    assert named == built
    first = min(int(version.split(".")[1]) for version in named)
    assert PROJECT["project"]["requires-python"] == f">=3.{first}"


def test_wheels_are_built_for_the_systems_that_are_named():
    named = {c.rpartition(" ")[2] for c in CLASSIFIERS if c.startswith("Operating System")}
    assert named == {"Linux", "MacOS", "Windows"}
    assert {"macos", "windows"} <= WHEELS.keys()
    release = (ROOT / "CONTRIBUTING.md").read_text().partition("## Release")[2]
    assert "on Linux, on macOS and on Windows" in release
