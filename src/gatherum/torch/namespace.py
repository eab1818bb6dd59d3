"""Implement `_derivatives.array_ops.DerivativeOps` and `groups.protocol.Arrays` with torch."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import Tensor

from gatherum._derivatives import derivatives
from gatherum._derivatives.array_ops import Destinations
from gatherum._model.call import Attributes
from gatherum._plans import index_errors
from gatherum._system import native
from gatherum.groups import integers, rounding
from gatherum.groups import namespace as of_numpy
from gatherum.groups.dtypes import working_dtype
from gatherum.groups.protocol import DEFAULTS, Computed
from gatherum.torch.library.ops import overload
from gatherum.torch.library.symbolic_sizes import surely_holds

from . import checks, dtypes, group_operands, plain_folds, private, segment_numbers, shared_results
from .group_operands import comparable
from .library import symbolic_sizes
from .plain_folds import needs_dispatcher

if TYPE_CHECKING:
    from gatherum.groups.grouping import Grouping

Shape = tuple[int, ...]
# For fewer values, torch's sorts take less time than the conversion to arrays.
_MANY_VALUES = 1 << 12

where = torch.where
conj = torch.conj
reshape = torch.reshape
moveaxis = torch.movedim
broadcast_to = Tensor.expand
astype = Tensor.to
stop_gradient = Tensor.detach
stack = torch.stack
unstack = torch.unbind
roll = torch.roll
product_of_others = derivatives.product_of_others
derivative_dtype = dtypes.derivative_dtype
has_sums = dtypes.has_sums


def isnan(x: Tensor) -> Tensor:
    return torch.isnan(x.float() if x.dtype.itemsize == 1 and x.is_floating_point() else x)


def flip(x: Tensor, axes: Shape) -> Tensor:
    if x.dtype in dtypes.WIDE_UNSIGNED or (x.dtype.itemsize == 1 and x.is_floating_point()):
        return x.view(dtypes.signed(x.dtype)).flip(axes).view(x.dtype)  # torch flips no others
    return x.flip(axes)


def maximum(x: Tensor, scalar: int) -> Tensor:
    return x.clamp(min=scalar)


def argsort(x: Tensor) -> Tensor:
    return torch.argsort(x, stable=True)


def arange(start: int, stop: int, like: Tensor) -> Tensor:
    return torch.arange(start, stop, device=like.device)


def full(shape: Shape, value: int, dtype: torch.dtype, like: Tensor) -> Tensor:
    item = torch.full((), value, dtype=dtype, device=like.device)
    return item.expand(shape)  # one number in memory, broadcast by stride 0


def sum_to(x: Tensor, shape: Shape) -> Tensor:
    """Do the same as `Tensor.sum_to_size`, even for sizes that are not known yet.

    Sizes that may be equal are treated as equal.
    """
    leading_count = x.dim() - len(shape)
    over = list(range(leading_count))
    for dimension, (current_size, size) in enumerate(
        zip(x.shape[leading_count:], shape, strict=True), leading_count
    ):
        if surely_holds(size == 1) and not surely_holds(current_size == 1):
            over.append(dimension)
    if over:
        x = x.sum(over, keepdim=True)
    if leading_count:
        x = x.view(x.shape[leading_count:])
    symbols = any(isinstance(size, torch.SymInt) for size in shape)
    return x.expand(shape) if symbols else x


def bool_dtype() -> torch.dtype:
    return torch.bool


def count_dtype(largest: int) -> torch.dtype:
    """Return the dtype for counts up to `largest`: narrow, or int64 if `largest` is unknown."""
    if torch.compiler.is_compiling() or isinstance(largest, torch.SymInt):
        return torch.int64
    return torch.int32 if largest < 2**31 - 1 else torch.int64


def gather(attributes: Attributes, data: Tensor, indices: Tensor, fill_value: Any = 0) -> Tensor:
    shares = shared_results.current(data)
    if shares is not None and (
        known := shared_results.without_check(shares, attributes, data, indices)
    ):
        attributes, fill_value = known, 0
    if not attributes.fills:
        fill_value = 0  # the core replays such calls
    op, caller = attributes.op, attributes.caller
    if needs_dispatcher(data):
        options = attributes.axis, attributes.mode, attributes.negative
        return cast(Tensor, overload(op)(data, indices, *options, fill_value, caller))
    call = op, data, indices, None, *attributes.positional, fill_value, None
    return cast(Tensor, index_errors.run_named(caller, native.dispatch_call, *call))


def scatter(attributes: Attributes, data: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    shares = shared_results.current(data)
    if shares is not None:
        attributes = shared_results.without_check(shares, attributes, data, indices) or attributes
    op, options = attributes.op, attributes.positional
    is_dispatched, result = needs_dispatcher(data, updates), None
    shares_order = shares is not None and shared_results.shares_order(indices)
    if shares_order and not is_dispatched:
        result = _scatter_on_cuda(attributes, data, indices, updates)
    if result is None and (is_dispatched or shares_order):
        result = overload(op)(data, indices, updates, *options, attributes.caller)
    elif result is None:
        call = op, data, indices, updates, *options, 0, None
        result = index_errors.run_named(attributes.caller, native.dispatch_call, *call)
    if shares is not None and attributes.mode == "raise":
        shares.results[shared_results.validity(attributes, data, indices)] = (indices,)
    return cast(Tensor, result)


def _scatter_on_cuda(
    attributes: Attributes, data: Tensor, indices: Tensor, updates: Tensor
) -> Tensor | None:
    """Return the result of a scatter that shares its order, or None if it is dispatched."""
    from gatherum.torch import cuda

    result = cuda.replayed(attributes, data, indices, updates)
    if result is not None or plain_folds.is_dispatched(data, indices, updates):
        return result
    return cuda.run(attributes, data, indices, updates, 0, None)


# The op that computes cumulative functions, in functions/cumulative.py.
CUMULATE = "cumulate"


def cumulate(
    function: str, values: Tensor, groups: Tensor, group_count: int, factors: Tensor | None = None
) -> Tensor:
    return cast(Tensor, overload(CUMULATE)(values, groups, group_count, factors, function))


# --- for functions over groups


def float_mode() -> AbstractContextManager[None]:
    return nullcontext() if torch.compiler.is_compiling() else native.FloatMode()


as_values = group_operands.as_values
as_groups = group_operands.as_groups
as_operand = group_operands.as_operand
as_dtype = group_operands.as_dtype
plan_dtype = group_operands.plan_dtype
dtype = group_operands.dtype
item = group_operands.item
to_numpy = group_operands.to_numpy
size_of = group_operands.size_of
sharing_calls = shared_results.sharing_calls
squares_and_counts = plain_folds.squares_and_counts
count_skipping_nan = DEFAULTS.count_skipping_nan
fold_skipping_nan = plain_folds.fold_skipping_nan
positions_of_extremes = DEFAULTS.positions_of_extremes
narrowed = DEFAULTS.narrowed
has_gradients, runs_nan_forms = DEFAULTS.has_gradients, DEFAULTS.runs_nan_forms
in_chunks = DEFAULTS.in_chunks
in_blocks = DEFAULTS.in_blocks
isinf = torch.isinf
add = torch.add
as_size = symbolic_sizes.as_size


def holds_any(mask: Tensor) -> bool:
    return True


def broadcast_copy(x: Tensor, shape: Shape) -> Tensor:
    return x.expand(shape).contiguous()


def nonzero(x: Tensor) -> Tensor:
    return comparable(x) != 0


def equal(x: Tensor, y: Tensor) -> Tensor:
    return comparable(x) == comparable(y)


def product(x: Tensor, y: Tensor) -> Tensor:
    if x.is_complex():
        real = x.real * y.real - x.imag * y.imag
        return torch.complex(real, x.real * y.imag + x.imag * y.real)
    return x * y


def subtract(x: Tensor, y: Tensor, spare: Tensor) -> Tensor:
    if x.is_complex():  # torch multiplies y by 1, and a NaN part makes the other part NaN
        return torch.complex(x.real - y.real, x.imag - y.imag)
    return x - y


def multiply(x: Tensor, y: Tensor, spare: Tensor) -> Tensor:
    return x * y


def divide(x: Tensor, y: Tensor, spare: Tensor) -> Tensor:
    return x / y


complex_of = torch.complex


def replaced(x: Tensor, mask: Tensor, value: Any) -> Tensor:
    return torch.where(mask, value, x)


def rounded(x: Tensor, target: torch.dtype) -> Tensor:
    if x.is_complex():
        return torch.complex(rounded(x.real, target.to_real()), rounded(x.imag, target.to_real()))
    if x.dtype is torch.float64 and target in (torch.float16, torch.bfloat16):
        x = rounding.off_ties(sys.modules[__name__], x, dtypes.plan_dtype("", "", target).name)
    x = x.to(target)  # torch makes various NaNs in bfloat16
    if plain_folds.is_dispatched(x):  # nan_to_num has other derivatives at infinity
        return torch.where(torch.isnan(x), torch.nan, x)
    return torch.nan_to_num(x, torch.nan, torch.inf, -torch.inf)


def sorted_order(values: Tensor | None, cells: Tensor) -> Tensor:
    operands = (cells,) if values is None else (values, cells)
    on_arrays = cells.device.type == "cpu" and not plain_folds.is_dispatched(*operands)
    if on_arrays and cells.numel() >= _MANY_VALUES:
        return _order_of_arrays(values, cells)
    if values is None:
        return torch.argsort(cells, stable=True)
    keys = comparable(values)
    if values.dtype is torch.uint64:
        keys = keys ^ torch.iinfo(torch.int64).min  # the order of signed integers
    order = torch.argsort(keys, stable=True)
    return order[torch.argsort(cells[order], stable=True)]


def _order_of_arrays(values: Tensor | None, cells: Tensor) -> Tensor:
    """Return the order of tensors in host memory."""
    if values is not None and not dtypes.is_of_numpy(values.dtype):
        values = values.float()  # bfloat16 and 8-bit floats
    keys = None if values is None else values.resolve_neg().numpy()
    return torch.from_numpy(of_numpy.sorted_order(keys, cells.numpy()))


def cumsum(x: Tensor) -> Tensor:
    return torch.cumsum(x, 0, dtype=x.dtype)


def as_float32(x: Tensor) -> Tensor:
    return x.to(torch.float32)


def bits(x: Tensor) -> Tensor:
    return x.view(torch.int32 if x.dtype is torch.float32 else torch.int64)


def in_float64(
    with_float64: Computed,
    without_float64: Computed,
    values: Tensor,
    grouping: Grouping,
    counts: Tensor,
) -> Tensor:
    return cast(Tensor, with_float64(values, grouping, counts))


def sqrt(x: Tensor) -> Tensor:
    return cast(Tensor, overload("sqrt")(x))


def exp(x: Tensor) -> Tensor:
    return _map_values("exp", x)


def log(x: Tensor) -> Tensor:
    return _map_values("log", x)


def _map_values(name: str, x: Tensor) -> Tensor:
    if _runs_on_device(x):
        from gatherum.torch import cuda

        return cuda.map_values(name, x.contiguous())
    return cast(Tensor, overload(name)(x))


def _runs_on_device(*operands: Tensor) -> bool:
    """Return True if the kernels for CUDA can be called without torch's dispatcher."""
    return shared_results.on_device(operands[0]) and not plain_folds.is_dispatched(*operands)


# The op that computes both in one call, in torch_scatter/softmax.py.
SOFTMAX = "group_softmax"


def fused_transform(name: str, values: Tensor, destinations: Destinations) -> Tensor | None:
    """Return softmax or log_softmax of values. Return None if the caller must run the steps.

    Transforms need the steps. On a device, the op would run the same steps.
    """
    if private.transforms_active() or name not in ("softmax", "log_softmax"):
        return None
    if _runs_on_device(values, destinations.indices):
        return None
    values = astype(values, dtype(working_dtype(plan_dtype(values))))
    attributes = destinations.attributes
    options = attributes.op, attributes.axis, attributes.mode, attributes.negative
    size = destinations.shape[attributes.axis]
    result: Tensor = overload(SOFTMAX)(
        values, destinations.indices, name, size, *options, attributes.caller
    )
    return result


def integers_of(op: str, operand: str, values: Tensor, target: Any) -> Tensor:
    return integers.integers_of(sys.modules[__name__], op, operand, values, target)


def resolve(attributes: Attributes, entries: Tensor, size: int) -> Tensor:
    positions = arange(0, size, entries)
    return gather(attributes.gathering(), positions, entries, -1)


# --- for pointers to edges

traces_pointers = True


def traced_segments(op: str, operand: str, indptr: Tensor, edges: Tensor) -> Tensor | None:
    """Return the segment of each edge if a graph is being traced, or None otherwise."""
    if not (torch.compiler.is_compiling() or symbolic_sizes.is_scripted()):
        checks.check_values(op, operand, indptr, "give `scatter_indices`")
        return None
    xp = sys.modules[__name__]
    return segment_numbers.segments_of_edges(xp, op, comparable(indptr), edges.shape[0])
