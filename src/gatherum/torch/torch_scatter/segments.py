"""torch_scatter's segment functions: reduce neighbouring values, and repeat them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from gatherum._derivatives.array_ops import Destinations
from gatherum._model import errors, shape_limits
from gatherum._model.callers import Caller
from gatherum._model.dtypes import is_index
from gatherum.torch import checks, namespace, segment_numbers, shared_results
from gatherum.torch import errors as torch_errors
from gatherum.torch.library import symbolic_sizes

from .scatter_arguments import (
    FOLDED,
    as_index,
    cheapest_destinations,
    checked_out,
    checked_tensor,
    naming_caller,
    plain_gather,
    plain_scatter,
    reduction_of,
)
from .scatters import extreme, fold_into, scattered_extreme, scattered_fold


def segment_csr(src: Tensor, indptr: Any, out: Tensor | None = None, reduce: str = "sum") -> Tensor:
    """Reduce segments: destination `s` gets the values from ``indptr[s]`` to ``indptr[s + 1]``.

    Parameters
    ----------
    src : Tensor
        Values. The segments are along dimension ``indptr.dim() - 1``.
    indptr : Tensor of integers
        The start of each segment and the end of the last one. Values must not decrease, and are at
        most the size of that dimension. Leading dimensions broadcast to those of `src`.
    out : Tensor, optional
        The result. Its old values are ignored.
    reduce : str, optional
        As in `gatherum.torch.scatter`.

    Returns
    -------
    Tensor
        `out`, or a new tensor; 0 for an empty segment, 1 for ``"mul"``.

    Examples
    --------
    >>> import torch
    >>> from gatherum.torch import segment_csr
    >>> segment_csr(torch.tensor([1, 2, 3, 4, 5, 6]), torch.tensor([0, 2, 5, 5, 6]))
    tensor([ 3, 12,  0,  6])
    """
    return _reduce_segments("segment_csr", src, indptr, out, reduce)


def segment_sum_csr(src: Tensor, indptr: Any, out: Tensor | None = None) -> Tensor:
    """Sum each segment: `gatherum.torch.segment_csr` with ``reduce="sum"``."""
    return _reduce_segments("segment_sum_csr", src, indptr, out, "sum")


def segment_add_csr(src: Tensor, indptr: Any, out: Tensor | None = None) -> Tensor:
    """Sum each segment: `gatherum.torch.segment_csr` with ``reduce="add"``."""
    return _reduce_segments("segment_add_csr", src, indptr, out, "add")


def segment_mean_csr(src: Tensor, indptr: Any, out: Tensor | None = None) -> Tensor:
    """Average each segment: `gatherum.torch.segment_csr` with ``reduce="mean"``."""
    return _reduce_segments("segment_mean_csr", src, indptr, out, "mean")


def segment_max_csr(src: Tensor, indptr: Any, out: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Return the maximum of each segment, and its argmax along the dimension.

    Parameters
    ----------
    src, indptr, out
        As in `gatherum.torch.segment_csr`.

    Returns
    -------
    values : Tensor
        `out`, or a new tensor: 0 for an empty segment.
    arg : Tensor of int64
        The first position of the largest value; the size of the dimension for an empty segment.

    Examples
    --------
    >>> import torch
    >>> from gatherum.torch.torch_scatter import segment_max_csr
    >>> segment_max_csr(torch.tensor([1, 3, 2, 4, 4, 6]), torch.tensor([0, 2, 5, 5, 6]))
    (tensor([3, 4, 0, 6]), tensor([1, 3, 6, 5]))
    """
    return _segment_extreme("segment_max_csr", src, indptr, out, "max")


def segment_min_csr(src: Tensor, indptr: Any, out: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Return the minimum of each segment, and its argmin; see `segment_max_csr`."""
    return _segment_extreme("segment_min_csr", src, indptr, out, "min")


def gather_csr(src: Tensor, indptr: Any, out: Tensor | None = None) -> Tensor:
    """Repeat value `s` from ``indptr[s]`` to ``indptr[s + 1]``: the inverse of `segment_csr`.

    Parameters
    ----------
    src : Tensor
        Values. Dimension ``indptr.dim() - 1`` has size ``indptr.shape[-1] - 1``.
    indptr : Tensor of integers
        As in `gatherum.torch.segment_csr`. The last value is the size of the result.
    out : Tensor, optional
        The result.

    Returns
    -------
    Tensor
        `out`, or a new tensor; 0 before the first segment.

    Examples
    --------
    >>> import torch
    >>> from gatherum.torch import gather_csr
    >>> gather_csr(torch.tensor([1, 2, 3, 4]), torch.tensor([0, 2, 5, 5, 6]))
    tensor([1, 1, 2, 2, 2, 4])
    """
    op = "gather_csr"
    src, indptr = _checked_pointer(op, src, indptr)
    dim = indptr.dim() - 1
    expected = (*indptr.shape[:-1], src.shape[dim] + 1)
    empty = symbolic_sizes.surely_holds(indptr.numel() == 0)
    nothing = empty and symbolic_sizes.surely_holds(src.shape[dim] == 0)
    if not nothing and not symbolic_sizes.may_hold(indptr.shape[-1] == expected[-1]):
        raise errors.other_shape(op, "indptr", expected, tuple(indptr.shape))
    checks.check_values(op, "indptr", indptr, segment_numbers.BATCH)
    ends = torch.cat((indptr.new_zeros(1), indptr.reshape(-1)))
    size = 0 if empty else symbolic_sizes.size_in(ends[-1])
    moved_shape = (*src.shape[:dim], size, *src.shape[dim + 1 :])
    symbolic = torch.compiler.is_compiling() or any(type(n) is not int for n in moved_shape)
    if not symbolic and size >= 0:
        shape_limits.check_result(op, moved_shape, namespace.plan_dtype(src))
    index = segment_numbers.segments_of_positions(
        namespace, op, indptr, size, size_is_last_pointer=True
    )
    caller = Caller(op, "indptr", "src")
    destinations = cheapest_destinations(caller, index, moved_shape, dim, src.shape[dim], "fill")
    with naming_caller(destinations), _declaring_adjacent(destinations):
        result = destinations.gather(src)
    return result if out is None else checked_out(op, out, result).copy_(result)


def segment_coo(
    src: Tensor,
    index: Any,
    out: Tensor | None = None,
    dim_size: int | None = None,
    reduce: str = "sum",
) -> Tensor:
    """Reduce the values of `src` with the same destination along the last dimension of `index`.

    Parameters
    ----------
    src : Tensor
        Values, with at least as many dimensions as `index`.
    index : Tensor of integers
        Destinations along dimension ``index.dim() - 1``, in any order. Leading dimensions broadcast
        to those of `src`.
    out, dim_size, reduce
        As in `gatherum.torch.scatter`.

    Returns
    -------
    Tensor
        `out`, or a new tensor: 0 for destinations without values, 1 for ``"mul"``.

    Examples
    --------
    >>> import torch
    >>> from gatherum.torch.torch_scatter import segment_coo
    >>> segment_coo(torch.tensor([[1, 5], [2, 6], [4, 8]]), torch.tensor([0, 0, 2]))
    tensor([[ 3, 11],
            [ 0,  0],
            [ 4,  8]])
    """
    return _scatter_coo("segment_coo", src, index, out, dim_size, reduce)


def segment_sum_coo(
    src: Tensor, index: Any, out: Tensor | None = None, dim_size: int | None = None
) -> Tensor:
    """Sum the values with the same destination: `segment_coo` with ``reduce="sum"``."""
    return _scatter_coo("segment_sum_coo", src, index, out, dim_size, "sum")


def segment_add_coo(
    src: Tensor, index: Any, out: Tensor | None = None, dim_size: int | None = None
) -> Tensor:
    """Sum the values with the same destination: `segment_coo` with ``reduce="add"``."""
    return _scatter_coo("segment_add_coo", src, index, out, dim_size, "add")


def segment_mean_coo(
    src: Tensor, index: Any, out: Tensor | None = None, dim_size: int | None = None
) -> Tensor:
    """Average the values with the same destination: `segment_coo` with ``reduce="mean"``."""
    return _scatter_coo("segment_mean_coo", src, index, out, dim_size, "mean")


def segment_max_coo(
    src: Tensor, index: Any, out: Tensor | None = None, dim_size: int | None = None
) -> tuple[Tensor, Tensor]:
    """Return the maximum of each destination, and its argmax.

    See `gatherum.torch.scatter_max`.
    """
    index, dim = _index_and_dim("segment_max_coo", src, index)
    return scattered_extreme("segment_max_coo", "max", src, index, dim, out, dim_size)


def segment_min_coo(
    src: Tensor, index: Any, out: Tensor | None = None, dim_size: int | None = None
) -> tuple[Tensor, Tensor]:
    """Return the minimum of each destination, and its argmin.

    See `gatherum.torch.scatter_max`.
    """
    index, dim = _index_and_dim("segment_min_coo", src, index)
    return scattered_extreme("segment_min_coo", "min", src, index, dim, out, dim_size)


def gather_coo(src: Tensor, index: Any, out: Tensor | None = None) -> Tensor:
    """Return the value at each index: the inverse of `segment_coo`.

    Parameters
    ----------
    src : Tensor
        Values, with at least as many dimensions as `index`.
    index : Tensor of integers
        Positions along dimension ``index.dim() - 1``, in any order. Leading dimensions broadcast to
        those of `src`.
    out : Tensor, optional
        The result.

    Returns
    -------
    Tensor
        `out`, or a new tensor.

    Examples
    --------
    >>> import torch
    >>> from gatherum.torch.torch_scatter import gather_coo
    >>> gather_coo(torch.tensor([1, 2, 3, 4]), torch.tensor([0, 0, 1, 3]))
    tensor([1, 1, 2, 4])
    """
    op = "gather_coo"
    if out is None and (result_of_core := plain_gather(op, src, index)) is not None:
        return result_of_core
    index, dim = _index_and_dim(op, src, index)
    moved_shape = (*src.shape[:dim], index.shape[dim], *src.shape[dim + 1 :])
    caller = Caller(op, "index", "src")
    destinations = cheapest_destinations(caller, index, moved_shape, dim, src.shape[dim], "raise")
    with naming_caller(destinations):
        result = destinations.gather(src)
    return result if out is None else checked_out(op, out, result).copy_(result)


def _scatter_coo(
    op: str, src: Tensor, index: Any, out: Tensor | None, dim_size: int | None, reduce: object
) -> Tensor:
    index, dim = _index_and_dim(op, src, index)
    return scattered_fold(op, src, index, dim, out, dim_size, reduce)


def _index_and_dim(op: str, src: Tensor, index: Any) -> tuple[Tensor, int]:
    """Return `index` as a tensor, and the number of its last dimension."""
    src = checked_tensor(op, "src", src, src)
    index = as_index(op, "index", index, src)
    _check_rank(op, "index", index, src)
    return index, index.dim() - 1


def _reduce_segments(
    op: str, src: Tensor, indptr: Any, out: Tensor | None, reduce: object
) -> Tensor:
    if out is None:
        result_of_core = plain_scatter(src, indptr, 0, None, reduce, "drop", True)
        if result_of_core is not None:
            return result_of_core
    reduction = reduction_of(op, reduce)
    src, indptr = _checked_pointer(op, src, indptr)
    destinations = _segment_destinations(op, src, indptr)
    with naming_caller(destinations), _declaring_adjacent(destinations):
        result = fold_into(destinations, src, reduction, None)
    return result if out is None else checked_out(op, out, result).copy_(result)


def _segment_extreme(
    op: str, src: Tensor, indptr: Any, out: Tensor | None, reduction: str
) -> tuple[Tensor, Tensor]:
    src, indptr = _checked_pointer(op, src, indptr)
    destinations = _segment_destinations(op, src, indptr)
    with naming_caller(destinations), _declaring_adjacent(destinations):
        values, arg = extreme(destinations, src, indptr.dim() - 1, reduction)
    return values if out is None else checked_out(op, out, values).copy_(values), arg


def _segment_destinations(op: str, src: Tensor, indptr: Tensor) -> Destinations:
    """Return the destinations of the values of segments."""
    dim = indptr.dim() - 1
    index = segment_numbers.segments_of_positions(namespace, op, indptr, src.shape[dim])
    caller = Caller(op, "indptr", *FOLDED)
    return cheapest_destinations(
        caller, index, src.shape, dim, max(indptr.shape[-1] - 1, 0), "drop"
    )


@contextmanager
def _declaring_adjacent(destinations: Destinations) -> Iterator[None]:
    """Note for calls on a device that the values of a segment are adjacent, so that none sorts."""
    with shared_results.sharing_calls():
        if shared_results.current(destinations.indices) is not None:
            from gatherum.torch import cuda

            cuda.keep_adjacent(destinations.indices)
        yield


def _check_rank(op: str, operand: str, index: Tensor, src: Tensor) -> None:
    if index.dim() == 0:
        raise errors.too_few_dimensions(op, operand, 0)
    if index.dim() > src.dim():
        raise errors.too_many_dimensions(op, f"`{operand}`", src.dim(), index.dim())


def _checked_pointer(op: str, src: Tensor, indptr: Any) -> tuple[Tensor, Tensor]:
    src = checked_tensor(op, "src", src, src)
    indptr = as_index(op, "indptr", indptr, src)
    if not is_index(dtype := namespace.plan_dtype(indptr)):
        raise torch_errors.not_a_pointer(op, dtype)
    _check_rank(op, "indptr", indptr, src)
    dim = indptr.dim() - 1
    if not shape_limits.broadcasts(indptr.shape[:-1], src.shape[:dim], symbolic_sizes.may_hold):
        expected = (*src.shape[:dim], indptr.shape[-1])
        raise torch_errors.no_broadcast(op, "indptr", tuple(indptr.shape), "src", expected, None)
    return src, indptr
