"""The journal of an unfinished output: a record of its inputs and of the parts on the disk."""

from __future__ import annotations

import json
import os
from typing import Any

from gatherum._model.errors.audience import option
from gatherum._system.regular_files import naming, open_regular
from gatherum.files.errors import half_written
from gatherum.files.resources.os_calls import (
    NO_LINK,
    lock,
    read_some,
    remove_locked,
    sync_directory,
    write_some,
)

Record = dict[str, Any]
PARTIAL = ".partial"  # the suffix that is added to the name of an output
JOURNAL = f"{PARTIAL}.journal"
VERSION = 5  # the version of the records and of the meaning of their numbers
HEAD = b'{"gatherum": '
READY: Record = {"ready": True}
WINDOW, COLUMNS, ALL = "window", "columns", "all"  # parts of an output
MEMORY, PERCENT = "memory", "percent"


class Journal:
    """Records appended to a file next to the output. Each record is on the disk before the next
    record is written.

    The first record is the fingerprint: operator, attributes, inputs and chunking. All other
    records name finished parts. The fingerprint is forced to the disk together with the first such
    record. A record that a crash truncated is ignored.

    `resume` is True to continue with the existing records. Raise ValueError if the records belong
    to a different call or to different inputs, and BlockingIOError if another process is writing
    this output.
    """

    def __init__(self, path: str, fingerprint: Record, *, resume: bool) -> None:
        self.path = path
        self._forced, self._record_keys = False, set[str]()
        self._fd, self._created = _opened(path)
        try:
            self._lock()
            self._first: Record = {"gatherum": VERSION, **_as_stored(fingerprint)}
            earlier = self._read()
            self.progress = _progress(earlier)
            self.existed = bool(earlier)  # an empty file may belong to another program
            self.resumed = resume and self.existed
            if self.resumed:
                self._check_same_call(earlier, self._first)
                earlier = self._usable_records(earlier)
                self._record_keys = set(map(_key, earlier))
            else:
                self._check_not_half_laid(earlier)
                self._record_keys.clear()
            self.records = earlier  # until `begin`
        except BaseException:
            self.abandon()
            raise

    def begin(self) -> None:
        """Discard the records of an earlier run, whose parts are all removed."""
        self._created = True  # from now on, the content belongs to this run
        self._truncate(0)
        self._append(self._first)
        self.resumed, self.records, self._record_keys = False, [], set()

    def _lock(self) -> None:
        try:
            with naming(self.path):
                lock(self._fd)
            # the run that held the lock may have completed, and removed this file
            is_same_file = os.path.samestat(os.stat(self.path), os.fstat(self._fd))
        except (BlockingIOError, FileNotFoundError):
            is_same_file = False
        if not is_same_file:
            self._created = False  # the file belongs to another run
            raise BlockingIOError(f"{self.path}: another run is writing this output")

    def _read(self) -> list[Record]:
        """Return the records of an earlier run. Ignore a truncated last record."""
        with naming(self.path):
            first_bytes = read_some(self._fd, len(HEAD), 0)
        if first_bytes != HEAD[: len(first_bytes)]:  # the file of another program, and perhaps huge
            raise self._foreign_file()
        with open(self._fd, "rb", closefd=False) as file, naming(self.path):
            raw = file.read()
        complete_lines = raw[: raw.rfind(b"\n") + 1]
        try:
            records: list[Record] = [json.loads(line) for line in complete_lines.splitlines()]
            self._complete_bytes = len(complete_lines)
            self._record_keys = set(map(_key, records))
        except (ValueError, RecursionError):
            raise self._foreign_file() from None
        if not all(isinstance(record, dict) for record in records):
            raise self._foreign_file()
        return records

    def _foreign_file(self) -> ValueError:
        return ValueError(f"{self.path}: not a journal of gatherum; move it away")

    def _check_same_call(self, earlier: list[Record], first: Record) -> None:
        """Raise ValueError if the journal belongs to another call."""
        earlier_call, this_call = dict(earlier[0]), dict(first)
        for fingerprint in (earlier_call, this_call):
            fingerprint.pop(MEMORY, None)  # `_usable_records` handles a change of the memory limit
        if READY in earlier and first.get("in_place"):
            # the table is being written, so it may have changed
            earlier_call.pop("table_state", None)
            this_call.pop("table_state", None)
        if earlier_call != this_call:
            raise ValueError(
                f"{self.path}: cannot resume, {_difference(earlier_call, this_call)} "
                f"(without {option('resume=True')} the run starts over)"
            )
        self._truncate(self._complete_bytes)

    def _usable_records(self, earlier: list[Record]) -> list[Record]:
        """Return the records that this run can use.

        If the memory limit of the run has changed, it can use only parts that do not depend on the
        limit.

        If a run has a different memory limit, a record of the limit precedes its records. If no
        part of the earlier runs is usable, this run starts over.
        """
        memory, usable = earlier[0].get(MEMORY), [earlier[0]]
        for record in [*earlier[1:], {MEMORY: self._first.get(MEMORY)}]:
            if record.get(MEMORY, memory) != memory:
                memory = record[MEMORY]
                usable = [usable[0], *filter(_is_lasting, usable[1:])]
            usable.append(record)
        del usable[-1]
        if memory != _last_memory(earlier):
            self.resumed = len(usable) > 1
            if self.resumed:
                self._append({MEMORY: memory})
        return usable

    def _check_not_half_laid(self, earlier: list[Record]) -> None:
        if READY in earlier and earlier[0].get("in_place"):
            raise ValueError(half_written(self.path, "the table"))

    def contains(self, record: Record) -> bool:
        """Return True if the journal contains an equal record."""
        return _key(record) in self._record_keys

    def add(self, *records: Record) -> None:
        """Append records, and force them to the disk."""
        self._append(*records)
        with naming(self.path):
            os.fsync(self._fd)
        if not self._forced:
            sync_directory(os.path.dirname(self.path))
            self._forced = True
        self.records.extend(records)
        self._record_keys.update(map(_key, records))

    def _append(self, *records: Record) -> None:
        text = "".join(json.dumps(record) + "\n" for record in records).encode()
        offset = os.fstat(self._fd).st_size
        while text:
            with naming(self.path):
                written = write_some(self._fd, text, offset)
            text, offset = text[written:], offset + written

    def _truncate(self, size: int) -> None:
        with naming(self.path):
            os.ftruncate(self._fd, size)

    def abandon(self) -> None:
        """Remove the journal if this run created it, and keep an earlier one."""
        if self._created:
            self.remove()
        else:
            self.close()

    def remove(self) -> None:
        """Delete the journal, because the output is complete or abandoned."""
        descriptor, self._fd = self._fd, -1
        if descriptor >= 0:
            remove_locked(self.path, descriptor)

    def close(self) -> None:
        """Close the journal, and keep its file for a later resume."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def check_readable(path: str) -> None:
    """Raise OSError if an in-place run has begun to write the table and has not finished."""
    journal = path + JOURNAL
    if not os.path.isfile(journal):
        return
    with (
        open(journal, encoding="utf-8", errors="replace", opener=open_regular) as lines,
        naming(journal),
    ):
        if lines.read(len(HEAD)) != HEAD.decode():
            return  # the file of another program, and perhaps huge
        first, records = lines.readline(), lines.read()
    if '"in_place": true' in first and json.dumps(READY) in records.splitlines():
        raise OSError(half_written(path, "this table"))


def _opened(path: str) -> tuple[int, bool]:
    """Return a descriptor of the journal, and whether it was created."""
    flags = os.O_RDWR | os.O_CREAT | NO_LINK
    try:
        return open_regular(path, flags | os.O_EXCL), True
    except FileExistsError:
        return open_regular(path, flags), False


def _progress(records: list[Record]) -> str:
    """Return the progress of a run as a string, which is empty if the run has finished no part."""
    shares = [record[PERCENT] for record in records if PERCENT in record]
    return "its end" if READY in records else f"{shares[-1]} %" if shares else ""


def _is_lasting(record: Record) -> bool:
    """Return True if a part does not depend on the memory limit of the run."""
    return record == READY or (WINDOW in record and record[COLUMNS] == ALL)


def _last_memory(records: list[Record]) -> Any:
    return next((record[MEMORY] for record in reversed(records) if MEMORY in record), None)


def _key(record: Record) -> str:
    return json.dumps(record, sort_keys=True)


def _as_stored(fingerprint: Record) -> Record:
    """Return the fingerprint after a round trip through JSON, to compare it with a record."""
    plain: Record = json.loads(json.dumps(fingerprint))
    return plain


def _difference(earlier: Record, current: Record) -> str:
    if earlier.get("gatherum") != current["gatherum"]:
        return "it was written by another version"
    changed = [key for key in current if earlier.get(key) != current[key]]
    return f"{', '.join(changed) or 'its content'} changed since it was started"
