"""A note on a table that says which in-place run was the last to complete.

A run that is killed after its journal is gone, but before it could say so, is complete. Resuming it
must not apply the updates a second time. The note is an extended attribute of the file and holds
for the table exactly as that run left it; where the file system keeps no such attributes there is
no note.
"""

import errno
import hashlib
import json
import os
from typing import Any

__all__ = ["is_marked", "mark"]

NAME = "user.gatherum.completed"
UNSUPPORTED = (errno.ENOTSUP, errno.ENODATA, errno.EPERM, errno.ENOSPC)


def mark(path: str, fingerprint: dict[str, Any], state: list[Any]) -> None:
    """Note on the table at `path` that the run with this fingerprint left it in `state`."""
    if not hasattr(os, "setxattr"):
        return
    try:
        os.setxattr(path, NAME, _note(fingerprint, state))
    except OSError as error:
        if error.errno not in UNSUPPORTED:
            raise


def is_marked(path: str, fingerprint: dict[str, Any], state: list[Any]) -> bool:
    """Whether the run with this fingerprint completed, and the table is as it left it."""
    if not hasattr(os, "getxattr"):
        return False
    try:
        return os.getxattr(path, NAME) == _note(fingerprint, state)
    except OSError as error:
        if error.errno not in UNSUPPORTED:
            raise
        return False


def _note(fingerprint: dict[str, Any], state: list[Any]) -> bytes:
    call = {key: value for key, value in fingerprint.items() if key != "table_state"}
    text = json.dumps([call, state], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest().encode()
