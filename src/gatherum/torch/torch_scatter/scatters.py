"""torch_scatter's scatters, and the names that PyG's `scatter` accepts for `reduce`.

Each value of `src` is reduced into the destination that `index` gives along one dimension:

    out[a.., index[a.., i, b..], b..] op= src[a.., i, b..]

A destination without values is 0, or 1 for products.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gatherum._derivatives.array_ops import Destinations
from gatherum._model.call import Attributes, FoldRule
from gatherum._model.reductions import ROWS
from gatherum.torch import checks, namespace, operands, private, shared_results
from gatherum.torch import errors as torch_errors
from gatherum.torch.autograd import recording
from gatherum.torch.library.ops import overload

from . import extremes
from .scatter_arguments import FOLDS, naming_caller, plain_scatter, reduction_of, scatter_operands


def scatter(
    src: Tensor,
    index: Any,
    dim: int = -1,
    out: Tensor | None = None,
    dim_size: int | None = None,
    reduce: str = "sum",
) -> Tensor:
    """Reduce the values of `src` with the same destination along a dimension.

    ``out[a.., index[a.., i, b..], b..] op= src[a.., i, b..]``, in the order of `i`.

    Parameters
    ----------
    src : Tensor
        Values, of any dtype that the operators support.
    index : Tensor of integers
        Destinations: one number for each `i` of dimension `dim`, or any shape that broadcasts to
        the shape of `src`. Missing trailing dimensions are added. May be a list or an array.
    dim : int, optional
        The dimension that `index` addresses.
    out : Tensor, optional
        The result, changed in place. Its old values take part, except in the count of a mean.
    dim_size : int, optional
        The size of the result along `dim`. Default: the size of `out`, or the largest index plus 1.
    reduce : str, optional
        ``"sum"`` or ``"add"``, ``"mul"``, ``"mean"``, ``"min"`` or ``"amin"``, ``"max"`` or
        ``"amax"``; ``"any"`` keeps the last value.

    Returns
    -------
    Tensor
        `out`, or a new tensor: 0 for destinations without values, 1 for ``"mul"``.

    Raises
    ------
    IndexError
        If an index is negative, or not below the size of the result.
    TypeError, ValueError
        If a dtype, a shape or the name of a reduction is invalid.

    Examples
    --------
    >>> import torch
    >>> from gatherum.torch import scatter
    >>> scatter(torch.tensor([1.0, 3, 2, 4, 5, 6]), torch.tensor([0, 1, 0, 1, 1, 3]), reduce="mean")
    tensor([1.5000, 4.0000, 0.0000, 6.0000])
    """
    return scattered_fold("scatter", src, index, dim, out, dim_size, reduce)


def scatter_sum(
    src: Tensor, index: Any, dim: int = -1, out: Tensor | None = None, dim_size: int | None = None
) -> Tensor:
    """Sum the values with the same destination: `scatter` with ``reduce="sum"``."""
    return scattered_fold("scatter_sum", src, index, dim, out, dim_size, "sum")


def scatter_add(
    src: Tensor, index: Any, dim: int = -1, out: Tensor | None = None, dim_size: int | None = None
) -> Tensor:
    """Sum the values with the same destination: `scatter` with ``reduce="add"``."""
    return scattered_fold("scatter_add", src, index, dim, out, dim_size, "add")


def scatter_mul(
    src: Tensor, index: Any, dim: int = -1, out: Tensor | None = None, dim_size: int | None = None
) -> Tensor:
    """Multiply the values with the same destination: `scatter` with ``reduce="mul"``."""
    return scattered_fold("scatter_mul", src, index, dim, out, dim_size, "mul")


def scatter_mean(
    src: Tensor, index: Any, dim: int = -1, out: Tensor | None = None, dim_size: int | None = None
) -> Tensor:
    """Average the values with the same destination: `scatter` with ``reduce="mean"``."""
    return scattered_fold("scatter_mean", src, index, dim, out, dim_size, "mean")


def scatter_max(
    src: Tensor, index: Any, dim: int = -1, out: Tensor | None = None, dim_size: int | None = None
) -> tuple[Tensor, Tensor]:
    """Return the maximum of each destination, and its argmax along `dim`.

    Parameters
    ----------
    src, index, dim, out, dim_size
        As in `scatter`.

    Returns
    -------
    values : Tensor
        `out`, or a new tensor: 0 for destinations without values.
    arg : Tensor of int64
        The first `i` with the largest value; ``src.size(dim)`` for destinations without values,
        or whose old value in `out` remains.

    Examples
    --------
    >>> import torch
    >>> from gatherum.torch import scatter_max
    >>> scatter_max(torch.tensor([1, 3, 2, 4, 4, 6]), torch.tensor([0, 1, 0, 1, 1, 3]))
    (tensor([2, 4, 0, 6]), tensor([2, 3, 6, 5]))
    """
    return scattered_extreme("scatter_max", "max", src, index, dim, out, dim_size)


def scatter_min(
    src: Tensor, index: Any, dim: int = -1, out: Tensor | None = None, dim_size: int | None = None
) -> tuple[Tensor, Tensor]:
    """Return the minimum of each destination, and its argmin along `dim`.

    Parameters, results and ties are as in `scatter_max`.
    """
    return scattered_extreme("scatter_min", "min", src, index, dim, out, dim_size)


def scattered_fold(
    op: str,
    src: Tensor,
    index: Any,
    dim: Any,
    out: Tensor | None,
    dim_size: Any,
    reduce: object,
) -> Tensor:
    """Reduce the values with the same destination."""
    if out is None:
        result = plain_scatter(src, index, dim, dim_size, reduce, "raise", False)
        if result is not None:
            return result
    reduction = reduction_of(op, reduce)
    src, destinations = scatter_operands(op, src, index, dim, out, dim_size)
    with naming_caller(destinations):
        return fold_into(destinations, src, reduction, out)


def fold_into(
    destinations: Destinations, src: Tensor, reduction: str, out: Tensor | None
) -> Tensor:
    """Fold values into `out`, or into a new tensor filled with a constant."""
    if out is None:
        initial_values = src.new_full((), ROWS[reduction].empty).expand(destinations.shape)
        return destinations.scatter(initial_values, src, FOLDS[reduction])
    if reduction == "mean":  # sum of updates and old value, over the number of updates
        if out.dtype in (torch.float16, torch.bfloat16):  # round only once
            wide_out = fold_into(destinations, src.to(torch.float32), "mean", out.to(torch.float32))
            return out.copy_(wide_out)
        with shared_results.sharing_calls():
            total = fold_into(destinations, src, "add", out)
            counts = destinations.with_data_rank(destinations.counts().clamp(min=1))
        rounding = None if out.is_floating_point() or out.is_complex() else "floor"
        with namespace.float_mode():
            return total.div_(counts, rounding_mode=rounding)
    if operands.is_indirect(out) or (
        torch.is_grad_enabled() and (src.requires_grad or out.requires_grad)
    ):
        old = out.clone() if ROWS[reduction].needs_values else out
        return out.copy_(destinations.scatter(old, src, FoldRule(reduction)))
    attributes = destinations.attributes._replace(reduction=reduction)
    overload(f"{attributes.op}_")(
        out, destinations.indices, src, *attributes.positional, attributes.caller
    )  # fmt: skip
    return out


def scattered_extreme(
    op: str,
    reduction: str,
    src: Tensor,
    index: Any,
    dim: int,
    out: Tensor | None,
    dim_size: int | None,
) -> tuple[Tensor, Tensor]:
    """Return the maxima or minima, and the first position of each along `dim`."""
    src, destinations = scatter_operands(op, src, index, dim, out, dim_size)
    with naming_caller(destinations), shared_results.sharing_calls():
        return extreme(destinations, src, dim % src.dim(), reduction, out)


def extreme(
    destinations: Destinations, src: Tensor, dim: int, reduction: str, out: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return the maxima or minima, and the first position of each along `dim`.

    The gradient is that of the values at these positions, and one scatter computes it. The old
    value of `out` counts as the first of equal values.
    """
    is_eager = not torch.compiler.is_compiling()
    if out is not None and is_eager and (checks.is_batched(out) or checks.is_batched(src)):
        raise torch_errors.out_of_vmap(destinations.attributes.op)
    is_differentiated = _differentiated(src, out)
    detached_src = src.detach()
    if extremes.is_supported(detached_src):
        data = (
            detached_src.new_zeros(()).expand(destinations.shape) if out is None else out.detach()
        )
        fold = FoldRule(reduction, out is not None)
        result, arg = extremes.values_and_positions(
            destinations, data, detached_src, fold, src.shape[dim]
        )
        if not is_differentiated:
            return result if out is None else out.copy_(result), arg
    else:
        old_values = None if out is None else out.detach().clone()
        if is_differentiated and old_values is not None:
            with torch.no_grad():
                result = destinations.scatter(old_values, detached_src, FoldRule(reduction))
        else:
            result = fold_into(destinations, detached_src, reduction, out)
        with torch.no_grad():
            arg = _first_positions(destinations, detached_src, result, old_values, dim)
        if not is_differentiated:
            return result, arg
    values = _values_at(src, arg, result, dim, reduction)
    if out is None:
        return values, arg
    return out.copy_(torch.where(arg == src.shape[dim], out.clone(), values)), arg


def _differentiated(src: Tensor, out: Tensor | None) -> bool:
    if not (src.is_floating_point() or src.is_complex()):
        return False
    if torch.compiler.is_compiling() or private.transforms_active():
        return True
    return recording.requires_recording((src, out))


def _first_positions(
    destinations: Destinations, src: Tensor, result: Tensor, old_values: Tensor | None, dim: int
) -> Tensor:
    """Return the first position of each destination's value, or ``src.size(dim)`` if there is none.

    Values are compared with the final value of their destination. One more scatter finds the
    minimum of the equal positions.
    """
    size = src.shape[dim]
    is_extreme = _equal_or_nan(src, destinations.gather(result))
    if old_values is not None:
        is_extreme &= destinations.gather(~_equal_or_nan(old_values, result))
    trailing = (1,) * (src.dim() - dim - 1)
    position = torch.arange(size, device=src.device).reshape(size, *trailing)
    extreme_positions = torch.where(is_extreme, position, size)
    no_position = extreme_positions.new_full((), size).expand(destinations.shape)
    return destinations.scatter(no_position, extreme_positions, FoldRule("min"))


def _values_at(src: Tensor, arg: Tensor, result: Tensor, dim: int, reduction: str) -> Tensor:
    """Return the values at `arg`, bit-for-bit equal to the result, and 0 for a missing position.

    Only the sign of a zero may differ: +0 is larger than -0.
    """
    attributes = Attributes("gather_elements", dim, mode="fill", negative=False)
    values = namespace.gather(attributes, src, arg)
    zeros = values + result if reduction == "max" else -(-result - values)
    return torch.where(result == 0, zeros, values)


def _equal_or_nan(first: Tensor, second: Tensor) -> Tensor:
    """Return a mask of equal values. NaNs are equal to each other."""
    return (first == second) | (first.isnan() & second.isnan())
