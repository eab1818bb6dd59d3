"""Move rows from worker to worker with distributed's P2P machinery, which stores them on disks.

The tasks that send rows pass them to the P2P machinery and then finish. After a barrier, the tasks
that receive rows read them from the local disk. A task holds only its chunk, however large the
arrays are. `private` lists the supported versions of distributed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from dask import config
from distributed.exceptions import Reschedule

from gatherum._model.arrays import NumpyArray
from gatherum._model.errors import Shape
from gatherum.dask import private
from gatherum.dask.dask_call import DaskCall
from gatherum.dask.graph import block_kernels
from gatherum.dask.graph.tasks import Ref, Tasks
from gatherum.dask.planning.routing import ChunkRoute, OwnerRows
from gatherum.dask.private import ShuffleId

from .full_disks import plain_disk_errors
from .shuffle_shards import Received, RowsSpec, Shard, pack_shard, unpacked


class Shuffle:
    """The tasks of one shuffle: those that send, the barrier, and those that receive."""

    def __init__(self, tasks: Tasks, step: str, coordinates: Sequence[int], receivers: int) -> None:
        self.tasks, self.step, self.coordinates = tasks, step, tuple(coordinates)
        self.id = "-".join(map(str, (tasks.operator.name, step, tasks.token, *coordinates)))
        disk = config.get("distributed.p2p.storage.disk")
        self.spec = RowsSpec(id=self.id, disk=disk, receivers=receivers)
        self.sent: list[Ref] = []

    def send(self, sender: int, function: Callable[..., Any], *arguments: Any) -> None:
        """Add a sending task, which calls `function` with the shuffle, `sender` and `arguments`."""
        coordinates = (*self.coordinates, sender)
        self.sent.append(
            self.tasks.add(self.step, coordinates, function, self.id, sender, *arguments)
        )

    def barrier(self) -> Ref:
        """Add the barrier, and return a reference to it. No sender can be added after this."""
        key = private.barrier_key(self.id)
        task = private.P2PBarrierTask(key, wait_for_all, self.id, *self.sent, spec=self.spec)
        self.tasks.by_key[key] = task
        return task.ref()


def wait_for_all(shuffle_id: ShuffleId, *runs: int) -> int:
    """Wait until all shards have arrived, and return the number of the run."""
    with plain_disk_errors():
        run: int = private.p2p_barrier(shuffle_id, *runs)
        return run


def send(
    shuffle_id: ShuffleId, sender: int, shards: Iterable[tuple[int, Shard]], batch_bytes: int
) -> int:
    """Send each shard to its receiver, and return the number of the run.

    `shards` are sent in batches of `batch_bytes`. Each batch waits until it fits in the worker's
    buffers.
    """
    runs: list[int] = []
    batch: list[tuple[int, Shard]] = []
    filled_bytes = 0
    for receiver, shard in shards:
        batch.append((receiver, shard))
        filled_bytes += shard.values.nbytes + shard.rows.nbytes
        if filled_bytes >= batch_bytes:
            runs.append(_send_batch(shuffle_id, (sender, len(runs)), batch))
            batch, filled_bytes = [], 0
    if batch or not runs:  # without shards, an empty batch returns the number of the run
        runs.append(_send_batch(shuffle_id, (sender, len(runs)), batch))
    if len(set(runs)) > 1:  # a worker was lost, and its batches with it
        raise Reschedule()
    return runs[0]


def _send_batch(
    shuffle_id: ShuffleId, partition: tuple[int, int], batch: list[tuple[int, Shard]]
) -> int:
    with plain_disk_errors(), private.handle_transfer_errors(shuffle_id):
        run: int = private.get_worker_plugin().add_partition(
            batch, partition_id=partition, id=shuffle_id
        )
        return run


def receive(shuffle_id: ShuffleId, receiver: int, run: int) -> Received:
    """Return the shards for a receiver."""
    with plain_disk_errors(), private.handle_unpack_errors(shuffle_id):
        shards: Received = private.get_worker_plugin().get_output_partition(
            shuffle_id, run, (receiver,)
        )
        return shards


_NONE = np.empty(0, np.uint8)


def send_requests(
    shuffle_id: ShuffleId, sender: int, route: ChunkRoute, owners: Sequence[range], batch_bytes: int
) -> int:
    """Send the row numbers that a block of entries requests to the groups of owners."""
    parts = ((n, route.part(run.start, run.stop)) for n, run in enumerate(owners))
    shards = (
        (n, pack_shard(sender, part.rows, part.starts)) for n, part in parts if part.rows.size
    )
    return send(shuffle_id, sender, shards, batch_bytes)


def send_rows(
    shuffle_id: ShuffleId,
    sender: int,
    call: DaskCall,
    checked: None,
    blocks: Sequence[NumpyArray],
    first: int,
    routes: Sequence[ChunkRoute],
    batch_bytes: int,
) -> int:
    """Send every block of entries the rows that it requests from a group of owners."""
    parts = ((n, route.part(first, first + len(blocks))) for n, route in enumerate(routes))
    return send(shuffle_id, sender, _row_shards(sender, call, checked, blocks, parts), batch_bytes)


def send_requested_rows(
    shuffle_id: ShuffleId,
    owner: int,
    call: DaskCall,
    checked: None,
    blocks: Sequence[NumpyArray],
    requests: ShuffleId,
    run: int,
    batch_bytes: int,
) -> int:
    """Send rows in the same way as `send_rows`, with requests from another shuffle."""
    shards = receive(requests, owner, run).one_by_one()
    pairs = ((shard.sender, unpacked(shard, np.dtype(np.int64))) for shard in shards)
    parts = ((sender, OwnerRows(starts, rows)) for sender, (rows, starts) in pairs)
    return send(shuffle_id, owner, _row_shards(owner, call, checked, blocks, parts), batch_bytes)


def _row_shards(
    sender: int,
    call: DaskCall,
    checked: None,
    blocks: Sequence[NumpyArray],
    parts: Iterable[tuple[int, OwnerRows]],
) -> Iterator[tuple[int, Shard]]:
    """Yield the rows for one block of entries at a time, to limit memory use."""
    for receiver, part in parts:
        if part.rows.size:
            (rows,) = block_kernels.read_requested_rows(call, checked, blocks, [part])
            yield receiver, pack_shard(sender, _NONE, rows)


def receive_rows(
    shuffle_id: ShuffleId,
    receiver: int,
    run: int,
    call: DaskCall,
    checked: None,
    route: ChunkRoute,
    shapes: Sequence[Shape],
    owners: Sequence[range],
) -> list[NumpyArray]:
    """Return blocks of a gather's result. `owners` are the groups that send rows, possibly none."""
    if not owners:
        return block_kernels.merge_rows(call, checked, route, shapes, [], [])
    shards = receive(shuffle_id, receiver, run)
    sent = [owners[shard.sender] for shard in shards.shards]
    rows = (unpacked(shard, call.dtype)[1] for shard in shards.one_by_one())
    return block_kernels.merge_rows(call, checked, route, shapes, sent, rows)


def receive_block(
    shuffle_id: ShuffleId, receiver: int, run: int, call: DaskCall, *arguments: Any
) -> NumpyArray:
    """Return the only block of `receive_rows`."""
    (block,) = receive_rows(shuffle_id, receiver, run, call, *arguments)
    return block


def send_updates(
    shuffle_id: ShuffleId,
    sender: int,
    call: DaskCall,
    checked: None,
    route: ChunkRoute,
    shapes: Sequence[Shape],
    blocks: Sequence[NumpyArray],
    batch_bytes: int,
) -> int:
    """Send each owner its updates from a run of blocks, in order."""
    cuts = block_kernels.updates_by_owner(call, route, shapes, blocks)
    shards = ((n, pack_shard(sender, part.rows, values)) for n, part, values in cuts)
    return send(shuffle_id, sender, shards, batch_bytes)


def receive_updates(
    shuffle_id: ShuffleId, receiver: int, run: int, call: DaskCall, block: NumpyArray
) -> NumpyArray:
    """Fold the updates that were sent to a block of data, one shard at a time; return the block."""
    fold = block_kernels.BlockFold(call, call.table(block))
    for shard in receive(shuffle_id, receiver, run).one_by_one():
        rows, values = unpacked(shard, call.dtype)
        fold.add("scatter_slices", rows, values, axis=1)
    return fold.finish().reshape(block.shape)


def gather_by_shuffle(tasks: Tasks, sends_all_indices: bool) -> None:
    """Add the tasks of a gather.

    If `sends_all_indices`, every owner receives all indices, which are small. Otherwise a first
    shuffle sends each owner the numbers of the rows that are requested from it.
    """
    entries = tasks.entry_runs()
    routes, batch_bytes = tasks.routes(entries), tasks.choice.chunk
    checked = tasks.check_routes(routes)
    for shared in tasks.layout.shared_coordinates():
        runs = tasks.owner_runs(shared)
        owners = tasks.add_shared_value("-".join(map(str, ("owners", *shared))), runs)
        column_routes = routes[shared]
        requests = None
        if sends_all_indices:
            requested = tasks.add("routes", shared, list, private.List(*column_routes))
        else:
            requests = Shuffle(tasks, "ask", shared, len(runs))
            for sender, route in enumerate(column_routes):
                requests.send(sender, send_requests, route, owners, batch_bytes)
            requested = requests.barrier()
        for free in tasks.layout.free_coordinates():
            shuffle = Shuffle(tasks, "send", (*shared, *free), len(entries))
            for sender, run in enumerate(runs):
                arguments = (
                    tasks.call,
                    checked,
                    tasks.blocks(tasks.data_coordinates(shared, free, run)),
                )
                if requests is None:
                    shuffle.send(sender, send_rows, *arguments, run.start, requested, batch_bytes)
                else:
                    shuffle.send(
                        sender, send_requested_rows, *arguments, requests.id, requested, batch_bytes
                    )
            sent = shuffle.barrier() if runs else 0
            for receiver, run in enumerate(entries):
                blocks_at = tasks.moved_coordinates(shared, free, run)
                route, shapes = column_routes[receiver], tasks.shapes(shared, free, run)
                of_run = shuffle.id, receiver, sent, tasks.call, checked, route, shapes, owners
                if len(blocks_at) == 1:
                    tasks.add_result(blocks_at[0], receive_block, *of_run)
                    continue
                merged = tasks.add("merge", (*shared, *free, receiver), receive_rows, *of_run)
                for position, coordinates in enumerate(blocks_at):
                    tasks.add_result(coordinates, list.__getitem__, merged, position)


def scatter_by_shuffle(tasks: Tasks) -> Ref:
    """Add the tasks of a scatter; return the task that checks that all entries are valid."""
    entries = tasks.entry_runs()
    routes = tasks.routes(entries)
    checked = tasks.check_routes(routes)
    for shared in tasks.layout.shared_coordinates():
        members = [n for run in tasks.owner_runs(shared) for n in run]
        for free in tasks.layout.free_coordinates() if members else ():
            shuffle = Shuffle(tasks, "send", (*shared, *free), len(tasks.owners))
            for n, run in enumerate(entries):
                column_part = shared, free, run
                arguments = (
                    checked,
                    routes[shared][n],
                    tasks.shapes(*column_part),
                    tasks.updates(*column_part),
                )
                shuffle.send(n, send_updates, tasks.call, *arguments, tasks.choice.chunk)
            sent = shuffle.barrier()
            for n in members:
                coordinates = tasks.layout.data_at(shared, free, tasks.owners[n])
                tasks.add_result(
                    coordinates,
                    receive_updates,
                    shuffle.id,
                    n,
                    sent,
                    tasks.call,
                    tasks.data(coordinates),
                )
    return checked
