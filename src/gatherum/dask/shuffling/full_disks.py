"""Report a disk that is full during a shuffle, with one message in each stopped task."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

from gatherum.dask import errors as dask_errors
from gatherum.dask import private

__all__ = ["DiskError", "plain_disk_errors"]

# The errors of a full disk: no space left, or the user's quota or the file size limit exceeded.
_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class DiskError(RuntimeError):
    """Raised if a disk has no space for received rows. The scheduler would retry an OSError."""


_NO_DISK = re.escape(str(dask_errors.full_disk(OSError("?")))).replace(r"\?", ".*?")


@contextmanager
def plain_disk_errors() -> Iterator[None]:
    """Raise OSError with the same message in each task that stops because of a full disk."""
    try:
        yield
    except (OSError, RuntimeError) as error:
        for why in (error, error.__cause__):
            if match := re.search(_NO_DISK, str(why)):
                raise OSError(match[0]) from error
            if isinstance(why, private.P2POutOfDiskError) or getattr(why, "errno", None) in _DISK:
                raise dask_errors.full_disk(cast(OSError, why)) from error
        raise
