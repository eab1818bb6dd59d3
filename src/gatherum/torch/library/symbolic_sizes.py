"""Handle sizes that are known only when a graph runs, and conditions on these sizes.

The sizes are symbols while Dynamo or `torch.export` traces, and tensors while ``torch.jit.trace``
does.
"""

from __future__ import annotations

import operator
from typing import Any, cast

import torch
from torch import Tensor

from gatherum._model import errors
from gatherum.torch import private


def may_hold(condition: Any) -> bool:
    """Return True if a condition is true or undecided.

    An undecided condition is checked when the call runs.
    """
    if _is_plain(condition):
        return bool(condition)
    from torch.fx.experimental.symbolic_shapes import guard_or_true

    return bool(guard_or_true(condition))


def surely_holds(condition: Any) -> bool:
    """Return True if a condition holds for all values that the graph may receive."""
    if _is_plain(condition):
        return bool(condition)
    from torch.fx.experimental.symbolic_shapes import guard_or_false

    return bool(guard_or_false(condition))


def _is_plain(condition: Any) -> bool:
    """Return True if a condition is not a symbol. Dynamo shows symbols as plain booleans."""
    return not (torch.compiler.is_dynamo_compiling() or isinstance(condition, torch.SymBool))


def may_be_equal(first: Any, second: Any) -> bool:
    """Return True if two shapes may be equal."""
    if len(first) != len(second):
        return False
    return all(may_hold(n == m) for n, m in zip(first, second, strict=True))


def is_scripted() -> bool:
    """Return True inside ``torch.jit.trace``.

    Sizes are tensors there. If they were converted to integers, the sizes of the first call would
    become constants.
    """
    return not torch.compiler.is_compiling() and bool(torch.jit.is_tracing())


def as_size(op: str, name: str, value: object) -> int:
    """Return a size that is passed as an argument."""
    if isinstance(value, (int, torch.SymInt)) or (is_scripted() and isinstance(value, Tensor)):
        size = cast(int, value)
    else:
        try:
            size = operator.index(value)  # type: ignore[arg-type]  # non-integers raise TypeError
        except TypeError:
            raise errors.not_an_integer(op, name, value) from None
    if surely_holds(size < 0):
        raise errors.negative_size(op, name, (size,))
    if type(size) is int and not torch.compiler.is_compiling() and size >= 1 << 63:
        raise errors.out_of_range(op, name, size, 0, 1 << 63)
    return int(size) if type(size) is bool else size


def least_size(index: Tensor) -> int:
    """Return the smallest size of a dimension that makes all indices valid."""
    if not (torch.compiler.is_compiling() or is_scripted()):
        return max(int(index.max()) + 1, 0) if index.numel() else 0
    none = index.new_full((1,), -1, dtype=torch.int64)  # for an empty index
    return size_in(torch.cat((none, index.reshape(-1).to(torch.int64))).max() + 1)


def size_in(tensor: Tensor) -> int:
    """Return a size that a tensor contains."""
    if is_scripted():
        return cast(int, tensor)
    if not torch.compiler.is_compiling():
        return int(tensor)
    size = tensor.item()
    private.learn(size >= 0)
    return cast(int, size)
