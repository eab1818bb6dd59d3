"""NumPy's functions under the names of `protocol.Arrays`. Arithmetic functions write to `spare`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from gatherum._arguments import conversion, indices, plain_values
from gatherum._arguments.casting import has_nan
from gatherum._derivatives import elementary
from gatherum._derivatives.array_ops import Destinations
from gatherum._model import errors
from gatherum._model.arrays import NumpyArray
from gatherum._model.call import ArraySpec, Attributes, Call, FoldRule
from gatherum._model.dtypes import AnyDType, DType, check_movable, load_dtype
from gatherum._model.errors import Shape
from gatherum._model.modes import MOVING
from gatherum._plans import extremes, index_errors, spreads
from gatherum._plans.plans import build_once
from gatherum._system import native

from . import integers, rounding
from .dates import is_date
from .errors import InvalidGroupError
from .protocol import DEFAULTS, Computed

if TYPE_CHECKING:
    from .grouping import Grouping

# For this number of values or more, allocating memory takes longer than converting the values.
_MANY_VALUES = 1 << 18

where = np.where
isnan = np.isnan
isinf = np.isinf
sqrt = np.sqrt
reshape = np.reshape
broadcast_to = np.broadcast_to
flip = np.flip
exp = elementary.exp
log = elementary.log
as_size = plain_values.as_size
add = np.add
subtract = np.subtract
multiply = np.multiply
divide = np.divide
equal = np.equal
stack = np.stack
float_mode = native.FloatMode
in_chunks, traces_pointers = DEFAULTS.in_chunks, DEFAULTS.traces_pointers
has_gradients, runs_nan_forms = False, True
fused_transform = DEFAULTS.fused_transform
in_blocks = DEFAULTS.in_blocks
sharing_calls = DEFAULTS.sharing_calls
traced_segments = DEFAULTS.traced_segments


def as_values(op: str, operand: str, value: object) -> NumpyArray:
    array = conversion.as_array(op, operand, value)
    check_movable(op, operand, array.dtype)
    return array


def as_groups(op: str, operand: str, value: object, values: NumpyArray) -> NumpyArray:
    return conversion.as_indices(op, value, operand)


def as_operand(op: str, operand: str, value: object, values: NumpyArray) -> NumpyArray:
    return as_values(op, operand, value)


def as_dtype(op: str, operand: str, value: Any) -> AnyDType:
    try:
        return load_dtype(value)
    except (TypeError, ValueError):
        raise errors.not_a_dtype(op, operand, value) from None


def plan_dtype(x: NumpyArray) -> DType:
    return x.dtype


def dtype(plan_dtype: AnyDType) -> DType:
    return np.dtype(plan_dtype)  # type: ignore[arg-type]  # the dtype of a NumPy array


def item(op: str, plan_dtype: AnyDType, value: object, like: NumpyArray) -> NumpyArray:
    is_nan = isinstance(value, (float, complex)) and value != value  # noqa: PLR0124  # complex, too
    if not (is_nan and has_nan(plan_dtype)) or is_date(plan_dtype):
        return conversion.fill_item(op, plan_dtype, value)
    nan = np.zeros((), dtype(plan_dtype))  # a copy of a longdouble could have nonzero padding
    nan[()] = value
    return nan


def to_numpy(x: NumpyArray) -> NumpyArray:
    return x


def size_of(op: str, operand: str, groups: NumpyArray) -> int:
    return max(int(groups.max()) + 1, 0) if groups.size else 0


def holds_any(mask: NumpyArray) -> bool:
    return bool(mask.any())


def astype(x: NumpyArray, target: DType) -> NumpyArray:
    if x.size < _MANY_VALUES or x.dtype == target:
        return x.astype(target, copy=False)
    # The output cache is faster than new memory: 27 ms instead of 60 for 10M float32 to float64.
    converted: NumpyArray = native.new_result(target, x.shape)
    np.copyto(converted, x, casting="unsafe")
    return converted


def full(shape: Shape, value: int, target: DType, like: NumpyArray) -> NumpyArray:
    item = np.array(value, target) if value else np.zeros((), target)  # also for bytes
    return np.broadcast_to(item, shape) if shape else item


def arange(start: int, stop: int, like: NumpyArray) -> NumpyArray:
    return np.arange(start, stop, dtype=np.int64)


def broadcast_copy(x: NumpyArray, shape: Shape) -> NumpyArray:
    return x if x.shape == shape else np.broadcast_to(x, shape).copy()


def nonzero(x: NumpyArray) -> NumpyArray:
    return np.not_equal(x, 0)


def product(x: NumpyArray, y: NumpyArray) -> NumpyArray:
    """Return x * y by the rules of the reduction "mul"."""
    factors = np.broadcast_to(y, x.shape)
    fold = Attributes("scatter_slices", reduction="mul")
    result: NumpyArray = scatter(fold, x[None], np.zeros(1, np.int64), factors[None])[0]
    return result


def complex_of(real: NumpyArray, imaginary: NumpyArray) -> NumpyArray:
    result = np.empty(real.shape, np.result_type(real, np.complex64))
    result.real, result.imag = real, imaginary
    return result


def replaced(x: NumpyArray, mask: NumpyArray, value: Any) -> NumpyArray:
    np.copyto(x, value, where=mask)
    return x


def rounded(x: NumpyArray, target: DType) -> NumpyArray:
    if target.name == "bfloat16" and x.dtype == np.float64:  # float32 is an intermediate dtype
        x = rounding.off_ties(sys.modules[__name__], x, target.name)
    for part in (x.real, x.imag) if x.dtype.kind == "c" else (x,):
        np.copyto(part, part.dtype.type(np.nan), where=np.not_equal(part, part))
    return astype(x, target)


def sorted_order(values: NumpyArray | None, cells: NumpyArray) -> NumpyArray:
    if values is None and (cells[1:] >= cells[:-1]).all():
        return np.arange(cells.size)
    if values is not None and values.dtype.kind == "V":
        values = values.astype(np.float32)  # from bfloat16 or an 8-bit float
    if values is not None and is_date(values.dtype):
        native_dates = values.astype(values.dtype.newbyteorder("="), copy=False)
        values = native_dates.view(np.int64) - 1  # NaT, the least integer, becomes the greatest one
    cell_count = int(cells.max()) + 1 if cells.size else 0
    if cell_count > 4 * cells.size + 1024:  # the counters would need more memory than the values
        cells = np.unique(cells, return_inverse=True)[1]
        cell_count = int(cells.max()) + 1
    order: NumpyArray = np.empty(cells.size, np.int64)
    keys = None if values is None else _contiguous(values)
    name = "none" if values is None else values.dtype.name
    if native.order(name, keys, _contiguous(cells), cell_count, order):
        return order
    assert values is not None  # complex numbers
    return np.lexsort((values, cells))


def _contiguous(x: NumpyArray) -> NumpyArray:
    """Return an aligned array in C order, which the core accepts: `x` itself if possible."""
    return np.require(x, requirements=("C", "A"))


def cumsum(x: NumpyArray) -> NumpyArray:
    return np.cumsum(x, dtype=x.dtype)


def as_float32(x: NumpyArray) -> NumpyArray:
    return x.astype(np.float32)


def bits(x: NumpyArray) -> NumpyArray:
    codes: DType = np.dtype(f"i{x.itemsize}")
    return x.view(codes)


def in_float64(
    with_float64: Computed,
    without_float64: Computed,
    values: NumpyArray,
    grouping: Grouping,
    counts: NumpyArray,
) -> NumpyArray:
    result: NumpyArray = with_float64(values, grouping, counts)
    return result


def stop_gradient(x: NumpyArray) -> NumpyArray:
    return x


def gather(
    attributes: Attributes, data: NumpyArray, indices: NumpyArray, fill_value: Any = 0
) -> NumpyArray:
    call = attributes.op, data, indices, None, *attributes.positional, fill_value, None
    result: NumpyArray = index_errors.run_named(attributes.caller, native.dispatch_call, *call)
    return result


def scatter(
    attributes: Attributes, data: NumpyArray, indices: NumpyArray, updates: NumpyArray
) -> NumpyArray:
    call = attributes.op, data, indices, updates, *attributes.positional, 0, None
    result: NumpyArray = index_errors.run_named(attributes.caller, native.dispatch_call, *call)
    return result


def cumulate(
    function: str,
    values: NumpyArray,
    groups: NumpyArray,
    group_count: int,
    factors: NumpyArray | None = None,
) -> NumpyArray:
    result: NumpyArray = native.new_result(values.dtype, values.shape)
    values, groups = _contiguous(values), _contiguous(groups)
    scales = None if factors is None else _contiguous(factors)
    call = function, values.dtype.name, values, scales, groups, group_count, result
    native.cumulate(*call)
    return result


def squares_and_counts(
    values: NumpyArray, destinations: Destinations, skips_nan: bool
) -> tuple[NumpyArray, NumpyArray] | None:
    specs = ArraySpec.of(destinations.indices), ArraySpec.of(values)
    operands = destinations.indices, values, skips_nan
    call = destinations.attributes, destinations.shape, specs, *operands
    return spreads.squares_and_counts(*call)


def count_skipping_nan(values: NumpyArray, destinations: Destinations) -> NumpyArray | None:
    specs = ArraySpec.of(destinations.indices), ArraySpec.of(values)
    call = destinations.attributes, destinations.shape, specs, destinations.indices, values
    return spreads.count_skipping_nan(*call)


def fold_skipping_nan(
    values: NumpyArray, reduction: str, destinations: Destinations, initial: NumpyArray
) -> NumpyArray | None:
    indices, table = destinations.indices, broadcast_to(initial, destinations.shape)
    attributes = destinations.attributes.with_fold(FoldRule.afresh(reduction))
    specs = ArraySpec.of(table), ArraySpec.of(indices), ArraySpec.of(values)
    plan = build_once(Call(attributes, *specs))
    result: NumpyArray = native.new_result(values.dtype, destinations.shape)
    return result if native.skip_nan(plan, table, indices, values, result) else None


def positions_of_extremes(
    values: NumpyArray,
    extreme: str,
    destinations: Destinations,
    initial: NumpyArray | int,
    skips_nan: bool,
) -> NumpyArray | None:
    attributes = destinations.attributes.with_fold(FoldRule.afresh(extreme))
    operands = full(destinations.shape, 0, values.dtype, values), destinations.indices, values
    return extremes.positions_of_extremes(attributes, *operands, int(initial), skips_nan)


def narrowed(groups: NumpyArray, count: int) -> NumpyArray:
    return groups.astype(np.min_scalar_type(-max(count, 1)))


def integers_of(op: str, operand: str, values: NumpyArray, target: Any) -> NumpyArray:
    result: NumpyArray = integers.integers_of(sys.modules[__name__], op, operand, values, target)
    return result


def resolve(attributes: Attributes, entries: NumpyArray, size: int) -> NumpyArray:
    positions, invalid = indices.resolve(entries, size, attributes.mode, attributes.negative)
    if invalid is None:
        return positions
    if attributes.mode == "raise" or (size == 0 and attributes.mode in MOVING):
        raise InvalidGroupError
    return np.where(invalid, -1, positions)
