"""The six operators and `aggregate`, each as one loop."""

import operator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .arguments import (
    as_array,
    as_axis,
    as_batch_dims,
    as_indices,
    as_updates,
    broadcast,
    check_bounds,
    check_choice,
    check_dtypes,
    check_elements,
    check_fold,
    check_ranks,
    nd_slice,
)
from .items import Array, Items, Position, as_bytes, blank, check_result_rank, typed
from .positions import resolve_all
from .reductions import REDUCTIONS, check_reducible, folded, scattered
from .scalars import fill_item

__all__ = [
    "aggregate",
    "gather",
    "gather_elements",
    "gather_nd",
    "scatter_elements",
    "scatter_nd",
    "scatter_slices",
]


def gather(
    data: ArrayLike,
    indices: ArrayLike,
    axis: int = 0,
    *,
    mode: str = "raise",
    negative: bool = True,
    fill_value: Any = 0,
) -> Array:
    """Return the slices of `data` along `axis` that `indices` address.

    ``out[a.., i.., s..] = data[a.., indices[i..], s..]``

    Examples
    --------
    >>> gather([[1, 2], [3, 4], [5, 6]], [2, 0])
    array([[5, 6],
           [1, 2]])
    """
    op = "gather"
    data, indices = as_array(op, "data", data), as_indices(op, indices)
    axis = as_axis(op, axis, data.ndim)
    check_bounds(op, mode, negative)
    check_dtypes(op, data, indices)
    fill = fill_item(op, fill_value, data.dtype, mode)
    check_ranks(op, data, indices)
    before, after = data.shape[:axis], data.shape[axis + 1 :]
    out = blank(op, before + indices.shape + after, data.dtype)

    source = as_bytes(data)
    resolved = resolve_all(op, data, indices, lambda position: axis, mode=mode, negative=negative)
    for a in np.ndindex(before):
        for i in np.ndindex(indices.shape):
            for s in np.ndindex(after):
                valid = resolved[i] is not None
                out[a + i + s] = source[(*a, resolved[i], *s)] if valid else fill
    return typed(out, data.dtype)


def gather_elements(
    data: ArrayLike,
    indices: ArrayLike,
    axis: int = 0,
    *,
    mode: str = "raise",
    negative: bool = True,
    fill_value: Any = 0,
) -> Array:
    """Return one element of `data` for each element of `indices`.

    ``out[i, j, k] = data[i, indices[i, j, k], k]`` (`axis` 1 shown)

    Examples
    --------
    >>> gather_elements([[1, 2], [3, 4]], [[0, 0], [1, 0]], axis=1)
    array([[1, 1],
           [4, 3]])
    """
    op = "gather_elements"
    data, indices = as_array(op, "data", data), as_indices(op, indices)
    axis = as_axis(op, axis, data.ndim)
    check_bounds(op, mode, negative)
    check_dtypes(op, data, indices)
    fill = fill_item(op, fill_value, data.dtype, mode)
    check_ranks(op, data, indices)
    check_elements(op, data, indices, axis)
    out = blank(op, indices.shape, data.dtype)

    source = as_bytes(data)
    resolved = resolve_all(op, data, indices, lambda position: axis, mode=mode, negative=negative)
    for p in np.ndindex(indices.shape):
        valid = resolved[p] is not None
        out[p] = source[(*p[:axis], resolved[p], *p[axis + 1 :])] if valid else fill
    return typed(out, data.dtype)


def gather_nd(
    data: ArrayLike,
    indices: ArrayLike,
    batch_dims: int = 0,
    *,
    mode: str = "raise",
    negative: bool = True,
    fill_value: Any = 0,
) -> Array:
    """Return the sub-arrays of `data` that the rows of `indices` address.

    ``out[b.., i.., s..] = data[b.., *indices[b.., i.., :], s..]``

    Examples
    --------
    >>> gather_nd([[1, 2], [3, 4]], [[0, 1], [1, 0]])
    array([2, 3])
    """
    op = "gather_nd"
    data, indices = as_array(op, "data", data), as_indices(op, indices)
    b = as_batch_dims(op, batch_dims, indices.ndim)
    check_bounds(op, mode, negative)
    check_dtypes(op, data, indices)
    fill = fill_item(op, fill_value, data.dtype, mode)
    check_ranks(op, data, indices)
    slice_shape = nd_slice(op, data, indices, b)
    out = blank(op, indices.shape[:-1] + slice_shape, data.dtype)

    source = as_bytes(data)
    resolved = resolve_all(
        op, data, indices, lambda position: b + position[-1], mode=mode, negative=negative
    )
    for p in np.ndindex(indices.shape[:-1]):
        address = tuple(resolved[p])
        for s in np.ndindex(slice_shape):
            out[p + s] = fill if None in address else source[p[:b] + address + s]
    return typed(out, data.dtype)


def scatter_slices(
    data: ArrayLike,
    indices: ArrayLike,
    updates: ArrayLike,
    axis: int = 0,
    *,
    reduction: str = "none",
    include_self: bool = True,
    mode: str = "raise",
    negative: bool = True,
) -> Array:
    """Copy `data` and write to the slices along `axis` that `indices` address.

    ``out = data; out[a.., indices[i..], s..] op= updates[a.., i.., s..]``

    Examples
    --------
    >>> scatter_slices([[1, 2], [3, 4], [5, 6]], [2, 0], [[7, 8], [9, 0]])
    array([[9, 0],
           [3, 4],
           [7, 8]])
    """
    op = "scatter_slices"
    data, indices = as_array(op, "data", data), as_indices(op, indices)
    axis = as_axis(op, axis, data.ndim)
    check_bounds(op, mode, negative)
    check_fold(op, reduction, include_self)
    check_dtypes(op, data, indices)
    updates = as_updates(op, updates, data.dtype)
    check_reducible(op, data.dtype, reduction)
    check_ranks(op, data, indices, updates)
    before, after = data.shape[:axis], data.shape[axis + 1 :]
    check_result_rank(op, len(before + indices.shape + after))
    update_items = as_bytes(broadcast(op, updates, before + indices.shape + after))

    resolved = resolve_all(op, data, indices, lambda position: axis, mode=mode, negative=negative)
    arrivals: dict[Position, Items] = {}
    for a in np.ndindex(before):
        for i in np.ndindex(indices.shape):
            if resolved[i] is not None:
                for s in np.ndindex(after):
                    item = update_items[a + i + s].tobytes()
                    arrivals.setdefault((*a, int(resolved[i]), *s), []).append(item)
    return scattered(op, data, arrivals, reduction, include_self)


def scatter_elements(
    data: ArrayLike,
    indices: ArrayLike,
    updates: ArrayLike,
    axis: int = 0,
    *,
    reduction: str = "none",
    include_self: bool = True,
    mode: str = "raise",
    negative: bool = True,
) -> Array:
    """Copy `data` and write one element of `updates` for each element of `indices`.

    ``out = data; out[i, indices[i, j, k], k] op= updates[i, j, k]`` (`axis` 1)

    Examples
    --------
    >>> scatter_elements([0, 1, 2, 3, 4], [3, 1, 3, 0], [5, 6, 7, 8])
    array([8, 6, 2, 7, 4])
    """
    op = "scatter_elements"
    data, indices = as_array(op, "data", data), as_indices(op, indices)
    axis = as_axis(op, axis, data.ndim)
    check_bounds(op, mode, negative)
    check_fold(op, reduction, include_self)
    check_dtypes(op, data, indices)
    updates = as_updates(op, updates, data.dtype)
    check_reducible(op, data.dtype, reduction)
    check_ranks(op, data, indices, updates)
    check_elements(op, data, indices, axis)
    update_items = as_bytes(broadcast(op, updates, indices.shape))

    resolved = resolve_all(op, data, indices, lambda position: axis, mode=mode, negative=negative)
    arrivals: dict[Position, Items] = {}
    for p in np.ndindex(indices.shape):
        if resolved[p] is not None:
            address = (*p[:axis], resolved[p], *p[axis + 1 :])
            arrivals.setdefault(address, []).append(update_items[p].tobytes())
    return scattered(op, data, arrivals, reduction, include_self)


def scatter_nd(
    data: ArrayLike,
    indices: ArrayLike,
    updates: ArrayLike,
    batch_dims: int = 0,
    *,
    reduction: str = "none",
    include_self: bool = True,
    mode: str = "raise",
    negative: bool = True,
) -> Array:
    """Copy `data` and write to the sub-arrays that the rows of `indices` address.

    ``out = data; out[b.., *indices[b.., i.., :], s..] op= updates[b.., i.., s..]``

    Examples
    --------
    >>> scatter_nd([1, 2, 3, 4], [[3], [1]], [9, 8])
    array([1, 8, 3, 9])
    """
    op = "scatter_nd"
    data, indices = as_array(op, "data", data), as_indices(op, indices)
    b = as_batch_dims(op, batch_dims, indices.ndim)
    check_bounds(op, mode, negative)
    check_fold(op, reduction, include_self)
    check_dtypes(op, data, indices)
    updates = as_updates(op, updates, data.dtype)
    check_reducible(op, data.dtype, reduction)
    check_ranks(op, data, indices, updates)
    slice_shape = nd_slice(op, data, indices, b)
    update_items = as_bytes(broadcast(op, updates, indices.shape[:-1] + slice_shape))

    resolved = resolve_all(
        op, data, indices, lambda position: b + position[-1], mode=mode, negative=negative
    )
    arrivals: dict[Position, Items] = {}
    for p in np.ndindex(indices.shape[:-1]):
        address = tuple(resolved[p])
        if None not in address:
            for s in np.ndindex(slice_shape):
                item = update_items[p + s].tobytes()
                arrivals.setdefault(p[:b] + address + s, []).append(item)
    return scattered(op, data, arrivals, reduction, include_self)


def rows_of_edges(
    op: str, edges: tuple[int, ...], scatter_indices: Any, indptr: Any, size: Any
) -> tuple[Any, int]:
    """Return the destination row of each edge, and the number of rows of the result."""
    if indptr is not None:
        if scatter_indices is not None:
            raise ValueError(f"{op}: `scatter_indices` and `indptr` say the same")
        scatter_indices = pointed(op, as_indices(op, indptr), edges)
        size = len(np.asarray(indptr)) - 1
    size = operator.index(size)
    if size < 0:
        raise ValueError(f"{op}: `size` must be at least 0, got {size}")
    return scatter_indices, size


def pointed(op: str, indptr: Array, edges: tuple[int, ...]) -> Array:
    """Return the destination row of each edge, for edges that a CSR pointer defines."""
    check_dtypes(op, indptr, indptr)
    if indptr.ndim != 1 or len(indptr) == 0 or [indptr[0], indptr[-1]] != [0, *edges]:
        raise ValueError(f"{op}: `indptr` must go from 0 to the number of edges, {edges}")
    if (indptr[1:] < indptr[:-1]).any():
        raise ValueError(f"{op}: `indptr` must not decrease")
    rows = [d for d in range(len(indptr) - 1) for _ in range(indptr[d], indptr[d + 1])]
    return np.array(rows, np.int64)


def aggregate(
    data: ArrayLike,
    gather_indices: ArrayLike,
    scatter_indices: ArrayLike | None,
    size: int | None,
    reduction: str,
    weights: ArrayLike | None = None,
    *,
    indptr: ArrayLike | None = None,
    fill_value: Any = None,
    axis: int = 0,
    mode: str = "raise",
    negative: bool = True,
) -> Array:
    """Reduce rows of `data` along `axis` into `size` rows, edge by edge.

    ``out[scatter_indices[e]] op= data[gather_indices[e]] * weights[e]``

    Weights of shape ``(*edges, *data.shape[axis + 1 : axis + 1 + k])`` differ within a row.

    Examples
    --------
    >>> aggregate([[1, 2], [3, 4]], [0, 1, 1], [1, 1, 0], 3, "add", [1, 1, 10])
    array([[30, 40],
           [ 4,  6],
           [ 0,  0]])
    """
    op = "aggregate"
    check_choice(op, "reduction", reduction, REDUCTIONS[1:])
    check_bounds(op, mode, negative)
    edges = np.shape(gather_indices)
    scatter_indices, size = rows_of_edges(op, edges, scatter_indices, indptr, size)
    data = as_array(op, "data", data)
    sources, targets = as_indices(op, gather_indices), as_indices(op, scatter_indices)
    for indices in (sources, targets):
        check_dtypes(op, data, indices)
    check_reducible(op, data.dtype, reduction)
    factors = None if weights is None else as_updates(op, weights, data.dtype)
    check_ranks(op, data, sources, targets)
    axis = as_axis(op, axis, data.ndim)
    behind = data.shape[axis + 1 :]
    data = np.moveaxis(data, axis, 0)
    if targets.shape != sources.shape:
        raise ValueError(f"{op}: shapes of indices {sources.shape} and {targets.shape} differ")
    within = 0
    if factors is not None:
        within = max(factors.ndim - sources.ndim, 0)
        factors = broadcast(op, factors, (*sources.shape, *behind[:within]))

    initial = _rows_without_edges(op, (size, *data.shape[1:]), data.dtype, reduction, fill_value)
    source = resolve_all(op, data, sources, lambda position: 0, mode=mode, negative=negative)
    target = resolve_all(op, initial, targets, lambda position: 0, mode=mode, negative=negative)
    rows = as_bytes(data)
    arrivals: dict[Position, Items] = {}
    for e in np.ndindex(sources.shape):
        if source[e] is None or target[e] is None:
            continue
        for s in np.ndindex(data.shape[1:]):
            item = rows[(source[e], *s)].tobytes()
            if factors is not None:
                factor = factors[(*e, *s[axis : axis + within])]
                item = folded([item, factor.tobytes()], data.dtype, "mul")
            arrivals.setdefault((int(target[e]), *s), []).append(item)
    result = scattered(op, initial, arrivals, reduction, False)
    return np.moveaxis(result, 0, axis).copy()


def _rows_without_edges(
    op: str, shape: tuple[int, ...], dtype: np.dtype[Any], reduction: str, fill_value: Any
) -> Array:
    """Return the result of `aggregate` before its first edge: `fill_value`, or 1 for products."""
    items = blank(op, shape, dtype)
    initial = typed(items, dtype)
    if fill_value is not None:
        items[...] = fill_item(op, fill_value, dtype, "fill")
    elif reduction == "mul":
        initial[...] = 1
    return initial
