"""A layout aligns the chunks of the operands: blocks, columns and groups.

Dimensions have the roles of `dimensions`. Blocks that agree in shared and free dimensions are a
column, a problem of its own.
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
Place = tuple[int, ...]


@dataclass(frozen=True)
class ChunkLayout:
    """The chunks of the operands, aligned; `updates` are those of a scatter's, dimensions of size
    1 that broadcast among them.

    Where values of indices are known while the call is made, `addressed` are the owners in each
    column that some entry addresses, by the column's place along the shared dimensions.
    """

    roles: Dimensions
    data: Chunks
    indices: Chunks
    updates: Chunks | None
    addressed: Mapping[Place, tuple[int, ...]] | None = None

    @cached_property
    def moved(self) -> Chunks:
        """The chunks of what moves: a gather's result."""
        return self.roles.choose(self.data, self.indices)

    @property
    def operands(self) -> list[Chunks]:
        """The chunks of data, indices and, for a scatter, updates."""
        found = [self.data, self.indices]
        return found if self.updates is None else [*found, self.updates]

    @property
    def keyed(self) -> Chunks:
        """The chunks of the keyed dimensions."""
        return tuple(self.data[d] for d in self.roles.indexed)

    @property
    def owners(self) -> int:
        """How many blocks of the data a column has."""
        return prod(len(sizes) for sizes in self.keyed)

    def shared_places(self) -> Iterator[Place]:
        """Yield the places of blocks along the shared dimensions, of the indices."""
        return places(self.indices[d] for d in self.roles.shared)

    def free_places(self) -> Iterator[Place]:
        """Yield the places of blocks along the free dimensions."""
        return places(self.data[d] for d in self.roles.free)

    def entry_places(self) -> list[Place]:
        """Return the places of blocks along the entry dimensions, in row-major order."""
        return list(places(self.indices[d] for d in self.roles.entries))

    def keyed_places(self) -> list[Place]:
        """Return the places of blocks along the keyed dimensions, in row-major order."""
        return list(places(self.keyed))

    def data_at(self, shared: Place, free: Place, keyed: Place) -> Place:
        """Return where a block of the data is."""
        r = self.roles
        return _placed(len(self.data), (r.shared, shared), (r.free, free), (r.indexed, keyed))

    def indices_at(self, shared: Place, entry: Place) -> Place:
        """Return where a block of the indices is."""
        r = self.roles
        return _placed(len(self.indices), (r.shared, shared), (r.entries, entry))

    def moved_at(self, shared: Place, free: Place, entry: Place) -> Place:
        """Return where a block of what moves is."""
        r = self.roles
        of_data = dict(zip(r.free, free, strict=True))
        of_indices = dict(zip((*r.shared, *r.entries), (*shared, *entry), strict=True))
        return r.choose(of_data, of_indices)

    def updates_at(self, moved: Place) -> Place:
        """Return where the block of the updates is that broadcasts to a block of what moves."""
        assert self.updates is not None
        missing = len(moved) - len(self.updates)
        whole = self.moved[missing:]
        return tuple(
            n if len(sizes) == len(full) else 0
            for n, sizes, full in zip(moved[missing:], self.updates, whole, strict=True)
        )

    def column_shape(self, shared: Place) -> Shape:
        """Return the shape of the data that the entries of a column address."""
        shape = [sum(sizes) for sizes in self.data]
        for d, n in zip(self.roles.shared, shared, strict=True):
            shape[d] = self.data[d][n]
        return tuple(shape)

    def table_shape(self, shared: Place, free: Place) -> Shape:
        """Return the shape of a column's data, all its blocks as one."""
        shape = list(self.column_shape(shared))
        for d, n in zip(self.roles.free, free, strict=True):
            shape[d] = self.data[d][n]
        return tuple(shape)

    def within_column(self, at: Place) -> Shape:
        """Return where a block of the data starts in its column."""
        keyed = self.roles.indexed
        return tuple(
            starts_of(sizes)[n] if d in keyed else 0
            for d, (sizes, n) in enumerate(zip(self.data, at, strict=True))
        )

    @property
    def column_elements(self) -> int:
        """How many elements of the data the largest column has."""
        beside = (max(self.data[d]) for d in (*self.roles.shared, *self.roles.free))
        return prod(beside) * prod(sum(sizes) for sizes in self.keyed)

    def moved_shape(self, at: Place) -> Shape:
        """Return the shape of a block of what moves."""
        return tuple(sizes[n] for sizes, n in zip(self.moved, at, strict=True))

    def data_shape(self, at: Place) -> Shape:
        """Return the shape of a block of the data."""
        return tuple(sizes[n] for sizes, n in zip(self.data, at, strict=True))

    def origin(self, at: Place) -> Shape:
        """Return the position of the first element of a block of the indices."""
        return tuple(starts[n] for starts, n in zip(self._starts, at, strict=True))

    @cached_property
    def _starts(self) -> tuple[Sizes, ...]:
        return tuple(starts_of(sizes) for sizes in self.indices)

    def owner_weights(self) -> list[int]:
        """Return the elements of each owner of a column, at most, in row-major order."""
        beside = prod(max(self.data[d]) for d in (*self.roles.shared, *self.roles.free))
        return [beside * prod(sizes) for sizes in product(*self.keyed)]

    def entry_weights(self) -> list[int]:
        """Return the elements that move with each block of entries, at most."""
        beside = prod(max(self.data[d]) for d in self.roles.free)
        return [beside * count for count in self.entry_counts()]

    def entry_counts(self) -> list[int]:
        """Return how many entries each block of them has, at most."""
        beside = prod(max(self.indices[d]) for d in self.roles.shared)
        return [beside * prod(s) for s in product(*(self.indices[d] for d in self.roles.entries))]


def _placed(rank: int, *parts: tuple[Sequence[int], Place]) -> Place:
    at = [0] * rank
    for dims, numbers in parts:
        for d, n in zip(dims, numbers, strict=True):
            at[d] = n
    return tuple(at)


def places(chunks: Iterator[Sizes] | Sequence[Sizes]) -> Iterator[Place]:
    """Yield the places of a grid of blocks in row-major order."""
    return product(*(range(len(sizes)) for sizes in chunks))


def starts_of(sizes: Sizes) -> Sizes:
    """Return where each chunk starts."""
    return tuple(accumulate(sizes, initial=0))[:-1]


def leading_chunks(sizes: Sizes, extent: int) -> Sizes:
    """Return the leading chunks of a dimension that cover an extent, at least one."""
    found: list[int] = []
    for size in sizes:
        if found and extent == 0:
            break
        found.append(min(size, extent))
        extent -= found[-1]
    return tuple(found)


def refined(sizes: Sizes, most: int) -> Sizes:
    """Return chunks of at most `most`, each an equal part of one of the given ones."""
    found: list[int] = []
    for size in sizes:
        parts = max(1, -(-size // max(1, most)))
        found += [size * (n + 1) // parts - size * n // parts for n in range(parts)]
    return tuple(found)


def runs_within(
    weights: Sequence[int], limit: int, members: Sequence[int] | None = None
) -> list[range]:
    """Return runs of neighbours whose weights add up to at most `limit`, at least one in each.

    With `members`, in ascending order, there are no others in the runs.
    """
    found: list[range] = []
    held = 0
    for number in range(len(weights)) if members is None else members:
        if found and number == found[-1].stop and held + weights[number] <= limit:
            found[-1] = range(found[-1].start, number + 1)
        else:
            found.append(range(number, number + 1))
            held = 0
        held += weights[number]
    return found
