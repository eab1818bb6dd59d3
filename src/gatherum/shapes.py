"""The shape rules, one pure function per operator: attributes and shapes in, result shape out.

`r = len(data)`, `q = len(indices)`, `k = indices[-1]`, `b = batch_dims`. Sources: the ONNX operator
texts Gather 13, GatherElements 13, GatherND 13, ScatterElements 18 and ScatterND 18; what they
leave open is ruled in the documentation.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from operator import eq
from typing import Any, NamedTuple

import numpy as np

from . import errors
from .errors import Shape

MAX_RANK = 64
MAX_BYTES = int(np.iinfo(np.intp).max)


# What decides a condition on the sizes of a graph that is traced, by the type of the condition.
_DECIDE: dict[type, Callable[[Any], bool]] = {}


def register_conditions(kind: type, decide: Callable[[Any], bool]) -> None:
    """Let a framework whose sizes may be symbols decide conditions on them."""
    _DECIDE[kind] = decide


def holds(condition: Any) -> bool:
    """Whether a condition on sizes holds. One that is undecided while a graph is traced counts as
    met: it is checked when the graph runs.
    """
    return _DECIDE.get(type(condition), bool)(condition)


class Layout(NamedTuple):
    """Shape and byte strides of one operand."""

    shape: Shape
    strides: Shape

    @classmethod
    def contiguous(cls, shape: Shape, itemsize: int) -> Layout:
        """Lay a shape out in C order."""
        return cls(shape, contiguous_strides(shape, itemsize))


def check_rank(op: str, what: str, rank: int) -> None:
    """Raise ValueError above the largest rank that operands and results may have."""
    if rank > MAX_RANK:
        raise errors.too_many_dimensions(op, what, MAX_RANK, rank)


def check_size(op: str, operand: str, shape: Shape, itemsize: int) -> None:
    """Raise ValueError for an operand whose bytes, or elements where they have none, are more than
    an address counts: NumPy has such arrays of items without bytes.
    """
    if prod(max(n, 1) for n in shape) * max(itemsize, 1) > MAX_BYTES:
        raise errors.operand_too_big(op, operand, shape)


def resolve_axis(op: str, data: Shape, axis: int) -> int:
    """Return `axis` counted from the front."""
    r = len(data)
    if r == 0:
        raise errors.too_few_dimensions(op, "data", 0)
    if not -r <= axis < r:
        raise errors.out_of_range(op, "axis", axis, -r, r)
    return axis % r


def check_batch_dims(op: str, indices: Shape, batch_dims: int) -> int:
    """Return `batch_dims`, which may not be negative and leaves the tuple dimension alone."""
    q = len(indices)
    if q == 0:
        raise errors.too_few_dimensions(op, "indices", 0)
    if not 0 <= batch_dims < q:
        raise errors.out_of_range(op, "batch_dims", batch_dims, 0, q)
    return batch_dims


def slices_shape(_: str, data: Shape, indices: Shape, axis: int) -> Shape:
    """Return ``data[:axis] + indices + data[axis+1:]``: a gather's result, a scatter's updates."""
    return data[:axis] + indices + data[axis + 1 :]


def elements_shape(op: str, data: Shape, indices: Shape, axis: int) -> Shape:
    """Return ``indices``, which addresses the leading part of `data` off the axis."""
    if len(indices) != len(data):
        raise errors.other_rank(op, len(data), len(indices))
    for d, (size, found) in enumerate(zip(data, indices, strict=True)):
        if d != axis and not holds(found <= size):
            raise errors.larger_than_data(op, d, size, found)
    return indices


def nd_shape(op: str, data: Shape, indices: Shape, batch_dims: int) -> Shape:
    """Return ``indices[:-1] + data[b+k:]``: a gather's result, a scatter's updates."""
    b, k = batch_dims, indices[-1]
    if len(data) < b or not all(map(holds, map(eq, indices[:b], data[:b]))):
        raise errors.other_batch_shape(op, data[:b], indices[:b])
    if k > len(data) - b:
        raise errors.tuple_too_long(op, len(data) - b, k, len(indices) == 1)
    return indices[:-1] + data[b + k :]


def check_result(op: str, shape: Shape, dtype: Any) -> None:
    """Raise ValueError for a result that no array can hold."""
    check_rank(op, "the result", len(shape))
    size = max(dtype.itemsize, 1)
    for extent in shape:
        size *= max(extent, 1)
    if size > MAX_BYTES:
        raise errors.result_too_big(op, shape, dtype)


def broadcasts(shape: Shape, expected: Shape) -> bool:
    """Whether a shape stretches to another one, by NumPy's rule."""
    missing = len(expected) - len(shape)
    return missing >= 0 and all(
        holds(extent == want) or holds(extent == 1)
        for extent, want in zip(shape, expected[missing:], strict=True)
    )


def broadcast_strides(
    op: str, operand: str, shape: Shape, strides: Shape, expected: Shape
) -> Shape:
    """Return the strides that stretch an operand to the expected shape, by NumPy's rule."""
    if not broadcasts(shape, expected):
        raise errors.other_shape(op, operand, expected, shape)
    missing = len(expected) - len(shape)
    stretched = [0] * missing
    for extent, stride, want in zip(shape, strides, expected[missing:], strict=True):
        stretched.append(stride if extent == want else 0)
    return tuple(stretched)


def contiguous_strides(shape: Shape, itemsize: int) -> Shape:
    """Return the byte strides of a C-contiguous array."""
    strides: list[int] = []
    step = itemsize
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(reversed(strides))


def overlaps_itself(shape: Shape, strides: Shape, itemsize: int) -> bool:
    """Whether two elements share a byte. Exact where bounded work decides; when in doubt, True."""
    loops = sorted(
        (abs(stride), extent) for extent, stride in zip(shape, strides, strict=True) if extent > 1
    )
    if 0 in shape or itemsize == 0:
        return False
    reach = itemsize
    for stride, extent in loops:
        if stride < reach:
            break
        reach += stride * (extent - 1)
    else:
        return False
    return _collides(loops, itemsize)


def _collides(loops: list[tuple[int, int]], itemsize: int, limit: int = 1_000_000) -> bool:
    """Whether two elements share a byte: by all offsets, or by `_meets` above `limit` elements."""
    if loops[0][0] == 0:
        return True
    count = 1
    for _, extent in loops:
        count *= extent
        if count > limit:
            return _meets(loops, itemsize)
    offsets = np.zeros(1, np.int64)
    for stride, extent in loops:
        offsets = (offsets[:, None] + stride * np.arange(extent, dtype=np.int64)).ravel()
    offsets.sort()
    return bool((np.diff(offsets) < itemsize).any())


def _meets(loops: list[tuple[int, int]], itemsize: int, limit: int = 100_000) -> bool:
    """Whether two elements share a byte: whether steps of at most `extent - 1` in either direction,
    not all of them zero, lead less than an item away. True if that needs more than `limit` steps.
    """
    # back[i]: how far the loops with smaller strides than loop i can still lead back.
    back = [itemsize - 1]
    for stride, extent in loops:
        back.append(back[-1] + stride * (extent - 1))
    steps = 0
    pending = [(len(loops), 0, False)]
    while pending:
        i, offset, moved = pending.pop()
        if i == 0:
            if moved:
                return True
            continue
        i -= 1
        stride, extent = loops[i]
        low = max(1 - extent, -((offset + back[i]) // stride))
        high = min(extent - 1, (back[i] - offset) // stride)
        steps += max(0, high - low + 1)
        if steps > limit:
            return True
        pending += [(i, offset + d * stride, moved or d != 0) for d in range(low, high + 1)]
    return False
