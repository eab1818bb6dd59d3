"""The table of mutants fits the sources; trying them is a long job of its own."""

import pytest

from mutation.mutants import ROOT, mutants

MUTANTS = mutants()


@pytest.mark.parametrize("file", sorted({mutant.file for mutant in MUTANTS}))
def test_every_mutant_changes_one_place(file):
    text = (ROOT / file).read_text()
    for mutant in MUTANTS:
        if mutant.file == file:
            assert mutant.applied(text) != text, mutant


def test_there_are_many_and_few_are_excused():
    assert len({(mutant.file, mutant.old, mutant.new) for mutant in MUTANTS}) == len(MUTANTS) >= 200
    assert sum(mutant.is_native for mutant in MUTANTS) >= 100
    excused = [mutant for mutant in MUTANTS if mutant.equivalent]
    assert len(excused) <= len(MUTANTS) // 10
    assert all(len(mutant.equivalent) > 20 for mutant in excused), "a reason is a sentence"
