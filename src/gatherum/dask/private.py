"""Find the private names of Dask and distributed that this package uses.

From Dask, the names are those of its tasks, since 2025.5, and an array's `_meta`, which has the
type of the array's chunks. The names from distributed belong to its P2P shuffle, which changes
between versions. If the version of distributed is not listed, or a name is missing, tasks move the
rows, with a warning. distributed is imported only when a shuffle needs it.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from gatherum._system import private_names

# The versions of distributed whose shuffles were tested.
TESTED = ("2025.5.0", "2025.7.0", "2025.12.0", "2026.3.0", "2026.8.0")
# The name of a shuffle; distributed has a separate type for such names.
ShuffleId: TypeAlias = str

# Attributes of this module, by their paths in distributed.
NAMES = {
    "distributed.shuffle._core.P2PBarrierTask": "P2PBarrierTask",
    "distributed.shuffle._core.ShuffleSpec": "ShuffleSpec",
    "distributed.shuffle._core.barrier_key": "barrier_key",
    "distributed.shuffle._core.get_worker_plugin": "get_worker_plugin",
    "distributed.shuffle._core.handle_transfer_errors": "handle_transfer_errors",
    "distributed.shuffle._core.handle_unpack_errors": "handle_unpack_errors",
    "distributed.shuffle._core.p2p_barrier": "p2p_barrier",
    "distributed.shuffle._exceptions.DataUnavailable": "DataUnavailable",
    "distributed.shuffle._exceptions.P2POutOfDiskError": "P2POutOfDiskError",
    "distributed.shuffle._pickle.unpickle_bytestream": "unpickle_bytestream",
    "distributed.shuffle._rechunk.ArrayRechunkRun": "ArrayRechunkRun",
    # Methods that `RowsRun` calls or overrides.
    "distributed.shuffle._rechunk.ArrayRechunkRun._shard_partition": "",
    "distributed.shuffle._rechunk.ArrayRechunkRun._receive": "",
    "distributed.shuffle._rechunk.ArrayRechunkRun._get_output_partition": "",
    "distributed.shuffle._rechunk.ArrayRechunkRun._write_to_disk": "",
    "distributed.shuffle._rechunk.ArrayRechunkRun._read_from_disk": "",
}
# Dask's tasks; the first versions of the public `dask.task_spec` did not have all of them.
_TASKS = ("Alias", "DataNode", "List", "Task", "TaskRef")
_PATHS = {name: (path,) for path, name in NAMES.items() if name} | {
    name: (f"dask.task_spec.{name}", f"dask._task_spec.{name}") for name in _TASKS
}


def __getattr__(name: str) -> Any:
    value = next(filter(None, map(private_names.find_name, _PATHS.get(name, ()))), None)
    if value is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def why_no_shuffle(version: str) -> str:
    """Return the reason why shuffles cannot run on a version of distributed, or "" if they can."""
    tested = ", ".join(TESTED)
    if version not in TESTED:
        return f"its shuffles are tested with distributed {tested}, got {version}"
    if missing := private_names.missing(NAMES):
        return private_names.lacking("distributed", version, tested, missing[0])
    return ""


async def write_to_disk(run: Any, data: Any) -> None:
    """Write the shards that a run has received, by file."""
    await run._write_to_disk(data)


def read_from_disk(run: Any, partition: tuple[int]) -> Any:
    """Return the shards that a run has stored in a file, or raise DataUnavailable."""
    return run._read_from_disk(partition)


def executor_of(plugin: Any) -> Any:
    """Return the thread pool of a worker's plugin for shuffles."""
    return plugin._executor


def meta(array: Any) -> Any:
    """Return the empty array that has the type of an array's chunks, a NumPy array by default."""
    return getattr(array, "_meta", np.empty(0))
