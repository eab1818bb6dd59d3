"""A build makes an output in a `.partial` file with a journal, then replaces the target."""

import os
import shutil
import stat
import time
import warnings
from collections.abc import Callable

from gatherum._model.audience import option
from gatherum.files.durable.interrupt import uninterrupted
from gatherum.files.durable.journal import PERCENT, READY, Journal, Record
from gatherum.files.resources.disk import DiskFile
from gatherum.files.resources.os_calls import NO_LINK, sync_directory, sync_file
from gatherum.files.resources.stats import Meter

__all__ = ["CREATE", "Build", "MemoryBuild", "remove_path", "replace_path"]

CREATE = os.O_RDWR | os.O_CREAT | NO_LINK
SYNC_BYTES = 512 << 20
SYNC_SECONDS = 10.0
ASIDE = ".partial.old"


class Build:
    """Makes the file or directory `target` beside it, and puts it in place when it is complete.

    Parts are reported by `finish` once written. Every so often they are forced to the disk and
    only then recorded, so that a recorded part is never lost, and repeating one that was not
    recorded does no harm: every part is computed from the inputs alone.

    `target` is an absolute path without symbolic links, and `fingerprint` what it is made from, for
    the journal. `resume`: go on where a killed run stopped. `check_inputs` raises OSError when an
    input changed since it was opened. `staged`: rows are laid out in a flat file first, from which
    the output is made.
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
        self.target, self.partial = target, target + ".partial"
        self.working = self.partial + ".flat" if staged else self.partial
        self.meter, self._check_inputs, self._resume = meter, check_inputs, resume
        self._pending: list[Record] = []
        self._unsynced, self._synced_at, self._tree_synced = 0, time.monotonic(), 0.0
        self.data: DiskFile | None = None
        self.size = 0
        self.journal = Journal(self.partial + ".journal", fingerprint, resume=resume)
        try:
            lost = not (self.replacing or os.path.lexists(self.working))
            if lost or not self.journal.resumed:
                self._start_over()
        except BaseException:
            self.journal.give_up()
            raise

    def _start_over(self) -> None:
        """Remove an earlier run's files, and only those known to be its own."""
        if self.journal.found:
            self._warn()
            self._remove_parts()
        for path in self._parts():
            if os.path.lexists(path):
                raise FileExistsError(f"{path}: exists already and was not made by gatherum")
        self.journal.begin()

    def _warn(self) -> None:
        """Say what is lost of an earlier run."""
        if (came := self.journal.progress) and not self.journal.resumed:
            why = f"without {option('resume=True')}"
            why = "as no part of it fits this memory" if self._resume else why
            text = f"{self.partial}: an earlier run came to {came}; this one starts over, {why}"
            warnings.warn(text, stacklevel=2)

    @property
    def replacing(self) -> bool:
        """Whether the partial output was complete when an earlier run stopped."""
        return self.journal.has(READY)

    def use(self, data: DiskFile, size: int) -> None:
        """Build in the open file `data`, which is `size` bytes long in the end."""
        self.data, self.size = data, size
        data.grow(size)

    def has(self, record: Record) -> bool:
        """Whether the part that `record` names is finished, in this run or an earlier one."""
        return record in self._pending or self.journal.has(record)

    def records(self) -> list[Record]:
        """Return the records of the finished parts."""
        return self.journal.records + self._pending

    def finish(self, record: Record, nbytes: int) -> None:
        """Note that a part of `nbytes` is written."""
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
        """Force the whole partial output to the disk, without what lies behind its end."""
        if self.data is not None and 0 < self.size < self.data.size:
            # what is cut off is needed until the parts made from it are recorded
            self.checkpoint()
            self.data.resize(self.size)
        self.sync()
        self._check_inputs()

    def replace(self) -> None:
        """Put the complete partial output in the place of the target."""
        if self.data is not None and not os.path.isdir(self.partial):
            self._complete()  # a file is replaced in one step, so no record of progress is needed
        else:
            self.seal()
        self._close_data()  # or Windows neither replaces nor removes it
        with uninterrupted():
            if os.path.lexists(self.partial):
                replace_path(self.partial, self.target)
            sync_directory(os.path.dirname(self.target))
            self.clear()

    def clear(self) -> None:
        """Remove the journal and all partial files beside the output."""
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
        """Close the files and keep them for a later resume."""
        self._close_data()
        self.journal.close()

    def _close_data(self) -> None:
        if self.data is not None:
            self.data.close()


class MemoryBuild(Build):
    """An output that disappears with the process: nothing is recorded."""

    def __init__(self, meter: Meter) -> None:
        self.meter = meter

    @property
    def replacing(self) -> bool:
        """Whether the output was complete when an earlier run stopped."""
        return False

    def has(self, record: Record) -> bool:
        """Whether a part is finished: no earlier run has left one."""
        return False

    def records(self) -> list[Record]:
        """Return the records of the finished parts."""
        return []

    def finish(self, record: Record, nbytes: int) -> None:
        """Note that a part is written."""


def replace_path(partial: str, target: str) -> None:
    """Put a file or directory in the place of another of the same name, or leave that as it is."""
    if not os.path.isdir(partial):
        if os.path.exists(target):
            os.chmod(partial, stat.S_IMODE(os.stat(target).st_mode))
        os.replace(partial, target)
        return
    # a directory with files in it cannot be replaced in one step: the old one is renamed first,
    # and a run that is killed between the two steps is completed from the journal
    if os.path.lexists(target):
        remove_path(target + ASIDE)
        os.rename(target, target + ASIDE)
    try:
        os.rename(partial, target)
    except OSError:
        put_back(target)
        raise


def put_back(target: str) -> None:
    """Rename a directory back that was renamed for a replacement that was not made."""
    if os.path.lexists(target + ASIDE) and not os.path.lexists(target):
        os.rename(target + ASIDE, target)


def remove_path(path: str) -> None:
    """Remove a file or a directory, if there is one."""
    if os.path.isdir(path) and not os.path.islink(path):
        try:
            shutil.rmtree(path)
        except OSError as error:
            if not os.path.isabs(error.filename):  # a name in one of the folders below
                error.filename = path
            raise
    elif os.path.lexists(path):
        os.unlink(path)
