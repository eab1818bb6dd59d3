"""Gather, scale and reduce rows in one pass, without storing the gathered rows."""

from __future__ import annotations

from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple, Never, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gatherum._arguments import conversion, plain_values, xarray_labels
from gatherum._edges import sparse_edges
from gatherum._edges.edge_lists import EdgeEnd, EdgeLoops
from gatherum._edges.edge_reductions import NAME, AggregateOptions, Pointer, check_edges
from gatherum._frameworks import registry
from gatherum._frameworks.torch_compile import follow_tensors
from gatherum._model import errors, shape_limits
from gatherum._model.call import Array, FoldRule
from gatherum._model.call_types import FoldName, Foreign, SparseMatrix
from gatherum._model.dtypes import check_movable
from gatherum._model.modes import MODES, ModeName
from gatherum._model.reductions import FOLDS, ROWS
from gatherum._system import native

Item = TypeVar("Item", bound=np.generic)


@overload
def aggregate(
    data: NDArray[Item],
    gather_indices: ArrayLike | SparseMatrix,
    scatter_indices: ArrayLike | None,
    size: int | None,
    reduction: FoldName,
    weights: ArrayLike | None = None,
    *,
    indptr: ArrayLike | None = None,
    mode: ModeName = "raise",
    negative: bool = True,
    out: NDArray[Item] | None = None,
) -> NDArray[Item]: ...


@overload
def aggregate(
    data: Foreign,
    gather_indices: Any,
    scatter_indices: Any,
    size: int | None,
    reduction: FoldName,
    weights: Any = None,
    *,
    indptr: Any = None,
    mode: ModeName = "raise",
    negative: bool = True,
    out: Foreign | None = None,
) -> Foreign: ...


@overload
def aggregate(
    data: ArrayLike,
    gather_indices: ArrayLike | SparseMatrix,
    scatter_indices: ArrayLike | None,
    size: int | None,
    reduction: FoldName,
    weights: ArrayLike | None = None,
    *,
    indptr: ArrayLike | None = None,
    mode: ModeName = "raise",
    negative: bool = True,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]: ...
def aggregate(
    data: Any,
    gather_indices: Any,
    scatter_indices: Any,
    size: int | None,
    reduction: FoldName,
    weights: Any = None,
    *,
    indptr: Any = None,
    mode: ModeName = "raise",
    negative: bool = True,
    out: Any | None = None,
    **unknown: Never,
) -> Any:
    """Reduce rows of an array into others, edge by edge: a graph's messages, none of them stored.

    ``out[scatter_indices[e]] op= data[gather_indices[e]] * weights[e]``

    Parameters
    ----------
    data : array_like
        The rows, along the first dimension, of a dtype that `reduction` is defined for: what NumPy
        takes, a tensor or an array of JAX. The result for an ``xarray.DataArray`` is one, whose
        first dimension is named ``"row"``, or as `scatter_indices` is where that is a DataArray
        with a name.
    gather_indices : array_like of int, or sparse matrix
        The row of `data` that each edge comes from, of any shape.
        Any integer dtype, signed or unsigned, of 8 to 64 bits, in either byte order.
        Or all edges as a matrix ``A``, with `scatter_indices`, `size` and `weights` None: an entry
        ``A[i, j]`` goes from row j of `data` to row i of the result, with its value as the weight.
        With ``"add"`` that is ``A @ data``. In CSR, CSC or COO format, of SciPy or of torch.
    scatter_indices : array_like of int, optional
        The row of the result that each edge goes to, of the shape of `gather_indices`; None where
        `indptr` or a matrix says it.
    size : int, optional
        The number of rows of the result; None where `indptr` or a matrix says it.
    reduction : str
        How the rows that meet combine: ``"add"`` or another reduction of `scatter_slices`.
    weights : array_like, optional
        What each edge's row is multiplied by, of `data`'s dtype, and of the shape of
        `gather_indices` or one that broadcasts to it. Plain Python values and lists take `data`'s
        dtype.
    indptr : array_like of int, optional
        In the place of `scatter_indices`, for edges in order of their destinations: edges
        ``indptr[i]`` up to ``indptr[i + 1]`` go to row i, as in a CSR matrix. It has an entry more
        than the result has rows, begins with 0, does not decrease, and ends with the number of
        edges, whose `gather_indices` have one dimension.
    mode : {"raise", "clip", "wrap", "fill", "drop"}, default "raise"
        How to treat out-of-bounds indices of both kinds: raise IndexError; move to the nearest
        valid one; wrap around (floor modulo); or leave the edge out (``"fill"`` is the same here).
    negative : bool, default True
        Whether values from -n to -1 count from the end of a dimension of size n.
    out : numpy.ndarray, optional
        Where the result goes: of its shape and dtype, with any strides. It must share no memory
        with an input.

    Returns
    -------
    numpy.ndarray
        `out`, or a new C-contiguous array of shape ``(size, *data.shape[1:])``; a tensor or an
        array of JAX of those.

    Raises
    ------
    TypeError
        If `size` is not an integer, `negative` is not a boolean, the reduction is not defined for
        `data`'s dtype, indices are not of an integer dtype, `weights` is not of `data`'s dtype, an
        operand is not an array, masked, or of another framework, a matrix has another format, or
        `out` is not an ndarray or has another dtype.
    ValueError
        If `reduction` or `mode` is not one of its values, `size` is negative, the shapes do not
        fit, `indptr` is no pointer to the edges, destinations are given twice or not at all, or
        `out` has another shape, is read-only, overlaps itself or shares memory with an
        input.
    IndexError
        If an index is invalid in mode ``"raise"``, or cannot be clipped or wrapped because its
        dimension has size 0. It names the first one in row-major order, in `gather_indices` before
        `scatter_indices`.

    See Also
    --------
    gather : The rows of all edges.
    scatter_slices : The reduction alone.
    prepare : The same edges many times.
    gatherum.groups.aggregate : Another function: it reduces values by their groups, with the
        arguments of numpy_groupies.

    Notes
    -----
    The result has the bits of these three calls, for any number of threads::

        messages = gather(data, gather_indices)
        messages = messages * weights
        start = numpy.full((size, *data.shape[1:]), 1 if reduction == "mul" else 0, data.dtype)
        out = scatter_slices(start, scatter_indices, messages, reduction=reduction,
                             include_self=False)

    So a row that edges go to is the fold of their messages alone, in row-major order of the edges;
    a row that none goes to is 0, and 1 for ``"mul"``.

    A product is that of ``reduction="mul"``: integers wrap around, bools give and, float16 and
    bfloat16 are multiplied in float32 and rounded to `data`'s dtype, complex numbers give
    ``(ac-bd, ad+bc)`` in separate operations. A NaN that a product makes is the canonical quiet
    one, where NumPy's has the bits that the processor gives it.

    Tensors and arrays of JAX have derivatives, forward and backward, of any order. That of a sum or
    a mean with respect to `data` goes back along the same edges: an `aggregate` with its ends
    exchanged. Others, calls in ``torch.func.vmap`` with weights, and calls in ``jax.jit`` store
    what the edges carry.

    A pointer and a matrix have the bits of the call with both indices of each entry, in the order
    in which they are stored; entries of the same place are edges of their own.

    Working memory is 12 to 32 bytes an edge, and 4 or 8 for each row of the result and thread. By a
    pointer, or a CSR matrix of it, it is 8 bytes for each row of the result, and for each thread 4
    to 24 bytes for an edge of the row of the result that has most of them.

    Examples
    --------
    >>> import gatherum
    >>> import numpy as np
    >>> planets = np.array([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]])
    >>> gatherum.aggregate(planets, [0, 1, 2, 0], [1, 1, 0, 3], 4, "add")
    array([[ 3., 30.],
           [ 3., 30.],
           [ 0.,  0.],
           [ 1., 10.]])
    >>> gatherum.aggregate(planets, [0, 1], [0, 0], 1, "max", weights=[4.0, 1.0])
    array([[ 4., 40.]])

    Edges in order of their destinations, two of them to row 0 and one to row 2:

    >>> gatherum.aggregate(planets, [0, 1, 2], None, None, "add", indptr=[0, 2, 2, 3])
    array([[ 3., 30.],
           [ 0.,  0.],
           [ 3., 30.]])
    """
    if unknown:
        raise errors.unknown_argument("aggregate", unknown, has_axis=False)
    if xarray_labels.has_labels(data):
        xarray_labels.check_no_out(NAME, out)
        ends = map(xarray_labels.plain_array, (data, gather_indices, scatter_indices))
        of_edges, pointer = map(xarray_labels.plain_array, (weights, indptr))
        how_else = {"indptr": pointer, "mode": mode, "negative": negative}
        run_plain = partial(aggregate, *ends, size, reduction, of_edges, **how_else)
        named = NAME, "scatter_indices", data, 0, scatter_indices
        return xarray_labels.renumbered(*named, "row", run_plain)
    if indptr is not None or scatter_indices is None or size is None:
        listed = sparse_edges.list_edges(
            data, gather_indices, scatter_indices, size, weights, indptr
        )
        how_else = {"mode": mode, "negative": negative, "out": out}
        with listed.renaming:
            return aggregate(data, *listed.ends, reduction, listed.weights, **how_else)
    reduction = plain_values.as_choice(NAME, "reduction", reduction, FOLDS)  # type: ignore[assignment]
    how = plain_values.as_choice(NAME, "mode", mode, MODES)
    negative = plain_values.as_boolean(NAME, "negative", negative)
    operands = {"data": data, "gather_indices": gather_indices, "scatter_indices": scatter_indices}
    if run := registry.namespace(NAME, operands | {"weights": weights}, "aggregate"):
        fold = AggregateOptions(size, reduction, how, negative)
        found: NDArray[Any] = run(data, gather_indices, scatter_indices, fold, weights, out)
        return found
    rows = plain_values.as_size(NAME, "size", size)
    table = conversion.as_array(NAME, "data", data)
    check_movable(NAME, "data", table.dtype)
    of = conversion.as_indices(NAME, gather_indices, "gather_indices")
    pointed = isinstance(scatter_indices, Pointer)
    if isinstance(scatter_indices, Pointer):
        operand, to = scatter_indices
    else:
        operand = "scatter_indices"
        to = conversion.as_indices(NAME, scatter_indices, operand)
    scale = None
    if weights is not None:
        scale = conversion.as_updates(NAME, weights, table.dtype, "weights")
    check_edges(attrgetter("dtype"), table, of, of if pointed else to, scale, reduction)
    shape = (rows, *table.shape[1:])
    shape_limits.check_result(NAME, shape, table.dtype)
    sources = EdgeEnd("gather_indices", of, len(table))
    targets = EdgeEnd(operand, to, rows)
    given = None if out is None else _as_out(out, shape, table, scale, sources, targets)
    pins = conversion.pinned(table, sources.indices, targets.indices, scale, given)
    rows_of = _Rows(table, scale, reduction, how, negative, shape, given)
    result = rows_of.fold_pointed(sources, targets) if pointed else rows_of.fold(sources, targets)
    del pins
    return result if out is None else out


follow_tensors(aggregate, "functions", "aggregation")


class _Rows(NamedTuple):
    """What is folded along edges, and how."""

    table: Array
    weights: Array | None
    reduction: str
    mode: str
    negative: bool
    shape: tuple[int, ...]
    out: Array | None

    def fold(self, sources: EdgeEnd, targets: EdgeEnd) -> Array:
        """Return the result for two indices of each edge."""
        edges = EdgeLoops.of(targets.indices, sources.indices, self._weight_steps(sources))
        weighs = self.weights is not None
        lists = edges.make_lists(NAME, targets, sources, weighs, self.mode, self.negative)
        result = self._result()
        if 0 not in self.shape:
            program = edges.row_program(self.table, result, FoldRule.afresh(self.reduction))
            empty, fresh = self._empty(), self.out is None
            lists.fold(program, self.table, self.weights, None, empty, result, fresh)
        return result

    def fold_pointed(self, sources: EdgeEnd, pointer: EdgeEnd) -> Array:
        """Return the result for a pointer to the edges of each row of it."""
        if 0 not in self.shape:
            edges = EdgeLoops.of(sources.indices, sources.indices, self._weight_steps(sources))
            result = self._result()
            program = edges.row_program(self.table, result, FoldRule.afresh(self.reduction))
            given = self.table, self.weights, self._empty()
            how = self.mode, self.negative, program
            if edges.fold_pointed(NAME, pointer, sources, *how, *given, result, self.out is None):
                return result
        count = len(sources.indices)
        numbers = sparse_edges.segment_numbers(NAME, pointer.operand, pointer.indices, count)
        return self.fold(sources, pointer._replace(indices=numbers))

    def _result(self) -> Array:
        if self.out is not None:
            return self.out
        made: Array = native.new_result(self.table.dtype, self.shape)
        return made

    def _empty(self) -> Array:
        return np.full((), ROWS[self.reduction].empty, self.table.dtype)

    def _weight_steps(self, sources: EdgeEnd) -> tuple[int, ...]:
        """Return the strides that give each edge its weight."""
        edges, weights = sources.indices.shape, self.weights
        if weights is None:
            return (0,) * len(edges)
        shape_limits.check_size(NAME, "weights", weights.shape, weights.dtype.itemsize)
        return shape_limits.broadcast_strides(
            NAME, "weights", weights.shape, weights.strides, edges
        )


def _as_out(
    out: Array,
    shape: tuple[int, ...],
    table: Array,
    weights: Array | None,
    sources: EdgeEnd,
    targets: EdgeEnd,
) -> Array:
    """Return `out` as a plain array, or raise where the result cannot go there."""
    plain = conversion.as_plain_out(NAME, out, shape, table.dtype)
    inputs = [("data", table), *((end.operand, end.indices) for end in (sources, targets))]
    if weights is not None:
        inputs.append(("weights", weights))
    for operand, array in inputs:
        if shape_limits.shares_memory(plain, array):
            raise errors.out_overlaps(NAME, operand)
    return plain
