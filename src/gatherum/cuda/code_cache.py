"""Compiled kernels and sorters kept on disk, by what they were compiled from.

An entry's name is a digest of all that decides its content. It begins with a digest of what
follows, so a torn or changed file is noticed, compiled anew and replaced. Entries are replaced
whole: of two processes that compile the same, the last one wins, and both have the same bytes.
A folder that cannot be read or written only costs time.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from gatherum._system.regular_files import read_regular

VARIABLE = "GATHERUM_CUDA_CACHE"
# Entries of another layout have other names.
_LAYOUT = b"gatherum-kernels-1"
_DIGEST = hashlib.sha256
_DIGEST_BYTES = _DIGEST().digest_size
_LARGEST = 1 << 28


def folder() -> Path | None:
    """Return where compiled kernels are kept: ``GATHERUM_CUDA_CACHE``, or the user's cache; None
    for a user without a home.
    """
    try:
        return _folder()
    except RuntimeError:  # from expanduser
        return None


def _folder() -> Path:
    if named := os.environ.get(VARIABLE, "").strip():
        return Path(named).expanduser()
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA", "")
    elif sys.platform == "darwin":
        base = "~/Library/Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG specification: what is not absolute counts as unset.
    root = Path(base).expanduser()
    return (root if root.is_absolute() else Path("~/.cache").expanduser()) / "gatherum" / "cuda"


def cached_code(
    parts: Iterable[str], compile_: Callable[[], bytes], suffix: str = ".cubin"
) -> bytes:
    """Return what `compile_` returns, from disk where it is there.

    `parts` are all that it depends on: the source, the options, the architecture, the compiler.
    """
    if (where := folder()) is None:
        return compile_()
    path = where / f"{_name(parts)}{suffix}"
    if (code := _read(path)) is None:
        code = compile_()
        _write(path, code)
    return code


def _name(parts: Iterable[str]) -> str:
    digest = _DIGEST(_LAYOUT)
    for part in parts:
        data = part.encode()
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()


def _read(path: Path) -> bytes | None:
    """Return the code of an entry, None where there is none, or no sound one."""
    try:
        content = read_regular(path, _LARGEST)
    except OSError:
        return None
    code = content[_DIGEST_BYTES:]
    return code if code and content[:_DIGEST_BYTES] == _DIGEST(code).digest() else None


def _write(path: Path, code: bytes) -> None:
    """Put an entry in its place, all at once; where that is impossible, leave it."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file, temporary = tempfile.mkstemp(dir=path.parent, prefix=".new-")
        try:
            with os.fdopen(file, "wb") as stream:
                stream.write(_DIGEST(code).digest() + code)
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
