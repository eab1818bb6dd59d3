"""What a call looks like, apart from its data, and the checks that need no more than that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import errors, shapes
from .dtypes import MODES, REDUCTIONS, DType, is_index, is_movable, is_reducible
from .errors import Shape

Array = NDArray[Any]

OPERATORS = ("gather", "gather_elements", "gather_nd", "scatter_elements", "scatter_nd")


class Layout(NamedTuple):
    """Shape and byte strides of one operand."""

    shape: Shape
    strides: Shape

    @classmethod
    def contiguous(cls, shape: Shape, itemsize: int) -> Layout:
        """Lay a shape out in C order."""
        return cls(shape, shapes.contiguous_strides(shape, itemsize))


@dataclass(frozen=True, slots=True)
class Operand:
    """What a plan knows of an array: shape, dtype, and strides in bytes."""

    shape: Shape
    dtype: DType
    strides: Shape

    @classmethod
    def of(cls, array: Array) -> Operand:
        """Describe an array, by what NumPy knows of it: a subclass may answer otherwise."""
        plain = np.asarray(array)
        return cls(plain.shape, plain.dtype, plain.strides)

    @property
    def layout(self) -> Layout:
        """Shape and strides alone."""
        return Layout(self.shape, self.strides)

    def __str__(self) -> str:
        contiguous = shapes.contiguous_strides(self.shape, self.dtype.itemsize)
        strides = "" if self.strides == contiguous else f", strides {self.strides}"
        return f"{self.dtype} {self.shape}{strides}"


@dataclass(frozen=True, slots=True)
class Signature:
    """Everything that a plan depends on. `axis` is `batch_dims` for the ``*_nd`` operators."""

    op: str
    data: Operand
    indices: Operand
    updates: Operand | None
    axis: int
    reduction: str
    include_self: bool
    mode: str
    negative: bool
    out: Operand | None


class Checked(NamedTuple):
    """What the checks have found out: the axis counted from the front, the result's shape, and the
    layouts that the loops step through: D (a scatter's output), and U (a gather's output, or a
    scatter's updates, broadcast).
    """

    axis: int
    shape: Shape
    data: Layout
    other: Layout


def axis_name(op: str) -> str:
    """Return the name under which the operator takes its one dimension attribute."""
    return "batch_dims" if op.endswith("_nd") else "axis"


def check_axis(op: str, data: Shape, indices: Shape, axis: int) -> int:
    """Return the dimension attribute counted from the front, or raise ValueError."""
    if op.endswith("_nd"):
        return shapes.check_batch_dims(op, indices, axis)
    return shapes.resolve_axis(op, data, axis)


def check(s: Signature) -> Checked:
    """Check attributes, dtypes, shapes and `out`, in this order."""
    if s.reduction not in REDUCTIONS:
        raise errors.not_one_of(s.op, "reduction", s.reduction, REDUCTIONS)
    if s.mode not in MODES:
        raise errors.not_one_of(s.op, "mode", s.mode, MODES)
    axis = check_axis(s.op, s.data.shape, s.indices.shape, s.axis)
    _check_dtypes(s)
    moved = _moved_shape(s, axis)
    if s.updates is None:
        target = _check_out(s, moved)
        return Checked(axis, moved, s.data.layout, target)
    shapes.check_rank(s.op, "`updates`", max(len(moved), len(s.updates.shape)))
    strides = shapes.broadcast_strides(s.op, "updates", s.updates.shape, s.updates.strides, moved)
    shapes.check_result(s.op, s.data.shape, s.data.dtype)
    return Checked(axis, s.data.shape, _check_out(s, s.data.shape), Layout(moved, strides))


def _check_dtypes(s: Signature) -> None:
    if not is_movable(s.data.dtype):
        raise errors.objects(s.op, "data", s.data.dtype)
    if not is_index(s.indices.dtype):
        raise errors.not_an_index_dtype(s.op, s.indices.dtype)
    if s.updates is None:
        return
    if s.updates.dtype != s.data.dtype:
        raise errors.other_dtype(s.op, "updates", s.data.dtype, s.updates.dtype)
    if s.reduction != "none" and not is_reducible(s.data.dtype, s.reduction):
        raise errors.not_reducible(s.op, s.reduction, s.data.dtype)


def _moved_shape(s: Signature, axis: int) -> Shape:
    """Return the shape that moves: a gather's result, a scatter's updates."""
    shapes.check_rank(s.op, "`data`", len(s.data.shape))
    shapes.check_rank(s.op, "`indices`", len(s.indices.shape))
    if s.op == "gather":
        moved = shapes.gather_shape(s.data.shape, s.indices.shape, axis)
    elif s.op.endswith("_elements"):
        moved = shapes.elements_shape(s.op, s.data.shape, s.indices.shape, axis)
    else:
        moved = shapes.nd_shape(s.op, s.data.shape, s.indices.shape, axis)
    if s.updates is None:
        shapes.check_result(s.op, moved, s.data.dtype)
    return moved


def _check_out(s: Signature, shape: Shape) -> Layout:
    """Return the layout of the result: that of `out` where one is given."""
    if s.out is None:
        return Layout.contiguous(shape, s.data.dtype.itemsize)
    if s.out.dtype != s.data.dtype:
        raise errors.other_dtype(s.op, "out", s.data.dtype, s.out.dtype)
    if s.out.shape != shape:
        raise errors.other_shape(s.op, "out", shape, s.out.shape)
    if shapes.overlaps_itself(shape, s.out.strides, s.data.dtype.itemsize):
        raise errors.out_overlaps_itself(s.op, shape, s.out.strides)
    return s.out.layout
