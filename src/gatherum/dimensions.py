"""The dimensions of a call have roles, which say what steps along each of them.

*Shared* ones belong to data and indices alike, with the same number. *Free* ones belong to the data
alone and move whole. *Entry* ones belong to the indices alone. Of these three is the shape of what
moves: a gather's result, a scatter's updates. *Indexed* ones are those of the data that the values
of indices count along.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Dimension(NamedTuple):
    """A dimension of what moves: its number in the data and in the indices, or None."""

    data: int | None
    indices: int | None

    def choose(self, data: Any, indices: Any) -> Any:
        """Return an item of what the dimensions of the data have where it is free, else one of what
        those of the indices have.
        """
        return data[self.data] if self.indices is None else indices[self.indices]


class Dimensions(NamedTuple):
    """The dimensions of a call by their roles.

    Attributes
    ----------
    moved : tuple of Dimension
        Those of what moves, in order.
    shared, free : tuple of int
        As the data number them.
    entries : range
        As the indices number them.
    indexed : range
        One for each component of an index tuple.
    """

    moved: tuple[Dimension, ...]
    shared: tuple[int, ...]
    free: tuple[int, ...]
    entries: range
    indexed: range

    @property
    def addressed(self) -> range:
        """The dimensions of the data that decide where an entry goes, by its position or its value:
        the shared and the indexed ones, which are neighbours.
        """
        start = min((self.indexed.start, *self.shared))
        return range(start, start + len(self.shared) + len(self.indexed))

    @property
    def moved_entries(self) -> range:
        """The entry dimensions, as what moves numbers them."""
        return range(self.indexed.start, self.indexed.start + len(self.entries))
