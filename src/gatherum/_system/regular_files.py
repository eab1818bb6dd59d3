"""Open regular files only.

Opening a FIFO, a socket or a device may block forever or have side effects, and reading from it may
never end. Therefore a path is checked before it is opened, and the descriptor is checked
afterwards, because the path may have changed in between.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

from gatherum._model import errors

# With these flags, opening neither waits nor acquires a terminal, and reading does not convert
# bytes.
_ALWAYS = sum(getattr(os, name, 0) for name in ("O_CLOEXEC", "O_NONBLOCK", "O_NOCTTY", "O_BINARY"))
_FILE_TYPES = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a character device",
    stat.S_IFBLK: "a block device",
}


def check_regular(path: str | os.PathLike[str], status: os.stat_result) -> None:
    """Raise OSError unless ``status`` describes a regular file; ``path`` is only for the message.

    Pass ``os.stat(path)``, which follows links, or ``os.fstat`` of the descriptor.
    """
    file_type = stat.S_IFMT(status.st_mode)
    if file_type != stat.S_IFREG:
        raise errors.not_a_regular_file(path, _FILE_TYPES.get(file_type, "a special file"))


def check_folder(path: str | os.PathLike[str]) -> None:
    """Raise FileNotFoundError if the folder of a new file does not exist."""
    folder = os.path.dirname(os.path.realpath(path))
    if not os.path.lexists(folder):
        raise errors.missing_folder(path, folder)


def open_regular(path: str | os.PathLike[str], flags: int = os.O_RDONLY, mode: int = 0o666) -> int:
    """Return a descriptor of a regular file, or raise OSError without waiting.

    Links are followed. A file that is not regular raises OSError before it is opened. The function
    can be the ``opener`` of Python's ``open``. With ``O_CREAT`` in ``flags`` the path may be
    missing.
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
    """Add the file name to errors of operations on a descriptor.

    The system raises these errors without a file name.
    """
    try:
        yield
    except OSError as error:
        if error.errno is not None and error.filename is None:
            error.filename = os.fspath(path)
        raise


def read_regular(path: str | os.PathLike[str], limit: int) -> bytes:
    """Return all bytes of a regular file, or raise OSError if there are more than ``limit``.

    At most ``limit`` + 1 bytes are read, even if the file reports another size.
    """
    with open(open_regular(path), "rb") as file, naming(path):
        if os.fstat(file.fileno()).st_size <= limit:
            content = file.read(limit + 1)
            if len(content) <= limit:
                return content
    raise errors.file_too_big(path, limit)
