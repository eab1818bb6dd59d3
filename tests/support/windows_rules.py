"""Imposes Windows' rules for files on a process of another system.

    PYTHONPATH=tests/support python -m pytest -p windows_rules tests/files

Modules and functions that Windows lacks are removed. An open file can be neither replaced nor
removed, a folder cannot be opened, and a file that is open only for reading cannot be forced to the
disk. The branches of `gatherum.files.resources.os_calls` for Windows run, on a double of `msvcrt`.
"""

import errno
import fcntl
import importlib
import os
import shutil
import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

# Modules that need such modules or flags are imported before their removal.
EARLIER = (
    "asyncio", "concurrent.futures", "multiprocessing.pool", "subprocess", "tempfile", "uuid",
    "numpy.testing", "_pytest.capture", "hypothesis", "zarr", "h5py", "rich.console", "onnx",
)  # fmt: skip

MODULES = ("fcntl", "resource", "pwd", "grp", "termios", "pty", "tty")
FUNCTIONS = (
    "pread", "preadv", "pwrite", "pwritev", "posix_fadvise", "setxattr", "getxattr", "fork",
    "sched_getaffinity", "mkfifo", "register_at_fork", "sysconf",
)  # fmt: skip
FLAGS = ("O_NOFOLLOW", "O_DIRECTORY", "O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "RWF_NOWAIT")
LOCKED: list[tuple[int, int]] = []  # descriptors that requested a lock, and at which position


def impose() -> None:
    """Apply those rules to this process permanently."""
    for name in EARLIER:
        importlib.import_module(name)
    for name in MODULES:
        sys.modules[name] = None  # type: ignore[assignment]  # importing it raises ImportError
    for name in (*FUNCTIONS, *FLAGS):
        if hasattr(os, name):
            delattr(os, name)
    shutil._use_fd_functions = False  # type: ignore[attr-defined]
    _guard("unlink", _refuse_open)
    _guard("remove", _refuse_open)
    _guard("rmdir", _refuse_open)
    _guard("rename", _refuse_open)
    _guard("replace", _refuse_open)
    _guard("fsync", _refuse_read_only)
    _guard("open", _refuse_folder)
    _import_system()


def _guard(name: str, check: Callable[..., None]) -> None:
    call = getattr(os, name)

    def checked(*arguments: Any, **extra: Any) -> Any:
        check(*arguments)
        return call(*arguments, **extra)

    setattr(os, name, checked)


def _refuse_open(*paths: Any) -> None:
    if sys._getframe(2).f_globals["__name__"] == "tempfile":
        return  # Windows removes a temporary file when it is closed for the last time
    for path in paths:
        if isinstance(path, (str, os.PathLike)) and (names := _open_within(os.path.realpath(path))):
            raise PermissionError(errno.EACCES, f"in use: {names[0]}", os.fspath(path))


def _open_within(path: str) -> list[str]:
    """Return the open files of this process that are at `path` or in that folder."""
    opened = []
    for descriptor in os.listdir("/proc/self/fd"):
        try:
            name = os.readlink(f"/proc/self/fd/{descriptor}")
        except OSError:  # the listing's own descriptor
            continue
        if name == path or name.startswith(path + os.sep):
            opened.append(name)
    return opened


def _refuse_read_only(descriptor: int) -> None:
    if fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))


def _refuse_folder(path: Any, *arguments: Any) -> None:
    if os.path.isdir(path):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)


def _locking(descriptor: int, mode: int, nbytes: int) -> None:
    """Lock bytes at a file's position: another descriptor can neither lock nor read them."""
    LOCKED.append((descriptor, os.lseek(descriptor, 0, os.SEEK_CUR)))
    assert mode == 2 and nbytes == 1
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES)) from None


def _import_system() -> None:
    """Import the one module that checks the system, with the system's name replaced."""
    sys.modules["msvcrt"] = ModuleType("msvcrt")
    vars(sys.modules["msvcrt"]).update(locking=_locking, LK_NBLCK=2)
    before, sys.platform = sys.platform, "win32"
    try:
        from gatherum.files.resources import os_calls
    finally:
        sys.platform = before
    vars(os_calls)["sys"] = SimpleNamespace(platform="win32")


impose()
