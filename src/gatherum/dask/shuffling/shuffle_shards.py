"""Pack shards of a shuffle, store them on a worker's disk, and read them."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from gatherum._model.arrays import NumpyArray
from gatherum._model.dtypes import DType
from gatherum._model.errors import Shape
from gatherum.dask import errors as dask_errors
from gatherum.dask import private

from .full_disks import DiskError

__all__ = ["Received", "RowsSpec", "Shard", "pack_shard", "unpacked"]


class Shard(NamedTuple):
    """Arrays to be sent, as bytes, because distributed sends buffers and integers."""

    sender: int
    item: int
    rows: NumpyArray
    shape: Shape
    values: NumpyArray


def pack_shard(sender: int, rows: NumpyArray, values: NumpyArray) -> Shard:
    """Return a shard of row numbers and the values of these rows."""
    return Shard(sender, rows.dtype.itemsize, _bytes(rows), values.shape, _bytes(values))


def _bytes(array: NumpyArray) -> NumpyArray:
    """Return the bytes of an array, without a reference to a larger array."""
    if array.base is None and array.flags.c_contiguous and array.nbytes:
        return array.reshape(-1).view(np.uint8)
    return np.frombuffer(array.tobytes(), np.uint8)


def unpacked(shard: Shard, dtype: DType) -> tuple[NumpyArray, NumpyArray]:
    """Return the row numbers and the values of a shard, as views of its memory."""
    values = np.asarray(shard.values).view(np.uint8)
    return (
        np.asarray(shard.rows).view(f"u{shard.item}"),
        np.ndarray(shard.shape, dtype, buffer=values),
    )


class ReceivedBatches(list[Any]):
    """Shards in the order of arrival, and the file that contains them."""

    def __init__(self, file: mmap.mmap) -> None:
        super().__init__(private.unpickle_bytestream(memoryview(file)))
        self.file = file


class Received(NamedTuple):
    """The shards for one receiver, in the order of their senders."""

    shards: list[Shard]
    file: mmap.mmap | None

    def one_by_one(self) -> Iterator[Shard]:
        """Yield each shard, and release from memory those pages of the file that have been read."""
        done = 0
        for shard in self.shards:
            yield shard
            done += shard.values.nbytes + shard.rows.nbytes
            if done > _LET_GO:
                _release_pages(self.file)
                done = 0
        _release_pages(self.file)


# The number of bytes read from a file before its pages are released.
_LET_GO = 16 << 20


def _release_pages(file: mmap.mmap | None) -> None:
    """Release the memory of a file's pages. The file stays open for its other receivers."""
    if file is not None and hasattr(file, "madvise"):
        file.madvise(mmap.MADV_DONTNEED)


# The number of adjacent receivers that share a file, and of files that a worker keeps open.
# Appending to a file costs far more than packing a shard.
_TOGETHER, _OPEN = 64, 4


class RowsRun(private.ArrayRechunkRun):  # type: ignore[misc]  # distributed is not typed
    """A run on one worker. Its files contain shards; the files of a rechunk do not."""

    def __init__(self, **keywords: Any) -> None:
        super().__init__(**keywords)
        self._files: dict[int, tuple[dict[int, list[Shard]], mmap.mmap | None]] = {}
        self._opening = Lock()

    def read(self, path: Path) -> tuple[ReceivedBatches, int]:
        """Return the shards in a file, as views of the mapped file."""
        with path.open("r+b") as file:
            mapped = mmap.mmap(file.fileno(), 0)
        return ReceivedBatches(mapped), len(mapped)

    async def send(self, address: str, shards: list[Any]) -> Any:
        """Send shards to a worker. Shards for this worker need no connection."""
        if address == self.local_address:
            self.raise_if_closed()
            return await self.receive(shards)
        return await super().send(address, shards)

    def _shard_partition(self, data: Any, partition_id: Any) -> dict[str, Any]:
        by_worker: dict[str, list[Any]] = {}
        for receiver, shard in data:
            by_worker.setdefault(self.worker_for[(receiver,)], []).append((receiver, shard))
        return {worker: (partition_id, shards) for worker, shards in by_worker.items()}

    async def _receive(self, data: list[Any]) -> None:
        self.raise_if_closed()
        kept: dict[tuple[int], list[Any]] = {}
        for sender, shards in data:
            if sender in self.received:  # from a task that ran twice
                continue
            self.received.add(sender)
            for receiver, shard in shards:
                kept.setdefault((receiver // _TOGETHER,), []).append((receiver, shard))
                self.total_recvd += shard.values.nbytes
        if not kept:
            return
        try:
            await private.write_to_disk(self, kept)
        except Exception as error:
            self._exception = error
            if isinstance(error, OSError):
                raise DiskError(str(dask_errors.full_disk(error))) from error
            raise

    def _get_output_partition(self, partition_id: Any, key: Any, **_: Any) -> Received:
        (receiver,) = partition_id
        shards, file = self._opened(receiver // _TOGETHER)
        return Received(sorted(shards.get(receiver, ()), key=attrgetter("sender")), file)

    def _opened(self, file_number: int) -> tuple[dict[int, list[Shard]], mmap.mmap | None]:
        """Return the shards in a file by receiver, and the file."""
        with self._opening:
            if file_number not in self._files:
                try:
                    batches = private.read_from_disk(self, (file_number,))
                except private.DataUnavailable:  # no shards were sent
                    batches = []
                by_receiver: dict[int, list[Shard]] = {}
                for receiver, shard in chain.from_iterable(batches):
                    by_receiver.setdefault(receiver, []).append(Shard(*shard))
                file = getattr(batches, "file", None)
                _release_pages(file)
                while file is not None and len(self._files) >= _OPEN:
                    del self._files[next(iter(self._files))]
                self._files[file_number] = by_receiver, file
            return self._files[file_number]


@dataclass(frozen=True)
class RowsSpec(private.ShuffleSpec):  # type: ignore[misc]
    """A shuffle to a number of receivers."""

    receivers: int

    @property
    def output_partitions(self) -> Iterator[tuple[int]]:
        """The receivers."""
        yield from ((n,) for n in range(self.receivers))

    def pick_worker(self, partition: tuple[int], workers: Sequence[str]) -> str:
        """Return the worker of a receiver. Adjacent receivers share a worker."""
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
            executor=private.executor_of(plugin),
            local_address=worker.address,
            rpc=worker.rpc,
            digest_metric=worker.digest_metric,
            scheduler=worker.scheduler,
            memory_limiter_disk=plugin.memory_limiter_disk,
            memory_limiter_comms=plugin.memory_limiter_comms,
            disk=self.disk,
            loop=worker.loop,
        )
