"""Find the chunk of the table that each entry addresses, and the first invalid entry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gatherum._arguments.indices import Invalid, first_invalid, number_entries
from gatherum._model import errors
from gatherum._model.arrays import NumpyArray
from gatherum._model.dtypes import is_index
from gatherum._model.errors import Shape
from gatherum._plans.index_errors import invalid_index
from gatherum.dask.dask_call import DaskCall

from .layout import Chunks, starts_of

Ints = NDArray[Any]


class OwnerRows(NamedTuple):
    """The rows requested from adjacent owners. `starts` contains the start of each owner's rows."""

    starts: Ints
    rows: Ints


@dataclass(frozen=True)
class ChunkRoute:
    """The entries of adjacent blocks, ordered by the owners of the rows that they address."""

    size: int  # the number of entries of the blocks, including invalid ones
    order: Ints  # the positions of the valid entries, by owner; ascending for each owner
    starts: Ints  # the start of each owner's entries in `order`, and the end
    rows: Ints  # row numbers within the owners
    invalid: Invalid | None  # the first entry that makes the call raise

    def part(self, first: int, last: int) -> OwnerRows:
        """Return the rows requested from the owners with numbers `first` to `last - 1`."""
        starts = self.starts[first : last + 1]
        return OwnerRows(starts - starts[0], self.rows[starts[0] : starts[-1]])


def find_invalid(call: DaskCall, shape: Shape, origin: Shape, block: NumpyArray) -> Invalid | None:
    """Return the first entry of a block of indices that makes the call raise, or None."""
    _check_dtype(call, block)
    array_call, operator = call.array_call, call.operator
    sizes = [shape[d] for d in operator.indexed(block.shape, call.axis)]
    invalid = first_invalid(
        block, sizes, array_call.mode, array_call.negative, operator.takes_tuples
    )
    if invalid is None:
        return None
    where = tuple(a + b for a, b in zip(origin, invalid.where, strict=False))
    return invalid._replace(where=where)


def refuse_invalid(call: DaskCall, invalid: Sequence[Invalid | None]) -> None:
    """Raise IndexError for the first invalid entry of all blocks, in row-major order."""
    if first := _first_invalid(invalid):
        raise invalid_index(call.array_call, first.component, first.value, first.where)


def _first_invalid(invalid: Sequence[Invalid | None]) -> Invalid | None:
    """Return the first invalid entry in row-major order. Entries of adjacent blocks interleave."""
    return min(filter(None, invalid), default=None)


def make_route(
    call: DaskCall,
    keyed: Chunks,
    shape: Shape,
    origins: Sequence[Shape],
    blocks: Sequence[NumpyArray],
) -> ChunkRoute:
    """Return the entries of adjacent blocks, ordered by the owners of their rows.

    `shape` is the shape of the column's data; `keyed` are the chunks of the dimensions that indices
    address.
    """
    invalid: list[Invalid | None] = []
    parts = []
    for origin, block in zip(origins, blocks, strict=True):
        parts.append(_row_numbers(call, shape, block))
        if call.raises_if_invalid:
            invalid.append(find_invalid(call, shape, origin, block))
    row_numbers = parts[0] if len(parts) == 1 else np.concatenate(parts)
    valid = np.flatnonzero(row_numbers >= 0) if (row_numbers < 0).any() else None
    owner, row = _owners_and_rows(
        call, keyed, shape, row_numbers if valid is None else row_numbers[valid]
    )
    owners = prod(len(sizes) for sizes in keyed)
    order = np.argsort(owner.astype(np.min_scalar_type(max(owners - 1, 0))), kind="stable")
    starts = np.zeros(owners + 1, np.int64)
    np.cumsum(np.bincount(owner, minlength=owners), out=starts[1:])
    positions = order if valid is None else valid[order]
    return ChunkRoute(
        row_numbers.size,
        _narrowest(positions),
        starts,
        _narrowest(row[order]),
        _first_invalid(invalid),
    )


def owners_of(call: DaskCall, keyed: Chunks, shape: Shape, block: NumpyArray) -> tuple[int, ...]:
    """Return the owners of the rows that the entries of a block address, in ascending order."""
    row_numbers = _row_numbers(call, shape, block)
    owner, _ = _owners_and_rows(call, keyed, shape, row_numbers[row_numbers >= 0])
    return tuple(np.flatnonzero(np.bincount(owner)).tolist())


def _row_numbers(call: DaskCall, shape: Shape, block: NumpyArray) -> NDArray[np.int64]:
    """Return the number of the row that each entry addresses in the data of its column."""
    _check_dtype(call, block)
    array_call, operator = call.array_call, call.operator
    space, axis = operator.space(shape, block.shape, call.axis)
    return number_entries(operator, space, block, axis, array_call.mode, array_call.negative)


def _check_dtype(call: DaskCall, block: NumpyArray) -> None:
    """Raise TypeError for a block without an integer dtype, even if its array declares one."""
    if not is_index(block.dtype):
        raise errors.not_an_index_dtype(call.operator.name, block.dtype, call.operator.takes_tuples)


def _owners_and_rows(
    call: DaskCall, keyed: Chunks, shape: Shape, row_numbers: NDArray[np.int64]
) -> tuple[Ints, Ints]:
    """Return the owner of each row of a column, and the number of the row within its owner."""
    array_call = call.array_call
    space, first_dim = call.operator.space(shape, array_call.indices.shape, call.axis)
    chunks = {first_dim + n: sizes for n, sizes in enumerate(keyed)}
    if len(space) == 1 and chunks:
        starts = np.array(starts_of(chunks[0]), np.int64)
        owner = np.searchsorted(starts, row_numbers, side="right") - 1
        return owner, row_numbers - starts[owner]
    owner, row = np.zeros(row_numbers.size, np.int64), np.zeros(row_numbers.size, np.int64)
    # Products of the sizes of the dimensions that the loop has processed.
    owners = 1
    rows: Any = 1
    for d in reversed(range(len(space))):
        row_numbers, position = np.divmod(row_numbers, max(space[d], 1))
        if d in chunks:
            starts = np.array(starts_of(chunks[d]), np.int64)
            chunk_numbers = np.searchsorted(starts, position, side="right") - 1
            owner += chunk_numbers * owners
            row += (position - starts[chunk_numbers]) * rows
            owners = owners * len(starts)
            rows = rows * np.array(chunks[d], np.int64)[chunk_numbers]
        else:
            row += position * rows
            rows = rows * max(space[d], 1)
    return owner, row


def _narrowest(row_numbers: Ints) -> Ints:
    """Convert nonnegative integers to the narrowest integer type that can hold them."""
    return row_numbers.astype(np.min_scalar_type(int(row_numbers.max(initial=0))), copy=False)
