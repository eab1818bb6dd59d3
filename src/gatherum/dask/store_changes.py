"""Scatter into a Zarr array in place: stage all changed chunks, then move them into the array.

Until all chunks are staged, the array does not change. If a run is killed after that, the next run
completes it by moving the remaining files.
"""

from __future__ import annotations

import os
from itertools import product
from typing import Any

import numpy as np
from dask.delayed import delayed

from gatherum._arguments.plain_values import as_boolean
from gatherum._model.arrays import NumpyArray
from gatherum._model.operators import OPERATORS
from gatherum.dask.graph.execute import at_once
from gatherum.dask.shuffling.staging import Box, Compute, Staging, discarded_when_failed, write
from gatherum.files.durable.build import Build
from gatherum.files.durable.interrupt import uninterrupted
from gatherum.files.durable.marker import is_completed, mark
from gatherum.files.formats.zarr.arrays import ZarrArray
from gatherum.files.formats.zarr.stores import lay_chunks
from gatherum.files.resources.stats import Meter
from gatherum.files.row_access.boxes import chunk_boxes

from . import errors as dask_errors
from .adapter import FUNCTIONS
from .files import BUDGET, FileArray, check_unpacked, lazy_file


def scatter_into(
    op: str,
    store: Any,
    indices: Any,
    updates: Any,
    axis: int,
    mode: str,
    negative: bool,
    resume: bool,
    decode: bool,
    fold: dict[str, Any],
) -> None:
    """Run a scatter into a Zarr array."""
    attributes = {OPERATORS[op].attribute: axis, "mode": mode, "negative": negative} | fold
    decode, path = as_boolean(op, "decode", decode), _directory(op, store)
    change(op, path, indices, updates, attributes, resume=resume, decode=decode)


def change(
    op: str,
    path: str,
    indices: Any,
    updates: Any,
    attributes: dict[str, Any],
    *,
    resume: bool,
    decode: bool = True,
    compute: Compute = at_once,
) -> None:
    """Apply a scatter to the Zarr array in a directory."""
    meter = Meter()
    table = ZarrArray(path, meter, BUDGET)
    stored = FileArray(path, decode=decode)
    check_unpacked(op, stored)

    def scattered(data: Any) -> Any:
        return FUNCTIONS.named(op)(lazy_file(data, table.chunks), indices, updates, **attributes)

    # The call's name does not depend on the contents, which a killed run has partly changed.
    fingerprint = {"operator": op, "call": scattered(stored.any_version()).name, "in_place": True}
    fingerprint["table_state"] = table.state()
    if is_completed(op, path, fingerprint, resume=resume):
        return
    build = Build(
        path,
        fingerprint,
        resume=resume,
        check_inputs=table.check_unchanged,
        meter=meter,
        staged=True,
    )
    with discarded_when_failed(build, resumable=True):
        if not build.replacing:
            staging = Staging(build)
            staging.copy(table, whole=False)
            staging.fill(changes(staging.folder, table, stored, scattered(stored)), compute)
            build.seal()
        with uninterrupted():
            lay_chunks(build.partial, path)
            changed = ZarrArray(path, meter, BUDGET)
            mark(path, fingerprint, changed.state())
            build.remove_files()


def _directory(op: str, store: Any) -> str:
    """Return the directory of a Zarr array, given its path or an open array."""
    if isinstance(store, (str, os.PathLike)):
        return os.path.realpath(os.fspath(store))
    root = getattr(getattr(store, "store", None), "root", None)
    inner = getattr(store, "path", None)
    if not isinstance(root, (str, os.PathLike)) or not isinstance(inner, str):
        raise dask_errors.not_a_store(op, store)
    return os.path.realpath(os.path.join(os.fspath(root), inner))


def changes(
    folder: str, table: ZarrArray, table_blocks: FileArray, changed_blocks: Any
) -> list[Any]:
    """Return the tasks that stage the chunks that change."""
    grid = product(*(range(len(sizes)) for sizes in changed_blocks.chunks))
    boxes = chunk_boxes(table.shape, table.chunks)
    before, after = lazy_file(table_blocks, table.chunks).to_delayed(), changed_blocks.to_delayed()
    tasks = [
        delayed(_stage)(folder, box, before[coordinates], after[coordinates])
        for coordinates, box in zip(grid, boxes, strict=False)
    ]
    return tasks or [changed_blocks]  # computing it checks its indices


def _stage(folder: str, box: Box, old_block: NumpyArray, new_block: NumpyArray) -> None:
    """Write a chunk to the staging directory, unless every bit is unchanged."""
    if new_block.size and not _same_bits(old_block, new_block):
        write(folder, box, new_block)


def _same_bits(first: NumpyArray, second: NumpyArray) -> bool:
    pair = [np.ascontiguousarray(array).reshape(-1) for array in (first, second)]
    if not first.dtype.itemsize:
        return True
    return np.array_equal(pair[0].view(np.uint8), pair[1].view(np.uint8))
