"""Notes on tables. Each note names the last in-place run that completed.

A run that is killed after it removed its journal, but before it returned, is complete. Resuming it
must not apply the updates a second time. The note is an extended attribute of the file. It is valid
only if the table has not changed since that run. A run that cannot write its note fails before it
changes anything. Some file systems do not support extended attributes. On these file systems, a
resume that needs the note raises ValueError.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
from typing import Any

from gatherum._model.errors.audience import option
from gatherum.files.durable.journal import JOURNAL
from gatherum.files.resources.os_calls import sync_directory, sync_file

NAME = "user.gatherum.completed"
UNSUPPORTED = (errno.ENOTSUP, errno.ENOSYS, errno.EPERM)


def is_completed(op: str, path: str, fingerprint: dict[str, Any], *, resume: bool) -> bool:
    """Return True if the in-place run to resume has completed; call this first.

    Raise OSError if the note of completion could not be stored at the end of the run. Raise
    ValueError for a `resume` if nothing records whether the run has completed.
    """
    if os.path.lexists(path + JOURNAL):
        return False  # the journal records the progress of the run
    if resume and _is_marked(path, fingerprint):
        return True
    trial = NAME + ".trial"
    if _set(path, trial, _note(fingerprint, [])):
        os.removexattr(path, trial)
    elif resume:
        raise ValueError(
            f"{op}: cannot resume in place, {path} has no journal and its file system keeps no "
            "note of completed runs; unless the run has completed, start it without "
            f"{option('resume=True')}"
        )
    return False


def mark(path: str, fingerprint: dict[str, Any], state: list[Any]) -> None:
    """Attach a note to the table at `path`: the run with this fingerprint left it in `state`."""
    if _set(path, NAME, _note(fingerprint, state)):
        (sync_directory if os.path.isdir(path) else sync_file)(path)


def _is_marked(path: str, fingerprint: dict[str, Any]) -> bool:
    if not hasattr(os, "getxattr"):
        return False
    try:
        return os.getxattr(path, NAME) == _note(fingerprint, fingerprint["table_state"])
    except OSError as error:
        if error.errno not in (*UNSUPPORTED, errno.ENODATA):
            raise
        return False


def _set(path: str, name: str, value: bytes) -> bool:
    """Set an extended attribute of a file. Return False if the file system does not support it."""
    if not hasattr(os, "setxattr"):
        return False
    try:
        os.setxattr(path, name, value)
    except OSError as error:
        if error.errno in UNSUPPORTED:
            return False
        why = f"cannot keep a note of the run in an extended attribute: {error.strerror}"
        raise OSError(error.errno, why, path) from error
    return True


# Some entries, such as the budget and the name of the table, do not affect the result of a run.
_WITHOUT_EFFECT = ("table_state", "memory", "output", "table")


def _note(fingerprint: dict[str, Any], state: list[Any]) -> bytes:
    call = {key: value for key, value in fingerprint.items() if key not in _WITHOUT_EFFECT}
    table = {k: v for k, v in fingerprint.get("table", {}).items() if k != "path"}
    text = json.dumps([call, table, state], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest().encode()
