"""Systems differ in their calls on open files; `files` asks for the system only here.

Python has no reads and writes at positions on Windows, so the core has them. Windows locks bytes,
not files, has no fsync of directories, and neither replaces nor removes an open file.
"""

import os
import sys

from gatherum._system import native
from gatherum._system.regular_files import naming

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

__all__ = [
    "NO_LINK", "lock", "peak_memory", "read_into", "read_some", "remove_locked", "sync_directory",
    "sync_file", "write_some",
]  # fmt: skip

NO_LINK = getattr(os, "O_NOFOLLOW", 0)  # opens no symbolic link, where the system has the flag
LOCKED_BYTE = 1 << 30  # behind the end of every journal: a locked byte of Windows cannot be read


def read_into(fd: int, buffer: memoryview, offset: int) -> int:
    """Read up to all of `buffer` from position `offset`; return how many bytes came."""
    if sys.platform == "win32":
        return native.read_at(fd, buffer, offset)
    return os.preadv(fd, [buffer], offset)


def read_some(fd: int, length: int, offset: int) -> bytes:
    """Return up to `length` bytes from position `offset`, none behind the file's end."""
    if sys.platform == "win32":
        buffer = bytearray(length)
        return bytes(buffer[: native.read_at(fd, buffer, offset)])
    return os.pread(fd, length, offset)


def write_some(fd: int, data: memoryview | bytes, offset: int) -> int:
    """Write at position `offset`; return how many bytes were taken."""
    if sys.platform == "win32":
        return native.write_at(fd, data, offset)
    return os.pwrite(fd, data, offset)


def lock(fd: int) -> None:
    """Lock an open file until it is closed, or raise BlockingIOError where another process has."""
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
            os.unlink(path)  # while it is locked: or it could be the next run's already
        finally:
            os.close(fd)


def sync_file(path: str) -> None:
    """Force a closed file to the disk."""
    _sync(path, os.O_RDWR if sys.platform == "win32" else os.O_RDONLY)


def sync_directory(path: str) -> None:
    """Return once a rename or a new name in directory `path` is on the disk.

    Windows cannot be asked for that.
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
    # on Linux the other number may be that of the process that forked
    return int(lines[0][1]) * 1024 if lines else native.peak_memory()
