"""Cache compiled kernels and sorters on disk.

The name of an entry is a digest of everything that determines its content. The content begins with
a digest of the code that follows. So a truncated or changed file is detected, and newly compiled
code replaces it. Entries are replaced atomically. If two processes compile the same entry, the last
one wins; both write the same bytes. If the folder cannot be read or written, kernels are compiled
in every process.
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
# Part of every file name, so that entries with a different layout have different names.
_LAYOUT = b"gatherum-kernels-1"
_DIGEST = hashlib.sha256
_DIGEST_BYTES = _DIGEST().digest_size
_LARGEST_BYTES = 1 << 28


def folder() -> Path | None:
    """Return the cache folder, or None for a user without a home directory.

    The folder is ``GATHERUM_CUDA_CACHE`` if that is set, and otherwise the user's cache directory.
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
    # The XDG specification ignores paths that are not absolute.
    root = Path(base).expanduser()
    return (root if root.is_absolute() else Path("~/.cache").expanduser()) / "gatherum" / "cuda"


def cached_code(
    inputs: Iterable[str], compile_: Callable[[], bytes], suffix: str = ".cubin"
) -> bytes:
    """Return the result of `compile_`, from disk if it is cached.

    `inputs` is everything that the result depends on: source, options, architecture, compiler.
    """
    if (cache := folder()) is None:
        return compile_()
    path = cache / f"{_file_name(inputs)}{suffix}"
    if (code := _read(path)) is None:
        code = compile_()
        _write(path, code)
    return code


def _file_name(inputs: Iterable[str]) -> str:
    digest = _DIGEST(_LAYOUT)
    for text in inputs:
        encoded = text.encode()
        digest.update(len(encoded).to_bytes(8, "little") + encoded)
    return digest.hexdigest()


def _read(path: Path) -> bytes | None:
    """Return the code of an entry, or None if the entry is missing or corrupt."""
    try:
        content = read_regular(path, _LARGEST_BYTES)
    except OSError:
        return None
    code = content[_DIGEST_BYTES:]
    return code if code and content[:_DIGEST_BYTES] == _DIGEST(code).digest() else None


def _write(path: Path, code: bytes) -> None:
    """Write an entry atomically. Do nothing if the folder is not writable."""
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
