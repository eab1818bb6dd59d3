"""Calls on files, made in a separate folder, by function or by command.

A call returns a result, or raises one of the documented exceptions in one line. Nothing is
unpickled.
"""

import contextlib
import io
import os
import pickle
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from gatherum import files
from gatherum._command import cli

ERRORS = (TypeError, ValueError, IndexError, OSError, MemoryError, ImportError)

TABLE = np.arange(12, dtype=np.float32).reshape(4, 3)
OPERANDS = {
    "gather": {"table": TABLE, "indices": np.array([2, 0])},
    "gather_elements": {"table": TABLE, "indices": np.array([[2, 0, 1]])},
    "gather_nd": {"table": TABLE, "indices": np.array([[2, 0], [1, 1]])},
    "scatter_nd": {
        "table": TABLE,
        "indices": np.array([[2], [0]]),
        "updates": np.ones((2, 3), np.float32),
    },
    "scatter_slices": {
        "table": TABLE,
        "indices": np.array([2, 0]),
        "updates": np.ones((2, 3), np.float32),
    },
    "scatter_elements": {
        "table": TABLE,
        "indices": np.array([[2, 0, 1]]),
        "updates": np.ones((1, 3), np.float32),
    },
}  # fmt: skip


def by_function(op: str, paths: dict[str, str], out: str, *, in_place: bool) -> str:
    """Call the function. Return a label for the result or the exception."""
    more = {"in_place": True} if in_place else {}
    try:
        getattr(files, f"{op}_file")(*paths.values(), out, memory="1MiB", **more)
    except ERRORS as error:
        assert str(error) and "\n" not in str(error), f"not one line: {error!r}"
        return type(error).__name__
    return "result"


def by_command(op: str, paths: dict[str, str], out: str) -> str:
    """Run the call on the command line. Return a label for the exit status."""
    texts = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(texts[0]), contextlib.redirect_stderr(texts[1]):
        status = cli.run(
            [op.replace("_", "-"), *paths.values(), "-o", out, "--memory", "1MiB", "--no-progress"]
        )
    lines = texts[1].getvalue().splitlines()
    if status == 0:
        assert lines == [], lines
        return "result"
    assert status == 1 and len(lines) == 1 and lines[0].startswith("gatherum: "), (status, lines)
    assert "internal error" not in lines[0], lines
    return "refused"


def contents(folder: Path) -> dict[str, bytes]:
    """Map each name in the folder to its bytes, or to its kind if it is not a file."""
    return {str(path.relative_to(folder)): _seen(path) for path in sorted(folder.rglob("*"))}


def _seen(path: Path) -> bytes:
    status = os.lstat(path)
    if stat.S_ISLNK(status.st_mode):
        return b"link to " + os.fsencode(os.readlink(path))
    if not stat.S_ISREG(status.st_mode):
        return stat.filemode(status.st_mode)[:1].encode()
    with path.open("rb") as file:
        return file.read(1 << 20) + b" of %d" % status.st_size


@contextlib.contextmanager
def own_folder() -> Iterator[Path]:
    """Make a folder that exists for one call."""
    fast = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(prefix="gatherum-fuzz-", dir=fast) as folder:
        yield Path(folder)


@contextlib.contextmanager
def no_pickle() -> Iterator[None]:
    """Fail if anything is unpickled."""

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("something was unpickled")

    kept = pickle.loads, pickle.load, pickle.Unpickler
    pickle.loads, pickle.load, pickle.Unpickler = refuse, refuse, refuse  # type: ignore
    try:
        yield
    finally:
        pickle.loads, pickle.load, pickle.Unpickler = kept  # type: ignore
