"""Open regular files and refuse everything else.

A FIFO, a socket or a device may block for ever, never end, or act when it is opened. So a path is
checked before it is opened, and what was opened is checked again: the path may lead elsewhere by
then.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

from gatherum._model import errors

# Opening does not wait and does not take a terminal; reading changes no byte.
_ALWAYS = sum(getattr(os, name, 0) for name in ("O_CLOEXEC", "O_NONBLOCK", "O_NOCTTY", "O_BINARY"))
_KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a character device",
    stat.S_IFBLK: "a block device",
}


def check_regular(path: str | os.PathLike[str], status: os.stat_result) -> None:
    """Raise OSError unless ``status`` is that of a regular file; ``path`` is only named.

    Pass ``os.stat(path)``, which follows links, or ``os.fstat`` of what was opened.
    """
    kind = stat.S_IFMT(status.st_mode)
    if kind != stat.S_IFREG:
        raise errors.not_a_regular_file(path, _KINDS.get(kind, "a special file"))


def open_regular(path: str | os.PathLike[str], flags: int = os.O_RDONLY, mode: int = 0o666) -> int:
    """Return a descriptor of a regular file, or raise OSError without waiting for anything.

    Links are followed. What is not a regular file is refused before it is opened. Python's ``open``
    takes this function as its ``opener``. With ``O_CREAT`` in ``flags`` the path may be missing.
    """
    try:
        check_regular(path, os.stat(path))
    except FileNotFoundError:
        if not flags & os.O_CREAT:
            raise
    descriptor = os.open(path, flags | _ALWAYS, mode)
    try:
        check_regular(path, os.fstat(descriptor))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


@contextmanager
def naming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Name the file in errors of its descriptor, which the system raises without a name."""
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename is None:
            error.filename = os.fspath(path)
        raise


def read_regular(path: str | os.PathLike[str], limit: int) -> bytes:
    """Return all bytes of a regular file, or raise OSError if there are more than ``limit``.

    No more than ``limit`` bytes and one are read, whatever size the file says it has.
    """
    with open(open_regular(path), "rb") as file, naming(path):
        if os.fstat(file.fileno()).st_size <= limit:
            content = file.read(limit + 1)
            if len(content) <= limit:
                return content
    raise errors.file_too_big(path, limit)
