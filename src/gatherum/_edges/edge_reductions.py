"""Compute `aggregate` with gathers and scatters, for frameworks with derivatives.

This implementation stores the gathered rows. For arrays in host memory, the core folds the rows
without storing them.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from gatherum._model import errors, shape_limits
from gatherum._model.arrays import AnyArray
from gatherum._model.call import Attributes
from gatherum._model.callers import Caller
from gatherum._model.dtypes import AnyDType, is_index, is_reducible
from gatherum._model.errors import Shape
from gatherum._model.modes import FILLING
from gatherum._model.reductions import ROWS

NAME = "aggregate"
_SOURCES = Caller(NAME, "gather_indices").text
_TARGETS = Caller(NAME, "scatter_indices").text


class Pointer(NamedTuple):
    """A CSR pointer instead of scatter indices. It holds the edge range of each destination."""

    operand: str
    indptr: AnyArray


class AggregateOptions(NamedTuple):
    """The arguments of `aggregate` that are not arrays."""

    size: int
    reduction: str
    mode: str
    negative: bool
    pointer: str = ""  # the operand with the pointer array that replaces the targets
    fill_value: Any = None  # of rows without edges; None for the default of the reduction
    axis: int = 0  # the axis of the data that the sources address

    @property
    def skips(self) -> bool:
        """Whether edges with an invalid index are skipped."""
        return self.mode in FILLING

    @property
    def gather(self) -> Attributes:
        """The gather of rows, which returns zeros for skipped edges."""
        return Attributes(
            "gather", self.axis, mode=self.mode, negative=self.negative, caller=_SOURCES
        )


def check_edges(
    plan_dtype: Callable[[AnyArray], AnyDType],
    data: AnyArray,
    sources: AnyArray,
    targets: AnyArray,
    weights: AnyArray | None,
    reduction: str,
    axis: int,
) -> int:
    """Return the resolved axis, or raise an error if the operands do not match.

    `plan_dtype` returns the dtype of an array.
    """
    for operand, indices in (("gather_indices", sources), ("scatter_indices", targets)):
        if not is_index(dtype := plan_dtype(indices)):
            raise errors.not_an_index_dtype(NAME, dtype, False, operand)
    if not is_reducible(plan_dtype(data), reduction):
        raise errors.not_reducible(NAME, reduction, plan_dtype(data))
    if weights is not None and plan_dtype(weights) != plan_dtype(data):
        raise errors.other_dtype(NAME, "weights", plan_dtype(data), plan_dtype(weights))
    axis = shape_limits.resolve_axis(NAME, tuple(data.shape), axis)
    edge_shape = tuple(sources.shape)
    target_shape = tuple(targets.shape)
    if len(target_shape) != len(edge_shape) or not all(
        map(shape_limits.holds, map(operator.eq, target_shape, edge_shape))
    ):
        raise errors.other_shape(NAME, "scatter_indices", edge_shape, target_shape)
    if weights is not None:
        shape = tuple(weights.shape)
        expected = weights_shape(edge_shape, tuple(data.shape)[axis + 1 :], len(shape))
        has_known_sizes = all(type(n) is int for n in (*expected, *shape))
        if has_known_sizes and not shape_limits.broadcasts(shape, expected):
            raise errors.other_shape(NAME, "weights", expected, shape)
    return axis


def weights_shape(edges: Shape, row: Shape, rank: int) -> Shape:
    """Return the shape that weights of this rank broadcast to.

    The shape consists of the dimensions of the edges and, for a higher rank, the first dimensions
    of a row.
    """
    return (*edges, *row[: max(rank - len(edges), 0)])


def weights_of_moved_axis(xp: Any, weights: AnyArray, rank: int, axis: int) -> AnyArray:
    """Return weights for data whose axis has been moved to the front.

    `rank` is the number of dimensions of the edges. Weights with more dimensions get a new
    dimension of size 1 for each dimension of the data before the axis.
    """
    if axis == 0 or len(weights.shape) <= rank:
        return weights
    shape = tuple(weights.shape)
    return xp.reshape(weights, (*shape[:rank], *(1,) * axis, *shape[rank:]))


def aggregate_with_messages(
    xp: Any,
    data: AnyArray,
    sources: AnyArray,
    targets: AnyArray,
    weights: AnyArray | None,
    options: AggregateOptions,
    batched: bool = False,
) -> AnyArray:
    """Compute `aggregate` for operands whose dtypes and shapes have been checked.

    If `batched` is true, operands have a leading batch dimension, weights have at least the rank of
    the edges, and the axis of a member of the batch is 0.
    """
    shape_before = tuple(data.shape[: options.axis + batched])
    row_count, *row_shape = data.shape[len(shape_before) :]
    gather_op, scatter_op = ("gather_nd", "scatter_nd") if batched else ("gather", "scatter_slices")

    def as_tuples(indices: AnyArray) -> AnyArray:
        return xp.reshape(indices, (*indices.shape, 1)) if batched else indices

    gather_attributes = options.gather._replace(op=gather_op, axis=len(shape_before))
    messages = xp.gather(gather_attributes, data, as_tuples(sources))
    if weights is not None:
        factors = _broadcast_weights(
            xp, weights, sources, () if batched else shape_before, row_shape
        )
        messages = xp.product(messages, factors)
        if xp.plan_dtype(data).kind in "fcV":
            messages = xp.rounded(messages, data.dtype)
    if options.skips:
        targets = valid_targets(xp, sources, targets, row_count, options)
        options = options._replace(negative=False)
    attributes = Attributes(
        op=scatter_op,
        axis=len(shape_before),
        reduction=options.reduction,
        include_self=False,
        mode=options.mode,
        negative=options.negative,
        caller=_TARGETS,
    )
    table = empty_table(xp, data, options, batched)
    return xp.scatter(attributes, table, as_tuples(targets), messages)


def empty_table(
    xp: Any, data: AnyArray, options: AggregateOptions, batched: bool = False
) -> AnyArray:
    """Return the result of a call without edges, which may be a broadcast view."""
    empty = xp.full((), ROWS[options.reduction].empty, data.dtype, data)
    if options.fill_value is not None:
        empty = xp.item(NAME, xp.plan_dtype(data), options.fill_value, data)
    axis = options.axis + batched
    return xp.broadcast_to(empty, (*data.shape[:axis], options.size, *data.shape[axis + 1 :]))


def valid_targets(
    xp: Any, sources: AnyArray, targets: AnyArray, row_count: int, options: AggregateOptions
) -> AnyArray:
    """Return the targets of the edges, or -1 for an edge with an invalid end."""
    first_axis = options.gather._replace(axis=0)
    source_rows = xp.resolve(first_axis, sources, row_count)
    return xp.where(source_rows < 0, -1, xp.resolve(first_axis, targets, options.size))


def _broadcast_weights(
    xp: Any, weights: AnyArray, sources: AnyArray, before: Sequence[int], row: Sequence[int]
) -> AnyArray:
    """Reshape weights to broadcast to the gathered rows; edge dimensions follow `before`."""
    edges = tuple(sources.shape)
    shape = weights_shape(edges, tuple(row), len(weights.shape))
    behind = (1,) * (len(edges) + len(row) - len(shape))
    return xp.reshape(xp.broadcast_to(weights, shape), (*(1 for _ in before), *shape, *behind))


def weight_gradients(
    xp: Any, gradient: AnyArray, data: AnyArray, sources: AnyArray, targets: AnyArray, rank: int,
    options: AggregateOptions,
) -> AnyArray:  # fmt: skip
    """Return the gradients of the weights of a sum, for weights of this rank."""
    data, gradient = (xp.moveaxis(array, options.axis, 0) for array in (data, gradient))
    first_axis, dims_before_axis = options.gather._replace(axis=0), range(options.axis)
    gathered_data = xp.gather(first_axis, data, sources)
    if options.skips:  # zero for skipped edges, even if the other end has NaN
        targets = valid_targets(xp, sources, targets, data.shape[0], options)
        is_valid = xp.reshape(targets >= 0, (*targets.shape, *(1 for _ in data.shape[1:])))
        gathered_data = xp.where(is_valid, gathered_data, 0)
        first_axis = first_axis._replace(negative=False)
    gathered_gradient = xp.gather(first_axis, gradient, targets)
    edges, row = tuple(sources.shape), tuple(data.shape[1:])
    shape = weights_shape(edges, row, max(rank, len(edges)) + options.axis)
    if 0 in (*shape, *row):  # reshape cannot infer -1 here
        sums = xp.full(shape, 0, data.dtype, data)
    else:
        sums = xp.reshape(gathered_gradient * xp.conj(gathered_data), (*shape, -1)).sum(-1)
    return sums.sum(tuple(len(edges) + d for d in dims_before_axis)) if options.axis else sums
