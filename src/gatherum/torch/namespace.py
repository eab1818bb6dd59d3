"""Implement `_derivatives.array_ops.DerivativeOps` and `groups.protocol.Arrays` with torch."""

from __future__ import annotations

import sys
from collections.abc import Hashable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from torch import Tensor

from gatherum._arguments import conversion
from gatherum._derivatives import derivatives
from gatherum._derivatives.array_ops import Destinations
from gatherum._model import errors
from gatherum._model.call import ArraySpec, Attributes, FoldRule
from gatherum._model.dtypes import AnyDType
from gatherum._plans import index_errors, sharing, skips, spreads
from gatherum._plans.sharing import Shared
from gatherum._system import native
from gatherum._system.native import View
from gatherum.groups import namespace as of_numpy
from gatherum.groups import rounding
from gatherum.groups.dtypes import working_dtype
from gatherum.groups.protocol import Computed
from gatherum.torch.library.ops import overload
from gatherum.torch.library.symbolic_sizes import surely_holds

from . import addresses, checks, dtypes, operands, private, segment_numbers
from .library import symbolic_sizes

if TYPE_CHECKING:
    from gatherum.groups.grouping import Grouping

Shape = tuple[int, ...]

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
wide = dtypes.wide
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
    """Do the same as `Tensor.sum_to_size`, also for sizes that are not known yet.

    Sizes that may be equal are treated as equal.
    """
    first = x.dim() - len(shape)
    over = list(range(first))
    for d, (n, wanted) in enumerate(zip(x.shape[first:], shape, strict=True), first):
        if surely_holds(wanted == 1) and not surely_holds(n == 1):
            over.append(d)
    if over:
        x = x.sum(over, keepdim=True)
    if first:
        x = x.view(x.shape[first:])
    symbols = any(isinstance(wanted, torch.SymInt) for wanted in shape)
    return x.expand(shape) if symbols else x


def truth() -> torch.dtype:
    return torch.bool


def counting(most: int) -> torch.dtype:
    """Return the dtype for counts up to `most`: narrow if `most` is known, else int64."""
    if torch.compiler.is_compiling() or isinstance(most, torch.SymInt):
        return torch.int64
    return torch.int32 if most < 2**31 - 1 else torch.int64


def gather(attributes: Attributes, data: Tensor, indices: Tensor, fill_value: Any = 0) -> Tensor:
    shares = shared(data)
    if shares is not None and (known := _valid(shares, attributes, data, indices)):
        attributes, fill_value = known, 0
    op, caller = attributes.op, attributes.caller
    if _is_recorded(data):
        options = attributes.axis, attributes.mode, attributes.negative
        return cast(Tensor, overload(op)(data, indices, *options, fill_value, caller))
    call = op, data, indices, None, *attributes.positional, fill_value, None
    return cast(Tensor, index_errors.run_for(caller, native.dispatch_call, *call))


def scatter(attributes: Attributes, data: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    shares = shared(data)
    if shares is not None:
        attributes = _valid(shares, attributes, data, indices) or attributes
    op, options = attributes.op, attributes.positional
    recorded, result = _is_recorded(data, updates), None
    orders = shares is not None and sharing.orders(indices.numel())
    if orders and not recorded:
        from gatherum.torch import cuda

        result = cuda.replayed(attributes, data, indices, updates)
    if result is None and (recorded or orders):
        result = overload(op)(data, indices, updates, *options, attributes.caller)
    elif result is None:
        call = op, data, indices, updates, *options, 0, None
        result = index_errors.run_for(attributes.caller, native.dispatch_call, *call)
    if shares is not None and attributes.mode == "raise":
        shares.results[_validity(attributes, data, indices)] = (indices,)
    return cast(Tensor, result)


def on_device(x: Tensor) -> bool:
    """Return True for a tensor on a CUDA device."""
    return bool(x.is_cuda)


def shared(x: Tensor) -> Shared | None:
    """Return the results that calls on a device share. Calls that are traced share none."""
    if torch.compiler.is_compiling() or not on_device(x):
        return None
    current = sharing.current()
    return None if current is None or private.count_dispatch_modes() else current


def sharing_calls(shared: Shared | None = None) -> AbstractContextManager[Any]:
    """Return a context in which calls share results, those of `shared` if it is not None."""
    return nullcontext() if torch.compiler.is_compiling() else sharing.Sharing(shared)


def sharing_gradients(shared: Shared | None) -> AbstractContextManager[Any]:
    """Return a context in which the calls of a gradient use the results of the function."""
    return sharing_calls(None if shared is None else Shared(shared))


def _valid(shares: Shared, attributes: Attributes, data: Tensor, indices: Tensor
           ) -> Attributes | None:  # fmt: skip
    """Return attributes without the check of indices that an earlier call has checked, or None."""
    if attributes.mode != "raise" or not shares.find(_validity(attributes, data, indices)):
        return None
    return attributes._replace(mode="drop")


def _validity(attributes: Attributes, data: Tensor, indices: Tensor) -> Hashable:
    """Return the key of the result that all indices are valid."""
    shape = tuple(indices.shape)
    space = attributes.operator.space(tuple(data.shape), shape, attributes.axis)
    return "valid", id(indices), attributes.negative, space


def _is_recorded(*operands: Tensor) -> bool:
    """Return True if a call must use torch's dispatcher.

    The dispatcher takes several times as long as a small call.
    """
    recorded = torch.is_grad_enabled() and any(operand.requires_grad for operand in operands)
    return torch.compiler.is_compiling() or recorded


# --- for functions over groups


def float_mode() -> AbstractContextManager[None]:
    return nullcontext() if torch.compiler.is_compiling() else native.FloatMode()


isinf = torch.isinf
add = torch.add
as_size = symbolic_sizes.as_size


def as_values(op: str, operand: str, value: Any) -> Tensor:
    checks.check_container(op, operand, value)
    checks.check_dense(op, operand, value, value.device)
    if not torch.compiler.is_compiling():
        checks.check_storage(op, operand, value)
    dtypes.code_of(op, operand, value.dtype)
    return cast(Tensor, value)


def as_groups(op: str, operand: str, value: Any, values: Tensor) -> Tensor:
    if not isinstance(value, Tensor) and torch.compiler.is_compiling():
        value = torch.as_tensor(value, device=values.device)
    elif not isinstance(value, Tensor):
        conversion.check_items(op, operand, value)
        with errors.for_tensors():
            value = operands.as_indices(op, value, values, operand)
    checks.check_dense(op, operand, value, values.device)
    if not torch.compiler.is_compiling():
        checks.check_storage(op, operand, value)
    dtypes.code_of(op, operand, value.dtype)
    return cast(Tensor, value)


def as_operand(op: str, operand: str, value: Any, values: Tensor) -> Tensor:
    if not isinstance(value, Tensor):
        array = conversion.as_array(op, operand, value)
        value = operands.as_tensor(op, operand, array, values)
    return as_values(op, operand, value)


def as_dtype(op: str, operand: str, value: Any) -> AnyDType:
    if not isinstance(value, torch.dtype):
        numpy_dtype = of_numpy.as_dtype(op, operand, value)
        if dtypes.of_name(numpy_dtype.name) is None:
            raise errors.not_a_dtype(op, operand, value)
        return numpy_dtype
    return dtypes.plan_dtype(op, operand, value)


def kind(x: Tensor) -> AnyDType:
    return dtypes.plan_dtype("", "", x.dtype)


def dtype(plan_dtype: AnyDType) -> torch.dtype:
    result = dtypes.of_name(plan_dtype.name)
    assert result is not None, plan_dtype
    return result


def item(op: str, plan_dtype: AnyDType, value: object, like: Tensor) -> Tensor:
    target = dtype(plan_dtype)
    if target.itemsize == 1 and target.is_floating_point:  # torch has another NaN
        code = operands.fill_item(op, value, target)[0]
        return torch.full((), code, dtype=torch.uint8, device=like.device).view(target)
    scalar = operands.as_fill(op, value, torch.empty(0, dtype=target, device="cpu"))
    return torch.full((), scalar, dtype=target, device=like.device)


def to_numpy(x: Tensor) -> np.ndarray[Any, Any] | None:
    if torch.compiler.is_compiling() or x.is_meta or checks.is_batched(x):
        return None
    tensor = x.detach().cpu()
    # Inside a transform of `torch.func`, every tensor that an operation returns is a wrapper.
    inside = private.transforms_active()
    array: np.ndarray[Any, Any] = (
        np.from_dlpack(checks.innermost(tensor)) if inside else tensor.numpy()
    )
    return array


def size_of(op: str, operand: str, groups: Tensor) -> int:
    checks.check_values(op, operand, groups, "give `size`")
    comparable = _comparable(groups)
    traced = torch.compiler.is_compiling() or symbolic_sizes.is_scripted()
    if groups.dtype is torch.uint64 and not traced:
        wrapped = comparable[comparable < 0]  # from 2**63 on
        if wrapped.numel():
            return int(wrapped.max()) + 2**64 + 1
    return symbolic_sizes.least(comparable)


def holds_any(mask: Tensor) -> bool:
    return True


def whole(x: Tensor, shape: Shape) -> Tensor:
    return x.expand(shape).contiguous()


def nonzero(x: Tensor) -> Tensor:
    return _comparable(x) != 0


def equal(x: Tensor, y: Tensor) -> Tensor:
    return _comparable(x) == _comparable(y)


def _comparable(x: Tensor) -> Tensor:
    return x.to(torch.int64) if x.dtype in dtypes.WIDE_UNSIGNED else x


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
    return torch.where(torch.isnan(x), torch.nan, x)


def sorted_order(values: Tensor | None, cells: Tensor) -> Tensor:
    if values is None:
        return torch.argsort(cells, stable=True)
    keys = _comparable(values)
    if values.dtype is torch.uint64:
        keys = keys ^ torch.iinfo(torch.int64).min  # the order of signed integers
    order = torch.argsort(keys, stable=True)
    return order[torch.argsort(cells[order], stable=True)]


def cumsum(x: Tensor) -> Tensor:
    return torch.cumsum(x, 0, dtype=x.dtype)


def single(x: Tensor) -> Tensor:
    return x.to(torch.float32)


def bits(x: Tensor) -> Tensor:
    return x.view(torch.int32 if x.dtype is torch.float32 else torch.int64)


def in_float64(
    wide: Computed, narrow: Computed, values: Tensor, grouping: Grouping, counts: Tensor
) -> Tensor:
    return cast(Tensor, wide(values, grouping, counts))


def sqrt(x: Tensor) -> Tensor:
    return cast(Tensor, overload("sqrt")(x))


def exp(x: Tensor) -> Tensor:
    return cast(Tensor, overload("exp")(x))


def log(x: Tensor) -> Tensor:
    return cast(Tensor, overload("log")(x))


# The op that computes both in one call, in torch_scatter/softmax.py.
SOFTMAX = "group_softmax"


def fused(name: str, values: Tensor, destinations: Destinations) -> Tensor | None:
    """Return softmax or log_softmax of values, or None inside transforms, which need the steps."""
    if private.transforms_active() or name not in ("softmax", "log_softmax"):
        return None
    values = astype(values, dtype(working_dtype(kind(values))))
    attributes = destinations.attributes
    options = attributes.op, attributes.axis, attributes.mode, attributes.negative
    size = destinations.shape[attributes.axis]
    result: Tensor = overload(SOFTMAX)(
        values, destinations.indices, name, size, *options, attributes.caller
    )
    return result


def squares(
    values: Tensor, destinations: Destinations, skips_nan: bool
) -> tuple[Tensor, Tensor] | None:
    if (operands := _specs_and_views(values, destinations)) is None:
        return None
    specs, views = operands
    call = destinations.attributes, destinations.shape, specs, *views, skips_nan
    both = spreads.squares_and_counts(*call)
    return None if both is None else (torch.from_numpy(both[0]), torch.from_numpy(both[1]))


def without_nan(
    values: Tensor, reduction: str, destinations: Destinations, start: Tensor
) -> Tensor | None:
    if (operands := _specs_and_views(values, destinations)) is None:
        return None
    attributes = destinations.attributes.with_fold(FoldRule.afresh(reduction))
    table = broadcast_to(start, destinations.shape)
    result = torch.empty(destinations.shape, dtype=values.dtype)
    data, out = (addresses.view(attributes.op, "data", tensor) for tensor in (table, result))
    specs = addresses.spec_of(attributes.op, "data", table), *operands[0]
    call = attributes, specs, data, *operands[1], out
    return result if skips.scatter_without_nan(*call) else None


def _specs_and_views(
    values: Tensor, destinations: Destinations
) -> tuple[tuple[ArraySpec, ArraySpec], tuple[View, View]] | None:
    """Return the specs and the memory of the groups and the values of a call of the core. Return
    None if the call must use torch's functions.
    """
    operands = destinations.indices, values
    if _is_recorded(values) or not all(map(private.is_plain, operands)):
        return None
    op, names = destinations.attributes.op, ("groups", "values")
    checks.check_storages(op, names, operands)
    indices, updates = (addresses.spec_of(op, *pair) for pair in zip(names, operands, strict=True))
    views = (addresses.view(op, *pair) for pair in zip(names, operands, strict=True))
    return (indices, updates), cast(tuple[View, View], tuple(views))


def resolve(attributes: Attributes, entries: Tensor, size: int) -> Tensor:
    positions = arange(0, size, entries)
    return gather(attributes.gathering(), positions, entries, -1)


# --- for pointers to edges


def traced_segments(op: str, operand: str, indptr: Tensor, edges: Tensor) -> Tensor | None:
    """Return the segment of each edge while a graph is traced, else None."""
    if not (torch.compiler.is_compiling() or symbolic_sizes.is_scripted()):
        checks.check_values(op, operand, indptr, "give `scatter_indices`")
        return None
    xp = sys.modules[__name__]
    return segment_numbers.of_edges(xp, op, _comparable(indptr), edges.shape[0])
