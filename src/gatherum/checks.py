"""The checks of a call that need no data: attributes, dtypes, shapes, and `out`."""

from __future__ import annotations

from typing import NamedTuple

from . import errors, shapes
from .call import ArraySpec, Call
from .dtypes import (
    MODES,
    AnyDType,
    check_movable,
    check_units,
    is_index,
    is_reducible,
)
from .errors import Shape
from .operators import OPERATORS, Operator
from .reductions import REDUCTIONS
from .shapes import Layout


class Resolved(NamedTuple):
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
    if indices if operator.counts_indices else data:
        operator.resolve(data, indices, axis)


def check_before_updates(
    op: str, data: Shape, indices: Shape, axis: int, data_dtype: AnyDType, index_dtype: AnyDType
) -> None:
    """Check what is due before `updates` are converted: attributes, and the other dtypes."""
    check_range(OPERATORS[op], data, indices, axis)
    check_movable(op, "data", data_dtype)
    if not is_index(index_dtype):
        raise errors.not_an_index_dtype(op, index_dtype, OPERATORS[op].tuples)


def check_symbolic(call: Call) -> tuple[int, Shape]:
    """Check attributes, dtypes and shapes, but no limits of ranks, sizes and addresses: sizes may
    be symbols. Return the axis counted from the front, and the shape that moves.
    """
    _check_attributes(call)
    _check_dtypes(call)
    axis = call.resolved_axis
    moved = call.operator.moved(call.data.shape, call.indices.shape, axis)
    if call.updates is not None and not shapes.broadcasts(call.updates.shape, moved):
        raise _other_updates(call, axis, moved, call.updates.shape)
    return axis, moved


def _check_attributes(call: Call) -> None:
    if call.reduction not in REDUCTIONS:
        raise errors.not_one_of(call.op, "reduction", call.reduction, REDUCTIONS)
    if call.mode not in MODES:
        raise errors.not_one_of(call.op, "mode", call.mode, MODES)


def check(call: Call) -> Resolved:
    """Check attributes, dtypes, shapes and `out`, in this order."""
    _check_attributes(call)
    _check_dtypes(call)
    axis = call.resolved_axis
    moved = _moved_shape(call, axis)
    if call.updates is None:
        target = _check_out(call, moved)
        return Resolved(axis, moved, call.data.layout, target)
    shapes.check_rank(call.op, "`updates`", max(len(moved), len(call.updates.shape)))
    shapes.check_size(call.op, "updates", call.updates.shape, call.updates.dtype.itemsize)
    if not shapes.broadcasts(call.updates.shape, moved):
        raise _other_updates(call, axis, moved, call.updates.shape)
    strides = shapes.broadcast_strides(call.op, "updates", *call.updates.layout, moved)
    shapes.check_result(call.op, call.data.shape, call.data.dtype)
    out = _check_out(call, call.data.shape)
    return Resolved(axis, call.data.shape, out, Layout(moved, strides))


def _check_dtypes(call: Call) -> None:
    data, indices = call.data, call.indices
    check_before_updates(call.op, data.shape, indices.shape, call.axis, data.dtype, indices.dtype)
    if call.updates is None:
        return
    check_units(call.op, "updates", call.updates.dtype)
    if call.updates.dtype != call.data.dtype:
        raise errors.other_dtype(call.op, "updates", call.data.dtype, call.updates.dtype)
    if call.reduction != "none" and not is_reducible(call.data.dtype, call.reduction):
        raise errors.not_reducible(call.op, call.reduction, call.data.dtype)


def _moved_shape(call: Call, axis: int) -> Shape:
    """Return the shape that moves: a gather's result, a scatter's updates."""
    _check_operand(call.op, "data", call.data)
    _check_operand(call.op, "indices", call.indices)
    moved = call.operator.moved(call.data.shape, call.indices.shape, axis)
    if call.updates is None:
        shapes.check_result(call.op, moved, call.data.dtype)
    return moved


def _other_updates(call: Call, axis: int, moved: Shape, updates: Shape) -> ValueError:
    """Return what to raise for updates of a wrong shape: they may fit indices that were meant."""
    operator, data, indices = call.operator, call.data.shape, call.indices.shape
    if operator.tuples and len(indices) == 1 and shapes.broadcasts(updates, indices + data[1:]):
        return errors.other_shape_of_one_tuple(call.op, moved, updates)
    if (
        operator.addressing.shares_back
        and len(updates) == len(data)
        and shapes.broadcasts(indices, updates)
    ):
        beside = [d for d in range(len(data)) if d != axis]
        if all(updates[d] <= data[d] for d in beside):
            slices = all(indices[d] == 1 and updates[d] == data[d] for d in beside)
            return errors.other_shape_than_indices(call.op, moved, updates, slices)
    return errors.other_shape(call.op, "updates", moved, updates)


def _check_operand(op: str, name: str, operand: ArraySpec) -> None:
    shapes.check_rank(op, f"`{name}`", len(operand.shape))
    shapes.check_size(op, name, operand.shape, operand.dtype.itemsize)


def _check_out(call: Call, shape: Shape) -> Layout:
    """Return the layout of the result: that of `out` where one is given."""
    if call.out is None:
        return Layout.contiguous(shape, call.data.dtype.itemsize)
    check_out(call.op, shape, call.data.dtype, call.out)
    return call.out.layout


def check_out(op: str, shape: Shape, dtype: AnyDType, out: ArraySpec) -> None:
    """Raise TypeError or ValueError if a result of this shape and dtype cannot go to `out`."""
    check_units(op, "out", out.dtype)
    if out.dtype != dtype:
        raise errors.other_dtype(op, "out", dtype, out.dtype)
    if out.shape != shape:
        raise errors.other_shape(op, "out", shape, out.shape)
    if shapes.overlaps_itself(shape, out.strides, dtype.itemsize):
        raise errors.out_overlaps_itself(op, shape, out.strides)
