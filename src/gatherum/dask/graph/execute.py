"""Compute tasks, and raise one error with one message if a cluster fails."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import Any

import dask

from gatherum.dask import errors as dask_errors


def at_once(tasks: Sequence[Any]) -> None:
    """Compute tasks immediately, with Dask's current scheduler."""
    with plain_failures():
        dask.compute(*tasks)


@contextmanager
def plain_failures() -> Iterator[None]:
    """Raise an error with one message if the cluster fails, not just a task."""
    try:
        yield
    except CancelledError as error:
        raise dask_errors.lost_scheduler() from error
    except Exception as error:
        if "distributed" not in sys.modules:
            raise
        from distributed.comm import CommClosedError
        from distributed.scheduler import KilledWorker

        if isinstance(error, KilledWorker):
            raise dask_errors.dead_workers(error.allowed_failures + 1) from error
        if isinstance(error, CommClosedError):
            raise dask_errors.lost_scheduler() from error
        raise
