"""Write the ONNX nodes of each op: Gather or ScatterND, and the conversions of its operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from gatherum._model.call import Attributes
from gatherum._model.reductions import ROWS, known_to_onnx
from gatherum.torch import errors as torch_errors

Value: TypeAlias = Any  # of a graph under construction, with shape and dtype

_OPSET = 18
_DIVIDE = "divide a sum by a count of the updates"


def gather(attributes: Attributes, data: Value, indices: Value) -> Value:
    """Write the nodes of a `gather`."""
    _refuse(attributes)
    op = _opset()
    return op.Gather(data, _axis_indices(attributes, data, indices), axis=attributes.axis)


def gather_elements(attributes: Attributes, data: Value, indices: Value) -> Value:
    """Write the nodes of a `gather_elements`."""
    _refuse(attributes)
    op = _opset()
    return op.GatherElements(data, _axis_indices(attributes, data, indices), axis=attributes.axis)


def gather_nd(attributes: Attributes, data: Value, indices: Value) -> Value:
    """Write the nodes of a `gather_nd`."""
    _refuse(attributes)
    op = _opset()
    tuples = _tuples(attributes, data, indices, attributes.axis)
    return op.GatherND(data, tuples, batch_dims=attributes.axis)


def scatter_elements(attributes: Attributes, data: Value, indices: Value, updates: Value) -> Value:
    """Write the nodes of a `scatter_elements`."""
    _refuse(attributes)
    op = _opset()
    positions, axis = _axis_indices(attributes, data, indices), attributes.axis

    def scatter(table: Value, values: Value, fold: str) -> Value:
        return op.ScatterElements(table, positions, values, axis=axis, reduction=fold)

    values = _broadcast_updates(updates, indices.shape, lambda: op.Shape(indices))
    return _folded(scatter, data, values, attributes)


def scatter_nd(attributes: Attributes, data: Value, indices: Value, updates: Value) -> Value:
    """Write the nodes of a `scatter_nd`."""
    _refuse(attributes)
    if attributes.axis != 0:
        raise torch_errors.no_onnx("scatter_nd", "`batch_dims`", "make them part of the tuples")
    return _scatter_tuples(attributes, data, indices, updates)


def scatter_slices(attributes: Attributes, data: Value, indices: Value, updates: Value) -> Value:
    """Write the nodes of a `scatter_slices`.

    The axis is moved to the front, so the slices are rows of ScatterND.
    """
    _refuse(attributes)
    op = _opset()
    rank, indices_rank = len(data.shape), len(indices.shape)
    axis = attributes.axis % rank
    moved_shape = (*data.shape[:axis], *indices.shape, *data.shape[axis + 1 :])
    updates = _broadcast_updates(updates, moved_shape, lambda: op.Concat(
        op.Shape(data, end=axis), op.Shape(indices), op.Shape(data, start=axis + 1), axis=0
    ))  # fmt: skip
    front = [axis, *range(axis), *range(axis + 1, rank)]
    if axis > 0:
        sizes = type(data.shape)([data.shape[i] for i in front])
        dtype = data.dtype
        data = op.Transpose(data, perm=front)
        data.shape, data.dtype = sizes, dtype
        entries = list(range(axis, axis + indices_rank))
        others = [i for i in range(rank - 1 + indices_rank) if i not in entries]
        updates = op.Transpose(updates, perm=[*entries, *others])
    rows = op.Unsqueeze(indices, op.Constant(value_ints=[-1]))
    rows.shape = type(indices.shape)([*indices.shape, 1])
    rows.dtype = indices.dtype
    result = _scatter_tuples(attributes, data, rows, updates)
    return op.Transpose(result, perm=[front.index(i) for i in range(rank)]) if axis > 0 else result


def _scatter_tuples(attributes: Attributes, data: Value, indices: Value, updates: Value) -> Value:
    op = _opset()
    tuples = _tuples(attributes, data, indices, 0)
    every = _may_address_every_row(data, indices)

    def scatter(table: Value, values: Value, fold: str) -> Value:
        if fold == "none" or not every:
            return op.ScatterND(table, tuples, values, reduction=fold)
        front = op.Constant(value_ints=[0])
        rows = op.Unsqueeze(tuples, front), op.Unsqueeze(values, front)
        return op.ScatterND(table, *rows, reduction=fold)

    if attributes.op == "scatter_nd":
        component_count = indices.shape[-1]
        moved_shape = (*indices.shape[:-1], *data.shape[component_count:])
        updates = _broadcast_updates(updates, moved_shape, lambda: op.Concat(
            op.Shape(indices, end=-1), op.Shape(data, start=component_count), axis=0
        ))  # fmt: skip
    return _folded(scatter, data, updates, attributes)


def _may_address_every_row(data: Value, indices: Value) -> bool:
    """Return True if the indices may be the constants 0, 1, ..., n - 1 of the n rows.

    In this case, the exporter's optimizer (onnxscript's rule ScatterAllStatic) replaces ScatterND
    by the updates and ignores `reduction`. The rule compares the shapes of data and updates, so an
    additional leading dimension of size 1 prevents this.
    """
    if len(indices.shape) != 2 or indices.shape[1] != 1 or not isinstance(indices.shape[0], int):
        return False  # constants have numeric sizes
    rows = data.shape[0]
    return not isinstance(rows, int) or bool(rows == indices.shape[0])


def _folded(scatter: Callable[[Value, Value, str], Value], data: Value, updates: Value,
            attributes: Attributes) -> Value:  # fmt: skip
    """Scatter once, or twice if old values do not take part.

    The first of two scatters writes a neutral value or, for a maximum or minimum, one of the
    updates.
    """
    reduction = attributes.reduction
    if reduction == "mean":
        return _mean(scatter, data, updates, attributes)
    if reduction != "none" and not attributes.include_self:
        op = _opset()
        initial_values = updates
        if (neutral := ROWS[reduction].neutral_number) is not None:
            constant = op.Constant(value_float=float(neutral) or -0.0)  # 0 would change a sum of -0
            neutral_item = op.CastLike(constant, updates)
            initial_values = op.Expand(neutral_item, op.Shape(updates))
        data = scatter(data, initial_values, "none")
    return scatter(data, updates, reduction)


def _mean(scatter: Callable[[Value, Value, str], Value], data: Value, updates: Value,
          attributes: Attributes) -> Value:  # fmt: skip
    """Divide a sum by a count: two scatters, in the types in which the core computes them."""
    op = _opset()
    dtype = data.dtype
    wide = _mean_types().get(dtype)
    if wide is None:
        raise torch_errors.no_onnx(attributes.op, f"`reduction` 'mean' of {dtype.name}", _DIVIDE)
    whole = wide in (_ir().INT64, _ir().UINT64)
    if wide != dtype:
        data, updates = op.Cast(data, to=wide), op.Cast(updates, to=wide)
    summed = attributes._replace(reduction="add")
    total = _folded(scatter, data, updates, summed)
    ones = op.Expand(op.CastLike(op.Constant(value_float=1.0), updates), op.Shape(updates))
    initial = op.CastLike(op.Constant(value_float=float(attributes.include_self)), data)
    count = scatter(op.Expand(initial, op.Shape(data)), ones, "add")
    divisor = op.Max(count, op.CastLike(op.Constant(value_float=1.0), count))
    result = _floor_divided(total, divisor) if whole else op.Div(total, divisor)
    return op.Cast(result, to=dtype) if wide != dtype else result


def _mean_types() -> dict[Any, Any]:
    """Return the type in which the mean of each type is computed."""
    types = _ir()
    signed = types.INT8, types.INT16, types.INT32, types.INT64
    unsigned = types.UINT8, types.UINT16, types.UINT32, types.UINT64
    return {
        **dict.fromkeys(signed, types.INT64),
        **dict.fromkeys(unsigned, types.UINT64),
        **dict.fromkeys((types.FLOAT16, types.BFLOAT16, types.FLOAT), types.FLOAT),
        types.DOUBLE: types.DOUBLE,
    }


def _floor_divided(total: Value, divisor: Value) -> Value:
    """Divide integers toward minus infinity; ONNX divides toward zero."""
    op = _opset()
    quotient = op.Div(total, divisor)
    is_above = op.Less(total, op.Mul(quotient, divisor))
    return op.Sub(quotient, op.CastLike(is_above, quotient))


def _axis_indices(attributes: Attributes, data: Value, indices: Value) -> Value:
    """Return the indices into one axis in ONNX form."""
    op = _opset()
    axis = attributes.axis
    return _checked(
        indices, attributes.negative, lambda: op.Gather(op.Shape(data), op.Constant(value_int=axis))
    )


def _tuples(attributes: Attributes, data: Value, indices: Value, batch_dims: int) -> Value:
    """Return index tuples in ONNX form."""
    op = _opset()
    component_count = indices.shape[-1]
    if component_count == 0:
        raise torch_errors.no_onnx(attributes.op, "tuples of no index", "give them an index")
    ends = {"start": batch_dims, "end": batch_dims + component_count}
    return _checked(indices, attributes.negative, lambda: op.Shape(data, **ends))


def _checked(indices: Value, negative: bool, sizes: Callable[[], Value]) -> Value:
    """Return int64 indices. If negative indices are invalid, map them out of bounds for ONNX."""
    types = _ir()
    op = _opset()
    huge = indices.dtype == types.UINT64  # from 2**63 on, they become negative
    if indices.dtype != types.INT64:
        indices = op.Cast(indices, to=types.INT64)
    if negative and not huge:
        return indices
    return op.Where(op.Less(indices, op.Constant(value_int=0)), sizes(), indices)


def _broadcast_updates(updates: Value, moved_shape: Any, shape: Callable[[], Value]) -> Value:
    """Broadcast updates, because ONNX does not."""
    if updates.shape is not None and tuple(updates.shape) == tuple(moved_shape):
        return updates
    op = _opset()
    return op.Expand(updates, shape())


def _refuse(attributes: Attributes) -> None:
    """Raise NotImplementedError if ONNX lacks the mode or the reduction."""
    if attributes.mode != "raise":
        instead = "make the indices valid before the call"
        raise torch_errors.no_onnx(attributes.op, f"`mode` {attributes.mode!r}", instead)
    if attributes.reduction not in (*known_to_onnx(_OPSET), "mean"):
        raise torch_errors.no_onnx(attributes.op, f"`reduction` {attributes.reduction!r}", _DIVIDE)


def _ir() -> Any:
    from onnx_ir import DataType

    return DataType


def _opset() -> Any:
    from onnxscript import opset18

    return opset18
