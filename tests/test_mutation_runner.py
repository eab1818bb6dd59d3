"""Which tests the runner tries first, and which of its verdicts count."""

import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from mutation import trees
from mutation.mutants import Mutant, unchanged

pytest.importorskip("fcntl", reason="mutants are tried on POSIX systems only")
from mutation import run
from mutation.verdicts import Committed, Results, Verdict


def ordered(folder, options=("--collect-only", "-q"), **order):
    """Run pytest in a folder with the runner's plugin; return its output."""
    order = {"likely": [], "seconds": str(folder / "seconds.json")} | order
    (folder / "order.json").write_text(json.dumps(order))
    (folder / "pytest.ini").write_text("[pytest]\n")
    environment = os.environ | {
        "PYTHONPATH": str(Path(__file__).parent),
        "GATHERUM_ORDER": str(folder / "order.json"),
    }
    command = [sys.executable, "-m", "pytest", "-p", "mutation.order", *options]
    run = subprocess.run(
        command, cwd=folder, env=environment, check=False, capture_output=True, text=True
    )
    return run.stdout


def names(output):
    return [line.split("::")[1] for line in output.splitlines() if "::" in line]


def test_likely_tests_come_first_and_long_ones_last(tmp_path):
    (tmp_path / "test_a.py").write_text("def test_long(): pass\ndef test_short(): pass\n")
    (tmp_path / "test_b.py").write_text("def test_next(): pass\ndef test_known(): pass\n")
    seconds = {"test_a.py::test_long": 9, "test_a.py::test_short": 0.1}
    (tmp_path / "seconds.json").write_text(json.dumps(seconds))
    found = ordered(tmp_path, likely=["test_gone.py::test_gone", "test_b.py::test_known"])
    assert names(found) == ["test_known", "test_short", "test_next", "test_long"]


def test_one_in_the_middle_of_many_parameters_comes_before_the_rest(tmp_path):
    (tmp_path / "test_a.py").write_text(
        'import pytest\n@pytest.mark.parametrize("n", range(4))\ndef test_many(n): pass\n'
        "def test_one(): pass\n"
    )
    found = ordered(tmp_path, likely=["test_a.py::test_many[3]"])
    assert names(found) == [
        "test_many[3]", "test_many[2]", "test_one", "test_many[0]", "test_many[1]"
    ]  # fmt: skip


def test_the_likeliest_files_come_before_the_middle_of_others(tmp_path):
    many = "import pytest\n@pytest.mark.parametrize('n', range({}))\ndef test_{}(n): pass\n"
    for name, count in (("a", 61), ("b", 2), ("c", 2)):
        (tmp_path / f"test_{name}.py").write_text(many.format(count, name))
    found = names(ordered(tmp_path, likely=[]))
    assert found[:6] == [
        "test_b[1]",
        "test_b[0]",
        "test_a[30]",
        "test_c[1]",
        "test_a[0]",
        "test_a[1]",
    ]


def test_what_tests_take_is_kept_when_all_have_passed(tmp_path):
    (tmp_path / "test_a.py").write_text("def test_one(): pass\n")
    seconds = tmp_path / "seconds.json"
    seconds.write_text('{"test_b.py::test_two": 7}')
    ordered(tmp_path, ())
    kept = json.loads(seconds.read_text())
    assert kept.keys() == {"test_a.py::test_one", "test_b.py::test_two"}
    (tmp_path / "test_a.py").write_text("def test_three(): assert False\n")
    ordered(tmp_path, ())
    assert json.loads(seconds.read_text()) == kept


def test_what_killed_a_mutant_is_tried_before_what_killed_others(tmp_path):
    results = Results(tmp_path / "verdicts.jsonl")
    first, second, third = (Mutant("src/core/pool.cpp", "a", new) for new in "bcd")
    results.add(Verdict(first, "test_a.py::test_one", 1.0))
    results.add(Verdict(second, "a crash (-11) in test_a.py::test_two", 1.0))
    for new in "bcde":
        killer = "test_b.py::test_often" if new < "e" else "test_b.py::test_once"
        results.add(Verdict(Mutant("src/core/memory.cpp", "a", new), killer, 1.0))
    results.add(Verdict(third, "the compiler", 1.0))
    one, two, often = "test_a.py::test_one", "test_a.py::test_two", "test_b.py::test_often"
    for kept in (results, Results(results.file)):
        assert kept.likely(first) == [one, two, often]
        assert kept.likely(third) == [two, one, often]


LIVES, RIGHT = (Mutant("src/core/lanes.hpp", "a", "why", why) for why in ("", "why"))
TREE = dict.fromkeys(trees.tests_for(LIVES, "all") + trees.tests_for(RIGHT, "all"), "1")
TREE |= dict.fromkeys(["tests/test_a.py", "tests/rooms/test_b.py", "tests/cases.py"], "1")
TREE["tests/test_surface.py"] = "1"
TREE |= dict.fromkeys(["src/a.py", "tests/mutation/trees.py", "README.md"], "1")
KILLERS = {
    "a": "test_a.py::test[not in x]",
    "b": "the clock in rooms/test_b.py::test[a::b]",
    "c": "test_a.py",  # which cannot be imported
    "d": "a crash (4) in ",  # before there was any test
    "e": "the compiler",
    "f": "test_surface.py::test_examples_in_the_readme",
}
MUTANTS = [*(Mutant("src/core/lanes.hpp", "a", new) for new in KILLERS), RIGHT]


@pytest.fixture
def counted(tmp_path):
    """Of MUTANTS, those with verdicts that count when files of TREE are changed."""
    file = tmp_path / "verdicts.jsonl"
    made = Results(file, Committed(TREE, str))
    for mutant in MUTANTS:
        made.add(Verdict(mutant, KILLERS.get(mutant.new), 1.04))

    def those(files=None):
        tree = TREE | (files or {})
        kept = Results(file, Committed(tree, str))
        found = [verdict for mutant in MUTANTS if (verdict := kept.of(mutant))]
        assert all(verdict.seconds == 1.0 for verdict in found)
        return " ".join(verdict.mutant.new for verdict in found)

    those.file = file
    return those


@pytest.mark.parametrize(
    ("name", "left"),
    [
        ("tests/mutation/trees.py", "a b c d e f why"),
        ("README.md", "a b c d e why"),
        ("tests/test_new.py", "a b c d e f why"),
        ("tests/test_a.py", "b d e f why"),
        ("tests/rooms/test_b.py", "a c d e f why"),
        ("tests/test_plan.py", "a b c e f"),
        ("tests/test_races.py", "a b c e f why"),
        ("tests/cases.py", ""),
        ("tests/new.py", ""),
        ("src/a.py", ""),
    ],
)
def test_verdicts_count_while_what_they_rest_on_is_the_same(counted, name, left):
    for blob in ("2", ""):
        assert counted({name: blob}) == left


BESIDE = """import pytest
SIZE = 1
@pytest.mark.parametrize("n", [SIZE])
def test_one(n):
    assert n


def test_other(): pass
"""


@pytest.mark.parametrize(
    ("old", "new", "counts"),
    [
        ("pass", "return 1", True),
        ("\n\n\ndef test_other(): pass", "", True),
        ("def test_other", "\n\n@pytest.mark.slow\ndef test_more(): pass\ndef test_other", True),
        ("assert n", "assert n + 1", False),
        ("[SIZE]", "[SIZE, 2]", False),
        ("SIZE = 1", "SIZE = 2", False),
        ("test_one", "test_two", False),
    ],
)
def test_a_verdict_rests_on_no_other_test_of_the_file(tmp_path, old, new, counts):
    mutant, file = MUTANTS[0], tmp_path / "verdicts.jsonl"
    changed = TREE | {"tests/test_a.py": "2"}
    read = {"1": BESIDE, "2": BESIDE.replace(old, new)}.get
    for killer, then in (
        ("test_a.py::test_one[1]", counts),
        ("a crash (4) in test_a.py::test_one[1]", False),
    ):
        Results(file, Committed(TREE, read)).add(Verdict(mutant, killer, 1.0))
        assert (Results(file, Committed(changed, read)).of(mutant) is not None) == then
        file.unlink()


def test_verdicts_rest_on_how_tests_were_run(counted, monkeypatch):
    assert counted() == "a b c d e f why"
    monkeypatch.setattr(trees, "BY_VECTORS", ())
    assert counted() == ""


def test_a_verdict_on_another_tree_hides_none(counted):
    for tree in (None, Committed(TREE | {"src/a.py": "2"}, str)):
        Results(counted.file, tree).add(Verdict(MUTANTS[0], "test_a.py::test_other", 2.0))
    assert counted() == "a b c d e f why"
    assert Results(counted.file).of(MUTANTS[0]).killer == "test_a.py::test_other"


def test_a_verdict_that_is_wrong_is_found_again(counted):
    made = Results(counted.file, Committed(TREE, str))
    made.add(Verdict(MUTANTS[0], None, 1.0))
    made.add(Verdict(RIGHT, "test_a.py::test", 1.0))
    assert counted() == "b c d e f"


def test_a_verdict_on_changed_sources_counts_for_no_record(tmp_path):
    mutant = Mutant("src/a.py", "a", "b")
    file, changed = tmp_path / "verdicts.jsonl", Committed({"src/a.py": ""})
    Results(file, changed).add(Verdict(mutant, "the compiler", 1.0))
    assert Results(file, changed).of(mutant) is None
    assert Results(file).of(mutant) == Verdict(mutant, "the compiler", 1.0)


@pytest.mark.parametrize("fails", [None, "", "v3"])
def test_there_is_no_verdict_until_all_tests_pass_without_a_mutant(monkeypatch, fails):
    """One job tries the mutants while the other runs the tests of a level."""
    tried = threading.Event()
    chosen = [unchanged(""), unchanged("v3"), *MUTANTS[:2]]

    class Tree:
        def __init__(self, number, compilers):
            self.stop = int

        def run(self, mutant, tests, likely):
            if mutant.old:
                if mutant is chosen[-1]:
                    tried.set()
                return "test_b.py::test"
            assert set(trees.QUICK + trees.SLOW) < {path[len("tests/test_") : -3] for path in tests}
            if mutant.file:
                assert tried.wait(60)
            return "test_a.py::test" if mutant.file == fails else None

    monkeypatch.setattr(run, "Tree", Tree)
    verdicts = run.tried(list(enumerate(chosen)), 2, "all", lambda mutant: [])
    if fails is None:
        assert {verdict.mutant for _, verdict in verdicts} == set(chosen)
    else:
        with pytest.raises(SystemExit, match=r"without any mutant, this fails: test_a\.py::test"):
            next(iter(verdicts))


def test_no_test_of_a_mutant_needs_another():
    """A verdict rests on one test: what it shares with others is in a helper, or in no test."""
    root = Path(__file__).parents[1]
    for name in trees.tests_for(unchanged(""), "all"):
        text = (root / name).read_text()
        imports = re.findall(r"^(?:from|import) (\S*\btest_\w+)", text, re.M)
        assert set(imports) <= {Path(name).stem}, name
        for test in re.findall(r"^def (test_\w+)", text, re.M):
            assert len(re.findall(rf"\b{test}\b", text)) == 1, (name, test)
