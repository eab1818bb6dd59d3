"""Reduce rows along edges, into memory for the result."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from gatherum._edges import sparse_edges
from gatherum._edges.edge_lists import EdgeEnd, EdgeLoops
from gatherum._edges.edge_reductions import NAME
from gatherum._model.arrays import NumpyArray
from gatherum._model.call import FoldRule

# For fewer edges, lists are faster: a pointer takes 0.05 ms more per call, and lists take 3 ns more
# per edge (800k rows of 64 float32 into 20k).
_FEWEST_SORTED_EDGES = 16_384


class EdgeFold(NamedTuple):
    """The rows, weights, result and options of a fold along edges."""

    table: NumpyArray
    out: NumpyArray
    # Their shape is the shape of the edges, followed by the first sizes of a row.
    weights: NumpyArray | None
    reduction: str
    mode: str
    negative: bool
    item_without_edges: NumpyArray
    discards_on_error: bool  # whether the result is discarded after an error

    def fold(self, sources: EdgeEnd, targets: EdgeEnd) -> None:
        """Store the result for edges with a source and a destination index."""
        edges = EdgeLoops.of(targets.indices, sources.indices, self._weight_steps(sources))
        pointer = None
        if self.out.size > 0 and targets.indices.size >= _FEWEST_SORTED_EDGES:
            pointer = edges.make_pointer(targets, self.mode, self.negative)
        if pointer is not None and self._fold_pointed(sources, targets._replace(indices=pointer)):
            return
        weighs = self.weights is not None
        lists = edges.make_lists(NAME, targets, sources, weighs, self.mode, self.negative)
        for table, out, weights in self._parts_with_one_weight(sources):
            program = edges.row_program(table, out, FoldRule.afresh(self.reduction))
            lists.fold(
                program, table, weights, None, self.item_without_edges, out, self.discards_on_error
            )

    def fold_pointed(self, sources: EdgeEnd, pointer: EdgeEnd) -> None:
        """Store the result for edges sorted by destination, with each row's range in `pointer`."""
        if not self._fold_pointed(sources, pointer):
            count = len(sources.indices)
            segments = sparse_edges.segment_numbers(NAME, pointer.operand, pointer.indices, count)
            self.fold(sources, pointer._replace(indices=segments))

    def _fold_pointed(self, sources: EdgeEnd, pointer: EdgeEnd) -> bool:
        """Fold the rows of each range in `pointer`.

        Return False and change nothing if the pointer is invalid or the result has no elements.
        """
        edges = EdgeLoops.of(sources.indices, sources.indices, self._weight_steps(sources))
        for table, out, weights in self._parts_with_one_weight(sources):
            program = edges.row_program(table, out, FoldRule.afresh(self.reduction))
            inputs = self.mode, self.negative, program, table, weights, self.item_without_edges
            if not edges.fold_pointed(NAME, pointer, sources, *inputs, out, self.discards_on_error):
                return False
        return self.out.size > 0

    def _weight_steps(self, sources: EdgeEnd) -> tuple[int, ...]:
        """Return the strides of the weights over the edges."""
        rank = sources.indices.ndim
        return (0,) * rank if self.weights is None else self.weights.strides[:rank]

    def _parts_with_one_weight(
        self, sources: EdgeEnd
    ) -> Iterator[tuple[NumpyArray, NumpyArray, NumpyArray | None]]:
        """Divide rows, results and weights into parts in which an edge has a single weight."""
        rank = sources.indices.ndim
        if self.out.size == 0:
            return
        if self.weights is None or self.weights.ndim == rank:
            yield self.table, self.out, self.weights
            return
        steps = self.weights.strides[rank:]
        extents = zip(self.weights.shape[rank:], steps, strict=True)
        for coordinates in np.ndindex(*(n if step else 1 for n, step in extents)):
            index = zip(coordinates, steps, strict=True)
            part_of_rows = slice(None), *(at if step else slice(None) for at, step in index)
            weights = self.weights[(*(slice(None),) * rank, *coordinates, ...)]
            yield self.table[part_of_rows], self.out[part_of_rows], weights
