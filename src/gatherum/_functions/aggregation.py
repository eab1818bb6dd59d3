"""Gather, scale and reduce rows in one pass, without storing the gathered rows."""

from __future__ import annotations

from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple, Never

import numpy as np
from numpy.typing import NDArray

from gatherum._arguments import conversion, plain_values, xarray_labels
from gatherum._edges import sparse_edges
from gatherum._edges.edge_lists import EdgeEnd, EdgeLoops
from gatherum._edges.edge_reductions import NAME, AggregateOptions, Pointer, check_edges
from gatherum._frameworks import registry
from gatherum._frameworks.torch_compile import follow_tensors
from gatherum._model import errors, shape_limits
from gatherum._model.call import Array, FoldRule
from gatherum._model.call_types import FoldName, typed_as
from gatherum._model.dtypes import check_movable
from gatherum._model.modes import MODES, ModeName
from gatherum._model.reductions import FOLDS, ROWS
from gatherum._system import native

from . import overloads


@typed_as(overloads.aggregate)
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
    """Reduce rows of an array edge by edge: message passing on a graph without stored messages.

    ``out[scatter_indices[e]] op= data[gather_indices[e]] * weights[e]``

    Parameters
    ----------
    data : array_like
        The rows, along the first dimension, of a dtype that `reduction` is defined for: an
        array_like, a tensor or a JAX array. If `data` is an ``xarray.DataArray``, the result is a
        DataArray. Its first dimension has the name of `scatter_indices` if `scatter_indices` is a
        named DataArray, else the name ``"row"``.
    gather_indices : array_like of int, or sparse matrix
        The source of each edge, the number of a row of `data`. The array may have any shape. Any
        integer dtype, signed or unsigned, of 8 to 64 bits, in either byte order. Or all edges as a
        matrix ``A``, with `scatter_indices`, `size` and `weights` None: an entry ``A[i, j]`` is an
        edge from row j of `data` to row i of the result, with its value as the weight. With
        ``"add"`` the result is ``A @ data``. In CSR, CSC or COO format, of SciPy or of torch.
    scatter_indices : array_like of int, optional
        The destination of each edge, a row of the result; of the shape of `gather_indices`. None
        with `indptr` or a matrix.
    size : int, optional
        The number of rows of the result. None with `indptr` or a matrix.
    reduction : str
        How rows with the same destination combine: ``"add"`` or another reduction of
        `scatter_slices`.
    weights : array_like, optional
        A factor for the row of each edge, of `data`'s dtype, and of the shape of `gather_indices`
        or one that broadcasts to it. Python scalars and lists are converted to `data`'s dtype.
    indptr : array_like of int, optional
        Replaces `scatter_indices` for edges that are sorted by destination: edges ``indptr[i]`` up
        to ``indptr[i + 1]`` have destination i, as in a CSR matrix. It has one entry more than the
        result has rows, begins with 0, does not decrease, and ends with the number of edges.
        `gather_indices` must be one-dimensional.
    mode : {"raise", "clip", "wrap", "fill", "drop"}, default "raise"
        How to treat out-of-bounds sources and destinations: raise IndexError, clip to the nearest
        valid index, wrap around (floor modulo), or drop the edge. ``"fill"`` is the same as
        ``"drop"``.
    negative : bool, default True
        If True, indices from -n to -1 count from the end of a dimension of size n.
    out : numpy.ndarray, optional
        The array to store the result in, of the result's shape and dtype, with any strides. It
        must not share memory with an input.

    Returns
    -------
    numpy.ndarray
        `out`, or a new C-contiguous array of shape ``(size, *data.shape[1:])``. For tensors and JAX
        arrays, an array of the same framework.

    Raises
    ------
    TypeError
        If `size` is not an integer, `negative` is not a boolean, the reduction is not defined for
        `data`'s dtype, indices have a non-integer dtype, `weights` has another dtype than `data`,
        an operand is not an array, is masked or belongs to another framework, a matrix has another
        format, or `out` is not an ndarray or has another dtype.
    ValueError
        If `reduction` or `mode` has an invalid value, `size` is negative, the shapes do not match,
        `indptr` does not partition the edges, destinations are given twice or not at all, or
        `out` has another shape, is read-only, overlaps itself or shares memory with an
        input.
    IndexError
        If an index is invalid in mode ``"raise"``, or cannot be clipped or wrapped because its
        dimension has size 0. The message names the first invalid index in row-major order, in
        `gather_indices` before `scatter_indices`.

    See Also
    --------
    gather : Take the rows of all edges.
    scatter_slices : Reduce rows.
    prepare : Run a call many times with the same indices.
    gatherum.groups.aggregate : A different function, which reduces values by group, with the
        arguments of numpy_groupies.

    Notes
    -----
    The result is bit-for-bit equal to these calls, for any number of threads::

        messages = gather(data, gather_indices)
        messages = messages * weights
        start = numpy.full((size, *data.shape[1:]), 1 if reduction == "mul" else 0, data.dtype)
        out = scatter_slices(start, scatter_indices, messages, reduction=reduction,
                             include_self=False)

    If a row of the result has edges, it is the left fold of their messages, in row-major order of
    the edges. A row without edges is 0, or 1 for ``"mul"``.

    Products with weights follow the rules of ``reduction="mul"``: integers wrap around, bools use
    logical and, float16 and bfloat16 are multiplied in float32 and rounded to `data`'s dtype, and
    complex products are ``(ac-bd, ad+bc)`` in separate operations. A NaN that a product creates is
    the canonical quiet NaN; in NumPy its bits depend on the processor.

    Tensors and JAX arrays support derivatives of any order, in forward and in reverse mode. The
    derivative of a sum or a mean with respect to `data` is an `aggregate` with sources and
    destinations exchanged. Other derivatives, calls in ``torch.func.vmap`` with weights, and calls
    in ``jax.jit`` store the messages.

    The results for `indptr` and for a matrix are bit-for-bit equal to the result for two index
    arrays with the entries in storage order. Duplicate entries of a matrix are separate edges.

    Working memory is 12 to 32 bytes for each edge, plus 4 or 8 for each row of the result and
    thread. With `indptr` or a CSR matrix it is 8 bytes for each row of the result, plus, for each
    thread, 4 to 24 bytes for each edge of the result row with the most edges.

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

    Edges sorted by destination, two for row 0 and one for row 2:

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
        keywords = {"indptr": pointer, "mode": mode, "negative": negative}
        run_plain = partial(aggregate, *ends, size, reduction, of_edges, **keywords)
        named = NAME, "scatter_indices", data, 0, scatter_indices
        return xarray_labels.renumbered(*named, "row", run_plain)
    if indptr is not None or scatter_indices is None or size is None:
        listed = sparse_edges.list_edges(
            data, gather_indices, scatter_indices, size, weights, indptr
        )
        keywords = {"mode": mode, "negative": negative, "out": out}
        with listed.renaming:
            return aggregate(data, *listed.ends, reduction, listed.weights, **keywords)
    reduction = plain_values.as_choice(NAME, "reduction", reduction, FOLDS)  # type: ignore[assignment]
    mode_name = plain_values.as_choice(NAME, "mode", mode, MODES)
    negative = plain_values.as_boolean(NAME, "negative", negative)
    operands = {"data": data, "gather_indices": gather_indices, "scatter_indices": scatter_indices}
    if run := registry.namespace(NAME, operands | {"weights": weights}, "aggregate"):
        options = AggregateOptions(size, reduction, mode_name, negative)
        reduced: NDArray[Any] = run(data, gather_indices, scatter_indices, options, weights, out)
        return reduced
    rows = plain_values.as_size(NAME, "size", size)
    table = conversion.as_array(NAME, "data", data)
    check_movable(NAME, "data", table.dtype)
    source_array = conversion.as_indices(NAME, gather_indices, "gather_indices")
    pointed = isinstance(scatter_indices, Pointer)
    if isinstance(scatter_indices, Pointer):
        operand, target_array = scatter_indices
    else:
        operand = "scatter_indices"
        target_array = conversion.as_indices(NAME, scatter_indices, operand)
    scale = None
    if weights is not None:
        scale = conversion.as_updates(NAME, weights, table.dtype, "weights")
    check_edges(
        attrgetter("dtype"),
        table,
        source_array,
        source_array if pointed else target_array,
        scale,
        reduction,
    )
    shape = (rows, *table.shape[1:])
    shape_limits.check_result(NAME, shape, table.dtype)
    sources = EdgeEnd("gather_indices", source_array, len(table))
    targets = EdgeEnd(operand, target_array, rows)
    plain_out = None if out is None else _as_out(out, shape, table, scale, sources, targets)
    pins = conversion.pinned(table, sources.indices, targets.indices, scale, plain_out)
    rows_of = _Rows(table, scale, reduction, mode_name, negative, shape, plain_out)
    result = rows_of.fold_pointed(sources, targets) if pointed else rows_of.fold(sources, targets)
    del pins
    return result if out is None else out


follow_tensors(aggregate, "functions", "aggregation")


class _Rows(NamedTuple):
    """The rows, weights and options of a fold along edges."""

    table: Array
    weights: Array | None
    reduction: str
    mode: str
    negative: bool
    shape: tuple[int, ...]
    out: Array | None

    def fold(self, sources: EdgeEnd, targets: EdgeEnd) -> Array:
        """Return the result for edges with a source and a destination index."""
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
        """Return the result for edges sorted by destination, with a pointer for each row."""
        if 0 not in self.shape:
            edges = EdgeLoops.of(sources.indices, sources.indices, self._weight_steps(sources))
            result = self._result()
            program = edges.row_program(self.table, result, FoldRule.afresh(self.reduction))
            inputs = self.table, self.weights, self._empty()
            options = self.mode, self.negative, program
            fresh = self.out is None
            if edges.fold_pointed(NAME, pointer, sources, *options, *inputs, result, fresh):
                return result
        count = len(sources.indices)
        segments = sparse_edges.segment_numbers(NAME, pointer.operand, pointer.indices, count)
        return self.fold(sources, pointer._replace(indices=segments))

    def _result(self) -> Array:
        if self.out is not None:
            return self.out
        result: Array = native.new_result(self.table.dtype, self.shape)
        return result

    def _empty(self) -> Array:
        return np.full((), ROWS[self.reduction].empty, self.table.dtype)

    def _weight_steps(self, sources: EdgeEnd) -> tuple[int, ...]:
        """Return the strides of the weights over the edges."""
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
    """Return `out` as a plain array, or raise if the result cannot be stored in it."""
    plain = conversion.as_plain_out(NAME, out, shape, table.dtype)
    inputs = [("data", table), *((end.operand, end.indices) for end in (sources, targets))]
    if weights is not None:
        inputs.append(("weights", weights))
    for operand, array in inputs:
        if shape_limits.shares_memory(plain, array):
            raise errors.out_overlaps(NAME, operand)
    return plain
