"""Rows moved from worker to worker by distributed's P2P machinery, through disks.

Every task that sends hands its rows over and is done; after a barrier, every task that receives
reads its rows from its own disk. A task holds its own chunk, whatever the rest weighs. What is not
public in distributed is used here alone, and only in the versions that `versions` lists.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np
from dask import config
from dask.task_spec import List
from distributed.shuffle._core import (
    P2PBarrierTask,
    ShuffleId,
    ShuffleSpec,
    barrier_key,
    get_worker_plugin,
    handle_transfer_errors,
    handle_unpack_errors,
    p2p_barrier,
)
from distributed.shuffle._exceptions import DataUnavailable, P2POutOfDiskError
from distributed.shuffle._rechunk import ArrayRechunkRun

from .. import errors
from ..dtypes import DType
from ..errors import Shape
from ..signature import Array
from . import work
from .call import Call
from .entries import Part, Route
from .tasks import Ref, Tasks


class Shard(NamedTuple):
    """Arrays on their way, as bytes: distributed asks for buffers and integers."""

    sender: int
    item: int
    rows: Array
    shape: Shape
    values: Array


def packed(sender: int, rows: Array, values: Array) -> Shard:
    """Return a shard of rows' numbers and of their values."""
    return Shard(sender, rows.dtype.itemsize, _bytes(rows), values.shape, _bytes(values))


def _bytes(array: Array) -> Array:
    """Return the bytes of an array; what is sent keeps nothing else alive."""
    if array.base is None and array.flags.c_contiguous and array.nbytes:
        return array.reshape(-1).view(np.uint8)
    return np.frombuffer(array.tobytes(), np.uint8)


def unpacked(shard: Shard, dtype: DType) -> tuple[Array, Array]:
    """Return the rows' numbers and the values of a shard, in the memory that holds it."""
    values = np.asarray(shard.values).view(np.uint8)
    return (
        np.asarray(shard.rows).view(f"u{shard.item}"),
        np.ndarray(shard.shape, dtype, buffer=values),
    )


# What a disk says that has no room: at all, for this user, in one file.
_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class DiskError(RuntimeError):
    """A disk does not take what a worker receives. The scheduler asks again after an OSError."""


_NO_DISK = re.escape(str(errors.full_disk(OSError("?")))).replace(r"\?", ".*?")


@contextmanager
def plain_disk_errors() -> Iterator[None]:
    """Raise OSError with one sentence in each of the tasks that a full disk stops."""
    try:
        yield
    except (OSError, RuntimeError) as error:
        for why in (error, error.__cause__):
            if found := re.search(_NO_DISK, str(why)):
                raise OSError(found[0]) from error
            if isinstance(why, P2POutOfDiskError) or getattr(why, "errno", None) in _DISK:
                raise errors.full_disk(cast(OSError, why)) from error
        raise


class RowsRun(ArrayRechunkRun):  # type: ignore[misc]  # distributed is not seen by type checkers
    """One run on one worker; everything but what is in a shard is as in rechunking."""

    async def _receive(self, data: Any) -> None:
        try:
            await super()._receive(data)
        except OSError as error:
            raise DiskError(str(errors.full_disk(error))) from error

    def _shard_partition(self, data: Any, partition_id: Any) -> dict[str, Any]:
        found: dict[str, list[Any]] = {}
        for receiver, shard in data:
            found.setdefault(self.worker_for[(receiver,)], []).append(((receiver,), shard))
        return {worker: (partition_id, shards) for worker, shards in found.items()}

    def _get_output_partition(self, partition_id: Any, key: Any, **_: Any) -> list[Shard]:
        try:
            batches = self._read_from_disk(partition_id)
        except DataUnavailable:  # nobody sent anything
            return []
        return sorted((Shard(*shard) for batch in batches for shard in batch), key=_sender)


def _sender(shard: Shard) -> int:
    return shard.sender


@dataclass(frozen=True)
class RowsSpec(ShuffleSpec):  # type: ignore[misc]
    """A shuffle with so many receivers."""

    receivers: int

    @property
    def output_partitions(self) -> Iterator[tuple[int]]:
        """The receivers."""
        yield from ((n,) for n in range(self.receivers))

    def pick_worker(self, partition: tuple[int], workers: Sequence[str]) -> str:
        """Return the worker of a receiver: neighbours have the same."""
        return workers[len(workers) * partition[0] // self.receivers]

    def create_run_on_worker(
        self, run_id: int, span_id: str | None, worker_for: dict[Any, str], plugin: Any
    ) -> RowsRun:
        """Start the shuffle on a worker."""
        worker, chunks = plugin.worker, ((1,) * self.receivers,)
        return RowsRun(
            worker_for=worker_for,
            old=chunks,
            new=chunks,
            id=self.id,
            run_id=run_id,
            span_id=span_id,
            directory=os.path.join(worker.local_directory, f"shuffle-{self.id}-{run_id}"),
            executor=plugin._executor,
            local_address=worker.address,
            rpc=worker.rpc,
            digest_metric=worker.digest_metric,
            scheduler=worker.scheduler,
            memory_limiter_disk=plugin.memory_limiter_disk,
            memory_limiter_comms=plugin.memory_limiter_comms,
            disk=self.disk,
            loop=worker.loop,
        )


class Shuffle:
    """The tasks of one shuffle: those that send, the barrier, and those that receive."""

    def __init__(self, tasks: Tasks, step: str, at: Sequence[int], receivers: int) -> None:
        self.tasks, self.step, self.at = tasks, step, tuple(at)
        self.id = ShuffleId("-".join(map(str, (tasks.operator.name, step, tasks.token, *at))))
        disk = config.get("distributed.p2p.storage.disk")
        self.spec = RowsSpec(id=self.id, disk=disk, receivers=receivers)
        self.sent: list[Ref] = []

    def send(self, number: int, function: Callable[..., Any], *arguments: Any) -> None:
        """Add a task that sends: `function` takes the shuffle, its number, and the arguments."""
        at = (*self.at, number)
        self.sent.append(self.tasks.add(self.step, at, function, self.id, number, *arguments))

    def barrier(self) -> Ref:
        """Add the barrier, and return what waits for it; nothing can be sent after this."""
        key = barrier_key(self.id)
        task = P2PBarrierTask(key, wait_for_all, self.id, *self.sent, spec=self.spec)
        self.tasks.made[key] = task
        return task.ref()


def wait_for_all(id: ShuffleId, *runs: int) -> int:
    """Return the number of the run once everything that was sent has arrived."""
    with plain_disk_errors():
        run: int = p2p_barrier(id, *runs)
        return run


# A sender hands so many bytes over at once, and waits until there is room for more.
_BATCH_BYTES = 8 << 20


def send(id: ShuffleId, number: int, shards: Iterable[tuple[int, Shard]]) -> int:
    """Hand the shards of a sender over, each to its receiver; return the number of the run.

    They are made one after the other, as they are sent: all may go to one receiver.
    """
    with plain_disk_errors(), handle_transfer_errors(id):
        plugin, held = get_worker_plugin(), 0
        waiting: list[tuple[int, Shard]] = []
        runs: list[int] = []
        for receiver, shard in shards:
            waiting.append((receiver, shard))
            held += len(shard.rows) + len(shard.values)
            if held > _BATCH_BYTES:
                runs.append(plugin.add_partition(waiting, partition_id=(number, len(runs)), id=id))
                waiting, held = [], 0
        runs.append(plugin.add_partition(waiting, partition_id=(number, len(runs)), id=id))
        return min(runs)  # the barrier starts the shuffle again where they are not all the same


def receive(id: ShuffleId, number: int, run: int) -> list[Shard]:
    """Return the shards for a receiver, in the order of their senders."""
    with plain_disk_errors(), handle_unpack_errors(id):
        found: list[Shard] = get_worker_plugin().get_output_partition(id, run, (number,))
        return found


_NONE = np.empty(0, np.uint8)


def send_parts(id: ShuffleId, number: int, way: Route, owners: Sequence[range]) -> int:
    """Send runs of owners what a block of entries asks them for."""
    shards = []
    for n, run in enumerate(owners):
        part = way.part(run.start, run.stop)
        if part.rows.size:
            shards.append((n, packed(number, part.rows, part.starts)))
    return send(id, number, shards)


def send_taken(
    id: ShuffleId,
    number: int,
    call: Call,
    checked: None,
    blocks: Sequence[Array],
    first: int,
    ways: Sequence[Route],
) -> int:
    """Send every block of entries the rows that it asks a run of owners for."""
    parts = [way.part(first, first + len(blocks)) for way in ways]
    return _send_rows(id, number, call, checked, blocks, parts, range(len(parts)))


def send_asked(
    id: ShuffleId,
    number: int,
    call: Call,
    checked: None,
    blocks: Sequence[Array],
    asked: ShuffleId,
    run: int,
) -> int:
    """Do as `send_taken`, where another shuffle has brought what the owners are asked for."""
    shards = receive(asked, number, run)
    pairs = [unpacked(shard, np.dtype(np.int64)) for shard in shards]
    parts = [Part(starts, rows) for rows, starts in pairs]
    return _send_rows(id, number, call, checked, blocks, parts, [each.sender for each in shards])


def _send_rows(
    id: ShuffleId,
    number: int,
    call: Call,
    checked: None,
    blocks: Sequence[Array],
    parts: Sequence[Part],
    receivers: Sequence[int],
) -> int:
    shards = (
        (receiver, packed(number, _NONE, work.take(call, checked, blocks, [part])[0]))
        for receiver, part in zip(receivers, parts, strict=True)
        if part.rows.size
    )
    return send(id, number, shards)


def receive_merge(
    id: ShuffleId,
    number: int,
    run: int,
    call: Call,
    checked: None,
    way: Route,
    shape: Shape,
    owners: Sequence[range],
) -> Array:
    """Return a block of a gather's result; `owners` are the runs that send, if there are any."""
    if not owners:
        return work.merge(call, checked, way, [shape], [], [])[0]
    shards = receive(id, number, run)
    sent = [owners[shard.sender] for shard in shards]
    rows = [unpacked(shard, call.dtype)[1] for shard in shards]
    (found,) = work.merge(call, checked, way, [shape], sent, rows)
    return found


def send_cut(
    id: ShuffleId,
    number: int,
    call: Call,
    checked: None,
    way: Route,
    shapes: Sequence[Shape],
    blocks: Sequence[Array],
) -> int:
    """Send every owner the updates that a run of blocks has for it, in their order."""
    values = work.cut(call, checked, way, shapes, blocks)

    def shards() -> Iterator[tuple[int, Shard]]:
        for n in np.flatnonzero(np.diff(way.starts)).tolist():
            part, given = work.values_of(call, way, values, n, n + 1)
            yield n, packed(number, part.rows, given)

    return send(id, number, shards())


def receive_fold(id: ShuffleId, number: int, run: int, call: Call, block: Array) -> Array:
    """Return a block of data with the updates that were sent to it, taken one after the other."""
    fold = work.Fold(call, call.table(block))
    for shard in receive(id, number, run):
        rows, values = unpacked(shard, call.dtype)
        fold.take("scatter_slices", rows, values, axis=1)
    return fold.finish().reshape(block.shape)


def gather_by_shuffle(tasks: Tasks, whole: bool) -> None:
    """Add the tasks of a gather. Where the indices are small, they go `whole` to every owner; else
    a first shuffle brings each owner what it is asked for.
    """
    entries = [range(n, n + 1) for n in range(len(tasks.entries))]
    routes = tasks.routes(entries)
    checked = tasks.check_routes(routes)
    for shared in tasks.layout.shared_places():
        runs = tasks.owner_groups(shared)
        owners = tasks.node("-".join(map(str, ("owners", *shared))), runs)
        ways = [routes[(*shared, n)] for n in range(len(entries))]
        asked = None
        if whole:
            answer = tasks.add("ways", shared, list, List(*ways))
        else:
            asked = Shuffle(tasks, "ask", shared, len(runs))
            for n, way in enumerate(ways):
                asked.send(n, send_parts, way, owners)
            answer = asked.barrier()
        for free in tasks.layout.free_places():
            moved = Shuffle(tasks, "send", (*shared, *free), len(entries))
            for n, run in enumerate(runs):
                given = tasks.call, checked, tasks.blocks(tasks.owned(shared, free, run))
                if asked is None:
                    moved.send(n, send_taken, *given, run.start, answer)
                else:
                    moved.send(n, send_asked, *given, asked.id, answer)
            sent = moved.barrier() if runs else 0
            for n, place in enumerate(tasks.entered(shared, free, range(len(entries)))):
                shape = tasks.layout.moved_shape(place)
                want = tasks.call, checked, ways[n], shape, owners
                tasks.result(place, receive_merge, moved.id, n, sent, *want)


def scatter_by_shuffle(tasks: Tasks) -> Ref:
    """Add the tasks of a scatter; return what waits until all entries are known to be valid."""
    entries = tasks.entry_groups()
    routes = tasks.routes(entries)
    checked = tasks.check_routes(routes)
    for shared in tasks.layout.shared_places():
        members = [n for run in tasks.owner_groups(shared) for n in run]
        for free in tasks.layout.free_places() if members else ():
            moved = Shuffle(tasks, "send", (*shared, *free), len(tasks.owners))
            for n, run in enumerate(entries):
                places = tasks.entered(shared, free, run)
                shapes = [tasks.layout.moved_shape(place) for place in places]
                blocks = List(*(tasks.update(place) for place in places))
                given = checked, routes[(*shared, n)], shapes, blocks
                moved.send(n, send_cut, tasks.call, *given)
            sent = moved.barrier()
            for n in members:
                place = tasks.layout.data_at(shared, free, tasks.owners[n])
                tasks.result(place, receive_fold, moved.id, n, sent, tasks.call, tasks.data(place))
    return checked
