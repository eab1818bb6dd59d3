"""Connect a command to a running cluster, or start a local cluster."""

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

# A scheduler that does not answer within this time is treated as missing.
CONNECT_SECONDS = 10


@dataclass(frozen=True)
class Cluster:
    """A cluster, with a client that is connected to it."""

    client: Any

    @property
    def workers(self) -> int:
        """The number of workers."""
        count: int = len(self.client.ncores())
        return count

    @property
    def dashboard(self) -> str | None:
        """The URL of the dashboard, or None."""
        try:
            link: str | None = self.client.dashboard_link
        except KeyError:  # the scheduler has no dashboard
            return None
        return link

    def compute(self, tasks: Sequence[Any], *, shown: bool) -> None:
        """Compute tasks. If `shown`, Dask shows the progress of the tasks on standard error."""
        with plain_failures():
            futures = self.client.compute(list(tasks))
            if shown:
                with redirect_stdout(sys.stderr):
                    progress(futures, notebook=False)
            self.client.gather(futures)


@contextmanager
def local(workers: int) -> Iterator[Cluster]:
    """Start a cluster of processes on this machine, with one thread each."""
    cluster = LocalCluster(
        n_workers=workers, threads_per_worker=1, dashboard_address="127.0.0.1:0",
        silence_logs=logging.CRITICAL,
    )  # fmt: skip
    with cluster, Client(cluster) as client:
        yield Cluster(client)


@contextmanager
def connected(address: str) -> Iterator[Cluster]:
    """Connect to the cluster of the scheduler at an address.

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
    """Wait for an answer. A client would wait forever if a server connects but does not answer."""
    comm = await connect(address, timeout=CONNECT_SECONDS)
    await comm.close()
