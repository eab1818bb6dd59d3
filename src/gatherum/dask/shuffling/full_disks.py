"""A full disk in a shuffle becomes one message in each task that it stops."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

from gatherum.dask import errors as dask_errors
from gatherum.dask import private

__all__ = ["DiskError", "plain_disk_errors"]

# Errors of a disk that is full: at all, for this user, for one file.
_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class DiskError(RuntimeError):
    """A disk does not take what a worker receives. The scheduler asks again after an OSError."""


_NO_DISK = re.escape(str(dask_errors.full_disk(OSError("?")))).replace(r"\?", ".*?")


@contextmanager
def plain_disk_errors() -> Iterator[None]:
    """Raise OSError with one message in each of the tasks that a full disk stops."""
    try:
        yield
    except (OSError, RuntimeError) as error:
        for why in (error, error.__cause__):
            if found := re.search(_NO_DISK, str(why)):
                raise OSError(found[0]) from error
            if isinstance(why, private.P2POutOfDiskError) or getattr(why, "errno", None) in _DISK:
                raise dask_errors.full_disk(cast(OSError, why)) from error
        raise
