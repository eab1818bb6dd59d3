"""Gather, scale and reduce rows in one pass, without storing the gathered rows."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple, Never, Self

import numpy as np

from gatherum._arguments import conversion, plain_values, xarray_labels
from gatherum._edges import edge_reductions, sparse_edges
from gatherum._edges.edge_lists import EdgeEnd, EdgeLoops
from gatherum._edges.edge_reductions import NAME, AggregateOptions, Pointer, check_edges
from gatherum._frameworks import registry
from gatherum._frameworks.torch_compile import follow_tensors
from gatherum._model import errors, shape_limits
from gatherum._model.arrays import NumpyArray
from gatherum._model.call import FoldRule
from gatherum._model.call_types import FoldName, typed_as
from gatherum._model.dtypes import check_movable
from gatherum._model.modes import MODES, ModeName
from gatherum._model.reductions import FOLDS, ROWS
from gatherum._system import native

from . import overloads

# Random reads of shorter contiguous parts take longer than copying a table.
_SHORTEST_PART = 64
# For fewer edges, making a pointer (0.05 ms more per call) takes longer than lists (3 ns more per
# edge: 800k rows of 64 float32 into 20k).
_FEWEST_SORTED_EDGES = 16_384


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
    fill_value: object = None,
    axis: int = 0,
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
        The rows, along `axis`, of a dtype that `reduction` is defined for: an array_like, a tensor,
        a JAX array or a Dask array. If `data` is an ``xarray.DataArray``, the result is a
        DataArray. Its dimension `axis` has the name of `scatter_indices` if `scatter_indices` is a
        named DataArray, and the name ``"row"`` otherwise.
    gather_indices : array_like of int, or sparse matrix
        The source of each edge, the number of a row of `data`. The array may have any shape. Any
        integer dtype, signed or unsigned, of 8 to 64 bits, in either byte order. Or all edges as a
        matrix ``A``, with `scatter_indices`, `size` and `weights` None: an entry ``A[i, j]`` is an
        edge from row j of `data` to row i of the result, with its value as the weight. With
        ``"add"`` the result is ``A @ data``. The matrix is a SciPy or torch matrix in CSR, CSC or
        COO format.
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
        or one that broadcasts to it. Weights with more dimensions are factors for parts of a row:
        their shape is that of `gather_indices`, followed by the first dimensions of `data` after
        `axis`, such as ``(edges, heads)`` for data of shape ``(nodes, heads, channels)``. Python
        scalars and lists are converted to `data`'s dtype.
    indptr : array_like of int, optional
        Replaces `scatter_indices` for edges that are sorted by destination: edges ``indptr[i]`` up
        to ``indptr[i + 1]`` have destination i, as in a CSR matrix. It has one more entry than the
        result has rows, begins with 0, does not decrease, and ends with the number of edges.
        `gather_indices` must be one-dimensional.
    fill_value : object, optional
        The value of rows without edges, converted to `data`'s dtype as in `gather`. The default is
        1 for ``"mul"``, and 0 otherwise.
    axis : int, default 0
        The axis of `data` that the sources address, in ``[-data.ndim, data.ndim)``. The result has
        its rows along the same axis.
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
        `out`, or a new C-contiguous array of the shape of `data`, with `size` instead of
        ``data.shape[axis]``. For tensors, JAX arrays and Dask arrays, an array of the same
        framework.

    Raises
    ------
    TypeError
        If `size` or `axis` is not an integer, `negative` is not a boolean, the reduction is not
        defined for
        `data`'s dtype, indices have a non-integer dtype, `weights` has another dtype than `data`,
        an operand is not an array, is masked or belongs to another framework, a matrix has another
        format, or `out` is not an ndarray or has another dtype.
    ValueError
        If `reduction`, `mode` or `axis` has an invalid value, `fill_value` does not convert, `size`
        is negative, the shapes do not match, `indptr` does not partition the edges, destinations
        are given twice or not at all, or `out` has another shape, is read-only, overlaps itself or
        shares memory with an input.
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
    Along axis 0, the result is bit-for-bit equal to these calls, for any number of threads::

        messages = gather(data, gather_indices)
        messages = messages * weights
        start = numpy.full((size, *data.shape[1:]), fill_value, data.dtype)
        out = scatter_slices(start, scatter_indices, messages, reduction=reduction,
                             include_self=False)

    If a row of the result has edges, it is the left fold of their messages, in row-major order of
    the edges. A row without edges is `fill_value`.

    Products with weights follow the rules of ``reduction="mul"``: integers wrap around, bools use
    logical and, float16 and bfloat16 are multiplied in float32 and rounded to `data`'s dtype, and
    complex products are ``(ac-bd, ad+bc)`` in separate operations. A NaN that a product creates is
    the canonical quiet NaN; in NumPy its bits depend on the processor.

    Tensors and JAX arrays support derivatives of any order, in forward and in reverse mode. The
    derivative of a sum or a mean with respect to `data` is an `aggregate` with sources and
    destinations exchanged. Other derivatives, calls in ``torch.func.vmap`` with weights, and calls
    in ``jax.jit`` store the messages, as do calls on a CUDA device with weights or with an axis
    other than 0. Calls on Dask arrays store the messages of each chunk.

    The results for `indptr` and for a matrix are bit-for-bit equal to the result for two index
    arrays with the entries in storage order. Duplicate entries of a matrix are separate edges.

    Working memory is 12 to 32 bytes for each edge, plus, for each thread, 4 or 8 for each row of
    the result. With `indptr` or a CSR matrix it is 8 bytes for each row of the result, plus, for
    each thread, 4 to 24 bytes for each edge of the result row with the most edges. If the
    contiguous parts of a row are shorter than 64 bytes, as for the last axis of an array in C
    order, `data` and the result are also copied.

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
    >>> gatherum.aggregate(planets, [0, 1], [0, 0], 2, "mean", fill_value=np.nan, axis=1)
    array([[ 5.5,  nan],
           [11. ,  nan],
           [16.5,  nan]])

    Edges sorted by destination, two for row 0 and one for row 2:

    >>> gatherum.aggregate(planets, [0, 1, 2], None, None, "add", indptr=[0, 2, 2, 3])
    array([[ 3., 30.],
           [ 0.,  0.],
           [ 3., 30.]])
    """
    if unknown:
        raise errors.unknown_argument("aggregate", unknown)
    axis = plain_values.as_integer(NAME, "axis", axis)
    keywords: dict[str, Any] = {
        "fill_value": fill_value, "axis": axis, "mode": mode, "negative": negative
    }  # fmt: skip
    if xarray_labels.has_labels(data):
        xarray_labels.check_no_out(NAME, out)
        ends = map(xarray_labels.plain_array, (data, gather_indices, scatter_indices))
        plain_weights, pointer = map(xarray_labels.plain_array, (weights, indptr))
        run_plain = partial(
            aggregate, *ends, size, reduction, plain_weights, indptr=pointer, **keywords
        )
        resolved = shape_limits.resolve_axis(NAME, data.shape, axis)
        caller = NAME, "scatter_indices", data, resolved, scatter_indices
        return xarray_labels.renumbered(*caller, "row", run_plain)
    if indptr is not None or scatter_indices is None or size is None:
        edges = sparse_edges.list_edges(
            data, gather_indices, scatter_indices, size, weights, indptr, axis
        )
        with edges.renaming:
            return aggregate(data, *edges.ends, reduction, edges.weights, out=out, **keywords)
    reduction = plain_values.as_choice(NAME, "reduction", reduction, FOLDS)  # type: ignore[assignment]
    mode_name = plain_values.as_choice(NAME, "mode", mode, MODES)
    negative = plain_values.as_boolean(NAME, "negative", negative)
    operands = {"data": data, "gather_indices": gather_indices, "scatter_indices": scatter_indices}
    options = AggregateOptions(size, reduction, mode_name, negative, "", fill_value, axis)
    run = registry.adapter_member(NAME, operands | {"weights": weights}, "aggregate") or _on_arrays
    return run(data, gather_indices, scatter_indices, options, weights, out)


follow_tensors(aggregate, "functions", "aggregation")


def _on_arrays(
    data: Any, sources: Any, targets: Any, options: AggregateOptions, weights: Any, out: Any | None
) -> NumpyArray:
    """Run `aggregate` on NumPy arrays."""
    operands = _Operands.of(data, sources, targets, options, weights)
    table, axis = operands.table, operands.axis
    result: NumpyArray
    if out is None:
        result = native.new_result(table.dtype, operands.result_shape)
    else:
        result = _as_out(out, operands)
    pins = conversion.pinned(*operands.arrays().values(), result)
    rows, row_result = (np.moveaxis(array, axis, 0) for array in (table, result))
    if _has_short_parts(rows) and operands.sources.indices.size >= len(rows):
        rows = rows.copy()
    contiguous_result = row_result
    if _has_short_parts(row_result):
        contiguous_result = native.new_result(table.dtype, row_result.shape)
    edge_fold = _EdgeFold(
        rows,
        contiguous_result,
        _broadcast_weights(operands.weights, operands.sources.indices.shape, table.shape, axis),
        options.reduction,
        options.mode,
        options.negative,
        operands.item_without_edges,
        out is None or contiguous_result is not row_result,
    )
    fold = edge_fold.fold_pointed if operands.has_pointer else edge_fold.fold
    fold(operands.sources, operands.targets)
    if contiguous_result is not row_result:
        row_result[...] = contiguous_result
    del pins
    return result if out is None else out


class _Operands(NamedTuple):
    """The operands of `aggregate` as arrays whose dtypes and shapes fit together."""

    table: NumpyArray
    sources: EdgeEnd
    targets: EdgeEnd  # the destinations, or the CSR pointer if `has_pointer` is true
    has_pointer: bool
    weights: NumpyArray | None
    axis: int
    result_shape: tuple[int, ...]
    item_without_edges: NumpyArray

    @classmethod
    def of(
        cls, data: Any, sources: Any, targets: Any, options: AggregateOptions, weights: Any
    ) -> Self:
        """Convert and check the operands of a call."""
        size = plain_values.as_size(NAME, "size", options.size)
        table = conversion.as_array(NAME, "data", data)
        check_movable(NAME, "data", table.dtype)
        source_array = conversion.as_indices(NAME, sources, "gather_indices")
        has_pointer = isinstance(targets, Pointer)
        if isinstance(targets, Pointer):
            operand, target_array = targets
        else:
            operand = "scatter_indices"
            target_array = conversion.as_indices(NAME, targets, operand)
        weight_array = None
        if weights is not None:
            weight_array = conversion.as_updates(NAME, weights, table.dtype, "weights")
        ends = source_array, source_array if has_pointer else target_array
        plan_dtype = attrgetter("dtype")
        axis = check_edges(plan_dtype, table, *ends, weight_array, options.reduction, options.axis)
        shape = (*table.shape[:axis], size, *table.shape[axis + 1 :])
        shape_limits.check_result(NAME, shape, table.dtype)
        item_without_edges = np.full((), ROWS[options.reduction].empty, table.dtype)
        if options.fill_value is not None:
            item_without_edges = conversion.fill_item(NAME, table.dtype, options.fill_value)
        source_end = EdgeEnd("gather_indices", source_array, table.shape[axis], axis)
        target_end = EdgeEnd(operand, target_array, size, axis)
        return cls(
            table,
            source_end,
            target_end,
            has_pointer,
            weight_array,
            axis,
            shape,
            item_without_edges,
        )

    def arrays(self) -> dict[str, NumpyArray | None]:
        """Return the arrays by the names of the operands."""
        ends = {end.operand: end.indices for end in (self.sources, self.targets)}
        return {"data": self.table, **ends, "weights": self.weights}


class _EdgeFold(NamedTuple):
    """The rows, weights, result and options of a fold along edges."""

    table: NumpyArray
    out: NumpyArray
    weights: (
        NumpyArray | None
    )  # with the dimensions of the edges, then the first dimensions of a row
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


def _has_short_parts(rows: NumpyArray) -> bool:
    """Return True if the contiguous parts of rows are so short that a copy is faster to read."""
    width = rows.itemsize
    for extent, step in zip(rows.shape[:0:-1], rows.strides[:0:-1], strict=True):
        if extent != 1:
            if step != width:
                return 0 < width < _SHORTEST_PART
            width *= extent
    return False


def _broadcast_weights(
    weights: NumpyArray | None, edges: tuple[int, ...], data: tuple[int, ...], axis: int
) -> NumpyArray | None:
    """Broadcast weights to the dimensions of the edges and to the first dimensions of a row."""
    if weights is None:
        return None
    shape_limits.check_size(NAME, "weights", weights.shape, weights.dtype.itemsize)
    lifted: NumpyArray = edge_reductions.weights_of_moved_axis(np, weights, len(edges), axis)
    row = (*data[:axis], *data[axis + 1 :])
    shape = edge_reductions.weights_shape(edges, row, lifted.ndim)
    return np.broadcast_to(lifted, shape)


def _as_out(out: NumpyArray, operands: _Operands) -> NumpyArray:
    """Return `out` as a plain array, or raise if the result cannot be stored in it."""
    dtype = operands.table.dtype
    plain_out = conversion.as_plain_out(NAME, out, operands.result_shape, dtype)
    for operand, array in operands.arrays().items():
        if array is not None and shape_limits.shares_memory(plain_out, array):
            raise errors.out_overlaps(NAME, operand)
    return plain_out
