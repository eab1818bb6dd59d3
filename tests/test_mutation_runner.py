"""In which order the runner tries the tests that may kill a mutant."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mutation import trees
from mutation.mutants import Mutant

pytest.importorskip("fcntl", reason="mutants are tried on POSIX systems only")
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


def test_verdicts_count_while_what_they_rest_on_is_the_same(tmp_path):
    file = tmp_path / "verdicts.jsonl"
    tree = {"src/a.py": "1", "tests/cases.py": "1", "tests/mutation/mutants.toml": "1"}
    tree |= {"tests/test_a.py": "1", "tests/files/test_b.py": "1", "tests/test_plan.py": "1"}
    tree |= dict.fromkeys(trees.tests_for(Mutant("src/a.py", "a", "a", "why"), "all"), "1")
    killers = {"b": "test_a.py::test[in x]", "c": "the clock in files/test_b.py::test"}
    killers |= {"d": "the compiler", "e": None}
    made = Results(file, Committed(tree))
    for new, killer in killers.items():
        made.add(Verdict(Mutant("src/a.py", "a", new, "" if killer else "why"), killer, 1.04))

    def counted(changed):
        kept = Results(file, Committed(tree | changed))
        mutants = (Mutant("src/a.py", "a", new, "" if k else "why") for new, k in killers.items())
        found = [verdict for mutant in mutants if (verdict := kept.of(mutant))]
        assert all(verdict.seconds == 1.0 for verdict in found)
        return "".join(verdict.mutant.new for verdict in found)

    assert counted({}) == counted({"tests/mutation/mutants.toml": "2"}) == "bcde"
    assert counted({"tests/test_new.py": "1"}) == "bcde"
    assert counted({"tests/test_a.py": "2"}) == counted({"tests/test_a.py": ""}) == "cde"
    assert counted({"tests/files/test_b.py": "2"}) == "bde"
    assert counted({"tests/test_plan.py": "2"}) == "bcd"
    assert counted({"tests/cases.py": "2"}) == counted({"src/a.py": ""}) == ""
    assert counted({"tests/new.py": "1"}) == ""


def test_a_verdict_on_changed_sources_counts_for_no_record(tmp_path):
    mutant = Mutant("src/a.py", "a", "b")
    file, changed = tmp_path / "verdicts.jsonl", Committed({"src/a.py": ""})
    Results(file, changed).add(Verdict(mutant, "the compiler", 1.0))
    assert Results(file, changed).of(mutant) is None
    assert Results(file).of(mutant) == Verdict(mutant, "the compiler", 1.0)
