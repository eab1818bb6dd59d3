"""What a call looks like, apart from its data, and the checks that need no more than that."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from . import errors, shapes
from .dtypes import (
    MODES,
    AnyDType,
    DType,
    check_movable,
    check_units,
    code_of,
    is_index,
    is_reducible,
)
from .errors import Shape
from .operators import OPERATORS, Operator
from .reductions import REDUCTIONS
from .shapes import Layout

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Operand:
    """What a plan knows of an array: shape, dtype, and strides in bytes."""

    shape: Shape
    dtype: AnyDType
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

    @property
    def description(self) -> tuple[Shape, str | DType, Shape]:
        """The same as plain values, which `plan` takes."""
        dtype = self.dtype if isinstance(self.dtype, np.dtype) else self.dtype.name
        return self.shape, dtype, self.strides

    def __str__(self) -> str:
        contiguous = shapes.contiguous_strides(self.shape, self.dtype.itemsize)
        strides = "" if self.strides == contiguous else f", strides {self.strides}"
        return f"{self.dtype} {self.shape}{strides}"


def looks_alike(one: Operand | None, other: Operand | None) -> bool:
    """Whether a plan of the one runs on the other: the dtype of a package, once it is imported, is
    the one that a plan was made for before.
    """
    if one is None or other is None or one.layout != other.layout:
        return one is other
    code = code_of(one.dtype)
    return one.dtype == other.dtype or (code is not None and code == code_of(other.dtype))


@dataclass(frozen=True, slots=True)
class Signature:
    """Everything that a plan depends on. `axis` is the operator's dimension attribute."""

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

    @property
    def operator(self) -> Operator:
        """The operator's row."""
        return OPERATORS[self.op]

    @property
    def attributes(self) -> dict[str, Any]:
        """The operator's arguments but operands, `out` and the fill value, by their names."""
        found = {self.operator.attribute: self.axis, "mode": self.mode, "negative": self.negative}
        if self.operator.scatters:
            found |= {"reduction": self.reduction, "include_self": self.include_self}
        return found


def is_description(value: object) -> bool:
    """Whether a tuple describes an operand: a shape, a dtype, perhaps strides."""
    if not isinstance(value, tuple) or len(value) not in (2, 3) or not isinstance(value[0], tuple):
        return False
    return isinstance(value[1], (str, type, np.dtype))


class Checked(NamedTuple):
    """What the checks have found out: the axis counted from the front, the result's shape, and the
    layouts that the loops step through: D (a scatter's output), and U (a gather's output, or a
    scatter's updates, broadcast).
    """

    axis: int
    shape: Shape
    data: Layout
    other: Layout


def check_range(operator: Operator, data: Shape, indices: Shape, axis: int) -> None:
    """Check the dimension attribute where there are dimensions that it can be one of. That there
    are none is a matter of shapes, which comes after dtypes.
    """
    if indices if operator.tuples else data:
        operator.resolve(data, indices, axis)


def check_before_updates(
    op: str, data: Shape, indices: Shape, axis: int, data_dtype: AnyDType, index_dtype: AnyDType
) -> None:
    """Check what is due before `updates` are converted: attributes, and the other dtypes."""
    check_range(OPERATORS[op], data, indices, axis)
    check_movable(op, "data", data_dtype)
    if not is_index(index_dtype):
        raise errors.not_an_index_dtype(op, index_dtype, OPERATORS[op].tuples)


def check_symbolic(s: Signature) -> tuple[int, Shape]:
    """Check attributes, dtypes and shapes, but no limits of ranks, sizes and addresses: sizes may
    be symbols. Return the axis counted from the front, and the shape that moves.
    """
    _check_attributes(s)
    _check_dtypes(s)
    axis = s.operator.resolve(s.data.shape, s.indices.shape, s.axis)
    moved = s.operator.moved(s.data.shape, s.indices.shape, axis)
    if s.updates is not None and not shapes.broadcasts(s.updates.shape, moved):
        raise _other_updates(s, axis, moved, s.updates.shape)
    return axis, moved


def _check_attributes(s: Signature) -> None:
    if s.reduction not in REDUCTIONS:
        raise errors.not_one_of(s.op, "reduction", s.reduction, REDUCTIONS)
    if s.mode not in MODES:
        raise errors.not_one_of(s.op, "mode", s.mode, MODES)


def check(s: Signature) -> Checked:
    """Check attributes, dtypes, shapes and `out`, in this order."""
    _check_attributes(s)
    _check_dtypes(s)
    axis = s.operator.resolve(s.data.shape, s.indices.shape, s.axis)
    moved = _moved_shape(s, axis)
    if s.updates is None:
        target = _check_out(s, moved)
        return Checked(axis, moved, s.data.layout, target)
    shapes.check_rank(s.op, "`updates`", max(len(moved), len(s.updates.shape)))
    shapes.check_size(s.op, "updates", s.updates.shape, s.updates.dtype.itemsize)
    if not shapes.broadcasts(s.updates.shape, moved):
        raise _other_updates(s, axis, moved, s.updates.shape)
    strides = shapes.broadcast_strides(s.op, "updates", s.updates.shape, s.updates.strides, moved)
    shapes.check_result(s.op, s.data.shape, s.data.dtype)
    return Checked(axis, s.data.shape, _check_out(s, s.data.shape), Layout(moved, strides))


def _check_dtypes(s: Signature) -> None:
    check_before_updates(s.op, s.data.shape, s.indices.shape, s.axis, s.data.dtype, s.indices.dtype)
    if s.updates is None:
        return
    check_units(s.op, "updates", s.updates.dtype)
    if s.updates.dtype != s.data.dtype:
        raise errors.other_dtype(s.op, "updates", s.data.dtype, s.updates.dtype)
    if s.reduction != "none" and not is_reducible(s.data.dtype, s.reduction):
        raise errors.not_reducible(s.op, s.reduction, s.data.dtype)


def _moved_shape(s: Signature, axis: int) -> Shape:
    """Return the shape that moves: a gather's result, a scatter's updates."""
    _check_operand(s.op, "data", s.data)
    _check_operand(s.op, "indices", s.indices)
    moved = s.operator.moved(s.data.shape, s.indices.shape, axis)
    if s.updates is None:
        shapes.check_result(s.op, moved, s.data.dtype)
    return moved


def _other_updates(s: Signature, axis: int, moved: Shape, updates: Shape) -> ValueError:
    """Return what to raise for updates of a wrong shape: they may fit indices that were meant."""
    data, indices = s.data.shape, s.indices.shape
    if s.operator.tuples and len(indices) == 1 and shapes.broadcasts(updates, indices + data[1:]):
        return errors.other_shape_of_one_tuple(s.op, moved, updates)
    if s.operator.elements and len(updates) == len(data) and shapes.broadcasts(indices, updates):
        beside = [d for d in range(len(data)) if d != axis]
        if all(updates[d] <= data[d] for d in beside):
            slices = all(indices[d] == 1 and updates[d] == data[d] for d in beside)
            return errors.other_shape_than_indices(s.op, moved, updates, slices)
    return errors.other_shape(s.op, "updates", moved, updates)


def _check_operand(op: str, name: str, operand: Operand) -> None:
    shapes.check_rank(op, f"`{name}`", len(operand.shape))
    shapes.check_size(op, name, operand.shape, operand.dtype.itemsize)


def _check_out(s: Signature, shape: Shape) -> Layout:
    """Return the layout of the result: that of `out` where one is given."""
    if s.out is None:
        return Layout.contiguous(shape, s.data.dtype.itemsize)
    check_out(s.op, shape, s.data.dtype, s.out)
    return s.out.layout


def check_out(op: str, shape: Shape, dtype: AnyDType, out: Operand) -> None:
    """Raise TypeError or ValueError if a result of this shape and dtype cannot go to `out`."""
    check_units(op, "out", out.dtype)
    if out.dtype != dtype:
        raise errors.other_dtype(op, "out", dtype, out.dtype)
    if out.shape != shape:
        raise errors.other_shape(op, "out", shape, out.shape)
    if shapes.overlaps_itself(shape, out.strides, dtype.itemsize):
        raise errors.out_overlaps_itself(op, shape, out.strides)
