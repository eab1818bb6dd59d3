"""Functions that tasks run on their blocks.

These functions are deterministic and do not change their inputs.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from math import prod
from typing import Any

import numpy as np

from gatherum._functions.accumulator import Accumulator, new_accumulator
from gatherum._model.arrays import NumpyArray
from gatherum._model.dtypes import DType
from gatherum._model.errors import Shape
from gatherum._plans.plans import apply
from gatherum.dask.dask_call import DaskCall
from gatherum.dask.errors import mixed_blocks
from gatherum.dask.planning.routing import ChunkRoute, OwnerRows


def as_declared(dtype: DType, block: NumpyArray) -> NumpyArray:
    """Return a block in the byte order of its array; Dask makes the order native in joined blocks.

    A block with another dtype is returned unchanged; the function that uses it checks its dtype.
    """
    return block.astype(dtype, copy=False) if np.can_cast(block.dtype, dtype, "equiv") else block


def gather_block(call: DaskCall, _: None, table: NumpyArray, indices: NumpyArray) -> NumpyArray:
    """Gather from a block that contains all rows that a block of indices can address."""
    fill = call.fill_item[0]
    table = call.data_block(table)
    return apply(call.array_call.op, table, indices, fill_value=fill, **call.attributes())


def assemble(grid: Sequence[int], dims: Sequence[int], blocks: Sequence[NumpyArray]) -> NumpyArray:
    """Join a grid of blocks, given in row-major order, along the dimensions `dims`."""
    joined = list(blocks)
    for count, d in zip(reversed(grid), reversed(dims), strict=True):
        if count > 1:
            joined = [_concatenated(joined[n : n + count], d) for n in range(0, len(joined), count)]
    return joined[0]


def _concatenated(blocks: Sequence[NumpyArray], axis: int) -> NumpyArray:
    """Concatenate blocks as bytes, because NumPy would change their byte order and drop padding."""
    dtype = blocks[0].dtype
    if len(blocks) == 1 or dtype.itemsize == 0 or (dtype.isnative and dtype.kind != "V"):
        return np.concatenate(blocks, axis=axis) if len(blocks) > 1 else blocks[0]
    blocks = [as_declared(dtype, block) for block in blocks]
    for block in blocks:
        if block.dtype != dtype:
            raise mixed_blocks(dtype, block.dtype)
    raw = np.dtype((np.void, dtype.itemsize))
    return np.concatenate([block.view(raw) for block in blocks], axis=axis).view(dtype)


def read_requested_rows(
    call: DaskCall, _: None, blocks: Sequence[NumpyArray], parts: Sequence[OwnerRows]
) -> list[NumpyArray]:
    """Return the rows that each part requests of adjacent owners, shaped (before, rows, after)."""
    tables = [call.table(block) for block in blocks]
    results = []
    for starts, rows in parts:
        before, _rows, after = tables[0].shape
        out = np.empty((before, len(rows), after), call.dtype)
        for table, first, last in zip(tables, starts[:-1], starts[1:], strict=True):
            if last > first:
                apply("gather", table, rows[first:last], axis=1, out=out[:, first:last])
        results.append(out)
    return results


def read_routed_rows(
    call: DaskCall,
    checked: None,
    blocks: Sequence[NumpyArray],
    first: int,
    routes: Sequence[ChunkRoute],
) -> list[NumpyArray]:
    """Call `read_requested_rows` with the parts of the routes that belong to the owners."""
    return read_requested_rows(
        call, checked, blocks, [r.part(first, first + len(blocks)) for r in routes]
    )


def merge_rows(
    call: DaskCall,
    _: None,
    route: ChunkRoute,
    shapes: Sequence[Shape],
    owners: Sequence[range],
    replies: Iterable[NumpyArray],
) -> list[NumpyArray]:
    """Return the blocks of a gather's result that contain the entries of a route.

    `replies` contains the rows sent by each group of consecutive owners, in the order of the route.
    It is iterated once.
    """
    blocks_in_three = [call.moved_in_three(shape) for shape in shapes]
    results = [_filled(call, sizes, route.order.size < route.size) for sizes in blocks_in_three]
    for run, rows in zip(owners, replies, strict=True):
        positions = route.order[route.starts[run.start] : route.starts[run.stop]].astype(np.int64)
        for out in results:
            # Entries of other blocks are out of range for this block, and are dropped.
            apply(
                "scatter_slices", out, positions, rows, axis=1, mode="drop", negative=False, out=out
            )
            positions -= out.shape[1]
    return [out.reshape(shape) for out, shape in zip(results, shapes, strict=True)]


def _filled(call: DaskCall, shape: Shape, has_invalid: bool) -> NumpyArray:
    if not has_invalid or prod(shape) == 0:
        return np.empty(shape, call.dtype)
    item = call.fill_item
    return apply("gather", item, np.broadcast_to(np.int64(0), shape))


def routed_updates(
    call: DaskCall,
    _: None,
    route: ChunkRoute,
    shapes: Sequence[Shape],
    blocks: Sequence[NumpyArray],
) -> NumpyArray:
    """Return the updates of adjacent blocks in the order of their route.

    The shape is (before, entries, after), with size 1 where updates broadcast.
    """
    blocks_in_three = [
        _in_three_dimensions(call, block, shape)
        for block, shape in zip(blocks, shapes, strict=True)
    ]
    if call.broadcasts_update:
        return blocks_in_three[0]
    if len(blocks_in_three) == 1:
        return apply("gather", blocks_in_three[0], route.order, axis=1)
    positions = np.full(route.size, -1, np.int64)
    positions[route.order] = np.arange(route.order.size)
    before, _entries, after = blocks_in_three[0].shape
    out, offset = np.empty((before, route.order.size, after), call.dtype), 0
    for block in blocks_in_three:
        block_positions = positions[offset : offset + block.shape[1]]
        # Dropped entries have the place -1.
        attributes = {"axis": 1, "mode": "drop", "negative": False, "out": out}
        apply("scatter_slices", out, block_positions, block, **attributes)  # type: ignore[arg-type]
        offset += block.shape[1]
    return out


def updates_by_owner(
    call: DaskCall, route: ChunkRoute, shapes: Sequence[Shape], blocks: Sequence[NumpyArray]
) -> Iterator[tuple[int, OwnerRows, NumpyArray]]:
    """Yield the result of `routed_updates` owner by owner: (owner, part, updates).

    Each `updates` is a separate array. Owners without entries are skipped.
    """
    blocks_in_three = [
        _in_three_dimensions(call, block, shape)
        for block, shape in zip(blocks, shapes, strict=True)
    ]
    offsets = np.cumsum([0, *(block.shape[1] for block in blocks_in_three)])
    before, _entries, after = blocks_in_three[0].shape
    for owner in np.flatnonzero(np.diff(route.starts)).tolist():
        part = route.part(owner, owner + 1)
        if call.broadcasts_update:
            yield owner, part, blocks_in_three[0]
            continue
        positions = route.order[route.starts[owner] : route.starts[owner + 1]]
        out = np.empty((before, positions.size, after), call.dtype)
        ends = np.searchsorted(positions, offsets)  # the positions in an owner ascend
        for block, offset, first, last in zip(
            blocks_in_three, offsets, ends, ends[1:], strict=False
        ):
            if last > first:
                block_positions = positions[first:last].astype(np.int64) - offset
                apply("gather", block, block_positions, axis=1, out=out[:, first:last])
        yield owner, part, out


def _in_three_dimensions(call: DaskCall, block: NumpyArray, shape: Shape) -> NumpyArray:
    """Reshape a block of updates to (before, entries, after), with size 1 where it broadcasts."""
    first, last = call.moved_rows
    block = block.reshape((1,) * (len(shape) - block.ndim) + block.shape)
    three_sizes: list[int] = []
    broadcast_shape: list[int] = []
    for i, part in enumerate((slice(first), slice(first, last), slice(last, None))):
        broadcasts = call.broadcasts_update if i == 1 else all(n == 1 for n in block.shape[part])
        broadcast_shape += block.shape[part] if broadcasts else shape[part]
        three_sizes.append(1 if broadcasts else prod(shape[part]))
    return np.broadcast_to(block, broadcast_shape).reshape(three_sizes)


def updates_for_owners(
    call: DaskCall, route: ChunkRoute, values: NumpyArray, first: int, last: int
) -> tuple[OwnerRows, NumpyArray]:
    """Return the part of a route for adjacent owners, and the updates in its order."""
    part = route.part(first, last)
    if call.broadcasts_update:
        return part, values
    return part, values[:, route.starts[first] : route.starts[last]]


class BlockFold:
    """A block of data that folds updates batch by batch."""

    def __init__(self, call: DaskCall, data: NumpyArray) -> None:
        attributes = call.array_call.attributes
        self.fold_keywords = attributes.fold_keywords
        self.folded: NumpyArray | Accumulator
        if attributes.fold.needs_accumulator(call.dtype):
            self.folded = new_accumulator(data, attributes)
        else:
            self.folded = apply("gather_nd", data, np.empty(0, np.int64))

    def add(self, op: str, indices: NumpyArray, updates: NumpyArray, **attributes: Any) -> None:
        """Fold a batch with the operator of this name."""
        if isinstance(self.folded, Accumulator):
            axis = attributes.get("axis", attributes.get("batch_dims", 0))
            getattr(self.folded, op)(indices, updates, axis)
        else:
            apply(
                op,
                self.folded,
                indices,
                updates,
                out=self.folded,
                **attributes,
                **self.fold_keywords,
            )

    def copy(self) -> BlockFold:
        """Return a copy that continues the fold, because tasks must not change their inputs."""
        continued = copy.copy(self)
        if isinstance(self.folded, Accumulator):
            continued.folded = copy.copy(self.folded)
        else:
            continued.folded = apply("gather_nd", self.folded, np.empty(0, np.int64))
        return continued

    def finish(self) -> NumpyArray:
        """Return the block after all updates."""
        return self.folded.finish() if isinstance(self.folded, Accumulator) else self.folded


def fold_block(
    call: DaskCall,
    _: None,
    initial: NumpyArray | BlockFold,
    indices: Sequence[NumpyArray],
    updates: Sequence[NumpyArray],
) -> BlockFold:
    """Fold blocks of updates, in order, into a block that contains all rows of its column."""
    if isinstance(initial, BlockFold):
        fold = initial.copy()
    else:
        fold = BlockFold(call, call.data_block(initial))
    attributes = call.attributes()
    attributes = {name: attributes[name] for name in (call.operator.attribute, "mode", "negative")}
    for block_indices, values in zip(indices, updates, strict=True):
        fold.add(call.array_call.op, block_indices, values, **attributes)
    return fold


def fold_updates(
    call: DaskCall,
    _: None,
    initial: Sequence[NumpyArray | BlockFold],
    parts: Sequence[tuple[OwnerRows, NumpyArray]],
) -> list[BlockFold]:
    """Fold the updates of routes into adjacent owners, in the order of the routes."""
    folds = []
    for owner, block in enumerate(initial):
        fold = block.copy() if isinstance(block, BlockFold) else BlockFold(call, call.table(block))
        for (starts, rows), values in parts:
            first, last = starts[owner], starts[owner + 1]
            if last > first:
                batch = values if call.broadcasts_update else values[:, first:last]
                fold.add("scatter_slices", rows[first:last], batch, axis=1)
        folds.append(fold)
    return folds


def fold_routed_updates(
    call: DaskCall,
    checked: None,
    initial: Sequence[NumpyArray],
    first_owner: int,
    route: ChunkRoute,
    values: NumpyArray,
) -> list[BlockFold]:
    """Call `fold_updates` with the part of a route that belongs to the owners."""
    return fold_updates(
        call,
        checked,
        initial,
        [updates_for_owners(call, route, values, first_owner, first_owner + len(initial))],
    )


def finished_block(folds: Sequence[BlockFold], block: int, shape: Shape) -> NumpyArray:
    """Return one of the folded blocks."""
    return folds[block].finish().reshape(shape)


def unchanged_block(_: None, block: NumpyArray) -> NumpyArray:
    """Return an unchanged block of data, after all entries have been checked."""
    return block
