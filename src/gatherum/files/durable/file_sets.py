"""Write small outputs completely: files from memory, and folders of new files.

Each output is written under a new name in its folder, forced to the disk, and renamed. If a call
fails, it removes its temporary files and leaves the old files unchanged.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress

from gatherum._system.regular_files import check_regular, open_regular
from gatherum.files.durable.interrupt import uninterrupted
from gatherum.files.resources.os_calls import NO_LINK, sync_directory, sync_file

NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_LINK
PREFIX, SUFFIX = ".gatherum-", ".partial"  # of names in an incomplete folder


def write_files(contents: Mapping[str, bytes]) -> None:
    """Write several files. Either all of them appear, or none.

    Create missing folders. Links are followed, and the files to which they lead are replaced. Raise
    OSError with the name of the file if a file cannot be written or is not a regular file.
    """
    with ExitStack() as undo:
        staged = {}
        for path, content in contents.items():
            target = os.path.realpath(path)
            with _naming(path):
                staged[path] = _staged(path, target, content, undo), target
        with uninterrupted():
            aside = []
            for path, (partial, target) in staged.items():
                with _naming(path):
                    if len(staged) > 1 and os.path.lexists(target):
                        aside.append(_kept(target, undo))
                    os.replace(partial, target)
                    if len(staged) > 1:
                        undo.callback(_unlink, target)
            undo.pop_all()
            for path in aside:
                _unlink(path)
            for folder in {os.path.dirname(target) for _, target in staged.values()}:
                sync_directory(folder)


def _staged(path: str, target: str, content: bytes, undo: ExitStack) -> str:
    """Write the content of a target to a new file in its folder. Return the new path."""
    mode = None
    if os.path.lexists(target):
        status = os.stat(target)
        check_regular(path, status)
        mode = stat.S_IMODE(status.st_mode)
    _make_folders(os.path.dirname(target), undo)
    partial = _new_name(os.path.dirname(target))
    descriptor = open_regular(partial, NEW)
    undo.callback(_unlink, partial)
    with open(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(descriptor)
    if mode is not None:
        os.chmod(partial, mode)
    return partial


def _kept(target: str, undo: ExitStack) -> str:
    """Create a second name for a file, from which the undo stack restores it. Return the name."""
    if os.path.isdir(target):  # the name was created meanwhile for another of the files
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), target)
    aside = _new_name(os.path.dirname(target))
    try:
        os.link(target, aside)
    except OSError:  # a file system without hard links
        os.rename(target, aside)
    undo.callback(_put_back, aside, target)
    return aside


def _put_back(aside: str, target: str) -> None:
    os.replace(aside, target)
    _unlink(aside)  # if both are names of one file, os.replace does nothing


@contextmanager
def written_folder(path: str) -> Iterator[str]:
    """Yield a new folder. When the block ends, its content becomes the content of `path`.

    If the block fails, `path` does not change. Raise FileExistsError if `path` is neither missing
    nor an empty folder. An OSError names the file by its path in `path`.
    """
    target = os.path.realpath(path)
    with ExitStack() as undo:
        with _naming(path):
            exists = os.path.lexists(target)
            if exists and not all(map(_is_partial, os.listdir(target))):
                raise FileExistsError(
                    f"{path}: must be empty, so that no case of another run stays"
                )
            parent = target if exists else os.path.dirname(target)
            _make_folders(parent, undo)
            staging = _new_name(parent)
            os.mkdir(staging)
            undo.callback(shutil.rmtree, staging, ignore_errors=True)
        with _naming(path, staging):
            yield staging
            for folder, _, names in os.walk(staging):
                for name in names:
                    sync_file(os.path.join(folder, name))
                sync_directory(folder)
        with uninterrupted(), _naming(path):
            if exists:
                _move_content(staging, target, undo)
            else:
                os.rename(staging, target)
            undo.pop_all()
            sync_directory(parent)


def _move_content(staging: str, target: str, undo: ExitStack) -> None:
    """Move the content of a folder into an empty one, and remove the folder."""
    for name in sorted(os.listdir(staging)):
        source, destination = os.path.join(staging, name), os.path.join(target, name)
        if os.path.lexists(destination):
            raise FileExistsError(f"{destination}: another process has made it meanwhile")
        os.rename(source, destination)
        undo.callback(os.rename, destination, source)
    os.rmdir(staging)


def _is_partial(name: str) -> bool:
    """Return True if a killed run has left the folder of this name."""
    return name.startswith(PREFIX) and name.endswith(SUFFIX)


def _new_name(folder: str) -> str:
    return os.path.join(folder, f"{PREFIX}{secrets.token_hex(8)}{SUFFIX}")


def _make_folders(path: str, undo: ExitStack) -> None:
    """Create the missing folders of a path."""
    if os.path.lexists(path) and not os.path.isdir(path):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
    if not os.path.isdir(path):
        _make_folders(os.path.dirname(path), undo)
        os.mkdir(path)
        undo.callback(_remove_folder, path)


def _unlink(path: str) -> None:
    with suppress(OSError):
        os.unlink(path)


def _remove_folder(path: str) -> None:
    with suppress(OSError):  # another process has put a file there
        os.rmdir(path)


@contextmanager
def _naming(path: str, staging: str | None = None) -> Iterator[None]:
    """Let OSErrors name the file that is written, or its path in a folder."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        name = error.filename
        if staging is not None and isinstance(name, str) and name.startswith(staging):
            path = os.path.join(path, name[len(staging) :].lstrip(os.sep))
        raise OSError(error.errno, error.strerror, path) from error
