"""A command connects to a running cluster, or starts processes for one."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from typing import Any

from distributed import Client, LocalCluster, progress
from distributed.core import connect

from gatherum.dask import errors as dask_errors
from gatherum.dask.graph.execute import plain_failures

# A scheduler that does not answer within this time counts as missing.
CONNECT_SECONDS = 10


@dataclass(frozen=True)
class Cluster:
    """A cluster, by the client that is connected to it."""

    client: Any

    @property
    def workers(self) -> int:
        """How many workers it has."""
        number: int = len(self.client.ncores())
        return number

    @property
    def dashboard(self) -> str | None:
        """Where its dashboard is, if it has one."""
        try:
            link: str | None = self.client.dashboard_link
        except KeyError:  # the scheduler was started without
            return None
        return link

    def compute(self, tasks: Sequence[Any], *, shown: bool) -> None:
        """Compute tasks; while they run, Dask shows on standard error how far it is."""
        with plain_failures():
            futures = self.client.compute(list(tasks))
            if shown:
                with redirect_stdout(sys.stderr):
                    progress(futures, notebook=False)
            self.client.gather(futures)


@contextmanager
def local(workers: int) -> Iterator[Cluster]:
    """Start a cluster of processes on this machine, with one thread each."""
    made = LocalCluster(
        n_workers=workers, threads_per_worker=1, dashboard_address="127.0.0.1:0",
        silence_logs=logging.CRITICAL,
    )  # fmt: skip
    with made, Client(made) as client:
        yield Cluster(client)


@contextmanager
def connected(address: str) -> Iterator[Cluster]:
    """Connect to the cluster of a scheduler.

    Raises
    ------
    ConnectionError
        No scheduler answers at this address, or it has no workers.
    """
    for handler in logging.getLogger("distributed").handlers:  # as a LocalCluster does
        handler.setLevel(logging.CRITICAL)
    try:
        asyncio.run(asyncio.wait_for(_answer(address), CONNECT_SECONDS))
        client = Client(address, timeout=CONNECT_SECONDS)
    except (OSError, ValueError) as error:
        raise dask_errors.no_scheduler(address, CONNECT_SECONDS, error) from error
    with client:
        try:
            client.wait_for_workers(1, timeout=CONNECT_SECONDS)
        except TimeoutError:
            raise dask_errors.no_workers(address) from None
        yield Cluster(client)


async def _answer(address: str) -> None:
    """Wait for an answer: a client would wait forever for one that connects but is silent."""
    comm = await connect(address, timeout=CONNECT_SECONDS)
    await comm.close()
