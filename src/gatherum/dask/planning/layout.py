"""Align the chunks of the operands.

`_model.dimensions` defines the roles of dimensions. A column is the set of blocks with the same
coordinates along shared and free dimensions; columns are independent. The blocks of data in a
column are its owners. Moved elements are a gather's result or a scatter's updates.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, product
from math import prod

from gatherum._model.dimensions import Dimensions
from gatherum._model.errors import Shape

Sizes = tuple[int, ...]
Chunks = tuple[Sizes, ...]
Coordinates = tuple[int, ...]


@dataclass(frozen=True)
class ChunkLayout:
    """The aligned chunks of the operands.

    `updates` are the chunks of a scatter's updates, which may have broadcast dimensions of size 1.
    `addressed` is None if the values of the indices are unknown. Otherwise it maps a column's
    coordinates along the shared dimensions to the owners that some entry addresses.
    """

    roles: Dimensions
    data: Chunks
    indices: Chunks
    updates: Chunks | None
    addressed: Mapping[Coordinates, tuple[int, ...]] | None = None

    @cached_property
    def moved(self) -> Chunks:
        """The chunks of the moved elements, which are the chunks of a gather's result."""
        return self.roles.choose(self.data, self.indices)

    @property
    def operands(self) -> list[Chunks]:
        """The chunks of data, indices and, for a scatter, updates."""
        chunks = [self.data, self.indices]
        return chunks if self.updates is None else [*chunks, self.updates]

    @property
    def keyed(self) -> Chunks:
        """The chunks of the keyed dimensions."""
        return tuple(self.data[d] for d in self.roles.indexed)

    @property
    def owners(self) -> int:
        """The number of blocks of the data in a column."""
        return prod(len(sizes) for sizes in self.keyed)

    def shared_coordinates(self) -> Iterator[Coordinates]:
        """Yield the coordinates of blocks of the indices along the shared dimensions."""
        return grid_coordinates(self.indices[d] for d in self.roles.shared)

    def free_coordinates(self) -> Iterator[Coordinates]:
        """Yield the coordinates of blocks along the free dimensions."""
        return grid_coordinates(self.data[d] for d in self.roles.free)

    def entry_coordinates(self) -> list[Coordinates]:
        """Return the coordinates of blocks along the entry dimensions, in row-major order."""
        return list(grid_coordinates(self.indices[d] for d in self.roles.entries))

    def keyed_coordinates(self) -> list[Coordinates]:
        """Return the coordinates of blocks along the keyed dimensions, in row-major order."""
        return list(grid_coordinates(self.keyed))

    def data_at(self, shared: Coordinates, free: Coordinates, keyed: Coordinates) -> Coordinates:
        """Return the coordinates of a block of the data."""
        r = self.roles
        return _placed(len(self.data), (r.shared, shared), (r.free, free), (r.indexed, keyed))

    def indices_at(self, shared: Coordinates, entry: Coordinates) -> Coordinates:
        """Return the coordinates of a block of the indices."""
        r = self.roles
        return _placed(len(self.indices), (r.shared, shared), (r.entries, entry))

    def moved_at(self, shared: Coordinates, free: Coordinates, entry: Coordinates) -> Coordinates:
        """Return the coordinates of a block of moved elements."""
        r = self.roles
        of_data = dict(zip(r.free, free, strict=True))
        of_indices = dict(zip((*r.shared, *r.entries), (*shared, *entry), strict=True))
        return r.choose(of_data, of_indices)

    def updates_at(self, coordinates: Coordinates) -> Coordinates:
        """Return the coordinates of the block of updates for a block of moved elements."""
        assert self.updates is not None
        missing = len(coordinates) - len(self.updates)
        whole = self.moved[missing:]
        return tuple(
            n if len(sizes) == len(full) else 0
            for n, sizes, full in zip(coordinates[missing:], self.updates, whole, strict=True)
        )

    def column_shape(self, shared: Coordinates) -> Shape:
        """Return the shape of the data that the entries of a column address."""
        shape = [sum(sizes) for sizes in self.data]
        for d, n in zip(self.roles.shared, shared, strict=True):
            shape[d] = self.data[d][n]
        return tuple(shape)

    def table_shape(self, shared: Coordinates, free: Coordinates) -> Shape:
        """Return the shape of a column's data, with all its blocks joined."""
        shape = list(self.column_shape(shared))
        for d, n in zip(self.roles.free, free, strict=True):
            shape[d] = self.data[d][n]
        return tuple(shape)

    def within_column(self, coordinates: Coordinates) -> Shape:
        """Return the position of a block's first element within its column of the data."""
        keyed = self.roles.indexed
        return tuple(
            starts_of(sizes)[n] if d in keyed else 0
            for d, (sizes, n) in enumerate(zip(self.data, coordinates, strict=True))
        )

    @property
    def column_elements(self) -> int:
        """The number of elements of data in the largest column."""
        extents = (max(self.data[d]) for d in (*self.roles.shared, *self.roles.free))
        return prod(extents) * prod(sum(sizes) for sizes in self.keyed)

    def moved_shape(self, coordinates: Coordinates) -> Shape:
        """Return the shape of a block of moved elements."""
        return tuple(sizes[n] for sizes, n in zip(self.moved, coordinates, strict=True))

    def data_shape(self, coordinates: Coordinates) -> Shape:
        """Return the shape of a block of the data."""
        return tuple(sizes[n] for sizes, n in zip(self.data, coordinates, strict=True))

    def origin(self, coordinates: Coordinates) -> Shape:
        """Return the position of the first element of a block of the indices."""
        return tuple(starts[n] for starts, n in zip(self._starts, coordinates, strict=True))

    @cached_property
    def _starts(self) -> tuple[Sizes, ...]:
        return tuple(starts_of(sizes) for sizes in self.indices)

    def owner_weights(self) -> list[int]:
        """Return the maximum number of elements of each owner of a column, in row-major order."""
        elements = prod(max(self.data[d]) for d in (*self.roles.shared, *self.roles.free))
        return [elements * prod(sizes) for sizes in product(*self.keyed)]

    def entry_weights(self) -> list[int]:
        """Return the maximum number of elements that move with each block of entries."""
        elements = prod(max(self.data[d]) for d in self.roles.free)
        return [elements * count for count in self.entry_counts()]

    def entry_counts(self) -> list[int]:
        """Return the maximum number of entries in each block."""
        shared = prod(max(self.indices[d]) for d in self.roles.shared)
        return [shared * prod(s) for s in product(*(self.indices[d] for d in self.roles.entries))]


def _placed(rank: int, *parts: tuple[Sequence[int], Coordinates]) -> Coordinates:
    coordinates = [0] * rank
    for dims, coordinates_of_dims in parts:
        for d, n in zip(dims, coordinates_of_dims, strict=True):
            coordinates[d] = n
    return tuple(coordinates)


def grid_coordinates(chunks: Iterator[Sizes] | Sequence[Sizes]) -> Iterator[Coordinates]:
    """Yield the coordinates of a grid of blocks in row-major order."""
    return product(*(range(len(sizes)) for sizes in chunks))


def starts_of(sizes: Sizes) -> Sizes:
    """Return the start of each chunk."""
    return tuple(accumulate(sizes, initial=0))[:-1]


def leading_chunks(sizes: Sizes, extent: int) -> Sizes:
    """Return the leading chunks, at least one, that cover an extent of a dimension."""
    chunks: list[int] = []
    for size in sizes:
        if chunks and extent == 0:
            break
        chunks.append(min(size, extent))
        extent -= chunks[-1]
    return tuple(chunks)


def refined(sizes: Sizes, most_elements: int) -> Sizes:
    """Divide chunks into equal parts of at most `most_elements` elements."""
    chunks: list[int] = []
    for size in sizes:
        parts = max(1, -(-size // max(1, most_elements)))
        chunks += [size * (n + 1) // parts - size * n // parts for n in range(parts)]
    return tuple(chunks)


def runs_within(
    weights: Sequence[int], limit: int, members: Sequence[int] | None = None
) -> list[range]:
    """Divide the numbers of `weights` into runs of adjacent numbers.

    The weights of a run sum to at most `limit`, unless the run contains only one number. With
    `members`, which must be in ascending order, the runs contain only these numbers.
    """
    runs: list[range] = []
    total = 0
    for block in range(len(weights)) if members is None else members:
        if runs and block == runs[-1].stop and total + weights[block] <= limit:
            runs[-1] = range(runs[-1].start, block + 1)
        else:
            runs.append(range(block, block + 1))
            total = 0
        total += weights[block]
    return runs
