"""Updates of prepared scatters, sorted once by destination for many runs."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from gatherum._arguments import conversion
from gatherum._arguments.indices import number_entries
from gatherum._edges.edge_lists import EdgeEnd, EdgeLoops
from gatherum._model import nests
from gatherum._model.arrays import NumpyArray
from gatherum._model.call import Call
from gatherum._model.errors import Shape
from gatherum._model.nests import Loop
from gatherum._model.shape_limits import OperandLayout
from gatherum._plans.overlap import check_out_memory
from gatherum._system import native

# Shorter rows are folded faster in the order of the updates, because a list would be as large as
# the rows.
SHORTEST_ROW = 32
# Lists are used for items only if there are at least FEWEST_ITEMS updates, at least one update for
# each destination, and at least FEWEST_BYTES of results. Below these limits one thread is as fast
# as two. A list covers about LIST_BYTES of results, so that their accumulators fit into a core's
# private cache.
FEWEST_ITEMS = 1 << 16
FEWEST_BYTES = 32 << 10
LIST_BYTES = 1 << 20


class SortedUpdates(NamedTuple):
    """The updates of a scatter, sorted by destination, `per_list` destinations in one list."""

    call: Call
    lists: native.RowLists
    edges: EdgeLoops
    per_list: int
    keyed: int  # the number of leading dimensions of the data that indices address
    entries: int  # the number of leading dimensions of the updates that have an index
    moved_shape: Shape

    def is_faster(self) -> bool:
        """Return True if `fold` is faster than the operator.

        On one thread, updates are often folded faster in their original order.
        """
        needs_accumulator = self.call.attributes.fold.needs_accumulator(self.call.data.dtype)
        return native.get_num_threads() > 1 or (needs_accumulator and self.per_list == 1)

    def fold(
        self, data: NumpyArray, indices: NumpyArray, updates: object, out: object
    ) -> NumpyArray | None:
        """Fold updates. Return None if the updates or the result cannot be viewed as rows."""
        call = self.call
        values = conversion.as_updates(call.op, updates, data.dtype)
        if values.shape != self.moved_shape or values.dtype != data.dtype:
            return None  # the operator broadcasts the updates, or raises
        plain_out = None
        if out is not None:
            plain_out = conversion.as_plain_out(call.op, out, data.shape, data.dtype)
            check_out_memory(call.op, data, indices, values, plain_out)
        source = _rows_of(values, self.entries)
        result: NumpyArray = (
            native.new_result(data.dtype, data.shape) if plain_out is None else plain_out
        )
        target, initial = _rows_of(result, self.keyed), _rows_of(data, self.keyed)
        if source is None or target is None or initial is None or initial.strides != target.strides:
            return None
        pins = conversion.pinned(values, data, plain_out)
        program = self.edges.row_program(source, target, call.attributes.fold)
        item_without_updates = np.zeros((), data.dtype)
        self.lists.fold(program, source, None, initial, item_without_updates, target, out is None)
        del pins
        return result if out is None else out  # type: ignore[return-value]  # as_out has checked it


def _rows_of(array: NumpyArray, leading: int) -> NumpyArray | None:
    """View the leading dimensions as one. Return None if their strides do not allow it."""
    steps = zip(array.shape[:leading], array.strides[:leading], strict=True)
    merged = nests.collapse(Loop(n, step, 0, 0) for n, step in steps) or [nests.ONCE]
    if len(merged) > 1:
        return None
    shape = (prod(array.shape[:leading]), *array.shape[leading:])
    return as_strided(array, shape, (merged[0].data, *array.strides[leading:]))


def sort_updates(call: Call, indices: NumpyArray) -> SortedUpdates | None:
    """Sort the updates of a call by their checked indices.

    Return None if sorted updates would not be faster, or if the call is not a scatter that reduces
    along the first dimensions.
    """
    axis = call.resolved_axis
    if call.updates is None or call.reduction == "none" or axis != 0:
        return None
    dimensions = call.operator.dimensions(len(call.data.shape), indices.shape, axis)
    if dimensions.shared:
        return None
    keyed = dimensions.addressed.stop
    row_bytes = prod(call.data.shape[keyed:]) * call.data.dtype.itemsize
    sizes = call.data.shape[:keyed]
    entries = call.operator.entries(OperandLayout(indices.shape, indices.strides)).shape
    if keyed == 0 or 0 in sizes or 0 in entries:
        return None
    per_list = 1
    if row_bytes < SHORTEST_ROW:
        per_list = _destinations_per_list(call, prod(sizes), prod(entries))
    if per_list == 0:
        return None
    destinations = indices
    if call.operator.takes_tuples:
        destinations = number_entries(call.operator, sizes, indices, axis, "drop", False)
    end = EdgeEnd("indices", np.ascontiguousarray(destinations).reshape(-1), prod(sizes))
    edges = EdgeLoops.of(end.indices, end.indices, (0,))
    lists = edges.make_lists(call.op, end, None, False, "drop", False, per_list)
    moved_shape = call.operator.moved_shape(call.data.shape, indices.shape, axis)
    return SortedUpdates(call, lists, edges, per_list, keyed, len(entries), moved_shape)


def _destinations_per_list(call: Call, destinations: int, updates: int) -> int:
    """Return the number of destinations that share a list, or 0 if lists would not be faster.

    With lists, each thread reads only the updates of the destinations that it writes, and only one
    thread reads the indices.
    """
    threads, result_bytes = native.get_num_threads(), destinations * call.data.dtype.itemsize
    rows_are_items = prod(call.data.shape) == destinations
    if not rows_are_items or threads == 1 or result_bytes < FEWEST_BYTES:
        return 0
    if updates < max(FEWEST_ITEMS, destinations):
        return 0
    lists = max(threads, -(-result_bytes // LIST_BYTES))
    return -(-destinations // lists)
