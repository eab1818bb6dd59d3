"""The roles of the dimensions of a call.

*Shared* dimensions are common to data and indices and have the same number in both. *Free*
dimensions exist only in the data and are copied completely. *Entry* dimensions exist only in the
indices. These three form the moved shape, which is the shape of a gather's result or of a scatter's
updates. *Indexed* dimensions are the data dimensions that index values address.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Dimensions(NamedTuple):
    """The dimensions of a call by role.

    Attributes
    ----------
    moved_dimensions : tuple of pairs
        For each dimension of the moved shape, in order: its number in the data and its number in
        the indices. The number is None if the array does not have the dimension.
    entries : range
        The entry dimensions, numbered as in the indices.
    indexed : range
        The indexed dimensions, one for each component of an index tuple.
    addressed : range
        The shared and the indexed data dimensions, which are adjacent. They determine the
        destination of an entry: the shared ones by its position, the indexed ones by its value.
    """

    moved_dimensions: tuple[tuple[int | None, int | None], ...]
    entries: range
    indexed: range
    addressed: range

    @property
    def shared(self) -> tuple[int, ...]:
        """The shared dimensions."""
        return tuple(d for d in self.addressed if d not in self.indexed)

    @property
    def free(self) -> tuple[int, ...]:
        """The free dimensions, numbered as in the data."""
        return tuple(d for d, e in self.moved_dimensions if d is not None and e is None)

    @property
    def moved_entries(self) -> range:
        """The entry dimensions, numbered as in the moved shape."""
        return range(self.indexed.start, self.indexed.start + len(self.entries))

    def choose(self, data: Any, indices: Any) -> tuple[Any, ...]:
        """Return an item for each dimension of the moved shape.

        The item is from `data` for a free dimension, and from `indices` otherwise.
        """
        return tuple(data[d] if e is None else indices[e] for d, e in self.moved_dimensions)
