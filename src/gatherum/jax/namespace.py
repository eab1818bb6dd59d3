"""Implement `_derivatives.array_ops.DerivativeOps` and `groups.protocol.Arrays` with JAX."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive

from gatherum._arguments import conversion, plain_values
from gatherum._derivatives.array_ops import Destinations
from gatherum._derivatives.cumulative import Cumulation
from gatherum._model.arrays import AnyArray
from gatherum._model.call import Attributes
from gatherum._model.dtypes import AnyDType
from gatherum._model.errors import edges as edge_errors
from gatherum.groups import integers, rounding
from gatherum.groups import namespace as of_numpy
from gatherum.groups.protocol import DEFAULTS, Computed

from . import dtypes, private
from . import errors as jax_errors
from .elementary import exp, log  # noqa: F401  # part of this namespace
from .operands import as_jax_dtype
from .primitives import Tracer, bind, vary_alike
from .products import product_of_others  # noqa: F401  # part of this namespace

if TYPE_CHECKING:
    from gatherum.groups.grouping import Grouping

Shape = tuple[int, ...]
# The primitive of cumulative functions; `cumulative` has its rules.
CUMULATE = Primitive("gatherum_cumulate")
_HALVES = (np.dtype(np.float16), np.dtype(jnp.bfloat16))

where = jnp.where
isnan = jnp.isnan
maximum = jnp.maximum
conj = jnp.conj
reshape = jnp.reshape
broadcast_to = jnp.broadcast_to
stack = jnp.stack
roll = jnp.roll
flip = jnp.flip
stop_gradient = jax.lax.stop_gradient
derivative_dtype = dtypes.derivative_dtype
has_sums = dtypes.folds


def astype(x: AnyArray, dtype: Any) -> AnyArray:
    return x.astype(dtype)


def unstack(x: AnyArray, axis: int) -> tuple[AnyArray, ...]:
    return tuple(jnp.unstack(x, axis=axis))


def argsort(x: AnyArray) -> AnyArray:
    return jnp.argsort(x, stable=True)


def arange(start: int, stop: int, like: AnyArray) -> AnyArray:
    return jnp.arange(start, stop, dtype=count_dtype(stop))


def full(shape: Shape, value: int, dtype: Any, like: AnyArray) -> AnyArray:
    return jnp.full(shape, value, dtype)


def sum_to(x: AnyArray, shape: Shape) -> AnyArray:
    if x.shape == shape:
        return x
    before = x.ndim - len(shape)
    along = [before + d for d, n in enumerate(shape) if n != x.shape[before + d]]
    return jnp.sum(x, axis=(*range(before), *along), dtype=x.dtype).reshape(shape)


def bool_dtype() -> Any:
    return np.dtype(np.bool_)


def count_dtype(largest: int) -> Any:
    return np.dtype(np.int32 if largest < 2**31 - 1 else np.int64)


def gather(
    attributes: Attributes, data: AnyArray, indices: AnyArray, fill_value: Any = 0
) -> AnyArray:
    fill = np.asarray(fill_value, data.dtype).tobytes() if fill_value else b""
    return bind(attributes._replace(fill=fill), data, indices)


def scatter(
    attributes: Attributes, data: AnyArray, indices: AnyArray, updates: AnyArray
) -> AnyArray:
    return bind(attributes, data, indices, updates)


def cumulate(
    function: str,
    values: AnyArray,
    groups: AnyArray,
    group_count: int,
    factors: AnyArray | None = None,
) -> AnyArray:
    operands = (values, groups) if factors is None else (values, groups, factors)
    return CUMULATE.bind(*vary_alike(operands), function=function, group_count=group_count)


def destinations_of(attributes: Attributes, shape: Shape, indices: AnyArray) -> Destinations:
    """Return the `Destinations` of a call on data of this shape."""
    axis = attributes.operator.resolve(tuple(shape), tuple(indices.shape), attributes.axis)
    resolved = attributes._replace(axis=axis, fill=b"")
    return Destinations(sys.modules[__name__], resolved, indices, tuple(shape))


def cumulation_of(groups: AnyArray, group_count: int) -> Cumulation:
    """Return the `Cumulation` of groups of flat values."""
    return Cumulation(sys.modules[__name__], groups, group_count)


# --- for functions over groups

isinf = jnp.isinf
as_size = plain_values.as_size
broadcast_copy = jnp.broadcast_to
dtype = dtypes.canonical


def as_values(op: str, operand: str, value: AnyArray) -> AnyArray:
    dtypes.plan_dtype(op, operand, value.dtype)
    # The barrier rounds a preceding product, which XLA would otherwise keep in higher precision.
    return jax.lax.optimization_barrier(value) if isinstance(value, Tracer) else value


def as_groups(op: str, operand: str, value: object, values: AnyArray) -> AnyArray:
    if isinstance(value, jax.Array):
        return value
    return as_jax_dtype(op, operand, conversion.as_indices(op, value, operand))


def as_operand(op: str, operand: str, value: object, values: AnyArray) -> AnyArray:
    if isinstance(value, jax.Array):
        return as_values(op, operand, value)
    array = conversion.as_array(op, operand, value)
    # Without jax_enable_x64, JAX narrows 64-bit numbers here as elsewhere.
    return as_values(op, operand, jnp.asarray(array, dtypes.canonical(array.dtype)))


def as_dtype(op: str, operand: str, value: object) -> AnyDType:
    target: AnyDType = dtype(of_numpy.as_dtype(op, operand, value))
    return target


def plan_dtype(x: AnyArray) -> AnyDType:
    result: AnyDType = np.dtype(x.dtype)
    return result


def item(op: str, plan_dtype: AnyDType, value: object, like: AnyArray) -> AnyArray:
    return jnp.asarray(conversion.fill_item(op, dtype(plan_dtype), value))


def to_numpy(x: AnyArray) -> np.ndarray[Any, Any] | None:
    return None if isinstance(x, Tracer) else np.asarray(x)


def size_of(op: str, operand: str, groups: AnyArray) -> int:
    if (known_groups := to_numpy(groups)) is None:
        raise jax_errors.traced_size(op, operand)
    return max(int(known_groups.max()) + 1, 0) if known_groups.size else 0


def holds_any(mask: AnyArray) -> bool:
    return True


def nonzero(x: AnyArray) -> AnyArray:
    if jnp.iscomplexobj(x):
        return nonzero(x.real) | nonzero(x.imag)
    return _comparable(x) != 0


def equal(x: AnyArray, y: AnyArray) -> AnyArray:
    return _comparable(x) == _comparable(y)


def _comparable(x: AnyArray) -> AnyArray:
    """Return integers that are equal where floats are: XLA would treat subnormal numbers as 0."""
    if not jnp.issubdtype(x.dtype, jnp.floating):
        return x
    bits = jax.lax.bitcast_convert_type(x, np.dtype(f"i{x.dtype.itemsize}"))
    return jnp.where(bits == np.iinfo(bits.dtype).min, 0, bits)  # -0 is 0


# XLA fuses x * y + z, and replaces a division by a broadcast y with a multiplication. Both change
# the rounding.


def add(x: AnyArray, y: AnyArray) -> AnyArray:
    if not (isinstance(x, Tracer) or isinstance(y, Tracer)):
        return x + y
    attributes = Attributes("scatter_slices", reduction="add")
    return bind(attributes, x[None], np.zeros(1, np.int32), y[None])[0]


def subtract(x: AnyArray, y: AnyArray, spare: AnyArray) -> AnyArray:
    return add(x, -y)


def product(x: AnyArray, y: AnyArray) -> AnyArray:
    if jnp.iscomplexobj(x):
        real = add(x.real * y.real, -(x.imag * y.imag))
        return jax.lax.complex(real, add(x.real * y.imag, x.imag * y.real))
    return x * y


def multiply(x: AnyArray, y: AnyArray, spare: AnyArray) -> AnyArray:
    return x * y


def divide(x: AnyArray, y: AnyArray, spare: AnyArray) -> AnyArray:
    return x / jax.lax.optimization_barrier(jnp.broadcast_to(y, x.shape))


complex_of = jax.lax.complex


def replaced(x: AnyArray, mask: AnyArray, value: Any) -> AnyArray:
    return jnp.where(mask, value, x)


def rounded(x: AnyArray, target: Any) -> AnyArray:
    if jnp.iscomplexobj(x):
        part = np.dtype(f"f{target.itemsize // 2}")
        return jax.lax.complex(rounded(x.real, part), rounded(x.imag, part))
    if x.dtype == np.float64 and target in _HALVES:  # XLA converts it through float32
        x = rounding.off_ties(sys.modules[__name__], x, target.name)
        return jnp.where(jnp.isnan(x), jnp.nan, as_float32(x)).astype(target)
    return jnp.where(jnp.isnan(x), jnp.nan, x).astype(target)


def sorted_order(values: AnyArray | None, cells: AnyArray) -> AnyArray:
    if values is None:
        return jnp.argsort(cells, stable=True)
    return jnp.lexsort((_ordered(values), cells))


def _ordered(x: AnyArray) -> AnyArray:
    """Return floats as integers in the same order, with NaN last: XLA treats subnormal numbers
    as 0.
    """
    if not jnp.issubdtype(x.dtype, jnp.floating):
        return x
    codes = _comparable(x)
    greatest = np.iinfo(codes.dtype).max
    return jnp.where(jnp.isnan(x), greatest, jnp.where(codes < 0, codes ^ greatest, codes))


def cumsum(x: AnyArray) -> AnyArray:
    return jnp.cumsum(x, dtype=x.dtype)


def as_float32(x: AnyArray) -> AnyArray:
    return jax.lax.optimization_barrier(x.astype(np.float32))  # XLA would remove the conversion


def bits(x: AnyArray) -> AnyArray:
    return jax.lax.bitcast_convert_type(x, np.dtype(f"i{x.dtype.itemsize}"))


def in_float64(
    with_float64: Computed,
    without_float64: Computed,
    values: Any,
    grouping: Grouping,
    counts: AnyArray,
) -> AnyArray:
    """Compute in float64 even without jax_enable_x64. Float64 values stay within it."""

    def grouping_of(indices: AnyArray) -> Grouping:
        return replace(grouping, destinations=grouping.destinations._replace(indices=indices))

    @private.in_wide_types
    def compute(values: Any, indices: AnyArray, counts: AnyArray) -> AnyArray:
        return with_float64(values, grouping_of(indices), counts)

    operands = values, grouping.destinations.indices, counts
    # If JAX narrows, integers with weights need the rule, too: `compute` has no derivative.
    enough = any if private.narrows() else all
    if not enough(jnp.issubdtype(leaf.dtype, jnp.inexact) for leaf in jax.tree.leaves(values)):
        return compute(*operands)
    differentiated = jax.custom_jvp(compute)

    def compute_tangent(primals: Any, tangents: Any) -> tuple[AnyArray, AnyArray]:
        _, indices, counts = primals

        def differentiable(values: Any) -> AnyArray:
            return without_float64(values, grouping_of(indices), counts)

        _, tangent = jax.jvp(differentiable, primals[:1], tangents[:1])
        value = differentiated(*primals)
        return value, tangent.astype(value.dtype)

    differentiated.defjvp(compute_tangent)
    return differentiated(*operands)


def sqrt(x: AnyArray) -> AnyArray:
    is_zero = x == 0
    return jnp.where(is_zero, 0, jnp.sqrt(jnp.where(is_zero, 1, x)))


def resolve(attributes: Attributes, entries: AnyArray, size: int) -> AnyArray:
    return gather(attributes.gathering(), arange(0, size, entries), entries, -1)


def integers_of(op: str, operand: str, values: AnyArray, target: Any) -> AnyArray:
    return integers.integers_of(sys.modules[__name__], op, operand, values, target)


in_chunks = DEFAULTS.in_chunks
fused_transform = DEFAULTS.fused_transform
squares_and_counts = DEFAULTS.squares_and_counts
count_skipping_nan = DEFAULTS.count_skipping_nan
fold_skipping_nan = DEFAULTS.fold_skipping_nan
positions_of_extremes = DEFAULTS.positions_of_extremes
narrowed = DEFAULTS.narrowed
has_gradients, runs_nan_forms = DEFAULTS.has_gradients, DEFAULTS.runs_nan_forms
in_blocks = DEFAULTS.in_blocks
sharing_calls = DEFAULTS.sharing_calls
float_mode = DEFAULTS.float_mode

# --- for pointers to edges

traces_pointers = True


def traced_segments(op: str, operand: str, indptr: AnyArray, edges: AnyArray) -> AnyArray | None:
    """Return the segment of each edge if `indptr` is traced, or None otherwise."""
    if not isinstance(indptr, Tracer):
        return None
    if indptr.shape == (0,):
        raise edge_errors.empty_pointer(op, operand)
    count = edges.shape[0]
    ordered = (indptr[0] == 0) & (indptr[-1] == count) & (indptr[1:] >= indptr[:-1]).all()
    edge = arange(0, count, edges)
    ends = indptr.astype(edge.dtype)  # exact if `ordered`
    segments = jnp.searchsorted(ends, edge, side="right") - 1
    # A wrong `indptr` becomes an invalid index, because a traced call can raise no other error.
    index = jnp.where(ordered, 0, -1)[None]
    zero = jnp.zeros(1, segments.dtype)
    return segments + gather(Attributes("gather", negative=False), zero, index)
