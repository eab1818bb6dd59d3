"""Calls on open files that differ between systems. Other modules are independent of the system.

Python has no positional reads and writes on Windows, so the core provides them. Windows locks bytes
instead of files, has no fsync of directories, and neither replaces nor removes an open file.
"""

from __future__ import annotations

import os
import sys

from gatherum._system import native
from gatherum._system.regular_files import naming

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

NO_LINK = getattr(os, "O_NOFOLLOW", 0)  # do not open symbolic links, if the system has this flag
LOCKED_BYTE = 1 << 30  # after the end of any journal: Windows cannot read a locked byte


def read_into(fd: int, buffer: memoryview, offset: int) -> int:
    """Read up to all of `buffer` from position `offset`. Return the number of bytes."""
    if sys.platform == "win32":
        return native.read_at(fd, buffer, offset)
    return os.preadv(fd, [buffer], offset)


def read_some(fd: int, length: int, offset: int) -> bytes:
    """Return up to `length` bytes from position `offset`, not beyond the file's end."""
    if sys.platform == "win32":
        buffer = bytearray(length)
        return bytes(buffer[: native.read_at(fd, buffer, offset)])
    return os.pread(fd, length, offset)


def write_some(fd: int, data: memoryview | bytes, offset: int) -> int:
    """Write at position `offset`. Return the number of bytes written."""
    if sys.platform == "win32":
        return native.write_at(fd, data, offset)
    return os.pwrite(fd, data, offset)


def lock(fd: int) -> None:
    """Lock an open file until it is closed. Raise BlockingIOError if another process locked it."""
    if sys.platform == "win32":
        before = os.lseek(fd, 0, os.SEEK_CUR)
        os.lseek(fd, LOCKED_BYTE, os.SEEK_SET)
        try:
            msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
        except PermissionError as error:
            raise BlockingIOError(*error.args) from None
        finally:
            os.lseek(fd, before, os.SEEK_SET)
    else:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)


def remove_locked(path: str, fd: int) -> None:
    """Remove and close a file that this process has locked."""
    if sys.platform == "win32":
        os.close(fd)
        os.unlink(path)
    else:
        try:
            os.unlink(path)  # while it is locked; later the file may belong to another run
        finally:
            os.close(fd)


def sync_file(path: str) -> None:
    """Force a closed file to the disk."""
    _sync(path, os.O_RDWR if sys.platform == "win32" else os.O_RDONLY)


def sync_directory(path: str) -> None:
    """Force a rename or a new name in directory `path` to the disk.

    Windows has no such operation.
    """
    if sys.platform != "win32":
        _sync(path or ".", os.O_RDONLY | os.O_DIRECTORY)


def _sync(path: str, flags: int) -> None:
    fd = os.open(path, flags)
    try:
        with naming(path):
            os.fsync(fd)
    finally:
        os.close(fd)


def peak_memory() -> int:
    """Return the largest resident set of this process so far, in bytes."""
    try:
        with open("/proc/self/status", "rb") as status:
            lines = [line.split() for line in status if line.startswith(b"VmHWM:")]
    except OSError:
        lines = []
    # on Linux the other number may belong to the parent process
    return int(lines[0][1]) * 1024 if lines else native.peak_memory()
