"""torch_scatter's composite functions: standard deviation, softmax, logsumexp.

They are bit-for-bit equal to the compositions of `gatherum.groups` on the groups in `index`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor

from gatherum._derivatives.array_ops import ADD, Destinations
from gatherum._model.call import FoldRule
from gatherum.groups import compositions, evaluation, functions, rounding, spreads
from gatherum.groups.grouping import Grouping
from gatherum.torch import namespace

from .scatter_arguments import naming_caller, scatter_operands


def scatter_std(
    src: Tensor,
    index: Any,
    dim: int = -1,
    out: Tensor | None = None,
    dim_size: int | None = None,
    unbiased: bool = True,
) -> Tensor:
    """Return the standard deviation of the values with the same destination.

    Parameters
    ----------
    src, index, dim, dim_size
        As in `gatherum.torch.scatter`.
    out : Tensor, optional
        The result, changed in place; its old values are added to the sums of squares.
    unbiased : bool, default True
        Whether to divide sums of squares by the number of values less 1, but at least by 1.

    Returns
    -------
    Tensor
        `out`, or a new tensor: 0 for fewer than two values.

    Examples
    --------
    >>> import torch
    >>> from gatherum.torch.torch_scatter import scatter_std
    >>> scatter_std(torch.tensor([1.0, 3.0, 7.0]), torch.tensor([0, 0, 2]))
    tensor([1.4142, 0.0000, 0.0000])
    """
    src, destinations = scatter_operands("scatter_std", src, index, dim, out, dim_size)
    result = _std(src, index, dim, destinations.shape[dim % src.dim()], out, bool(unbiased))
    return result if out is None else out.copy_(result)


def scatter_softmax(src: Tensor, index: Any, dim: int = -1, dim_size: int | None = None) -> Tensor:
    """Return ``exp(x - m) / sum(exp(x - m))``, where m is the maximum of the same group.

    Parameters
    ----------
    src, index, dim, dim_size
        As in `gatherum.torch.scatter`.

    Returns
    -------
    Tensor
        A tensor with the shape of `src`.

    Examples
    --------
    >>> import torch
    >>> from gatherum.torch.torch_scatter import scatter_softmax
    >>> scatter_softmax(torch.tensor([0.0, 0.0, 7.0]), torch.tensor([0, 0, 2]))
    tensor([0.5000, 0.5000, 1.0000])
    """
    op = "scatter_softmax"
    src, destinations = scatter_operands(op, src, index, dim, None, dim_size)
    return _transformed(op, "softmax", src, index, dim, destinations.shape[dim % src.dim()])


def scatter_log_softmax(
    src: Tensor, index: Any, dim: int = -1, eps: float = 1e-12, dim_size: int | None = None
) -> Tensor:
    """Return the logarithm of `scatter_softmax`, ``x - m - log(sum(exp(x - m)))``.

    The parameters, except `eps`, are as in `gatherum.torch.scatter`. `eps` has no effect, because
    every sum is at least 1.
    """
    op = "scatter_log_softmax"
    src, destinations = scatter_operands(op, src, index, dim, None, dim_size)
    return _transformed(op, "log_softmax", src, index, dim, destinations.shape[dim % src.dim()])


def scatter_logsumexp(
    src: Tensor,
    index: Any,
    dim: int = -1,
    out: Tensor | None = None,
    dim_size: int | None = None,
    eps: float = 1e-12,
) -> Tensor:
    """Return the log-sum-exp of the values with the same destination.

    Parameters
    ----------
    src, index, dim, dim_size
        As in `gatherum.torch.scatter`.
    out : Tensor, optional
        The result, changed in place. Its old values take part.
    eps : float
        No effect, because every sum is at least 1.

    Returns
    -------
    Tensor
        `out`, or a new tensor: 0 for destinations without values.

    Examples
    --------
    >>> import torch
    >>> from gatherum.torch.torch_scatter import scatter_logsumexp
    >>> scatter_logsumexp(torch.tensor([0.0, 0.0, 7.0]), torch.tensor([0, 0, 2]))
    tensor([0.6931, 0.0000, 7.0000])
    """
    src, destinations = scatter_operands("scatter_logsumexp", src, index, dim, out, dim_size)
    result = _log_sum(src, index, dim, destinations.shape[dim % src.dim()], out)
    return result if out is None else out.copy_(result)


# In a graph, each function below is a single call, which is traced below Dynamo. Sizes are known
# here.


def _grouped(op: str, src: Tensor, index: Any, dim: int, size: int) -> tuple[Tensor, Grouping]:
    src, destinations = scatter_operands(op, src, index, dim, None, size)
    return src, Grouping(op, "index", None, destinations, dim % src.dim())


@torch.compiler.allow_in_graph  # type: ignore[untyped-decorator]
def _transformed(op: str, name: str, src: Tensor, index: Any, dim: int, size: int) -> Tensor:
    src, grouping = _grouped(op, src, index, dim, size)
    with naming_caller(grouping.destinations):
        result: Tensor = evaluation.run_transform(name, src, grouping)
    return result


@torch.compiler.allow_in_graph  # type: ignore[untyped-decorator]
def _std(
    src: Tensor, index: Any, dim: int, size: int, out: Tensor | None, unbiased: bool
) -> Tensor:
    src, grouping = _grouped("scatter_std", src, index, dim, size)
    row = functions.FUNCTIONS["std"]
    evaluation.check_defined(grouping.op, row, row.name, namespace.plan_dtype(src))
    with naming_caller(grouping.destinations), grouping.float_mode(), grouping.sharing_calls():
        counts = grouping.count()
        fold = partial(_sums_with_out, grouping.destinations, out)
        away = spreads.distances(src, grouping, counts)
        total = spreads.sum_of_squares(away, src, grouping, counts, fold)
        freedom = (counts - int(unbiased)).clamp(min=1)
        target = namespace.dtype(row.result(namespace.plan_dtype(src)))
        root: Tensor = rounding.rounded_root(namespace, total / freedom.to(total.dtype), target)
        return root


def _sums_with_out(destinations: Destinations, out: Tensor | None, values: Tensor) -> Tensor:
    """Sum values, and add the old values of `out`."""
    zeros = values.new_zeros(()).expand(destinations.shape)
    initial = zeros if out is None else out.to(values.dtype)
    total: Tensor = destinations.scatter(initial, values, ADD)
    return total


@torch.compiler.allow_in_graph  # type: ignore[untyped-decorator]
def _log_sum(src: Tensor, index: Any, dim: int, size: int, out: Tensor | None) -> Tensor:
    src, grouping = _grouped("scatter_logsumexp", src, index, dim, size)
    row = functions.FUNCTIONS["logsumexp"]
    evaluation.check_defined(grouping.op, row, row.name, namespace.plan_dtype(src))
    with naming_caller(grouping.destinations), grouping.float_mode(), grouping.sharing_calls():
        if out is None:
            log_sums: Tensor = evaluation.run_function(row, src, grouping, 0, 0)
            return log_sums
        values = compositions.in_working_dtype(src, grouping)
        old_values = compositions.in_working_dtype(out, grouping)
        shift = grouping.destinations.scatter(old_values.detach(), values.detach(), FoldRule("max"))
        shift = torch.where(shift.isinf(), 0, shift)
        powers = namespace.exp(values - grouping.gather(shift))
        total = grouping.destinations.scatter(namespace.exp(old_values - shift), powers, ADD)
        return namespace.rounded(shift + namespace.log(total), out.dtype)
