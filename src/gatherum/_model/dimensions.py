"""The dimensions of a call have roles, which say what steps along each of them.

*Shared* ones belong to data and indices alike, with the same number. *Free* ones belong to the data
alone and move whole. *Entry* ones belong to the indices alone. Of these three is the shape of what
moves: a gather's result, a scatter's updates. *Indexed* ones are those of the data that the values
of indices count along.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Dimensions(NamedTuple):
    """The dimensions of a call by their roles.

    Attributes
    ----------
    moved : tuple of pairs
        Those of what moves, in order: the number of each in the data and in the indices, or None.
    entries : range
        As the indices number them.
    indexed : range
        One for each component of an index tuple.
    addressed : range
        The dimensions of the data that decide where an entry goes, by its position or its value:
        the shared and the indexed ones, which are neighbours.
    """

    moved: tuple[tuple[int | None, int | None], ...]
    entries: range
    indexed: range
    addressed: range

    @property
    def shared(self) -> tuple[int, ...]:
        """The shared dimensions."""
        return tuple(d for d in self.addressed if d not in self.indexed)

    @property
    def free(self) -> tuple[int, ...]:
        """The free dimensions, as the data number them."""
        return tuple(d for d, e in self.moved if d is not None and e is None)

    @property
    def moved_entries(self) -> range:
        """The entry dimensions, as what moves numbers them."""
        return range(self.indexed.start, self.indexed.start + len(self.entries))

    def choose(self, data: Any, indices: Any) -> tuple[Any, ...]:
        """Return for each dimension of what moves an item of those that the indices have, one of
        those that the data have where it is free.
        """
        return tuple(data[d] if e is None else indices[e] for d, e in self.moved)
