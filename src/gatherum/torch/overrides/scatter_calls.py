"""Describe the result of a torch operator as one scatter, and run the scatter below autograd."""

from __future__ import annotations

from math import inf
from typing import Any, NamedTuple

import torch
from torch import Tensor

from gatherum._model.call import Attributes
from gatherum._system import native
from gatherum.torch import dlpack, private

INDEX_DTYPES = (torch.int64, torch.int32)  # of torch's own operators
_TWO_STEP_ELEMENTS = 1 << 18  # up to this number, two steps are faster than one aggregation


class Declined(Exception):
    """Signal that torch's kernel must run a call."""


class Invalid(Declined):
    """Signal that torch's kernel will raise its error for a call."""


class Ordered(Declined):
    """Signal that torch's kernel runs all calls of this form in order."""


class Constant(NamedTuple):
    """A tensor filled with one value, in the dtype of the call's other values."""

    value: Any
    shape: tuple[int, ...]


class Scatter(NamedTuple):
    """One scatter. A function in the table returns it if the call has the same result.

    The core remembers a `Scatter` whose tensors are views of the call's tensors. It repeats this
    scatter, without Python, for calls with different values in the tensors. A function that depends
    on these values therefore runs its scatters itself, and returns a tensor.
    """

    op: str
    data: Tensor | Constant | int  # an int: zeros for all indices, and at least this number of them
    indices: Tensor | tuple[Tensor, ...]  # a tuple: the components of the indices, of one shape
    updates: Tensor | Constant
    axis: int = 0
    reduction: str = "none"
    include_self: bool = True
    mode: str = "raise"  # "drop": rows with an invalid index are not used
    negative: bool = False
    segments: str = ""  # "lengths" or "offsets", if `indices` has those of successive updates
    # Row i of the updates is `updates[update_rows[i]] / divisors[update_rows[i]] * factors[i]`.
    update_rows: Tensor | None = None
    divisors: Tensor | None = None  # zeros are replaced by ones
    factors: Any = None  # a tensor, or a number for all rows
    zeroed_row: int = -1  # the row that is set to zeros afterwards, if it is not negative


def with_one_dimension(*tensors: Tensor) -> list[Tensor]:
    """View tensors without dimensions as one-element vectors, as torch treats them."""
    return [tensor if tensor.dim() else tensor.view(1) for tensor in tensors]


def check_number(value: Any, dtype: torch.dtype) -> None:
    """Raise an error for a finite number beyond a dtype, which torch's kernels reject."""
    torch.full((), value, dtype=dtype)  # raises torch's error, except for 16-bit numbers
    if dtype in (torch.float16, torch.bfloat16) and torch.finfo(dtype).max < abs(value) < inf:
        raise Invalid


def sums_of_rows(
    shape: tuple[int, ...], indices: Tensor, updates: Tensor | Constant, **more: Any
) -> Scatter:
    """Describe the sums of rows with the same index. Other rows are zeros."""
    return Scatter("scatter_slices", Constant(0, shape), indices, updates, 0, "add", **more)


def core_fields(call: Scatter) -> tuple[Any, ...]:
    """Return the fields of a scatter. Each constant is a tuple of one tensor."""
    data, _, updates = _materialized(call)
    fields = call._replace(data=data, updates=updates)
    if isinstance(call.data, Constant):
        return tuple(fields._replace(data=(data,)))
    if isinstance(call.updates, Constant):
        return tuple(fields._replace(updates=(updates,)))
    return tuple(fields)


def run(call: Scatter, target: Tensor | None = None) -> Tensor:
    """Run a scatter, unrecorded by autograd. Write the result to `target`, if it is not None."""
    data, indices, updates = _materialized(call)
    if isinstance(data, int):
        data = updates.new_zeros(()).expand(_size_for(indices, data))
    if call.segments:
        indices = _segments_of_updates(call.segments, indices, updates.shape[0])
    elif isinstance(indices, tuple):
        indices = torch.stack(indices, -1)
    if call.divisors is not None:
        divisors = call.divisors.clamp(min=1).to(torch.float32).unsqueeze(1)
        updates = updates / divisors.to(updates.dtype)
    if call.update_rows is not None and _is_aggregated(call, updates):
        options = data.shape[0], "add", call.factors, "raise", False, ""
        result: Tensor = torch.ops.gatherum.aggregate(updates, call.update_rows, indices, *options)
    else:
        if call.update_rows is not None:
            updates = updates.index_select(0, call.update_rows)
        if isinstance(call.factors, Tensor):
            updates = updates * call.factors.unsqueeze(1)
        elif call.factors is not None:
            updates = updates * call.factors
        result = _scatter(call, data, indices, updates, target)
    if call.zeroed_row >= 0:
        result[call.zeroed_row].zero_()
    return result


def _materialized(call: Scatter) -> tuple[Any, Any, Tensor]:
    """Return the data, indices and updates of a scatter, with tensors for constants."""
    data, updates = call.data, call.updates
    if isinstance(updates, Constant):
        updates = _tensor_of(updates, data)
    return _tensor_of(data, updates), call.indices, updates


def _tensor_of(operand: Any, like: Any) -> Any:
    if isinstance(operand, Constant):
        return like.new_full((), operand.value).expand(operand.shape)
    return operand


def _size_for(indices: Tensor, least: int) -> int:
    """Return the smallest size, at least `least`, for which all indices are valid."""
    lowest, highest = indices.aminmax()
    if int(lowest) < 0:
        raise Invalid
    return max(int(highest) + 1, least)


def _segments_of_updates(segments: str, bounds: Tensor, count: int) -> Tensor:
    """Return the segment number of each update."""
    lengths = bounds.diff() if segments == "offsets" else bounds
    if segments == "offsets" and int(bounds[0]) != 0:
        raise Declined
    if bool((lengths < 0).any()) or int(lengths.sum()) != count:
        raise Declined
    return torch.repeat_interleave(lengths, output_size=count)


def _is_aggregated(call: Scatter, rows: Tensor) -> bool:
    """Return True if the sums of selected rows are computed without a copy of these rows."""
    assert call.update_rows is not None
    if call.factors is not None and rows.element_size() < 4:  # the products are rounded
        return False
    return bool(rows.is_cuda) or call.update_rows.numel() * rows.shape[1] > _TWO_STEP_ELEMENTS


def _scatter(
    call: Scatter, data: Tensor, indices: Tensor, updates: Tensor, target: Tensor | None
) -> Tensor:
    attributes = Attributes(
        call.op, call.axis, call.reduction, call.include_self, call.mode, negative=call.negative
    )
    # The core reads only plain tensors; a subclass shares the memory of its plain tensor.
    out = None if target is None else _as_plain(data if target is call.data else target)
    operands = _as_plain(data), _as_plain(indices), _as_plain(updates)
    if private.exchange is not None and not data.is_cuda:
        arguments: Any = *attributes.positional, None, out
        result: Tensor = native.run_on_tensors(call.op, *operands, *arguments)
    else:
        result = (_on_device if data.is_cuda else dlpack.run)(attributes, *operands, 0, out)
    return result if target is None else target


def _as_plain(tensor: Tensor) -> Tensor:
    return tensor if type(tensor) is Tensor else tensor.as_subclass(Tensor)


def _on_device(attributes: Attributes, *operands: Any) -> Tensor:
    """Run one scatter on CUDA tensors. The first call imports `gatherum.cuda`."""
    from gatherum.torch import cuda

    if torch.cuda.is_current_stream_capturing():  # a graph cannot wait for a check
        attributes = attributes._replace(mode="drop")
    return cuda.run(attributes, *operands)
