"""The page on versions matches the requirements of pyproject.toml and the tested versions."""

import importlib.metadata
import re
import tomllib

import pytest

from source import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PAGE = (ROOT / "docs" / "versions.md").read_text()
ROWS = re.findall(r"^\| ([\w\[\]-]+) \| [^|]+ \| ([\d.]+)([^|]*) \| ([\d.]+) \|$", PAGE, re.M)


def numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)[:3]))


def test_the_page_has_every_requirement() -> None:
    extras = PROJECT["optional-dependencies"]
    asked = [*PROJECT["dependencies"], *(r for e in extras if e != "peers" for r in extras[e])]
    asked = [need.partition(",")[0] for need in asked]  # without an upper bound
    assert sorted(set(asked)) == sorted(f"{name}>={oldest}" for name, oldest, *_ in ROWS)


def test_the_page_on_stability_names_the_pythons_and_numpys_of_the_package() -> None:
    page = (ROOT / "docs" / "stability.md").read_text()
    pythons = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    assert PROJECT["requires-python"] == f">={pythons[0]}"
    (numpy,) = [need.partition(">=")[2] for need in PROJECT["dependencies"]]
    assert f"CPython {pythons[0]} to {pythons[-1]}, and NumPy from {numpy}." in " ".join(
        page.split()
    )


def test_the_newest_versions_are_not_older_than_the_oldest() -> None:
    assert [row for row in ROWS if numbers(row[1]) > numbers(row[3])] == []


def test_the_page_lists_the_versions_with_shuffles() -> None:
    private = (ROOT / "src" / "gatherum" / "dask" / "private.py").read_text()
    (tested,) = re.findall(r"^TESTED = \((.*)\)$", private, re.M)
    *first, last = re.findall(r'"([\d.]+)"', tested)
    flowing = " ".join(PAGE.split())
    assert f"rows move in shuffles on {', '.join(first)} and {last}." in flowing


@pytest.mark.parametrize("library", ["torch", "jax", "dask"])
def test_modules_of_private_names_name_the_tested_versions(library: str) -> None:
    """The oldest and the newest version of the page, or one for both."""
    (row,) = (row for row in ROWS if row[0].partition("[")[0] == library)
    text = (ROOT / "src" / "gatherum" / library / "private.py").read_text()
    oldest = row[3] if "not tested" in row[2] else row[1]
    for version in (oldest, row[3]):
        assert ".".join(version.split(".")[:2]) in text


def test_the_frameworks_that_are_installed_are_of_tested_versions() -> None:
    """A new version that passes the tests belongs on the page."""
    newer = {}
    for name, oldest, _, newest in ROWS:
        try:
            version = importlib.metadata.version(name.partition("[")[0])
        except importlib.metadata.PackageNotFoundError:
            continue
        if not numbers(oldest)[:2] <= numbers(version)[:2] <= numbers(newest)[:2]:
            newer[name] = version
    if newer:
        pytest.skip(f"newer than docs/versions.md: {newer}")
