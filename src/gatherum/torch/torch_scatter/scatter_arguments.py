"""Check the arguments of torch_scatter's functions and find the destinations.

`index` broadcasts to `src`. If the values of `index` repeat behind the dimension, one index moves a
whole row, at the cost of `scatter_slices` or `scatter_nd`. Otherwise each element has a separate
index.
"""

from __future__ import annotations

import operator
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor

from gatherum._arguments import array_likes, plain_values
from gatherum._derivatives.array_ops import Destinations
from gatherum._model import callers, errors
from gatherum._model.call import Attributes, FoldRule
from gatherum._model.callers import Caller
from gatherum._model.reductions import ROWS
from gatherum._model.shape_limits import broadcasts
from gatherum._system import native
from gatherum.torch import checks, namespace, operands
from gatherum.torch import errors as torch_errors
from gatherum.torch.dtypes import WIDE_UNSIGNED
from gatherum.torch.library import symbolic_sizes

_UNREAD = *WIDE_UNSIGNED, torch.bool  # dtypes of an index that `plain_gather` does not read
# The names of a scatter's data and updates in folds.
FOLDED = "out", "src"

# Maps the reduction names of torch_scatter, and the additional names of PyG's `scatter`, to
# gatherum's reductions.
_REDUCTIONS = {word: row.name for row in ROWS.values() for word in row.torch_scatter}


# Fold rules of a scatter into a constant. The constant takes part only in a sum.
FOLDS = {name: FoldRule(name, name == "add") for name in ROWS}
_FOLDS_INTO_ZEROS = {
    word: tuple(FOLDS[name]) for word, name in _REDUCTIONS.items() if not ROWS[name].empty
}


def naming_caller(destinations: Destinations) -> AbstractContextManager[None]:
    """Return a context in which errors name the function and operands of the original call."""
    return torch_errors.naming(destinations.attributes.caller)


def plain_scatter(
    src: object, index: object, dim: object, size: object, reduce: object, mode: str, pointer: bool
) -> Tensor | None:
    """Return the result of a scatter of plain tensors into zeros, or None for any other call.

    The result is also None for calls that raise.
    """
    fold = _FOLDS_INTO_ZEROS.get(reduce) if type(reduce) is str else None
    if fold is None or torch.compiler.is_dynamo_compiling():
        return None
    reduction, include_self = fold  # unpacked in the arguments: 0.1 us more
    result: Tensor | None = native.scatter_into_zeros(
        "scatter_slices", size, index, src, dim, reduction, include_self, mode, False, pointer
    )
    return result


def plain_gather(op: str, src: Any, index: Any) -> Tensor | None:
    """Return the result of a gather of plain tensors with one index per row, or None."""
    if torch.compiler.is_dynamo_compiling() or type(src) is not Tensor or not src.dim():
        return None
    if type(index) is not Tensor or index.dim() != 1 or index.dtype in _UNREAD:
        return None
    call = "gather", src, index, None, 0, "none", True, "raise", False, None, None
    try:
        result: Tensor | None = native.run_if_plain(*call)
    except (IndexError, TypeError, ValueError):
        with callers.naming(Caller(op, "index", "src").text):  # slow, so only for the error
            return native.run_if_plain(*call)
    return result


def reduction_of(op: str, reduce: object) -> str:
    """Return the reduction for a name that torch_scatter or PyG uses."""
    return _REDUCTIONS[plain_values.as_choice(op, "reduce", reduce, tuple(_REDUCTIONS))]


def scatter_operands(op: str, src: Tensor, index: Any, dim: Any, out: Tensor | None, dim_size: Any
               ) -> tuple[Tensor, Destinations]:  # fmt: skip
    """Check the operands of a scatter. Return `src` and the destinations."""
    src = checked_tensor(op, "src", src, src)
    index = as_index(op, "index", index, src)
    if src.dim() == 0:
        raise errors.too_few_dimensions(op, "src", 0)
    dim = resolved_dim(op, dim, src.dim())
    if out is not None:
        out = changeable_out(op, out, src)
        size = out.shape[dim] if out.dim() == src.dim() else 0
        expected = (*src.shape[:dim], size, *src.shape[dim + 1 :])
        if not symbolic_sizes.may_be_equal(out.shape, expected):
            raise errors.other_shape(op, "out", expected, tuple(out.shape))
    elif dim_size is not None:
        size = symbolic_sizes.as_size(op, "dim_size", dim_size)
    else:
        checks.check_values(op, "index", index, "give `dim_size`")
        size = symbolic_sizes.least_size(index)
    return src, cheapest_destinations(
        Caller(op, "index", *FOLDED), index, src.shape, dim, size, "raise"
    )


def checked_tensor(op: str, name: str, value: object, src: Tensor) -> Tensor:
    """Return a tensor that the core can read, or raise TypeError."""
    if not isinstance(value, Tensor):
        checks.refuse_operand(op, name, value)
    checks.check_dense(op, name, value, src.device)
    return value


def changeable_out(op: str, out: object, src: Tensor) -> Tensor:
    """Return `out`, which will be changed in place."""
    tensor = checked_tensor(op, "out", out, src)
    if not torch.compiler.is_compiling():
        checks.check_storage(op, "out", tensor)
        checks.check_changeable(op, "out", tensor)
    return tensor


def as_index(op: str, name: str, value: object, src: Tensor) -> Tensor:
    """Return indices as a tensor of a dtype that torch can compare."""
    if not isinstance(value, Tensor):
        array_likes.check_items(op, name, value)
        with errors.for_tensors():
            value = operands.as_indices(op, value, src, name)
    index = checked_tensor(op, name, value, src)
    if not torch.compiler.is_compiling():
        checks.check_storage(op, name, index)  # torch reads it here
    if index.dtype not in WIDE_UNSIGNED:
        return index
    signed_index = index.to(torch.int64)
    if index.dtype == torch.uint64:
        _check_fits(op, name, signed_index)
    return signed_index


def _check_fits(op: str, name: str, signed_index: Tensor) -> None:
    """Raise an error for uint64 numbers that became negative, if the values can be read."""
    traced = torch.compiler.is_compiling() or symbolic_sizes.is_scripted()
    if traced or signed_index.is_meta or checks.is_batched(signed_index):
        return
    if len(invalid := (signed_index < 0).nonzero()):
        position = tuple(invalid[0].tolist())
        value = int(signed_index[position]) + 2**64
        if name == "index":
            raise torch_errors.index_past_sizes(op, value, position)
        raise errors.too_wide_index(op, name, value, position)


def resolved_dim(op: str, dim: Any, rank: int) -> int:
    """Return `dim` counted from the front."""
    try:
        dim = operator.index(dim)
    except TypeError:
        raise errors.not_an_integer(op, "dim", dim) from None
    if not -rank <= dim < rank:
        raise errors.out_of_range(op, "dim", dim, -rank, rank)
    return int(dim) % rank


def cheapest_destinations(
    caller: Caller, index: Tensor, moved_shape: Any, dim: int, size: int, mode: str
) -> Destinations:
    """Choose the cheapest operator for this index and return its destinations.

    If the shape of the index ends at `dim`, or has size 1 behind `dim`, the index moves rows. If
    the index has size 1 in front of `dim`, it moves the same slices everywhere.
    """
    if index.dtype is torch.bool:
        dtype = namespace.plan_dtype(index)
        with errors.for_tensors():
            raise errors.not_an_index_dtype(caller.op, dtype, False, caller.indices)
    sizes = tuple(index.shape)
    shape = (*moved_shape[:dim], size, *moved_shape[dim + 1 :])
    if symbolic_sizes.may_be_equal(sizes, (moved_shape[dim],)):
        attributes = Attributes(
            "scatter_slices", dim, mode=mode, negative=False, caller=caller.text
        )
        return Destinations(namespace, attributes, index, shape)
    padded_sizes = (1,) * dim + sizes if len(sizes) == 1 else sizes
    padded_sizes += (1,) * (len(moved_shape) - len(padded_sizes))
    if not broadcasts(padded_sizes, moved_shape, symbolic_sizes.may_hold):
        has_dim = not caller.op.startswith("segment")
        dims = range(len(moved_shape)) if has_dim else ()
        fits = (n for n in dims if symbolic_sizes.may_be_equal(sizes, (moved_shape[n],)))
        raise torch_errors.no_broadcast(
            caller.op, "index", sizes, "src", tuple(moved_shape), next(fits, None)
        )
    index = index.reshape(padded_sizes)
    if not _all_one(padded_sizes[dim + 1 :]):
        name, axis, index = "scatter_elements", dim, index.expand(moved_shape)
    elif not _all_one(padded_sizes[:dim]):
        rows = index.reshape(padded_sizes[: dim + 1]).expand(tuple(moved_shape[: dim + 1]))
        name, axis, index = "scatter_nd", dim, rows.unsqueeze(-1)
    else:
        name, axis = "scatter_slices", dim
        index = index.reshape(padded_sizes[dim]).expand(moved_shape[dim])
    caller = caller._replace(place="same" if tuple(index.shape) == sizes else "")
    return Destinations(
        namespace,
        Attributes(name, axis, mode=mode, negative=False, caller=caller.text),
        index,
        shape,
    )


def _all_one(shape: Any) -> bool:
    return all(symbolic_sizes.surely_holds(n == 1) for n in shape)


def checked_out(op: str, out: Tensor, result: Tensor) -> Tensor:
    """Return `out`, or raise an error if the result does not fit."""
    if tuple(changeable_out(op, out, result).shape) != tuple(result.shape):
        raise errors.other_shape(op, "out", tuple(result.shape), tuple(out.shape))
    if out.dtype != result.dtype:
        raise errors.other_dtype(op, "out", result.dtype, out.dtype, data="src")
    return out
