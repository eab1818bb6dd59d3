"""Run one call on a device's arrays: check operands, plan, allocate memory and launch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gatherum._arguments import conversion
from gatherum._arguments.checks import check_before_updates
from gatherum._model.call import ArraySpec, Attributes, Call
from gatherum._model.dtypes import AnyDType
from gatherum._model.errors import frameworks as framework_errors
from gatherum._model.shape_limits import contiguous_strides
from gatherum._plans import sharing
from gatherum._plans.overlap import check_out_memory, place_at
from gatherum._plans.plans import Plan, build_once

from . import errors as cuda_errors
from . import orders, plan_launches
from .device import Device
from .device_nests import unaddressable
from .device_views import DeviceFramework, View
from .driver import open_driver
from .nvidia import Nvidia

# Maps the dtype of the data to the item that a gather stores for an invalid index; b"" for zeros.
FillItem: TypeAlias = Callable[[AnyDType], bytes]


class HostOperand(NamedTuple):
    """An operand in host memory and its spec on the device.

    `array` has size 1 in broadcast dimensions, so that repeated values are copied once.
    """

    array: NDArray[Any]
    spec: ArraySpec


Operand: TypeAlias = View | HostOperand
# The operands of a call by their names in messages.
NamedOperands: TypeAlias = Mapping[str, Operand | None]


def call_on_device(
    framework: DeviceFramework,
    attributes: Attributes,
    data: Any,
    indices: Any,
    updates: Any,
    fill_item: FillItem,
    out: Any = None,
) -> object:
    """Run an operator on arrays of one framework and one device. Return the result, or `out`.

    The attributes must be checked already. Indices and updates may be NumPy arrays, lists or
    numbers; these are copied to the device.
    """
    op, operands = attributes.op, _view_operands(framework, attributes, data, indices, updates, out)
    specs = (None if operand is None else operand.spec for operand in operands)
    plan = build_once(Call(attributes, *specs))  # type: ignore[arg-type]  # the first two are there
    dtype, operands_by_name = operands.data.spec.dtype, operands._asdict()
    item = fill_item(dtype) if attributes.fills else b""
    device_number = common_device(op, operands_by_name)
    arrays = [value for value in (data, indices, updates, out) if framework.owns(value)]
    device_and_stream = device_number, framework.stream(device_number, arrays)
    shared = _shared_indices(
        framework, attributes, operands, (data, indices, updates), device_and_stream
    )
    check_capture(framework, op, plan, operands_by_name, *device_and_stream)
    addresses, holders = copy_host_operands(framework, operands_by_name, *device_and_stream)
    result = out
    if operands.out is None:
        result, addresses["out"] = framework.empty(plan.shape, dtype, data, *device_and_stream)
    else:
        _check_overlaps(plan, operands_by_name, addresses)
    device = open_device(framework, *device_and_stream)
    waits = attributes.mode == "raise"  # graphs cannot capture mode "raise"
    try:
        with nullcontext() if waits else framework.keep_captured_memory(result, *device_and_stream):
            order = None if shared is None else shared.order(device, plan)
            source, index, values, target = addresses.values()
            plan_launches.run(device, plan, source, index, values, target, item, order)
        if out is not None:
            framework.mark_written(out, *device_and_stream)
    finally:
        framework.keep(holders, *device_and_stream)
    return result


def _shared_indices(
    framework: DeviceFramework,
    attributes: Attributes,
    operands: DeviceOperands,
    arrays: tuple[Any, Any, Any],
    device_and_stream: tuple[int, int],
) -> orders.SharedIndices | None:
    """Return the indices on a device if calls share results now, or None otherwise.

    The arrays are data, indices and updates.
    """
    shared, indices = sharing.current(), operands.indices
    if shared is None or not isinstance(indices, View):
        return None
    key = framework.call_key(attributes, *arrays) if framework.owns(arrays[2]) else None
    return orders.SharedIndices(
        shared, *device_and_stream, indices.address, indices.spec, indices.holder, key
    )


def open_device(framework: DeviceFramework, device_number: int, stream: int) -> Device:
    """Return the device with the given number, bound to a stream."""
    return Nvidia(framework, device_number, stream)


class DeviceOperands(NamedTuple):
    """The operands of a call. Host operands are described as they will be on the device."""

    data: View
    indices: Operand
    updates: Operand | None
    out: View | None


def _view_operands(
    framework: DeviceFramework,
    attributes: Attributes,
    data: Any,
    indices: Any,
    updates: Any,
    out: Any,
) -> DeviceOperands:
    """Return the operands. Check only what the conversion requires."""
    op = attributes.op
    data_view = framework.view(op, "data", data)
    indices_operand = view_or_convert(framework, op, "indices", indices, None)
    data_spec, indices_spec = data_view.spec, indices_operand.spec
    check_before_updates(op, data_spec, indices_spec, attributes.axis)
    updates_operand = None
    if attributes.operator.scatters:
        updates_operand = view_or_convert(framework, op, "updates", updates, data_spec.dtype)
    out_view = None
    if framework.owns(out):
        out_view = framework.view(op, "out", out)
    elif out is not None:
        operands = data_view, indices_operand, updates_operand
        specs = (None if operand is None else operand.spec for operand in operands)
        build_once(Call(attributes, *specs))  # type: ignore[arg-type]  # raises earlier errors
        raise cuda_errors.not_on_cuda(op, "out", type(out).__name__, None)
    return DeviceOperands(data_view, indices_operand, updates_operand, out_view)


def view_or_convert(
    framework: DeviceFramework, op: str, name: str, value: Any, dtype: AnyDType | None
) -> Operand:
    """Return indices (`dtype` is None) or updates, on the device or on the host."""
    if framework.owns(value):
        return framework.view(op, name, value)
    if dtype is not None:
        return host_operand(conversion.as_updates(op, value, dtype))
    array = conversion.as_indices(op, value)
    if array.dtype.kind in "iu":  # other dtypes raise an error that names the dtype
        array = array.astype(array.dtype.newbyteorder("="), copy=False)
    return host_operand(array)


def host_operand(array: NDArray[Any]) -> HostOperand:
    """Return a host array with its spec on the device.

    The copy is in C order. Dimensions that repeat one value keep stride 0.
    """
    unrepeated = array[
        (*(slice(0, 1) if step == 0 else slice(None) for step in array.strides), ...)
    ]
    compact = np.ascontiguousarray(unrepeated).reshape(unrepeated.shape)
    steps = contiguous_strides(compact.shape, array.itemsize)
    strides = tuple(
        0 if stride == 0 else step for stride, step in zip(array.strides, steps, strict=True)
    )
    return HostOperand(compact, ArraySpec(array.shape, array.dtype, strides))


def common_device(op: str, operands: NamedOperands) -> int:
    """Return the number of the device that all arrays are on, or raise TypeError."""
    common: int | None = None
    for name, operand in operands.items():
        if not isinstance(operand, View) or operand.device_number is None:
            continue
        if common is None:
            common = operand.device_number
        elif operand.device_number != common:
            devices = f"cuda:{common}", f"cuda:{operand.device_number}"
            raise framework_errors.other_device(op, name, *devices, "copy it there")
    return common or 0


def check_capture(
    framework: DeviceFramework,
    op: str,
    plan: Plan,
    operands: NamedOperands,
    device_number: int,
    stream: int,
) -> None:
    """Raise RuntimeError if a CUDA graph that the stream captures cannot contain the call."""
    mode = plan.call.mode
    copied = [name for name, operand in operands.items() if isinstance(operand, HostOperand)]
    always_raises = unaddressable(plan) >= 0
    if mode != "raise" and not always_raises and not copied and framework.captures_graphs:
        return
    driver = open_driver()
    with driver.on(device_number):
        if not driver.captures(stream):
            return
    if not framework.captures_graphs:
        raise cuda_errors.no_capture(op)
    if mode == "raise":
        raise cuda_errors.raise_in_capture(op)
    if always_raises:
        raise cuda_errors.nowhere_in_capture(op, mode)
    raise framework_errors.copy_in_capture(op, copied[0])


def copy_host_operands(
    framework: DeviceFramework, operands: NamedOperands, device_number: int, stream: int
) -> tuple[dict[str, int], list[object]]:
    """Copy host operands to the device. Return all addresses and the owners of the memory."""
    addresses = dict.fromkeys(operands, 0)
    holders: list[object] = []
    for name, operand in operands.items():
        if isinstance(operand, View):
            addresses[name] = operand.address
            holders.append(operand.holder)
        elif operand is not None:
            array = operand.array
            buffer = framework.allocate(max(array.nbytes, 1), device_number, stream)
            driver = open_driver()
            with driver.on(device_number):
                driver.copy_to_device(buffer.address, array.ctypes.data, array.nbytes, stream)
            addresses[name] = buffer.address
            # The driver may still be reading host memory that the device can access.
            holders += [buffer, array]
    return addresses, holders


def _check_overlaps(plan: Plan, operands: NamedOperands, addresses: dict[str, int]) -> None:
    """Raise ValueError if `out` shares memory with an input that it must not overlap."""
    memory = [
        None if operand is None else place_at(addresses[name], operand.spec, _is_writable(operand))
        for name, operand in operands.items()
    ]
    check_out_memory(plan.call.op, *memory)  # type: ignore[arg-type]  # data, indices and out are there


def _is_writable(operand: Operand) -> bool:
    return not isinstance(operand, View) or operand.writable
