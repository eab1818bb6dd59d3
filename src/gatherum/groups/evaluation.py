"""The evaluation of one function on an array and its grouping."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatherum._arguments.casting import has_nan
from gatherum._model import shape_limits
from gatherum._model.arrays import AnyArray
from gatherum._model.callers import renamed
from gatherum._model.dtypes import AnyDType, is_real_float

from . import errors
from .dtypes import not_a_number
from .functions import TRANSFORMS
from .grouping import Grouping
from .rows import FunctionRow, Method, TransformRow

# For unsupported wide dtypes, the widest supported dtype.
WIDEST = {"g": np.dtype(np.float64), "G": np.dtype(np.complex128)}


def run_function(
    row: FunctionRow, values: AnyArray, grouping: Grouping, ddof: int, fill_value: object
) -> AnyArray:
    """Run `reduce` on an array and its grouping, with a row, which may contain arguments."""
    xp, name = grouping.xp, row.full_name
    values_dtype = xp.plan_dtype(values)
    check_defined(grouping.op, row, name, values_dtype)
    dtype = row.result(values_dtype)
    _check_result(grouping, dtype)
    initial = initial_result(row, dtype, grouping, values, fill_value)
    if row.sorts and xp.in_chunks:
        if initial is None:
            raise errors.unknown_groups(grouping.op)
        call = partial(run_function, row, ddof=ddof, fill_value=fill_value)
        return xp.in_blocks(name, call, values, grouping, dtype)
    with np.errstate(all="ignore"), grouping.float_mode():  # signaling NaN also warns
        if row.method is Method.COMPOSITION:
            values = without_dropped_gradients(values, grouping)
        if row.skips_nan and has_nan(values_dtype):
            result = _skip_nan_in_one_call(row, values, grouping, initial, ddof)
            if result is not None:
                return result
            values, grouping = _without_nan(values, grouping)
        if initial is None:
            return _without_empty_groups(row, dtype, values, grouping, ddof)
        return row.compose(values, grouping, initial, ddof)


def _skip_nan_in_one_call(
    row: FunctionRow, values: AnyArray, grouping: Grouping, initial: AnyArray | None, ddof: int
) -> AnyArray | None:
    """Run a nan form in one call to the framework. Return None if it does not support this."""
    lacks_initial = initial is None and not row.locates
    is_supported = is_real_float(grouping.xp.plan_dtype(values))
    if row.skip_nan is None or lacks_initial or not is_supported:
        return None
    return row.skip_nan(values, grouping, initial, ddof)


def _without_nan(values: AnyArray, grouping: Grouping) -> tuple[AnyArray, Grouping]:
    """Return values, and their grouping without the values that are NaN."""
    xp = grouping.xp
    is_nan = xp.isnan(values)
    if not xp.holds_any(is_nan):
        return values, grouping
    if xp.has_gradients:
        values = xp.replaced(values, is_nan, 0)  # otherwise, gradients have 0 * NaN
    return values, grouping.without_values(is_nan)


def _without_empty_groups(
    row: FunctionRow, dtype: AnyDType, values: AnyArray, grouping: Grouping, ddof: int
) -> AnyArray:
    """Return the result of a function, or raise ValueError if a group is empty.

    The result of an empty group is a number that no group with values can have, which identifies
    the empty groups. If the number is only unlikely, its absence proves that no group is empty.
    """
    sentinel = row.sentinel(dtype)
    initial = grouping.xp.full((), sentinel or 0, grouping.xp.dtype(dtype), values)
    result = None if sentinel is None else row.compose(values, grouping, initial, ddof)
    nonempty = grouping.as_known_mask(grouping.nonempty() if result is None else result != initial)
    if result is not None and not row.locates and not nonempty.all():
        nonempty = grouping.as_known_mask(grouping.nonempty())
    if 0 not in grouping.shape:  # without results, the mask may still have items
        per_value, axis = grouping.has_entry_per_value, grouping.axis
        check_nonempty(grouping.op, row.full_name, dtype, nonempty, axis, per_value=per_value)
    return row.compose(values, grouping, initial, ddof) if result is None else result


def check_nonempty(
    op: str, func: str, dtype: object, nonempty: NDArray[Any], axis: int = 0, *, per_value: bool
) -> None:
    """Raise ValueError if a group is empty. `nonempty` masks the results whose group has values.

    If `per_value`, each value has a separate entry, so that a group may be empty for some results
    only, and the message contains the position of the first one.
    """
    if nonempty.all():
        return
    position = shape_limits.coordinates_of(int(nonempty.argmin()), nonempty.shape)
    raise errors.empty_group(op, func, dtype, position[axis], position if per_value else ())


def without_dropped_gradients(values: AnyArray, grouping: Grouping) -> AnyArray:
    """Return values whose gradient is 0 if they are dropped. Otherwise, it could become 0 * NaN."""
    xp = grouping.xp
    if not (xp.has_gradients and grouping.destinations.skips):
        return values
    return xp.where(grouping.group_numbers() < 0, xp.stop_gradient(values), values)


def _check_result(grouping: Grouping, dtype: AnyDType) -> None:
    if all(type(n) is int for n in grouping.shape):  # otherwise they are symbols of a graph
        shape_limits.check_result(grouping.op, grouping.shape, dtype)


def check_defined(op: str, row: FunctionRow | TransformRow, name: str, dtype: AnyDType) -> None:
    """Raise TypeError for a dtype for which a function is not defined."""
    if row.accepts(dtype):
        return
    needs = None
    if isinstance(dtype, np.dtype):
        supported = WIDEST.get(dtype.char, dtype.newbyteorder("="))
        if row.accepts(supported):
            needs = supported if dtype.char in WIDEST else "native byte order"
    raise errors.not_defined(op, name, dtype, needs)


def initial_result(
    row: FunctionRow, dtype: AnyDType, grouping: Grouping, values: AnyArray, fill_value: object
) -> AnyArray | None:
    """Return the result of an empty group as an item, or None if empty groups are an error."""
    if fill_value is None:
        if row.empty is None and not has_nan(dtype):
            return None
        fill_value = not_a_number(dtype) if row.empty is None else row.empty
        fill_value = bool(fill_value) if dtype.kind == "b" else fill_value
    try:
        return grouping.xp.item(grouping.op, dtype, fill_value, values)
    except (TypeError, ValueError) as error:
        op = grouping.op
        raise renamed(error, op, {"`data`": "the result"}, of=(op,)) or error from None


def run_transform(
    name: str, values: AnyArray, grouping: Grouping, row: TransformRow | None = None
) -> AnyArray:
    """Run `transform` on an array and its grouping, using the function's row or a given row."""
    row, xp = row or TRANSFORMS[name], grouping.xp
    values_dtype = xp.plan_dtype(values)
    check_defined(grouping.op, row, name, values_dtype)
    dtype = row.result(values_dtype)
    _check_result(grouping, dtype)
    if row.sorts and xp.in_chunks:
        return xp.in_blocks(
            name, partial(run_transform, name, row=row), values, grouping, dtype, True
        )
    with np.errstate(all="ignore"), grouping.float_mode():
        target = xp.dtype(dtype)
        values = without_dropped_gradients(values, grouping)
        if (result := grouping.fused_transform(name, values)) is not None:
            return result if result.dtype == target else xp.rounded(result, target)
        return row.compose(values, grouping, target)
