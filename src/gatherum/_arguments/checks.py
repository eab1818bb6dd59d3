"""Check the attributes and dtypes of a call. The core checks the shapes."""

from __future__ import annotations

from typing import Any, Protocol

from gatherum._model import errors, shape_limits
from gatherum._model.call import ArraySpec, Call
from gatherum._model.dtypes import AnyDType, check_movable, check_units, is_index, is_reducible
from gatherum._model.errors import Shape
from gatherum._model.modes import MODES
from gatherum._model.operators import OPERATORS, Operator
from gatherum._model.reductions import REDUCTIONS


class Described(Protocol):
    """A spec or an array."""

    @property
    def shape(self) -> Shape:
        """The size of each dimension."""

    @property
    def dtype(self) -> Any:
        """The dtype of the elements."""


def check_range(operator: Operator, data: Shape, indices: Shape, axis: int) -> None:
    """Check the range of the dimension attribute if the operand has dimensions.

    An operand without dimensions raises a shape error. Shape errors are raised after dtype errors.
    """
    if indices if operator.counts_indices else data:
        operator.resolve(data, indices, axis)


def check_before_updates(op: str, data: Described, indices: Described, axis: int) -> None:
    """Check attributes and the other dtypes before `updates` are converted."""
    check_range(OPERATORS[op], data.shape, indices.shape, axis)
    check_movable(op, "data", data.dtype)
    if not is_index(indices.dtype):
        raise errors.not_an_index_dtype(op, indices.dtype, OPERATORS[op].takes_tuples)


def check_symbolic(call: Call) -> tuple[int, Shape]:
    """Check attributes, dtypes and shapes; sizes may be symbols.

    Limits of ranks, sizes and addresses are not checked. Return the nonnegative axis and the moved
    shape.
    """
    check_attributes(call)
    check_dtypes(call)
    axis = call.resolved_axis
    moved_shape = call.operator.moved_shape(call.data.shape, call.indices.shape, axis)
    if call.updates is not None and not shape_limits.broadcasts(call.updates.shape, moved_shape):
        raise _other_updates(call, axis, moved_shape, call.updates.shape)
    return axis, moved_shape


def check_attributes(call: Call) -> None:
    """Check the attributes that are strings."""
    if call.reduction not in REDUCTIONS:
        raise errors.not_one_of(call.op, "reduction", call.reduction, REDUCTIONS)
    if call.mode not in MODES:
        raise errors.not_one_of(call.op, "mode", call.mode, MODES)


def check_dtypes(call: Call) -> None:
    """Check the range of the dimension attribute, and the dtypes of the inputs."""
    data, indices = call.data, call.indices
    check_before_updates(call.op, data, indices, call.axis)
    if call.updates is None:
        return
    check_units(call.op, "updates", call.updates.dtype)
    if call.updates.dtype != call.data.dtype:
        raise errors.other_dtype(call.op, "updates", call.data.dtype, call.updates.dtype)
    if call.reduction != "none" and not is_reducible(call.data.dtype, call.reduction):
        raise errors.not_reducible(call.op, call.reduction, call.data.dtype, True)


def shape_error(call: Call, fault: shape_limits.Fault) -> ValueError:
    """Create the error for a fault that the core found in the shapes of a call."""
    op, (problem, operand, *_, details) = call.op, fault
    specs = {"data": call.data, "indices": call.indices, "updates": call.updates, "out": call.out}
    spec = specs.get(operand)
    if problem == "too_many_dimensions":
        subject = "the result" if spec is None else f"`{operand}`"
        return errors.too_many_dimensions(op, subject, fault[3], fault[4])
    if spec is None:
        return errors.result_too_big(op, details, call.data.dtype)
    if problem == "operand_too_big":
        return errors.operand_too_big(op, operand, spec.shape, spec.dtype.itemsize)
    if operand == "indices":
        return shape_limits.misfit(op, fault, call.data.shape, call.indices.shape)
    if operand == "updates":
        return _other_updates(call, call.resolved_axis, details, spec.shape)
    overlaps = problem == "overlaps_itself"
    return (
        errors.out_overlaps_itself(op, details, spec.strides)
        if overlaps
        else errors.other_shape(op, operand, details, spec.shape)
    )


def _other_updates(call: Call, axis: int, moved_shape: Shape, updates: Shape) -> ValueError:
    """Create the error for updates of a wrong shape, with a hint if they fit other indices."""
    operator, data, indices = call.operator, call.data.shape, call.indices.shape
    if (
        operator.takes_tuples
        and len(indices) == 1
        and shape_limits.broadcasts(updates, indices + data[1:])
    ):
        return errors.other_shape_of_one_tuple(call.op, moved_shape, updates)
    if (
        operator.addressing.shares_back
        and len(updates) == len(data)
        and shape_limits.broadcasts(indices, updates)
    ):
        beside = [d for d in range(len(data)) if d != axis]
        if all(updates[d] <= data[d] for d in beside):
            slices = all(indices[d] == 1 and updates[d] == data[d] for d in beside)
            return errors.other_shape_than_indices(call.op, moved_shape, updates, slices)
    return errors.other_shape(call.op, "updates", moved_shape, updates)


def check_out_dtype(op: str, dtype: AnyDType, out: AnyDType) -> None:
    """Raise TypeError if the dtype of `out` differs from the dtype of the result."""
    check_units(op, "out", out)
    if out != dtype:
        raise errors.other_dtype(op, "out", dtype, out)


def check_out_spec(op: str, shape: Shape, dtype: AnyDType, out: ArraySpec) -> None:
    """Raise TypeError or ValueError if `out` cannot hold a result of the given shape and dtype.

    Only calls without a program use this function. For calls with a program, the core checks the
    shape.
    """
    check_out_dtype(op, dtype, out.dtype)
    if out.shape != shape:
        raise errors.other_shape(op, "out", shape, out.shape)
    if shape_limits.overlaps_itself(shape, out.strides, dtype.itemsize):
        raise errors.out_overlaps_itself(op, shape, out.strides)
