"""A build writes an output to a `.partial` file with a journal, and then replaces the target."""

from __future__ import annotations

import os
import shutil
import stat
import time
import warnings
from collections.abc import Callable

from gatherum._model.errors.audience import option
from gatherum.files.durable.interrupt import uninterrupted
from gatherum.files.durable.journal import JOURNAL, PARTIAL, PERCENT, READY, Journal, Record
from gatherum.files.resources.disk import DiskFile
from gatherum.files.resources.os_calls import NO_LINK, sync_directory, sync_file
from gatherum.files.resources.stats import Meter

CREATE = os.O_RDWR | os.O_CREAT | NO_LINK
SYNC_BYTES = 512 << 20
SYNC_SECONDS = 10.0
ASIDE = ".partial.old"


class Build:
    """Writes an output next to `target`, and replaces `target` when the output is complete.

    `finish` reports each written part. At intervals the parts are forced to the disk, and recorded
    only afterwards, so that a recorded part is never lost. Repeating an unrecorded part does no
    harm, because every part depends only on the inputs.

    `target` is the absolute path of a file or directory, without symbolic links. `fingerprint`
    identifies the call and its inputs in the journal. `resume` is True to continue where a killed
    run stopped. `check_inputs` raises OSError if an input changed since it was opened. `staged` is
    True if the rows are first written to a flat file, from which the output is made.
    """

    def __init__(
        self,
        target: str,
        fingerprint: Record,
        *,
        resume: bool,
        check_inputs: Callable[[], None],
        meter: Meter,
        staged: bool = False,
    ) -> None:
        self.target, self.partial = target, target + PARTIAL
        self.fingerprint = fingerprint
        self.working = self.partial + ".flat" if staged else self.partial
        self.meter, self._check_inputs, self._resume = meter, check_inputs, resume
        self._pending: list[Record] = []
        self._unsynced, self._synced_at, self._tree_synced = 0, time.monotonic(), 0.0
        self.data: DiskFile | None = None
        self.size = 0
        self.journal = Journal(target + JOURNAL, fingerprint, resume=resume)
        try:
            lost = not (self.replacing or os.path.lexists(self.working))
            if lost or not self.journal.resumed:
                self._start_over()
        except BaseException:
            self.journal.abandon()
            raise

    def _start_over(self) -> None:
        """Remove the files that an earlier run has left, and no other files."""
        if self.journal.existed:
            self._warn()
            self._remove_parts()
        for path in self._parts():
            if os.path.lexists(path):
                raise FileExistsError(f"{path}: exists already and was not made by gatherum")
        self.journal.begin()

    def _warn(self) -> None:
        """Warn about the lost progress of an earlier run."""
        if (progress := self.journal.progress) and not self.journal.resumed:
            why = f"without {option('resume=True')}"
            why = "as no part of it fits this memory" if self._resume else why
            text = f"{self.partial}: an earlier run came to {progress}; this one starts over, {why}"
            warnings.warn(text, stacklevel=2)

    @property
    def replacing(self) -> bool:
        """Whether an earlier run stopped after its partial output was complete."""
        return self.journal.contains(READY)

    def write_to(self, data: DiskFile, size: int) -> None:
        """Write the output to the open file `data`, whose final size is `size` bytes."""
        self.data, self.size = data, size
        data.grow(size)

    def has_finished(self, record: Record) -> bool:
        """Return True if this run or an earlier one has finished the part of `record`."""
        return record in self._pending or self.journal.contains(record)

    def records(self) -> list[Record]:
        """Return the records of the finished parts."""
        return self.journal.records + self._pending

    def finish(self, record: Record, nbytes: int) -> None:
        """Report that a part of `nbytes` bytes has been written."""
        self._pending.append(record)
        self._unsynced += nbytes
        overdue = time.monotonic() - self._synced_at > SYNC_SECONDS
        if overdue or self._unsynced >= SYNC_BYTES:
            self.checkpoint()

    def checkpoint(self) -> None:
        """Force all parts to the disk, and record them."""
        self._check_inputs()
        if self._pending:
            self.sync()
            self.journal.add(*self._pending, {PERCENT: self.meter.percent})
        self._pending.clear()
        self._unsynced, self._synced_at = 0, time.monotonic()

    def sync(self) -> None:
        """Force the partial output to the disk."""
        if self.data is not None:
            self.data.sync()
        if not os.path.isdir(self.partial):
            return
        since, self._tree_synced = self._tree_synced - 2, time.time()
        for folder, _, files in os.walk(self.partial):
            for path in (os.path.join(folder, name) for name in files):
                if os.stat(path).st_mtime >= since:
                    sync_file(path)
            sync_directory(folder)

    def seal(self) -> None:
        """Record that the partial output is complete."""
        if self.replacing:
            return
        self._complete()
        self.journal.add(*self._pending, READY)
        self._pending.clear()

    def _complete(self) -> None:
        """Truncate the partial output to its final size, and force it to the disk."""
        if self.data is not None and 0 < self.size < self.data.size:
            # the truncated bytes are needed until the parts made from them are recorded
            self.checkpoint()
            self.data.resize(self.size)
        self.sync()
        self._check_inputs()

    def replace(self) -> None:
        """Replace the target with the complete partial output."""
        if self.data is not None and not os.path.isdir(self.partial):
            self._complete()  # a file is replaced in one step, so the journal needs no record of it
        else:
            self.seal()
        self._close_data()  # Windows can neither replace nor remove an open file
        with uninterrupted():
            if os.path.lexists(self.partial):
                replace_path(self.partial, self.target)
            sync_directory(os.path.dirname(self.target))
            self.remove_files()

    def remove_files(self) -> None:
        """Remove the journal and all partial files next to the output."""
        self._close_data()
        self._remove_parts()
        self.journal.remove()

    def _parts(self) -> tuple[str, ...]:
        return self.partial, self.partial + ".flat", self.target + ASIDE

    def _remove_parts(self) -> None:
        put_back(self.target)
        for path in self._parts():
            remove_path(path)

    def close(self) -> None:
        """Close the files, and keep them for a later resume."""
        self._close_data()
        self.journal.close()

    def _close_data(self) -> None:
        if self.data is not None:
            self.data.close()


def replace_path(partial: str, target: str) -> None:
    """Replace `target` with the file or directory `partial`. On failure, keep the old target."""
    if not os.path.isdir(partial):
        if os.path.exists(target):
            os.chmod(partial, stat.S_IMODE(os.stat(target).st_mode))
        os.replace(partial, target)
        return
    # a directory that is not empty cannot be replaced in one step: the old directory is renamed
    # first, and a run that is killed between the two steps is completed from the journal
    if os.path.lexists(target):
        remove_path(target + ASIDE)
        os.rename(target, target + ASIDE)
    try:
        os.rename(partial, target)
    except OSError:
        put_back(target)
        raise


def put_back(target: str) -> None:
    """Undo the renaming of a directory whose replacement failed."""
    if os.path.lexists(target + ASIDE) and not os.path.lexists(target):
        os.rename(target + ASIDE, target)


def remove_path(path: str) -> None:
    """Remove a file or a directory, if it exists."""
    if os.path.isdir(path) and not os.path.islink(path):
        try:
            shutil.rmtree(path)
        except OSError as error:
            if not os.path.isabs(error.filename):  # the name is in a subfolder
                error.filename = path
            raise
    elif os.path.lexists(path):
        os.unlink(path)
