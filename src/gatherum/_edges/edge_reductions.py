"""Compute `aggregate` with gathers and scatters, for frameworks with derivatives.

This implementation stores the gathered rows. For arrays in host memory, the core folds the rows
without storing them.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

from gatherum._model import errors, shape_limits
from gatherum._model.call import Attributes
from gatherum._model.dtypes import AnyDType, is_index, is_reducible
from gatherum._model.modes import FILLING
from gatherum._model.reductions import ROWS

Array: TypeAlias = Any  # an array of a framework
NAME = "aggregate"


class Pointer(NamedTuple):
    """A pointer array instead of scatter indices. It has the edge range of each destination."""

    operand: str
    indptr: Array


class AggregateOptions(NamedTuple):
    """The arguments of `aggregate` that are not arrays."""

    size: int
    reduction: str
    mode: str
    negative: bool
    pointer: str = ""  # the operand with the pointer array that replaces the targets

    @property
    def skips(self) -> bool:
        """Whether edges with an invalid index are skipped."""
        return self.mode in FILLING

    @property
    def gather(self) -> Attributes:
        """The gather of rows, which returns zeros for skipped edges."""
        return Attributes("gather", 0, self.mode, self.negative)


def check_edges(
    kind: Callable[[Array], AnyDType],
    data: Array,
    sources: Array,
    targets: Array,
    weights: Array | None,
    reduction: str,
) -> None:
    """Raise an error if the operands do not match. `kind` returns the dtype of an array."""
    for operand, indices in (("gather_indices", sources), ("scatter_indices", targets)):
        if not is_index(dtype := kind(indices)):
            raise errors.not_an_index_dtype(NAME, dtype, False, operand)
    if not is_reducible(kind(data), reduction):
        raise errors.not_reducible(NAME, reduction, kind(data))
    if weights is not None and kind(weights) != kind(data):
        raise errors.other_dtype(NAME, "weights", kind(data), kind(weights))
    if len(data.shape) == 0:
        raise errors.too_few_dimensions(NAME, "data", 0)
    edges = tuple(sources.shape)
    ends = tuple(targets.shape)
    if len(ends) != len(edges) or not all(map(shape_limits.holds, map(operator.eq, ends, edges))):
        raise errors.other_shape(NAME, "scatter_indices", edges, ends)
    shape = () if weights is None else tuple(weights.shape)
    if all(type(n) is int for n in (*edges, *shape)) and not shape_limits.broadcasts(shape, edges):
        raise errors.other_shape(NAME, "weights", edges, shape)


def composed(
    xp: Any,
    data: Array,
    sources: Array,
    targets: Array,
    weights: Array | None,
    fold: AggregateOptions,
    batched: bool = False,
) -> Array:
    """Compute `aggregate` for operands whose dtypes and shapes have been checked.

    If `batched` is true, operands have a leading batch dimension and weights have the shape of the
    edges.
    """
    before = tuple(data.shape[:1]) if batched else ()
    rows, *row = data.shape[len(before) :]
    gather, scatter = ("gather_nd", "scatter_nd") if batched else ("gather", "scatter_slices")

    def tuples(indices: Array) -> Array:
        return xp.reshape(indices, (*indices.shape, 1)) if batched else indices

    come = Attributes(gather, len(before), fold.mode, fold.negative)
    carried = xp.gather(come, data, tuples(sources))
    if weights is not None:
        carried = xp.product(carried, _beside(xp, weights, sources, row))
        if xp.kind(data).kind in "fcV":
            carried = xp.rounded(carried, data.dtype)
    if fold.skips:
        targets = _complete(xp, sources, targets, rows, fold)
        fold = fold._replace(negative=False)
    attributes = len(before), fold.mode, fold.negative, fold.reduction, False
    empty = xp.full((), ROWS[fold.reduction].empty, data.dtype, data)
    table = xp.broadcast_to(empty, (*before, fold.size, *row))
    return xp.scatter(Attributes(scatter, *attributes), table, tuples(targets), carried)


def _complete(xp: Any, sources: Array, targets: Array, rows: int, fold: AggregateOptions) -> Array:
    """Return the targets of the edges, or -1 for an edge with an invalid end."""
    come = xp.resolve(fold.gather, sources, rows)
    return xp.where(come < 0, -1, xp.resolve(fold.gather, targets, fold.size))


def _beside(xp: Any, weights: Array, sources: Array, row: Sequence[int]) -> Array:
    """Reshape weights to the rank of the gathered rows."""
    edges = tuple(sources.shape)
    return xp.reshape(xp.broadcast_to(weights, edges), (*edges, *(1 for _ in row)))


def of_weights(
    xp: Any, gradient: Array, data: Array, sources: Array, targets: Array, fold: AggregateOptions
) -> Array:
    """Return the gradients of the weights of a sum, one for each edge."""
    came = xp.gather(fold.gather, data, sources)
    if fold.skips:  # zero for skipped edges, even if the other end has NaN
        targets = _complete(xp, sources, targets, data.shape[0], fold)
        there = xp.reshape(targets >= 0, (*targets.shape, *(1 for _ in data.shape[1:])))
        came = xp.where(there, came, 0)
        fold = fold._replace(negative=False)
    went = xp.gather(fold.gather, gradient, targets)
    edges = tuple(sources.shape)
    if 0 in (*edges, *data.shape[1:]):  # reshape cannot infer -1 here
        return xp.full(edges, 0, data.dtype, data)
    return xp.reshape(went * xp.conj(came), (*edges, -1)).sum(-1)
