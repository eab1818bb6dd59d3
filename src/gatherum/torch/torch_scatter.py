"""torch_scatter's functions, with the `reduce` words of PyG's `scatter`.

Each value of `src` goes to the place that `index` names along one dimension:

    out[a.., index[a.., i, b..], b..] op= src[a.., i, b..]

`index` broadcasts to `src`. Where its values repeat behind the dimension, whole rows move by one
index, at the cost of `scatter_slices` or `scatter_nd`; otherwise each element has its own. Places
that nothing goes to hold 0, and 1 for products.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .. import conversion, errors
from ..call import Attributes
from ..operators import OPERATORS
from ..places import Places
from ..reductions import ROWS
from . import checks, namespace, operands, private, sizes
from . import errors as torch_errors
from .ops import overload

# The words of torch_scatter and those that PyG's `scatter` has besides, and our reductions.
_WORDS = {word: row.name for row in ROWS.values() for word in row.torch_scatter}
_BATCH = "it takes a batch itself, with dimensions of `indptr` in front"
_WIDE_UNSIGNED = (torch.uint16, torch.uint32, torch.uint64)  # torch itself cannot compare these


def scatter(
    src: Tensor,
    index: Any,
    dim: int = -1,
    out: Tensor | None = None,
    dim_size: int | None = None,
    reduce: str = "sum",
) -> Tensor:
    """Reduce the values of `src` that go to the same place along a dimension.

    ``out[a.., index[a.., i, b..], b..] op= src[a.., i, b..]``, in the order of `i`.

    Parameters
    ----------
    src : Tensor
        Values, of any dtype that the operators take.
    index : Tensor of integers
        Where they go: one number for each `i` of dimension `dim`, or any shape that broadcasts to
        the shape of `src`; missing dimensions are those behind. A list or an array will do.
    dim : int, optional
        The dimension.
    out : Tensor, optional
        The result, changed in place: its old values take part, but in the count of a mean.
    dim_size : int, optional
        The size of the result along `dim`; without it and `out`, the largest index plus 1.
    reduce : str, optional
        ``"sum"`` or ``"add"``, ``"mul"``, ``"mean"``, ``"min"`` or ``"amin"``, ``"max"`` or
        ``"amax"``; ``"any"`` lets the last one stay.

    Returns
    -------
    Tensor
        `out`, or a new tensor: 0 where nothing arrives, 1 for ``"mul"``.

    Raises
    ------
    IndexError
        An index is negative, or not below the size of the result.
    TypeError, ValueError
        A dtype, a shape or a word does not fit.

    Examples
    --------
    >>> import torch
    >>> from gatherum.torch import scatter
    >>> scatter(torch.tensor([1.0, 3, 2, 4, 5, 6]), torch.tensor([0, 1, 0, 1, 1, 3]), reduce="mean")
    tensor([1.5000, 4.0000, 0.0000, 6.0000])
    """
    return _scatter("scatter", src, index, dim, out, dim_size, reduce)


def scatter_sum(
    src: Tensor, index: Any, dim: int = -1, out: Tensor | None = None, dim_size: int | None = None
) -> Tensor:
    """Add up what goes to the same place: `scatter` with ``reduce="sum"``."""
    return _scatter("scatter_sum", src, index, dim, out, dim_size, "sum")


def scatter_add(
    src: Tensor, index: Any, dim: int = -1, out: Tensor | None = None, dim_size: int | None = None
) -> Tensor:
    """Add up what goes to the same place: `scatter` with ``reduce="add"``."""
    return _scatter("scatter_add", src, index, dim, out, dim_size, "add")


def scatter_mul(
    src: Tensor, index: Any, dim: int = -1, out: Tensor | None = None, dim_size: int | None = None
) -> Tensor:
    """Multiply what goes to the same place: `scatter` with ``reduce="mul"``."""
    return _scatter("scatter_mul", src, index, dim, out, dim_size, "mul")


def scatter_mean(
    src: Tensor, index: Any, dim: int = -1, out: Tensor | None = None, dim_size: int | None = None
) -> Tensor:
    """Average what goes to the same place: `scatter` with ``reduce="mean"``."""
    return _scatter("scatter_mean", src, index, dim, out, dim_size, "mean")


def scatter_max(
    src: Tensor, index: Any, dim: int = -1, out: Tensor | None = None, dim_size: int | None = None
) -> tuple[Tensor, Tensor]:
    """Return the largest value that goes to each place, and where it stood along `dim`.

    Parameters
    ----------
    src, index, dim, out, dim_size
        As of `scatter`.

    Returns
    -------
    values : Tensor
        `out`, or a new tensor: 0 where nothing arrives.
    arg : Tensor of int64
        The first `i` whose value is the largest; ``src.size(dim)`` where nothing arrives, or where
        the old value of `out` stays.

    Examples
    --------
    >>> import torch
    >>> from gatherum.torch import scatter_max
    >>> scatter_max(torch.tensor([1, 3, 2, 4, 4, 6]), torch.tensor([0, 1, 0, 1, 1, 3]))
    (tensor([2, 4, 0, 6]), tensor([2, 3, 6, 5]))
    """
    return _extreme("scatter_max", "max", src, index, dim, out, dim_size)


def scatter_min(
    src: Tensor, index: Any, dim: int = -1, out: Tensor | None = None, dim_size: int | None = None
) -> tuple[Tensor, Tensor]:
    """Return the smallest value that goes to each place, and where it stood along `dim`.

    Parameters, returned tensors and ties are those of `scatter_max`.
    """
    return _extreme("scatter_min", "min", src, index, dim, out, dim_size)


def segment_csr(src: Tensor, indptr: Any, out: Tensor | None = None, reduce: str = "sum") -> Tensor:
    """Reduce neighbouring values: place `s` takes those from ``indptr[s]`` to ``indptr[s + 1]``.

    Parameters
    ----------
    src : Tensor
        Values; segments lie along dimension ``indptr.dim() - 1``.
    indptr : Tensor of integers
        Where segments begin, and where the last one ends: not decreasing, at most the size of that
        dimension. Dimensions in front broadcast to those of `src`.
    out : Tensor, optional
        The result; its old values take no part.
    reduce : str, optional
        As of `scatter`.

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
    op = "segment_csr"
    reduction = _reduction(op, reduce)
    src, indptr = _pointed(op, src, indptr)
    dim = indptr.dim() - 1
    index = _segment_numbers(op, indptr, src.shape[dim])
    places = _places(op, index, src.shape, dim, max(indptr.shape[-1] - 1, 0), "drop")
    with _called(op, index, places, {**_OPERANDS, "indices": "indptr"}):
        result = _fold(places, src, reduction, None)
    return result if out is None else _checked_out(op, out, result).copy_(result)


def gather_csr(src: Tensor, indptr: Any, out: Tensor | None = None) -> Tensor:
    """Repeat value `s` from ``indptr[s]`` to ``indptr[s + 1]``: the inverse of `segment_csr`.

    Parameters
    ----------
    src : Tensor
        Values; ``indptr.shape[-1] - 1`` along dimension ``indptr.dim() - 1``.
    indptr : Tensor of integers
        As of `segment_csr`. Its last value is the size of the result.
    out : Tensor, optional
        The result.

    Returns
    -------
    Tensor
        `out`, or a new tensor; 0 in front of the first segment.

    Examples
    --------
    >>> import torch
    >>> from gatherum.torch import gather_csr
    >>> gather_csr(torch.tensor([1, 2, 3, 4]), torch.tensor([0, 2, 5, 5, 6]))
    tensor([1, 1, 2, 2, 2, 4])
    """
    op = "gather_csr"
    src, indptr = _pointed(op, src, indptr)
    dim = indptr.dim() - 1
    expected = (*indptr.shape[:-1], src.shape[dim] + 1)
    empty = sizes.surely_holds(indptr.numel() == 0)
    if not empty and not sizes.may_hold(indptr.shape[-1] == expected[-1]):
        raise errors.other_shape(op, "indptr", expected, tuple(indptr.shape))
    checks.check_values(op, "indptr", indptr, _BATCH)
    size = 0 if empty else sizes.of(torch.cat((indptr.new_zeros(1), indptr.reshape(-1)))[-1])
    index = _segment_numbers(op, indptr, size)
    moved = (*src.shape[:dim], size, *src.shape[dim + 1 :])
    places = _places(op, index, moved, dim, src.shape[dim], "fill")
    with _called(op, index, places, {"data": "src", "indices": "indptr"}):
        result = places.take(src)
    return result if out is None else _checked_out(op, out, result).copy_(result)


def _scatter(op: str, src: Tensor, index: Any, dim: Any, out: Tensor | None, dim_size: Any,
             reduce: object) -> Tensor:  # fmt: skip
    reduction = _reduction(op, reduce)
    src, places = _scattered(op, src, index, dim, out, dim_size)
    with _called(op, index, places):
        return _fold(places, src, reduction, out)


# What the operands of operators are called here.
_OPERANDS = {"data": "out", "indices": "index", "updates": "src"}


def _called(op: str, index: Any, places: Places, operands: Mapping[str, str] = _OPERANDS
            ) -> AbstractContextManager[None]:  # fmt: skip
    """Let errors of the operator that a function calls name the function and its operands."""
    if torch.compiler.is_compiling():
        return nullcontext()
    return _renaming(op, index, places, operands)


@contextmanager
def _renaming(op: str, index: Any, places: Places, operands: Mapping[str, str]) -> Iterator[None]:
    try:
        yield
    except (IndexError, RuntimeError, TypeError, ValueError) as error:
        if str(error).partition(": ")[0] not in OPERATORS:
            raise
        given = index.shape if isinstance(index, Tensor) else np.shape(index)
        same = tuple(given) == tuple(places.indices.shape)
        raise errors.renamed(error, op, operands, same) from None


def _reduction(op: str, reduce: object) -> str:
    return _WORDS[conversion.as_choice(op, "reduce", reduce, tuple(_WORDS))]


def _scattered(op: str, src: Tensor, index: Any, dim: Any, out: Tensor | None, dim_size: Any
               ) -> tuple[Tensor, Places]:  # fmt: skip
    """Check the operands of a scatter; return `src` and where its values go."""
    src = _dense(op, "src", src, src)
    index = _as_index(op, "index", index, src)
    if src.dim() == 0:
        raise errors.too_few_dimensions(op, "src", 0)
    dim = _dimension(op, dim, src.dim())
    if out is not None:
        out = _changed(op, out, src)
        size = out.shape[dim] if out.dim() == src.dim() else 0
        expected = (*src.shape[:dim], size, *src.shape[dim + 1 :])
        if not sizes.same(out.shape, expected):
            raise errors.other_shape(op, "out", expected, tuple(out.shape))
    elif dim_size is not None:
        size = sizes.whole(op, "dim_size", dim_size)
    else:
        checks.check_values(op, "index", index, "give `dim_size`")
        size = sizes.least(index)
    return src, _places(op, index, src.shape, dim, size, "raise")


def _dense(op: str, name: str, value: object, src: Tensor) -> Tensor:
    if not isinstance(value, Tensor):
        checks.refuse(op, name, value)
    checks.check_dense(op, name, value, src.device)
    return value


def _changed(op: str, out: object, src: Tensor) -> Tensor:
    """Return `out`, which is going to be changed in place."""
    tensor = _dense(op, "out", out, src)
    if not torch.compiler.is_compiling():
        checks.check_storage(op, "out", tensor)
        checks.check_changeable(op, "out", tensor)
    return tensor


def _as_index(op: str, name: str, value: object, src: Tensor) -> Tensor:
    """Return indices as a tensor of a type that torch compares; what is too large for it becomes
    negative.
    """
    if not isinstance(value, Tensor):
        conversion.check_items(op, name, value)
        with errors.for_tensors():
            value = operands.as_indices(op, value, src, name)
    index = _dense(op, name, value, src)
    if not torch.compiler.is_compiling():
        checks.check_storage(op, name, index)  # torch reads it here
    return index.to(torch.int64) if index.dtype in _WIDE_UNSIGNED else index


def _dimension(op: str, dim: Any, rank: int) -> int:
    try:
        dim = operator.index(dim)
    except TypeError:
        raise errors.not_an_integer(op, "dim", dim) from None
    if not -rank <= dim < rank:
        raise errors.out_of_range(op, "dim", dim, -rank, rank)
    return int(dim) % rank


def _places(op: str, index: Tensor, moved: Any, dim: int, size: int, mode: str) -> Places:
    """Choose the cheapest operator for this index and return its destinations.

    A shape of the index that ends early, or has 1 behind `dim`, sends rows; the same in front of
    `dim` sends the same slices everywhere.
    """
    given = tuple(index.shape)
    shape = (*moved[:dim], size, *moved[dim + 1 :])
    if sizes.same(given, (moved[dim],)):
        return Places(namespace, Attributes("scatter_slices", dim, mode, False), index, shape)
    whole = (1,) * dim + given if len(given) == 1 else given
    whole += (1,) * (len(moved) - len(whole))
    if len(whole) > len(moved) or not sizes.stretch(whole, moved):
        raise torch_errors.no_broadcast(op, "index", given, "src", tuple(moved))
    index = index.reshape(whole)
    if not _all_one(whole[dim + 1 :]):
        name, axis, index = "scatter_elements", dim, index.expand(moved)
    elif not _all_one(whole[:dim]):
        rows = index.reshape(whole[: dim + 1]).expand(tuple(moved[: dim + 1]))
        name, axis, index = "scatter_nd", dim, rows.unsqueeze(-1)
    else:
        name, axis, index = "scatter_slices", dim, index.reshape(whole[dim]).expand(moved[dim])
    return Places(namespace, Attributes(name, axis, mode, False), index, shape)


def _all_one(shape: Any) -> bool:
    return all(sizes.surely_holds(n == 1) for n in shape)


def _fold(places: Places, src: Tensor, reduction: str, out: Tensor | None) -> Tensor:
    """Fold values into `out`, or into a new tensor that holds one number everywhere."""
    if out is None:
        empty = src.new_full((), ROWS[reduction].empty).expand(places.shape)
        return places.put(empty, src, reduction, include_self=reduction == "add")
    if reduction == "mean":  # of the updates and the old value, over the number of updates
        total = _fold(places, src, "add", out)
        counts = places.over_data(places.counts().clamp(min=1))
        rounding = None if out.is_floating_point() or out.is_complex() else "floor"
        return total.div_(counts, rounding_mode=rounding)
    if operands.is_indirect(out) or (
        torch.is_grad_enabled() and (src.requires_grad or out.requires_grad)
    ):
        old = out.clone() if ROWS[reduction].needs_values else out
        return out.copy_(places.put(old, src, reduction))
    attributes = places.attributes._replace(reduction=reduction)
    overload(f"{attributes.op}_")(out, places.indices, src, *attributes.positional)
    return out


def _extreme(op: str, reduction: str, src: Tensor, index: Any, dim: int, out: Tensor | None,
             dim_size: int | None) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Return the extreme values, and where the first of each stood along `dim`.

    Values are compared with what their place holds in the end; the least position among the equal
    ones is one more scatter.
    """
    src, places = _scattered(op, src, index, dim, out, dim_size)
    dim = dim % src.dim()
    old = None if out is None else out.detach().clone()
    with _called(op, index, places):
        values = _fold(places, src, reduction, out)
    with torch.no_grad():
        found, n = values.detach(), src.shape[dim]
        taken = _same(src.detach(), places.take(found))
        if old is not None:
            taken &= places.take(~_same(old, found))
        behind = (1,) * (src.dim() - dim - 1)
        position = torch.arange(n, device=src.device).reshape(n, *behind)
        first = torch.where(taken, position, n)
        arg = places.put(first.new_full((), n).expand(places.shape), first, "min")
    return values, arg


def _same(one: Tensor, other: Tensor) -> Tensor:
    """Whether values are equal; a NaN is another's equal."""
    return (one == other) | (one.isnan() & other.isnan())


def _pointed(op: str, src: Tensor, indptr: Any) -> tuple[Tensor, Tensor]:
    src = _dense(op, "src", src, src)
    indptr = _as_index(op, "indptr", indptr, src)
    if indptr.dim() == 0:
        raise errors.too_few_dimensions(op, "indptr", 0)
    if indptr.dim() > src.dim():
        raise errors.too_many_dimensions(op, "`indptr`", src.dim(), indptr.dim())
    return src, indptr


def _segment_numbers(op: str, indptr: Tensor, size: int) -> Tensor:
    """Return for each of `size` positions the segment that it lies in.

    That is how many segments begin at it or before, less one: a count and a running sum. In front
    of the first it is -1, behind the last one the number of segments, and both address nothing.
    """
    if torch.compiler.is_compiling() or sizes.is_scripted():  # values are there when the graph runs
        before = torch.arange(-1, indptr.shape[-1] - 1, device=indptr.device).clamp(min=0)
        ordered = (indptr.index_select(-1, before) <= indptr).all() & (indptr <= size).all()
        if sizes.is_scripted() or private.assert_when_run is None:
            # TorchScript drops assertions, but not what refuses an index.
            indptr = torch.where(ordered, indptr, -1)
        else:
            private.assert_when_run(ordered, f"{op}: `indptr` must not decrease")
    else:
        checks.check_values(op, "indptr", indptr, _BATCH)
        ends = indptr.numel() and (int(indptr.min()) < 0 or int(indptr.max()) > size)
        if ends or bool((indptr.diff(dim=-1) < 0).any()):
            raise torch_errors.no_segments(op, size)
    shape = (*indptr.shape[:-1], size + 1)
    attributes = Attributes("scatter_elements", indptr.dim() - 1, negative=False)
    begin = Places(namespace, attributes, indptr, shape)
    one = torch.ones((), dtype=torch.int64, device=indptr.device)
    with _called(op, indptr, begin, {"indices": "indptr"}):
        counts = begin.put(torch.zeros_like(one).expand(shape), one, "add")
    return counts.cumsum(-1).narrow(-1, 0, size) - 1


def _checked_out(op: str, out: Tensor, result: Tensor) -> Tensor:
    if tuple(_changed(op, out, result).shape) != tuple(result.shape):
        raise errors.other_shape(op, "out", tuple(result.shape), tuple(out.shape))
    if out.dtype != result.dtype:
        error = errors.other_dtype(op, "out", result.dtype, out.dtype)
        raise errors.renamed(error, op, {"data": "src"}, True)
    return out
