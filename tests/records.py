"""How the long tasks last ended: tests/records.toml, which they write themselves with ``--record``.

    python tests/records.py    # what is in it

A task has one entry, that of its last whole run: when, on which commit ("-dirty" where the tree had
changes), on which instruction-set levels, by which command, its last line, and how long it took.
"""

from __future__ import annotations

import datetime
import json
import os
import subprocess
import sys
import time
import tomllib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

__all__ = ["FILE", "VERDICTS", "Record", "Run", "commit_of", "committed", "read", "write"]

ROOT = Path(__file__).resolve().parents[1]
FILE = Path(__file__).resolve().with_name("records.toml")
# What became of mutants: kept from one run to the next, and read by no test.
VERDICTS = Path(__file__).resolve().parent / "mutation" / "verdicts.jsonl"
HEAD = "# Written by the long tasks (--record), read by tests/records.py: not to be edited.\n"


@dataclass(frozen=True)
class Record:
    """One entry; `seconds` are those of all jobs together."""

    date: datetime.date
    commit: str
    levels: tuple[str, ...]
    command: str
    line: str
    seconds: int


class Run:
    """A task at work: what is known when it begins, the commit above all."""

    def __init__(self, task: str, command: str, root: Path = ROOT) -> None:
        self.task = task
        self.command = command
        self.commit = commit_of(root)
        self.began = time.monotonic()

    def ended(
        self, line: str, levels: tuple[str, ...], seconds: float | None = None, file: Path = FILE
    ) -> None:
        """Write the entry."""
        took = time.monotonic() - self.began if seconds is None else seconds
        today = datetime.date.today()
        record = Record(today, self.commit, levels, self.command, line, round(took))
        write(read(file) | {self.task: record}, file)


def read(file: Path = FILE) -> dict[str, Record]:
    """Return every task's entry."""
    if not file.exists():
        return {}
    entries: dict[str, dict[str, Any]] = tomllib.loads(file.read_text(encoding="utf-8"))
    return {
        task: Record(**entry | {"levels": tuple(entry["levels"])})
        for task, entry in entries.items()
    }


def write(records: dict[str, Record], file: Path = FILE) -> None:
    """Write all entries: one that is read meanwhile is the old one or the new one."""
    parts = [HEAD]
    for task, record in sorted(records.items()):
        name = json.dumps(task) if "." in task else task  # unquoted, it is a table in a table
        parts.append(f"\n[{name}]\n")
        parts += (f"{key} = {_value(value)}\n" for key, value in asdict(record).items())
    fresh = file.with_suffix(".fresh")
    fresh.write_text("".join(parts), encoding="utf-8")
    fresh.replace(file)


def commit_of(root: Path = ROOT) -> str:
    """Return the commit of a tree, with "-dirty" where tracked files differ from it.

    What tasks write does not count: otherwise one would make the tree dirty for the next.
    """
    commit = _git(root, "rev-parse", "HEAD").strip()
    return f"{commit}-dirty" if _changed(root, ".") else commit


def committed(root: Path, *paths: str) -> dict[str, str]:
    """Return the files there, each with git's name of its content; "" if that is not as committed.

    Files that git neither has nor ignores are among them.
    """
    files = {}
    for line in _lines(root, "ls-tree", "-r", "-z", "HEAD", "--", *paths):
        described, _, name = line.partition("\t")
        if name not in _WRITTEN:
            files[name] = described.split()[2]
    new = _lines(root, "ls-files", "--others", "--exclude-standard", "-z", "--", *paths)
    return files | dict.fromkeys([*_changed(root, *paths), *new], "")


_WRITTEN = [file.relative_to(ROOT).as_posix() for file in (FILE, VERDICTS)]


def _changed(root: Path, *paths: str) -> list[str]:
    """Return the tracked files there that differ from the commit, but for what tasks write."""
    tell = ("diff", "--name-only", "--no-renames", "--relative", "-z", "HEAD", "--")
    return [name for name in _lines(root, *tell, *paths) if name not in _WRITTEN]


def _lines(root: Path, *arguments: str) -> list[str]:
    return _git(root, *arguments).split("\0")[:-1]


def _git(root: Path, *arguments: str) -> str:
    # A sanitizer that is loaded first of all is meant for Python alone.
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    try:
        return subprocess.run(
            ["git", *arguments], cwd=root, env=environment, check=True, text=True,
            capture_output=True,
        ).stdout  # fmt: skip
    except (OSError, subprocess.CalledProcessError) as error:
        raise SystemExit(f"--record needs a git checkout: {error}") from None


def _value(value: object) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_value, value))}]"
    # A string of JSON is one of TOML, too, when nothing outside of ASCII is escaped.
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else str(value)


def main() -> int:
    """Print every entry."""
    for task, record in read().items():
        minutes = f"{record.seconds / 60:.0f} min"
        print(f"{task}: {record.date}, {record.commit[:12]}{record.commit[40:]}, {minutes}, on")
        print(f"    {', '.join(record.levels)}\n    {record.command}\n    {record.line}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
