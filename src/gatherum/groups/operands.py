"""The operands of a call: the values, their grouping, and their weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gatherum._arguments import conversion, plain_values, weak_values
from gatherum._arguments.casting import has_nan
from gatherum._arguments.xarray_labels import check_groups, has_labels, plain_array
from gatherum._frameworks import registry
from gatherum._model import shape_limits
from gatherum._model.arrays import AnyArray
from gatherum._model.dtypes import AnyDType, is_index
from gatherum._model.errors import Shape, not_an_integer
from gatherum._model.modes import MODES

from . import errors, namespace, options
from .evaluation import check_defined
from .functions import FUNCTIONS, REDUCES
from .grouping import Grouping
from .protocol import Arrays


def values_and_grouping(
    op: str,
    values: object,
    groups: object,
    size: object,
    axis: object,
    mode: object,
    negative: object,
    weights: object = None,
) -> tuple[AnyArray, Grouping]:
    """Check the arguments. Return the values as an array, and their grouping."""
    axis_number = plain_values.as_integer(op, "axis", axis)
    mode_name = plain_values.as_choice(op, "mode", mode, MODES)
    from_end = plain_values.as_boolean(op, "negative", negative)
    if isinstance(size, str) and (function_name := options.ALIASES.get(size, size)) in REDUCES:
        raise not_an_integer(op, "size", size, f"func={function_name!r}")
    labelled = values if has_labels(values) else None
    original_groups = groups
    if labelled is not None:
        values, groups = plain_array(values), plain_array(groups)
    operands = {"values": values, "groups": groups, "weights": plain_array(weights)}
    xp = registry.adapter_member(op, operands) or namespace
    group_count = None if size is None else xp.as_size(op, "size", size)
    array = xp.as_values(op, "values", values)
    entries = xp.as_groups(op, "groups", groups, array)
    if not is_index(xp.plan_dtype(entries)):
        raise errors.not_groups(op, xp.plan_dtype(entries))
    shape_of_values = tuple(array.shape)
    axis_number = shape_limits.resolve_axis(op, shape_of_values, axis_number, "values")
    if tuple(entries.shape) not in (
        shape_of_values,
        shape_of_values[axis_number : axis_number + 1],
    ):
        raise errors.other_groups(
            op, shape_of_values[axis_number], shape_of_values, tuple(entries.shape)
        )
    if labelled is not None:
        check_groups(op, "groups", labelled, axis_number, original_groups)
    if group_count is None:
        group_count = xp.size_of(op, "groups", entries)
        options.check_dense(op, group_count, tuple(entries.shape))
    shape = (*shape_of_values[:axis_number], group_count, *shape_of_values[axis_number + 1 :])
    return array, Grouping.of(op, "groups", entries, shape, axis_number, mode_name, from_end, xp)


def converted(
    names: Sequence[str],
    array: AnyArray,
    grouping: Grouping,
    values: object,
    weights: object,
    dtype: object,
) -> tuple[AnyArray, AnyArray | None]:
    """Convert values and weights to `dtype`, or else to their common dtype."""
    xp, scale = grouping.xp, None
    target = xp.plan_dtype(array) if dtype is None else xp.as_dtype(grouping.op, "dtype", dtype)
    if weights is not None:
        if has_labels(values):
            check_groups(grouping.op, "weights", values, grouping.axis, weights)
        weights_array = plain_array(weights)
        scale = _as_weights(grouping.op, xp, weights_array, array, grouping.axis, target)
        target = target if dtype is not None else _common_dtype(target, xp.plan_dtype(scale))
    if target == xp.plan_dtype(array) and scale is None:
        return array, None
    for name in names:
        check_defined(grouping.op, FUNCTIONS[name], name, target)
    with np.errstate(all="ignore"), grouping.float_mode():
        array = _as_dtype(grouping, "values", array, target)
        real = np.dtype(f"f{target.itemsize // 2}") if target.kind == "c" else target
        return array, None if scale is None else _as_dtype(grouping, "weights", scale, real)


def _as_dtype(grouping: Grouping, operand: str, array: AnyArray, target: AnyDType) -> AnyArray:
    """Convert values as `astype` does, but check that numbers are in the range of integers."""
    xp, source = grouping.xp, grouping.xp.plan_dtype(array)
    if target.kind not in "iu" or source.kind in "iub":
        return xp.astype(array, xp.dtype(target))
    return xp.integers_of(grouping.op, operand, array, target)


def _as_weights(
    op: str, xp: Arrays, value: object, values: AnyArray, along: int, dtype: AnyDType
) -> AnyArray:
    """Return weights as an array whose rank lets it broadcast to the values.

    Lists adopt the dtype of floating values, which is `dtype`.
    """
    if weak_values.is_weak(value) and has_nan(dtype):
        real = np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype
        is_float = isinstance(real, np.dtype) and real.kind == "f"
        value = conversion.as_updates(op, value, real if is_float else np.dtype("f4"), "weights")
    weights = xp.as_operand(op, "weights", value, values)
    shape_of_values: Shape = tuple(values.shape)
    shape = tuple(weights.shape)
    if shape not in (shape_of_values, shape_of_values[along : along + 1]):
        raise errors.other_groups(op, shape_of_values[along], shape_of_values, shape, "weights")
    if xp.plan_dtype(weights).kind == "c":
        raise errors.not_real(op, "weights", xp.plan_dtype(weights))
    trailing = (1,) * (len(shape_of_values) - along - 1)
    return (
        xp.reshape(weights, (*shape, *trailing)) if len(shape) < len(shape_of_values) else weights
    )


def _common_dtype(values: AnyDType, weights: AnyDType) -> AnyDType:
    """Return the dtype of products by NumPy's promotion rules; bfloat16 is promoted like float16.

    float16 with bfloat16 gives float32.
    """
    if values == weights:
        return values
    half = np.dtype(np.float16)
    values_dtype, weights_dtype = (
        half if dtype.name == "bfloat16" else dtype for dtype in (values, weights)
    )
    if not (isinstance(values_dtype, np.dtype) and isinstance(weights_dtype, np.dtype)):
        return values  # not defined for these dtypes
    try:
        result: np.dtype[Any] = np.promote_types(values_dtype, weights_dtype)
    except TypeError:
        return values
    if result != half:
        return result
    narrow = [dtype for dtype in (values, weights) if dtype.name == "bfloat16"]
    if narrow and half in (values, weights):
        return np.dtype(np.float32)
    return narrow[0] if narrow else result
