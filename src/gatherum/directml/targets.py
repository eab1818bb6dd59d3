"""Check the paths of the files that a DxDispatch model writes."""

from __future__ import annotations

import os
from collections.abc import Iterable

from gatherum._system.regular_files import check_regular

from .members import shortened


def check_target(path: str, folder: str, inputs: Iterable[str], where: str) -> None:
    """Check that the file at a path may be written; ``where`` is the path in the model.

    Raise ValueError if the path is absolute, is outside of ``folder``, or is one of the files
    ``inputs``. Raise OSError if it exists and is not a regular file. Links are followed.
    """
    root = os.path.realpath(folder)
    target = "" if _is_absolute(path) else os.path.realpath(os.path.join(root, path))
    if not os.path.basename(path) or not target.startswith(os.path.join(root, "")):
        raise ValueError(
            f"`{where}` must be a relative path to a file in the output folder, "
            f"got {shortened(path)}"
        )
    if not os.path.lexists(target):
        return
    shown = os.path.join(folder, path)
    check_regular(shown, os.stat(target))
    if any(os.path.exists(path) and os.path.samefile(path, target) for path in inputs):
        raise ValueError(
            f"`{where}` must be no file that the run reads, the model or initial values, "
            f"got {shortened(path)}"
        )


def _is_absolute(path: str) -> bool:
    """Return True if a path is not relative to a folder, or has a null character."""
    return os.path.isabs(path) or bool(os.path.splitdrive(path)[0]) or "\0" in path
