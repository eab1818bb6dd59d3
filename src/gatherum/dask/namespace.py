"""Implement `gatherum.groups.protocol.Arrays` with Dask.

The operators are the functions of `gatherum.dask`. Elementwise functions run the NumPy functions
on each chunk, so results are bit-for-bit equal.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import dask.array as da
import numpy as np

from gatherum._arguments import conversion, plain_values
from gatherum._model.arrays import AnyArray
from gatherum._model.call import Attributes
from gatherum._model.dtypes import AnyDType, check_movable
from gatherum.groups import integers
from gatherum.groups import namespace as of_chunks
from gatherum.groups.grouping import Grouping
from gatherum.groups.protocol import DEFAULTS, Computed

from . import errors as dask_errors
from .lazy_calls import lazy_call
from .operands import is_dask, spec

where = da.where
reshape = da.reshape
flip = da.flip
stack = da.stack
as_size = plain_values.as_size
dtype = of_chunks.dtype
as_dtype = of_chunks.as_dtype
full = of_chunks.full
broadcast_copy = da.broadcast_to


def _quiet(function: Callable[..., Any], *chunks: Any) -> Any:
    with np.errstate(all="ignore"), of_chunks.float_mode():
        return function(*chunks)


def _each(function: Callable[..., Any], *arrays: AnyArray, dtype: Any = None) -> AnyArray:
    """Run an elementwise function on the chunks of arrays."""
    result_dtype = arrays[0].dtype if dtype is None else dtype
    return da.core.elemwise(partial(_quiet, function), *arrays, dtype=result_dtype)


isnan = partial(_each, np.isnan, dtype=np.bool_)
isinf = partial(_each, np.isinf, dtype=np.bool_)
nonzero = partial(_each, of_chunks.nonzero, dtype=np.bool_)
equal = partial(_each, of_chunks.equal, dtype=np.bool_)
add = partial(_each, np.add)
sqrt = partial(_each, of_chunks.sqrt)
exp = partial(_each, of_chunks.exp)
log = partial(_each, of_chunks.log)


product = partial(_each, of_chunks.product)


def broadcast_to(x: AnyArray, shape: tuple[int, ...]) -> AnyArray:
    if x.ndim:
        return da.broadcast_to(x, shape)
    chunks = da.core.normalize_chunks("auto", shape, dtype=x.dtype)
    return da.broadcast_to(x, shape, chunks)


def _without_empty_chunks(x: AnyArray) -> AnyArray:
    """Remove empty chunks, because Dask reverses and broadcasts them wrongly."""
    chunks = tuple(tuple(n for n in along if n) or (0,) for along in x.chunks)
    return x if chunks == x.chunks else x.rechunk(chunks)


def as_values(op: str, operand: str, value: AnyArray) -> AnyArray:
    spec(op, operand, value)
    check_movable(op, operand, value.dtype)
    return _without_empty_chunks(value)


def as_groups(op: str, operand: str, value: object, values: AnyArray) -> AnyArray:
    if is_dask(value):
        spec(op, operand, value)
        return _without_empty_chunks(value)
    entries = conversion.as_indices(op, value, operand)
    return da.from_array(entries, chunks=_chunks_like(entries, values))


def _chunks_like(array: np.ndarray[Any, Any], values: AnyArray) -> Any:
    """Return the chunks of values for an array that has their shape, or one of their dimensions."""
    along = [d for d, n in enumerate(values.shape) if array.shape == (n,)]
    if array.ndim == 1 and along:
        return (values.chunks[along[0]],)
    return values.chunks if array.shape == values.shape else "auto"


def as_operand(op: str, operand: str, value: object, values: AnyArray) -> AnyArray:
    if is_dask(value):
        return as_values(op, operand, value)
    array = of_chunks.as_values(op, operand, value)
    return da.from_array(array, chunks=_chunks_like(array, values))


def plan_dtype(x: AnyArray) -> AnyDType:
    result: AnyDType = x.dtype
    return result


def item(op: str, plan_dtype: AnyDType, value: object, like: AnyArray) -> AnyArray:
    return of_chunks.item(op, plan_dtype, value, np.zeros((), of_chunks.dtype(plan_dtype)))


def to_numpy(x: AnyArray) -> np.ndarray[Any, Any] | None:
    return None if is_dask(x) else x


def size_of(op: str, operand: str, groups: AnyArray) -> int:
    raise dask_errors.uncomputed_size(op, operand)


def holds_any(mask: AnyArray) -> bool:
    return True


def _converted(target: Any, x: Any) -> Any:
    return of_chunks.astype(x, target)


def astype(x: AnyArray, target: Any) -> AnyArray:
    return x if x.dtype == target else _each(partial(_converted, target), x, dtype=target)


def integers_of(op: str, operand: str, x: AnyArray, target: Any) -> AnyArray:
    convert = partial(integers.integers_of, of_chunks, op, operand, target=target, in_chunk=True)
    return _each(convert, x, dtype=of_chunks.dtype(target))


def arange(start: int, stop: int, like: AnyArray) -> AnyArray:
    return da.arange(start, stop, dtype=np.int64)


def subtract(x: AnyArray, y: AnyArray, spare: AnyArray) -> AnyArray:
    return _each(np.subtract, x, y)


def multiply(x: AnyArray, y: AnyArray, spare: AnyArray) -> AnyArray:
    return _each(np.multiply, x, y)


def divide(x: AnyArray, y: AnyArray, spare: AnyArray) -> AnyArray:
    return _each(np.divide, x, y)


def complex_of(real: AnyArray, imaginary: AnyArray) -> AnyArray:
    dtype = np.result_type(real.dtype, np.complex64)
    return _each(of_chunks.complex_of, real, imaginary, dtype=dtype)


def _replaced(x: Any, mask: Any, value: Any) -> Any:
    return of_chunks.replaced(np.array(x), mask, value)  # other tasks may use the chunk


def replaced(x: AnyArray, mask: AnyArray, value: Any) -> AnyArray:
    return _each(_replaced, x, mask, np.asarray(value).astype(x.dtype))


def _rounded(target: Any, x: Any) -> Any:
    return of_chunks.rounded(np.array(x), target)


def rounded(x: AnyArray, target: Any) -> AnyArray:
    return _each(partial(_rounded, target), x, dtype=target)


as_float32 = partial(_each, of_chunks.as_float32, dtype=np.float32)


def bits(x: AnyArray) -> AnyArray:
    return _each(of_chunks.bits, x, dtype=np.dtype(f"i{x.dtype.itemsize}"))


in_chunks, traces_pointers = True, DEFAULTS.traces_pointers
fused_transform = DEFAULTS.fused_transform
squares_and_counts = DEFAULTS.squares_and_counts
count_skipping_nan = DEFAULTS.count_skipping_nan
fold_skipping_nan = DEFAULTS.fold_skipping_nan
positions_of_extremes = DEFAULTS.positions_of_extremes
narrowed = DEFAULTS.narrowed
has_gradients, runs_nan_forms = False, DEFAULTS.runs_nan_forms
sharing_calls = DEFAULTS.sharing_calls
float_mode = DEFAULTS.float_mode
traced_segments = DEFAULTS.traced_segments


def in_blocks(
    name: str,
    run: Callable[..., Any],
    values: AnyArray,
    grouping: Grouping,
    dtype: Any,
    like: bool = False,
) -> AnyArray:
    """Run a function on the blocks of values, each with all positions along the axis. The result
    has one item for each group, or, with `like`, for each value.
    """
    axis = grouping.axis
    if len(values.chunks[axis]) > 1:
        raise dask_errors.needs_whole_axis(grouping.op, name, axis)
    groups = grouping.destinations.indices
    all_dims = tuple(range(values.ndim))
    of_groups = all_dims if groups.ndim > 1 else (axis,)
    groups = groups.rechunk(tuple(values.chunks[d] for d in of_groups))
    block = partial(
        _in_block, run, grouping.op, grouping.shape[axis], axis, grouping.destinations.attributes
    )
    return da.blockwise(
        block, all_dims, values, all_dims, groups, of_groups, dtype=dtype,
        adjust_chunks=None if like else {axis: (grouping.shape[axis],)},
        meta=np.empty((0,) * values.ndim, dtype),
    )  # fmt: skip


def _in_block(
    run: Callable[..., Any], op: str, size: int, axis: int, attributes: Attributes,
    values: Any, groups: Any,
) -> Any:  # fmt: skip
    shape = (*values.shape[:axis], size, *values.shape[axis + 1 :])
    own = attributes.mode, attributes.negative
    return run(values, Grouping.of(op, "groups", groups, shape, axis, *own))


def in_float64(
    with_float64: Computed,
    without_float64: Computed,
    values: AnyArray,
    grouping: Grouping,
    counts: AnyArray,
) -> AnyArray:
    return with_float64(values, grouping, counts)


def stop_gradient(x: AnyArray) -> AnyArray:
    return x


def gather(
    attributes: Attributes, data: AnyArray, indices: AnyArray, fill_value: Any = 0
) -> AnyArray:
    return lazy_call(attributes, data, indices, None, fill_value)


def scatter(
    attributes: Attributes, data: AnyArray, indices: AnyArray, updates: AnyArray
) -> AnyArray:
    return lazy_call(attributes, data, indices, updates, 0)


def resolve(attributes: Attributes, entries: AnyArray, size: int) -> AnyArray:
    positions = da.from_array(np.arange(size), chunks=-1)
    return lazy_call(attributes.gathering(), positions, entries, None, -1)
