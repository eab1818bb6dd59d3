"""Translate the ops to Gather, GatherElements, GatherND, ScatterElements and ScatterND of ONNX.

``torch.onnx.export`` accepts the functions of `onnx_translations`. The export raises an error for
calls that ONNX cannot express.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from gatherum._model.operators import OPERATORS, Operator
from gatherum._model.reductions import ROWS, known_to_onnx
from gatherum.torch import errors as torch_errors
from gatherum.torch.library.ops import overload

Value: TypeAlias = Any  # of a graph under construction, with shape and dtype

_OPSET = 18


def onnx_translations() -> dict[Any, Callable[..., Any]]:
    """Return the ``custom_translation_table`` for ``torch.onnx.export``.

    Needs onnxscript, as the exporter does, and opset 18 or later.

    Returns
    -------
    dict
        A function for each functional op of ``torch.ops.gatherum``, which writes its nodes.

    Raises
    ------
    ImportError
        If onnxscript is not installed.
    """
    try:
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise ImportError("onnx_translations needs onnxscript: pip install onnxscript") from error
    functions = (_gather, _gather_elements, _gather_nd, _scatter_slices, _scatter_elements,
                 _scatter_nd)  # fmt: skip
    written = {function.__name__[1:]: function for function in functions}
    return {overload(op): written.get(op) or _refused(row) for op, row in OPERATORS.items()}


def _refused(operator: Operator) -> Callable[..., Any]:
    """Return the translation of an operator that ONNX has no counterpart for."""
    instead = "write the call with an operator that it has"

    def gather(data: Value, indices: Value, axis: int = 0, bounds: str = "raise",
               negative: bool = True, fill_value: float = 0, caller: str = ""
               ) -> Value:  # fmt: skip
        raise torch_errors.no_onnx(operator.name, "operator", instead)

    def scatter(data: Value, indices: Value, updates: Value, axis: int = 0,
                reduction: str = "none", include_self: bool = True, bounds: str = "raise",
                negative: bool = True) -> Value:  # fmt: skip
        raise torch_errors.no_onnx(operator.name, "operator", instead)

    return scatter if operator.scatters else gather


# The exporter reads the signatures, which must match the ops.


def _gather(data: Value, indices: Value, axis: int = 0, bounds: str = "raise",
            negative: bool = True, fill_value: float = 0, caller: str = ""
               ) -> Value:  # fmt: skip
    _refuse_bounds("gather", bounds)
    op = _opset()
    return op.Gather(data, _along(data, indices, axis, negative), axis=axis)


def _gather_elements(data: Value, indices: Value, axis: int = 0, bounds: str = "raise",
                     negative: bool = True, fill_value: float = 0, caller: str = ""
               ) -> Value:  # fmt: skip
    _refuse_bounds("gather_elements", bounds)
    op = _opset()
    return op.GatherElements(data, _along(data, indices, axis, negative), axis=axis)


def _gather_nd(data: Value, indices: Value, batch_dims: int = 0, bounds: str = "raise",
               negative: bool = True, fill_value: float = 0, caller: str = ""
               ) -> Value:  # fmt: skip
    _refuse_bounds("gather_nd", bounds)
    op = _opset()
    tuples = _tuples("gather_nd", data, indices, batch_dims, negative)
    return op.GatherND(data, tuples, batch_dims=batch_dims)


def _scatter_elements(data: Value, indices: Value, updates: Value, axis: int = 0,
                      reduction: str = "none", include_self: bool = True, bounds: str = "raise",
                      negative: bool = True, caller: str = ""
               ) -> Value:  # fmt: skip
    _refuse("scatter_elements", bounds, reduction)
    op = _opset()
    places = _along(data, indices, axis, negative)

    def scatter(table: Value, values: Value, fold: str) -> Value:
        return op.ScatterElements(table, places, values, axis=axis, reduction=fold)

    values = _stretched(updates, indices.shape, lambda: op.Shape(indices))
    return _folded(scatter, data, values, reduction, include_self)


def _scatter_nd(data: Value, indices: Value, updates: Value, batch_dims: int = 0,
                reduction: str = "none", include_self: bool = True, bounds: str = "raise",
                negative: bool = True, caller: str = ""
               ) -> Value:  # fmt: skip
    _refuse("scatter_nd", bounds, reduction)
    if batch_dims != 0:
        raise torch_errors.no_onnx("scatter_nd", "`batch_dims`", "make them part of the tuples")
    return _scatter_tuples("scatter_nd", data, indices, updates, reduction, include_self, negative)


def _scatter_slices(data: Value, indices: Value, updates: Value, axis: int = 0,
                    reduction: str = "none", include_self: bool = True, bounds: str = "raise",
                    negative: bool = True, caller: str = ""
               ) -> Value:  # fmt: skip
    """Scatter slices. The axis is moved to the front, so the slices are rows of ScatterND."""
    _refuse("scatter_slices", bounds, reduction)
    op = _opset()
    rank, q = len(data.shape), len(indices.shape)
    axis %= rank
    moved = (*data.shape[:axis], *indices.shape, *data.shape[axis + 1 :])
    updates = _stretched(updates, moved, lambda: op.Concat(
        op.Shape(data, end=axis), op.Shape(indices), op.Shape(data, start=axis + 1), axis=0
    ))  # fmt: skip
    front = [axis, *range(axis), *range(axis + 1, rank)]
    if axis > 0:
        sizes = type(data.shape)([data.shape[i] for i in front])
        data = op.Transpose(data, perm=front)
        data.shape = sizes
        entries = list(range(axis, axis + q))
        others = [i for i in range(rank - 1 + q) if i not in entries]
        updates = op.Transpose(updates, perm=[*entries, *others])
    rows = op.Unsqueeze(indices, op.Constant(value_ints=[-1]))
    rows.shape = type(indices.shape)([*indices.shape, 1])
    rows.dtype = indices.dtype
    more = reduction, include_self, negative
    result = _scatter_tuples("scatter_slices", data, rows, updates, *more)
    return op.Transpose(result, perm=[front.index(i) for i in range(rank)]) if axis > 0 else result


def _scatter_tuples(name: str, data: Value, indices: Value, updates: Value, reduction: str,
                    include_self: bool, negative: bool) -> Value:  # fmt: skip
    op = _opset()
    places = _tuples(name, data, indices, 0, negative)
    every = _may_address_every_row(data, indices)

    def scatter(table: Value, values: Value, fold: str) -> Value:
        if fold == "none" or not every:
            return op.ScatterND(table, places, values, reduction=fold)
        front = op.Constant(value_ints=[0])
        rows = op.Unsqueeze(places, front), op.Unsqueeze(values, front)
        return op.ScatterND(table, *rows, reduction=fold)

    if name == "scatter_nd":
        k = indices.shape[-1]
        moved = (*indices.shape[:-1], *data.shape[k:])
        updates = _stretched(updates, moved, lambda: op.Concat(
            op.Shape(indices, end=-1), op.Shape(data, start=k), axis=0
        ))  # fmt: skip
    return _folded(scatter, data, updates, reduction, include_self)


def _may_address_every_row(data: Value, indices: Value) -> bool:
    """Return True if the indices may be the constants 0, 1, ..., n - 1 of the n rows.

    The exporter's optimizer (onnxscript's rule ScatterAllStatic) replaces ScatterND by the updates
    there and ignores `reduction`. The rule compares the shapes of data and updates, so a leading
    dimension of size 1 keeps such a reduction.
    """
    if len(indices.shape) != 2 or indices.shape[1] != 1 or not isinstance(indices.shape[0], int):
        return False  # constants have numeric sizes
    rows = data.shape[0]
    return not isinstance(rows, int) or bool(rows == indices.shape[0])


def _folded(scatter: Callable[[Value, Value, str], Value], data: Value, updates: Value,
            reduction: str, include_self: bool) -> Value:  # fmt: skip
    """Scatter once, or twice if old values do not take part.

    The first of two scatters writes a neutral value; for a maximum or minimum, one of the updates.
    """
    if reduction != "none" and not include_self:
        op = _opset()
        first = updates
        if (neutral := ROWS[reduction].neutral) is not None:
            constant = op.Constant(value_float=float(neutral) or -0.0)  # 0 would change a sum of -0
            number = op.CastLike(constant, updates)
            first = op.Expand(number, op.Shape(updates))
        data = scatter(data, first, "none")
    return scatter(data, updates, reduction)


def _along(data: Value, indices: Value, axis: int, negative: bool) -> Value:
    """Return the indices into one axis in ONNX form."""
    op = _opset()
    return _checked(
        indices, negative, lambda: op.Gather(op.Shape(data), op.Constant(value_int=axis))
    )


def _tuples(name: str, data: Value, indices: Value, batch_dims: int, negative: bool) -> Value:
    """Return index tuples in ONNX form."""
    op = _opset()
    k = indices.shape[-1]
    if k == 0:
        raise torch_errors.no_onnx(name, "tuples of no index", "give them an index")
    ends = {"start": batch_dims, "end": batch_dims + k}
    return _checked(indices, negative, lambda: op.Shape(data, **ends))


def _checked(indices: Value, negative: bool, sizes: Callable[[], Value]) -> Value:
    """Return int64 indices. If negative indices are invalid, map them out of bounds for ONNX."""
    from onnx_ir import DataType

    op = _opset()
    huge = indices.dtype == DataType.UINT64  # from 2**63 on, they become negative
    if indices.dtype != DataType.INT64:
        indices = op.Cast(indices, to=DataType.INT64)
    if negative and not huge:
        return indices
    return op.Where(op.Less(indices, op.Constant(value_int=0)), sizes(), indices)


def _stretched(updates: Value, moved: Any, shape: Callable[[], Value]) -> Value:
    """Broadcast updates, because ONNX does not."""
    if updates.shape is not None and tuple(updates.shape) == tuple(moved):
        return updates
    op = _opset()
    return op.Expand(updates, shape())


def _refuse(name: str, bounds: str, reduction: str) -> None:
    _refuse_bounds(name, bounds)
    if reduction not in known_to_onnx(_OPSET):
        instead = "divide a sum by a count of the updates"
        raise torch_errors.no_onnx(name, f"`reduction` {reduction!r}", instead)


def _refuse_bounds(name: str, bounds: str) -> None:
    if bounds != "raise":
        instead = "make the indices valid before the call"
        raise torch_errors.no_onnx(name, f"`mode` {bounds!r}", instead)


def _opset() -> Any:
    from onnxscript import opset18

    return opset18
