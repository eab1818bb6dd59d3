"""A note on a table says which in-place run was the last to complete.

A run that is killed after it removed its journal, but before it returned, is complete. Resuming it
must not apply the updates a second time. The note is an extended attribute of the file and holds
for the table exactly as that run left it. A run that cannot write its note fails before it changes
anything. On file systems without such attributes there is no note, and a resume that would need it
is refused.
"""

import errno
import hashlib
import json
import os
from typing import Any

from gatherum._model.audience import option
from gatherum.files.resources.os_calls import sync_directory, sync_file

__all__ = ["is_completed", "mark"]

NAME = "user.gatherum.completed"
UNSUPPORTED = (errno.ENOTSUP, errno.ENOSYS, errno.EPERM)


def is_completed(op: str, path: str, fingerprint: dict[str, Any], *, resume: bool) -> bool:
    """Whether the in-place run that is to be resumed has completed; call it before anything else.

    OSError where the note that says so at the end of the run could not be kept, ValueError where
    `resume` is asked for, and nothing says whether the run has completed.
    """
    if os.path.lexists(path + ".partial.journal"):
        return False  # the journal says how far the run came
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
    """Note on the table at `path` that the run with this fingerprint left it in `state`."""
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
    """Set an attribute of a file; return whether its file system has attributes."""
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


# These do not change the outcome of a run: the budget, and the name of the table.
_WITHOUT_EFFECT = ("table_state", "memory", "output", "table")


def _note(fingerprint: dict[str, Any], state: list[Any]) -> bytes:
    call = {key: value for key, value in fingerprint.items() if key not in _WITHOUT_EFFECT}
    table = {k: v for k, v in fingerprint.get("table", {}).items() if k != "path"}
    text = json.dumps([call, table, state], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest().encode()
