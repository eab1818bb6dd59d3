"""What the long tasks write of themselves: entries come back as written, and tasks exist."""

import datetime
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import records
from records import Record, Run
from targets import TARGETS

ROOT = Path(__file__).parents[1]
LEVELS = {"portable", "v3", "v4"}


def test_the_records_name_tasks_that_exist_and_say_all_there_is_to_say():
    text = (ROOT / "noxfile.py").read_text()
    recording = {"asan", "tsan", "mutants", "faults", "portability"}
    sessions = set(re.findall(r"@nox\.session\ndef (\w+)\(", text)) & recording
    assert sessions == recording
    found = records.read()
    platforms = {task for task in found if task.startswith("portability-")}
    assert set(found) <= sessions | platforms | {f"fuzz-{target}" for target in TARGETS}
    for task, record in found.items():
        assert type(record.date) is datetime.date, task
        assert re.fullmatch(r"[0-9a-f]{40}(-dirty)?", record.commit), task
        assert record.levels and set(record.levels) <= LEVELS, task
        assert record.command.startswith(f"nox -s {task.split('-')[0]} -- "), task
        assert record.line and "\n" not in record.line, task
        assert type(record.seconds) is int and record.seconds >= 0, task


def test_the_file_is_as_its_writer_leaves_it(tmp_path):
    records.write(records.read(), tmp_path / "again.toml")
    assert (tmp_path / "again.toml").read_text() == records.FILE.read_text()


def _git(folder, *arguments):
    who = ("-c", "user.name=nobody", "-c", "user.email=nobody@example.org")
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_an_entry_is_read_as_it_was_written_and_others_stay(tmp_path):
    file = tmp_path / "records.toml"
    _git(tmp_path, "init", "-q")
    (tmp_path / "source").write_text("1")
    _git(tmp_path, "add", ".")
    _git(tmp_path, "commit", "-q", "-m", "first")

    line = 'v3: 3 passed; "quoted" \\ ü\t\x1b'
    Run("asan", "nox -s asan -- --record", tmp_path).ended(line, ("v3", "portable"), file=file)
    first = records.read(file)["asan"]
    assert (first.levels, first.line) == (("v3", "portable"), line)
    assert re.fullmatch("[0-9a-f]{40}", first.commit)
    assert abs(first.date - datetime.date.today()) <= datetime.timedelta(1)  # over midnight

    (tmp_path / "source").write_text("2")
    task = "portability-python3.12"
    Run(task, "nox -s tsan", tmp_path).ended("1 failed", ("v4",), 12.6, file)
    found = records.read(file)
    assert found["asan"] == first
    assert found[task] == Record(
        found[task].date, f"{first.commit}-dirty", ("v4",), "nox -s tsan", "1 failed", 13
    )
    assert sorted(path.name for path in tmp_path.glob("records*")) == ["records.toml"]


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_records_do_not_make_the_tree_dirty(tmp_path):
    own = tmp_path / records.FILE.relative_to(ROOT)
    own.parent.mkdir()
    own.write_text("")
    _git(tmp_path, "init", "-q")
    _git(tmp_path, "add", ".")
    _git(tmp_path, "commit", "-q", "-m", "first")
    own.write_text("# changed")
    assert not records.commit_of(tmp_path).endswith("-dirty")


def test_a_tree_without_commits_cannot_be_recorded(tmp_path):
    with pytest.raises(SystemExit, match=r"^--record needs a git checkout: "):
        records.commit_of(tmp_path / "nowhere")


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_committed_files_are_the_same_until_they_change(tmp_path):
    names = ("src/a", "tests/b", "tests/with space", "docs/c", "tests/mutation/verdicts.jsonl")
    for name in (*names, "tests/to move"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1")
    (tmp_path / ".gitignore").write_text("*.pyc\n")

    def found():
        return records.committed(tmp_path, "src", "tests")

    def commit():
        _git(tmp_path, "add", ".")
        _git(tmp_path, "commit", "-q", "--allow-empty", "-m", "next")
        return found()

    _git(tmp_path, "init", "-q")
    first = commit()
    assert first.keys() == {"src/a", "tests/b", "tests/with space", "tests/to move"}
    assert len(set(first.values())) == 1 and first["src/a"]
    for name in ("docs/c", "tests/mutation/verdicts.jsonl", "tests/b.pyc"):
        (tmp_path / name).write_text("2")
        assert found() == first == commit()
    (tmp_path / "tests/with space").write_text("2")
    assert found() == first | {"tests/with space": ""}
    after = commit()
    assert after == first | {"tests/with space": after["tests/with space"]} != first
    _git(tmp_path, "mv", "tests/to move", "tests/moved")
    (tmp_path / "src/new").write_text("1")
    _git(tmp_path, "rm", "-q", "--cached", "tests/b")
    changed = ("tests/to move", "tests/moved", "tests/b", "src/new")
    assert found() == after | dict.fromkeys(changed, "")
