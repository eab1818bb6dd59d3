"""Sort the edges of a graph by target, to fold them. An edge has a source and a target index."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import NamedTuple

import numpy as np

from gatherum._model import errors, nests, shape_limits
from gatherum._model.arrays import NumpyArray
from gatherum._model.call import FoldRule
from gatherum._model.dtypes import index_fields
from gatherum._model.nests import Component, Loop, Nest
from gatherum._model.shape_limits import OperandLayout
from gatherum._system import native


class EdgeEnd(NamedTuple):
    """One end of the edges: the name of the operand, the indices, their upper bound, and the axis
    that they address.
    """

    operand: str
    indices: NumpyArray
    size: int
    axis: int = 0


class EdgeLoops(NamedTuple):
    """Loops over the edges, outermost first.

    Each loop has strides for the targets (`data`), the sources (`index`) and the weights (`other`).
    """

    loops: tuple[Loop, ...]

    @classmethod
    def of(cls, targets: NumpyArray, sources: NumpyArray, weights: Sequence[int]) -> EdgeLoops:
        """Merge dimensions that one loop can step through. Without edges, return no loops."""
        steps = (targets.shape, targets.strides, sources.strides, weights)
        if 0 in targets.shape:
            return cls(())
        merged = nests.collapse(Loop(*loop) for loop in zip(*steps, strict=True))
        return cls(tuple(merged) or (nests.ONCE,))

    def end_program(
        self, end: EdgeEnd, steps: Sequence[int], mode: str, negative: bool
    ) -> native.Program:
        """Return a program that iterates, in order, over the indices of one end of the edges."""
        extents = [loop.extent for loop in self.loops]
        loops = list(map(Loop, extents, repeat(0), steps, repeat(0)))
        component = Component(end.size, 1, 0)  # the elements that the indices address
        nest = Nest(len(loops) - 1, tuple(loops), (component,), 0)
        fields = index_fields(end.indices.dtype, mode, negative)
        return native.Program(**fields, checks=nest if loops else nests.EMPTY)

    def make_lists(
        self,
        op: str,
        targets: EdgeEnd,
        sources: EdgeEnd | None,
        numbered: bool,
        mode: str,
        negative: bool,
        per_list: int = 1,
    ) -> native.RowLists:
        """Return the edges sorted by target, or raise IndexError.

        Each list contains the edges of `per_list` targets. Lists of several targets are supported
        only for rows of one element.
        """
        target_program = self.end_program(
            targets, [loop.data for loop in self.loops], mode, negative
        )
        source_program = None
        if sources is not None:
            source_program = self.end_program(
                sources, [loop.index for loop in self.loops], mode, negative
            )
        result = native.make_lists(
            targets.size,
            per_list,
            target_program,
            targets.indices,
            source_program,
            None if sources is None else sources.indices,
            numbered,
        )
        if isinstance(result, native.RowLists):
            return result
        end_name, position, value = result
        end = targets if end_name == "targets" or sources is None else sources
        raise _invalid_index(op, end, position, value, mode)

    def make_pointer(self, targets: EdgeEnd, mode: str, negative: bool) -> NumpyArray | None:
        """Return the CSR pointer of edges whose targets are valid and ascend, or None for others.

        Also return None if the result has more rows than there are edges, because the lists then
        need less memory than the pointer.
        """
        if len(self.loops) != 1 or targets.size > targets.indices.size:
            return None
        program = self.end_program(targets, [self.loops[0].data], mode, negative)
        pointer = np.empty(targets.size + 1, np.int64)
        return pointer if native.make_pointer(program, targets.indices, pointer) else None

    def fold_pointed(
        self,
        op: str,
        pointer: EdgeEnd,
        sources: EdgeEnd,
        mode: str,
        negative: bool,
        program: native.Program,
        table: NumpyArray,
        weights: NumpyArray | None,
        item_without_edges: NumpyArray,
        out: NumpyArray,
        discards_on_error: bool,
    ) -> bool:
        """Fold rows along edges that are sorted by target.

        The CSR pointer contains the range of edges of each target. If the pointer is invalid,
        return False and change nothing. Raise IndexError for an invalid source.
        """
        entries = EdgeLoops.of(pointer.indices, pointer.indices, (0,))
        counted = pointer._replace(size=sources.indices.size + 1)
        target_program = entries.end_program(
            counted, [loop.index for loop in entries.loops], "raise", False
        )
        source_program = self.end_program(
            sources, [loop.index for loop in self.loops], mode, negative
        )
        ends = target_program, pointer.indices, source_program, sources.indices
        invalid = native.fold_pointed(
            *ends, program, table, weights, item_without_edges, out, discards_on_error
        )
        if invalid is None:
            return True
        end_name, position, value = invalid
        if end_name == "pointer":
            return False
        raise _invalid_index(op, sources, position, value, mode)

    def row_program(self, table: NumpyArray, out: NumpyArray, fold: FoldRule) -> native.Program:
        """Return the program that folds the rows of one array into the rows of another."""
        dtype = table.dtype
        rows, out_rows = (
            OperandLayout(array.shape[1:], array.strides[1:]) for array in (table, out)
        )
        weights = [Loop(loop.extent, 0, 0, loop.moved) for loop in self.loops]
        nest = Nest(len(weights) - 1, tuple(weights), (), 0) if weights else nests.EMPTY
        return native.Program(
            scatter=True,
            item=dtype.itemsize,
            **fold.fields(dtype),
            checks=nest,
            copy=nests.lower_copy(rows, out_rows, dtype.itemsize),
        )


def _invalid_index(op: str, end: EdgeEnd, edge: int, value: int, mode: str) -> IndexError:
    position = shape_limits.coordinates_of(edge, end.indices.shape) if edge >= 0 else None
    return errors.index_out_of_bounds(op, value, end.axis, end.size, position, mode, end.operand)
