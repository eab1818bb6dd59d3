"""The table of mistakes fits the sources; `nox -s mutants` tries them."""

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
