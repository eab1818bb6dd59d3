"""Convert a caller's arguments to a call and to Dask arrays with aligned chunks."""

from __future__ import annotations

from dataclasses import replace
from math import isnan, prod
from typing import Any, NamedTuple

import dask.array as da
import numpy as np

from gatherum._arguments import array_likes, conversion
from gatherum._frameworks import registry
from gatherum._model import errors
from gatherum._model.call import ArraySpec, Attributes, Call
from gatherum._model.dimensions import Dimensions
from gatherum._plans.plans import build
from gatherum.dask.planning.choice import chunk_bytes
from gatherum.dask.planning.layout import (
    ChunkLayout,
    Chunks,
    Coordinates,
    Sizes,
    leading_chunks,
    refined,
    starts_of,
)
from gatherum.dask.planning.routing import owners_of

from . import errors as dask_errors
from . import private
from .dask_call import DaskCall


class DaskOperands(NamedTuple):
    """A call, its operands as Dask arrays, and their aligned chunks."""

    call: DaskCall
    arrays: tuple[Any, ...]
    layout: ChunkLayout


def is_dask(value: object) -> bool:
    """Return True for a Dask array."""
    return isinstance(value, da.Array)


def spec(op: str, operand: str, value: Any) -> ArraySpec:
    """Return the spec, in C order, of a Dask or NumPy array."""
    if is_dask(value):
        _check_chunks(op, operand, value)
    return ArraySpec.contiguous(tuple(int(n) for n in value.shape), value.dtype)


def _check_chunks(op: str, operand: str, array: Any) -> None:
    """Raise an error for an array with unknown sizes, or with chunks that are not NumPy arrays."""
    if any(isnan(n) for n in array.shape):
        raise dask_errors.unknown_sizes(op, operand, array.shape)
    if array_likes.is_masked(private.meta(array)):
        raise errors.masked_array(op, operand)
    if not isinstance(private.meta(array), np.ndarray):
        raise dask_errors.not_numpy_chunks(op, operand, type(private.meta(array)))


def normalize(
    attributes: Attributes, data: object, indices: object, updates: object, fill_value: object
) -> DaskOperands:
    """Return a call and its operands, checked in the same order as for NumPy arrays."""
    op = attributes.op
    named = {"data": data, "indices": indices, "updates": updates}
    registry.check_one_framework(op, named | {"fill_value": fill_value})
    arrays, specs = conversion.as_operands(attributes, (data, indices, updates), is_dask, spec)
    call = build(Call(attributes, *specs)).call
    if attributes.fills:
        item = conversion.fill_item(op, call.data.dtype, fill_value).tobytes()
        filled = attributes._replace(fill=item if any(item) else b"")
        call = replace(call, attributes=filled)
    return _aligned(DaskCall(call), arrays)


def _aligned(call: DaskCall, operands: list[Any]) -> DaskOperands:
    """Return the operands as Dask arrays with aligned chunks."""
    array_call = call.array_call
    roles = call.dimensions
    data = operands[0].chunks if is_dask(operands[0]) else _default_chunks(operands[0])
    row = prod(max(data[d], default=1) for d in roles.free) * max(call.dtype.itemsize, 1)
    row += array_call.indices.dtype.itemsize
    indices = _index_chunks(call, roles, data, row, operands)
    layout = ChunkLayout(roles, data, indices, None)
    if call.operator.scatters:
        updates = operands[2]
        missing = len(layout.moved) - len(updates.shape)
        chunks = tuple(
            (1,) if n == 1 else sizes
            for n, sizes in zip(updates.shape, layout.moved[missing:], strict=True)
        )
        layout = ChunkLayout(roles, data, indices, chunks)
    if not is_dask(operands[1]) and layout.owners > 1 and operands[1].size <= KNOWN_MOST:
        layout = replace(layout, addressed=_addressed(call, layout, operands[1]))
    arrays = tuple(
        array if is_dask(array) else da.from_array(array, chunks=chunks)
        for array, chunks in zip(operands, layout.operands, strict=True)
    )
    return DaskOperands(call, arrays, layout)


# If indices are in memory, chunks of the result may exceed chunks of the data up to this size.
TINY_BYTES = 1 << 20
# Indices of at most this size are read while the graph is built, to skip chunks without entries.
KNOWN_MOST = 1 << 20


def _addressed(
    call: DaskCall, layout: ChunkLayout, indices: Any
) -> dict[Coordinates, tuple[int, ...]]:
    """Return the owners in each column that indices in memory address. Ignore invalid indices."""
    owners = {}
    for shared in layout.shared_coordinates():
        block = [slice(None)] * indices.ndim
        for d, n in zip(layout.roles.shared, shared, strict=True):
            start = starts_of(layout.indices[d])[n]
            block[d] = slice(start, start + layout.indices[d][n])
        block_indices = indices[(*block, ...)]  # an array, even with 0 dimensions
        owners[shared] = owners_of(call, layout.keyed, layout.column_shape(shared), block_indices)
    return owners


def _default_chunks(array: Any) -> Chunks:
    """Return the chunks of an array in memory: one chunk for a small array, or Dask's default."""
    if array.nbytes <= chunk_bytes():
        return tuple((n,) for n in array.shape)
    chunks: Chunks = da.core.normalize_chunks("auto", array.shape, dtype=array.dtype)
    return chunks


def _index_chunks(
    call: DaskCall, roles: Dimensions, data: Chunks, row_bytes: int, operands: list[Any]
) -> Chunks:
    """Return the chunks of the indices.

    Shared dimensions have the chunks of the data. Entry dimensions are divided in order. A
    dimension is divided only if a slice along the preceding dimensions still has too many entries.
    So a scatter's blocks are in row-major order.
    """
    shape = call.array_call.indices.shape
    chunks: list[Sizes] = [(position,) for position in shape]
    for dim in roles.shared:
        chunks[dim] = leading_chunks(data[dim], shape[dim])
        row_bytes *= max(1, *chunks[dim])
    most_entries = chunk_bytes() // row_bytes
    if not (call.operator.scatters or is_dask(operands[1])):
        # As in `dask.array.Array.vindex`, chunks of the result are no larger than chunks of the
        # data.
        row_count = prod(max(data[dim], default=1) for dim in roles.indexed)
        most_entries = min(most_entries, max(row_count, TINY_BYTES // row_bytes))
    entry = _entry_chunks(roles, shape, operands)
    for position, dim in enumerate(roles.entries):
        slices = prod(max(1, *sizes) for sizes in entry[position + 1 :])
        chunks[dim] = refined(entry[position], most_entries // slices)
        most_entries //= max(1, *chunks[dim])
    return tuple(chunks)


def _entry_chunks(roles: Dimensions, shape: tuple[int, ...], operands: list[Any]) -> list[Sizes]:
    """Return the chunks of the entry dimensions.

    A dimension shared with the updates is divided like the updates, because updates are larger. Any
    other dimension is divided like the indices. A scatter divides only the first entry dimension
    whose size is not 1.
    """
    indices, updates = operands[1], operands[-1]
    scatters = len(operands) > 2
    chunks: list[Sizes] = []
    for d, moved_dimension in zip(roles.entries, roles.moved_entries, strict=True):
        from_end = moved_dimension - len(roles.moved_dimensions)
        if scatters and any(sum(sizes) != 1 for sizes in chunks):
            chunks.append((shape[d],))
        elif (
            scatters
            and is_dask(updates)
            and -from_end <= updates.ndim
            and updates.shape[from_end] == shape[d]
        ):
            chunks.append(updates.chunks[from_end])
        else:
            chunks.append(indices.chunks[d] if is_dask(indices) else (shape[d],))
    return chunks
