"""The table of mistakes fits the sources; `nox -s mutants` tries them."""

import re

import pytest

from mutation.run import ROOT, mutants

MUTANTS = list(mutants())


@pytest.mark.parametrize("file", sorted({mutant.file for mutant in MUTANTS}))
def test_every_mistake_changes_one_place(file):
    text = (ROOT / file).read_text()
    for mutant in MUTANTS:
        if mutant.file == file:
            assert mutant.applied(text) != text, mutant
            assert mutant.tests and all((ROOT / test).is_file() for test in mutant.tests), mutant


def test_no_mistake_is_there_twice():
    assert len({(mutant.file, mutant.old, mutant.new) for mutant in MUTANTS}) == len(MUTANTS)


@pytest.mark.parametrize("name", ["absmax", "rows"])
def test_the_patch_of_a_recipe_fits(name):
    """Each of its places stands in the source; `test_add_*.py` apply it."""
    patch = (ROOT / "tests" / f"{name}.patch").read_text()
    for part in re.split(r"^--- a/", patch, flags=re.MULTILINE)[1:]:
        text = (ROOT / part.split("\n", 1)[0]).read_text()
        for hunk in re.split(r"^@@ .*\n", part, flags=re.MULTILINE)[1:]:
            old = [line[1:] for line in hunk.splitlines() if line[:1] in (" ", "-", "")]
            assert "\n".join(old) in text, hunk
