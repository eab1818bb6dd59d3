"""Run calls on CUDA tensors with torch's streams and allocator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gatherum._arguments.conversion import is_integer_zero
from gatherum._edges.edge_reductions import NAME
from gatherum._functions.quantized.spec import QuantizedAttributes
from gatherum._model.call import OPERAND_NAMES, Attributes, Call
from gatherum._model.dtypes import AnyDType
from gatherum._model.errors import Shape
from gatherum._plans import index_errors, sharing
from gatherum._plans.plans import build_once
from gatherum._plans.sharing import Shared
from gatherum._system import native
from gatherum.cuda import cub, device_calls, edges, elementary, folds, nvidia, quantized
from gatherum.cuda import errors as cuda_errors
from gatherum.cuda.accumulator import DeviceAccumulator
from gatherum.cuda.device import Pairs
from gatherum.cuda.device_views import DeviceFramework, View
from gatherum.cuda.driver import LEGACY_STREAM
from gatherum.cuda.host_transfer import OnDevice
from gatherum.cuda.orders import CallKey, SharedIndices, shares_order

from . import addresses, checks, dtypes
from .operands import fill_item

# Maximum number of elements that torch.sort supports along a dimension on a CUDA device.
_MOST_SORTED = (1 << 31) - 1


class _Scratch:
    """Memory from torch's caching allocator, which reuses it in stream order."""

    def __init__(self, memory: Tensor) -> None:
        self.memory = memory
        self.address = memory.data_ptr()

    def slice(self, start: int, nbytes: int) -> _Scratch:
        """Return a part of this memory."""
        return _Scratch(self.memory[start : start + nbytes])

    def integers(self, count: int, width: int) -> Tensor:
        """View the first bytes as integers."""
        return self.memory[: count * width].view(torch.int32 if width == 4 else torch.int64)


class _Torch(DeviceFramework):
    """Tensors on a CUDA device."""

    name = "torch"
    captures_graphs = True

    def owns(self, value: object) -> bool:
        """Return True for a tensor."""
        return isinstance(value, Tensor)

    def view(self, op: str, operand: str, value: Tensor) -> View:
        """Return a view of a tensor."""
        spec = addresses.spec_of(op, operand, value)
        return View(value.data_ptr(), spec, value.device.index, value)

    def stream(self, device_number: int, operands: Sequence[object]) -> int:
        """Return torch's current stream on a device."""
        return int(torch.cuda.current_stream(device_number).cuda_stream) or LEGACY_STREAM

    def empty(
        self, shape: Shape, dtype: AnyDType, like: Tensor, device_number: int, stream: int
    ) -> tuple[object, int]:
        """Return a new tensor and its address."""
        tensor = torch.empty(shape, dtype=dtypes.of_plan(dtype), device=like.device)
        return tensor, tensor.data_ptr()

    def allocate(self, nbytes: int, device_number: int, stream: int) -> _Scratch:
        """Return memory from torch's allocator."""
        return _Scratch(torch.empty(nbytes, dtype=torch.uint8, device=self._place(device_number)))

    def _place(self, device_number: int) -> torch.device:
        return torch.device("cuda", device_number)

    def sort(self, pairs: Pairs, device_number: int, stream: int) -> Pairs:
        """Sort with CUB, or with torch's stable sort if CUB is missing."""
        count, widths = pairs.length, pairs.widths
        if count > _MOST_SORTED or cub.is_available():
            return cub.sort_with_cub(self, pairs, device_number, stream)
        keys, positions = torch.sort(pairs.keys.integers(count, widths.key), stable=True)
        payload = pairs.payload.integers(count, widths.payload).index_select(0, positions)
        sorted_keys, sorted_payload = (
            _Scratch(tensor.view(torch.uint8)) for tensor in (keys, payload)
        )
        return pairs._replace(keys=sorted_keys, payload=sorted_payload)

    def call_key(
        self, attributes: Attributes, data: Tensor, indices: Tensor, updates: Tensor
    ) -> CallKey:
        """Return a key for the order of a scatter. Shared results keep the indices alive."""
        op, axis, reduction, include_self, mode, negative, *_ = attributes
        dtype_name = str(data.dtype).removeprefix("torch.")
        is_atomic = folds.has_atomics(reduction, include_self, dtype_name)
        layout = op, axis, mode, negative, data.shape, data.stride(), updates.shape
        entry = "call", id(indices), reduction == "none", is_atomic
        return CallKey(entry, (*layout, updates.stride()))

    def keep(self, holders: Sequence[object], device_number: int, stream: int) -> None:
        """Keep nothing, because torch's allocator reuses memory in stream order."""


FRAMEWORK = _Torch()
_WIDEST_ITEM = torch.complex128.itemsize
_ZEROS: dict[int, Tensor] = {}  # of each device


def run(
    attributes: Attributes,
    data: Tensor,
    indices: Tensor,
    updates: Tensor | None,
    fill: Any,
    out: Tensor | None,
) -> Tensor:
    """Run one call on dense tensors of one CUDA device. Return the result, or `out`."""
    op = attributes.op
    _check_device(op)
    for name, tensor in zip(OPERAND_NAMES, (data, indices, updates, out), strict=True):
        if tensor is not None:
            checks.check_dense(op, name, tensor, data.device)
            checks.check_storage(op, name, tensor)

    fills_zero = is_integer_zero(fill)
    if out is None and fills_zero:
        result_of_replay = replayed(attributes, data, indices, updates)
        if result_of_replay is None and updates is not None and _is_shared(indices):
            _share_order(attributes, data, indices, updates)
            result_of_replay = replayed(attributes, data, indices, updates)
        if result_of_replay is not None:
            return result_of_replay

    def item(_: AnyDType) -> bytes:
        return b"" if fills_zero else fill_item(op, fill, data.dtype)

    result: Tensor = device_calls.call_on_device(
        FRAMEWORK, attributes, data, indices, updates, item, out
    )
    return result


def replayed(
    attributes: Attributes, data: Tensor, indices: Tensor, updates: Tensor | None
) -> Tensor | None:
    """Return the result of a call that the core can replay, or None for any other call.

    A scatter that shares its order with other calls is replayed if the order is known.
    """
    if updates is not None and _is_shared(indices):
        return _replayed_in_order(attributes, data, indices, updates)
    return _run_if_plain(attributes, data, indices, updates)


def _is_shared(indices: Tensor) -> bool:
    """Return True if scatters with these indices share their order now."""
    return sharing.current() is not None and shares_order(indices.numel())


def _share_order(attributes: Attributes, *operands: Tensor) -> None:
    """Compute the order of a scatter, or raise IndexError as the scatter does.

    Do nothing if no later call can use the order.
    """
    data, indices, _ = operands
    shared, op = sharing.current(), attributes.op
    specs = [addresses.spec_of(op, *pair) for pair in zip(OPERAND_NAMES, operands, strict=False)]
    plan, key = build_once(Call(attributes, *specs)), FRAMEWORK.call_key(attributes, *operands)
    device_number = data.device.index or 0
    device_and_stream = device_number, FRAMEWORK.stream(device_number, operands)
    assert shared is not None
    memory = indices.data_ptr(), specs[1], indices
    shared_indices = SharedIndices(shared, *device_and_stream, *memory, key)
    if shared_indices.keeper() is not None:
        device_calls.check_capture(FRAMEWORK, op, plan, {}, *device_and_stream)
        device = device_calls.open_device(FRAMEWORK, *device_and_stream)
        shared_indices.order(device, plan)


def _replayed_in_order(
    attributes: Attributes, data: Tensor, indices: Tensor, updates: Tensor
) -> Tensor | None:
    """Return the result of a scatter whose order an earlier call has computed, or None."""
    shared = sharing.current()
    entry, layout = FRAMEWORK.call_key(attributes, data, indices, updates)
    if (
        shared is None
        or (layout_and_order := shared.find(entry)) is None
        or layout_and_order[0] != layout
    ):
        return None
    operands = data, indices, updates
    if (order := layout_and_order[1]) is None:  # such a scatter has no order
        return _run_if_plain(attributes, *operands)
    arguments: Any = attributes.op, *operands, *attributes.positional, order
    result: Tensor | None = index_errors.run_named(
        attributes.caller, native.scatter_ordered, *arguments
    )
    return result


def _run_if_plain(attributes: Attributes, *operands: Tensor | None) -> Tensor | None:
    arguments = attributes.op, *operands, *attributes.positional, None, None
    result: Tensor | None = index_errors.run_named(
        attributes.caller, native.run_if_plain, *arguments
    )
    return result


def sorter(arena: Tensor, stream: int, device_number: int) -> nvidia.Sorter:
    """Return the sort for one replay, whose scratch memory is `arena`."""
    return nvidia.sorter(FRAMEWORK, _Scratch(arena), device_number, stream)


def zeros_address(device_number: int) -> int:
    """Return the address of an item of zeros on a device, with which a scatter can start.

    Return 0 if the device has no such item yet and the current stream is being captured, because
    the memory would belong to the graph.
    """
    if device_number not in _ZEROS:
        if torch.cuda.is_current_stream_capturing():
            return 0
        zeros = torch.zeros(_WIDEST_ITEM, dtype=torch.uint8, device=FRAMEWORK._place(device_number))
        zeros[0].item()  # waits, so that every stream can read them
        _ZEROS[device_number] = zeros
    return int(_ZEROS[device_number].data_ptr())


def keep_adjacent(indices: Tensor) -> None:
    """Note for calls that share results that equal indices are adjacent in the last dimension."""
    shared = sharing.current()
    if shared is None:
        return
    view = FRAMEWORK.view("", "indices", indices)
    device_and_stream = (
        view.device_number or 0,
        FRAMEWORK.stream(view.device_number or 0, (indices,)),
    )
    SharedIndices(shared, *device_and_stream, view.address, view.spec, view.holder).keep_adjacent()


def fold_rows(
    shared: Shared, data: Tensor, row_edges: edges.Edges, table: Tensor, reduction: str
) -> Tensor:
    """Fold rows of a tensor along edges; see `gatherum.cuda.edges.fold_rows`."""
    _check_device(NAME)
    tensors = (data, row_edges.sources, row_edges.targets, table)
    for name, tensor in zip(("data", "gather_indices", "scatter_indices"), tensors, strict=False):
        checks.check_dense(NAME, name, tensor, data.device)
        checks.check_storage(NAME, name, tensor)
    result: Tensor = edges.fold_rows(FRAMEWORK, shared, data, row_edges, table, reduction)
    return result


class TensorAccumulator(DeviceAccumulator):
    """An accumulator of a tensor on a CUDA device; see `gatherum.Accumulator`."""

    @staticmethod
    def _framework_of(data: Tensor) -> DeviceFramework:
        _check_device("Accumulator")
        checks.check_dense("Accumulator", "data", data, data.device)
        checks.check_storage("Accumulator", "data", data)
        return FRAMEWORK


def gather_quantized(
    attributes: QuantizedAttributes,
    data: Tensor,
    indices: Tensor,
    scales: Tensor,
    zero_points: Tensor | None,
    dtype: torch.dtype,
) -> Tensor:
    """Run `gatherum.gather_quantized` on tensors on a CUDA device."""
    _check_device("gather_quantized")
    tables = (data, scales, zero_points)
    data, scales, zero_points = (None if t is None else t.contiguous() for t in tables)
    result: Tensor = quantized.gather_quantized(
        FRAMEWORK, attributes, data, indices, scales, zero_points, data.new_empty(0, dtype=dtype)
    )
    return result


def map_values(function: str, values: Tensor) -> Tensor:
    """Return "exp" or "log" of a contiguous floating-point tensor on a CUDA device."""
    _check_device(function)
    result, device_number = torch.empty_like(values), values.device.index or 0
    device = device_calls.open_device(
        FRAMEWORK, device_number, FRAMEWORK.stream(device_number, (values,))
    )
    dtype = str(values.dtype).removeprefix("torch.")
    addresses = values.data_ptr(), result.data_ptr()
    elementary.map_on_device(device, function, dtype, *addresses, values.numel())
    return result


def _check_device(op: str) -> None:
    """Raise TypeError on ROCm, where torch names AMD devices "cuda"."""
    if torch.version.hip is not None:
        raise cuda_errors.on_rocm(op, torch.version.hip)


def functions(device_number: int = 0) -> OnDevice | None:
    """Return the six functions for NumPy arrays, run on a CUDA device by torch.

    Return None if torch finds no device.
    """
    if not torch.cuda.is_available():
        return None
    target = torch.device("cuda", device_number)

    def to_device(array: NDArray[Any]) -> Tensor:
        dtype = dtypes.of_name(array.dtype.name)
        copied = np.array(array, order="C")
        if dtype is None or not dtypes.is_of_numpy(dtype):
            return torch.from_numpy(copied.view(f"u{copied.itemsize}")).view(dtype).to(target)
        return torch.from_numpy(copied).to(target)

    def to_host(tensor: Tensor, dtype: np.dtype[Any]) -> NDArray[Any]:
        return dtypes.as_array(tensor.cpu()).view(dtype)

    name = f"{target}, {torch.cuda.get_device_name(target)}, tensors of torch {torch.__version__}"
    return OnDevice(name, to_device, to_host)
