"""The patches and the paths of CONTRIBUTING.md's recipes match the sources.

`test_add_*.py` apply the patches.
"""

import re

import pytest

from source import ROOT

PATCHES = sorted(path.stem for path in (ROOT / "tests" / "patches").glob("*.patch"))
PAGE = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
RECIPES = dict(re.findall(r"^## (Add .*|Override .*)\n([\s\S]*?)(?=^## )", PAGE, re.MULTILINE))
# Paths begin in one of these folders. A name without folders may mean a file in any of FOLDERS.
ROOTS = [ROOT, *(ROOT / part for part in ("src", "src/gatherum", "src/core"))]
FOLDERS = "docs", "src", "tests", "tools"
SUFFIXES = "cpp|cuh|h|hpp|json|md|patch|py|pyi|toml|txt"
# A path in backticks, which may name a definition of the file.
PATH = re.compile(rf"`(?P<path>[\w./]*(?:/\w+|\.(?:{SUFFIXES})))(?:: (?P<name>[\w.]+))?`")


@pytest.mark.parametrize("name", PATCHES)
def test_each_hunk_of_a_patch_is_in_its_file(name):
    patch = (ROOT / "tests" / "patches" / f"{name}.patch").read_text()
    for part in re.split(r"^--- a/", patch, flags=re.MULTILINE)[1:]:
        text = (ROOT / part.split("\n", 1)[0]).read_text()
        for hunk in re.split(r"^@@ .*\n", part, flags=re.MULTILINE)[1:]:
            old = [line[1:] for line in hunk.splitlines() if line[:1] in (" ", "-", "")]
            assert "\n".join(old) in text, hunk


@pytest.mark.parametrize("name", PATCHES)
def test_added_lines_of_python_are_short(name):
    patch = (ROOT / "tests" / "patches" / f"{name}.patch").read_text()
    parts = re.split(r"^--- a/", patch, flags=re.MULTILINE)[1:]
    lines = "\n".join(part for part in parts if part.split("\n", 1)[0].endswith(".py")).splitlines()
    assert not [line for line in lines if line.startswith("+") and len(line) > 101]


def files_named(path):
    """Return the files and folders of the project that a path of a recipe may mean."""
    exact = [root / path for root in ROOTS if (root / path).exists()]
    folders = (ROOT / folder for folder in FOLDERS)
    return exact or [found for folder in folders for found in folder.rglob(path)]


@pytest.mark.parametrize("recipe", RECIPES)
def test_each_path_of_a_recipe_exists(recipe):
    for match in PATH.finditer(RECIPES[recipe]):
        path, name = match["path"], match["name"]
        files = files_named(path)
        assert files, match[0]
        if name:
            last = re.compile(rf"\b{name.rpartition('.')[2]}\b")
            assert any(last.search(file.read_text("utf-8")) for file in files), match[0]


def test_the_files_of_the_recipe_for_an_argument_contain_its_example():
    others = "jax/adapter.py", "digests.json"  # types without names; results
    for match in PATH.finditer(RECIPES["Add an argument"]):
        files = files_named(match["path"])
        has_example = any(re.search(r"\bnegative\b", file.read_text("utf-8")) for file in files)
        assert has_example or match["path"] in others, match[0]


def test_each_patch_is_in_a_recipe():
    text = "\n".join(RECIPES.values())
    assert set(re.findall(r"`tests/patches/(\w+)\.patch`", text)) == set(PATCHES)
