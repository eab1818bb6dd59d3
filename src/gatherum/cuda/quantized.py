"""Gather quantized values on a device and dequantize them, bit-for-bit as on the CPU.

The nest of a gather of one-byte items addresses the values. The number of a value is its position
in a contiguous table in C order. The kernel divides this number to find the value's scale.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from gatherum._arguments import conversion
from gatherum._functions.accumulator_state import ALL
from gatherum._functions.quantized.formats import NAME, name_of
from gatherum._functions.quantized.spec import QuantizedAttributes, Spec, spec_of
from gatherum._model import errors, shape_limits
from gatherum._model.call import ArraySpec, Attributes, Call
from gatherum._model.callers import Caller
from gatherum._model.dtypes import is_index, load_dtype
from gatherum._plans.plans import Plan, build_once
from gatherum._system import native

from . import checks, device_calls, kernel_tables, kernels, plan_launches
from .device import Device
from .device_calls import Operand
from .device_nests import device_nest, unaddressable
from .device_views import DeviceFramework
from .launch_sizes import offset_bits
from .programs import DATA, INDICES, WIDEST, DeviceProgram, Field, Placement, Recorder, Slot
from .recording import CallRecording

# Slots of the operands of a program.
_SCALES, _RESULT, _ZEROS = 2, 3, 4
_MOST_VALUES = 4  # values of a thread; not measured


def gather_quantized(
    framework: DeviceFramework,
    attributes: QuantizedAttributes,
    data: Any,
    indices: Any,
    scales: Any,
    zero_points: Any,
    like: Any,
) -> Any:
    """Run `gatherum.gather_quantized` on a framework's arrays. The result is an array like `like`.

    Operands in host memory are copied to the device. If data, scales or zero points are not
    contiguous, they are copied first.
    """
    operands: dict[str, Operand | None] = {
        "data": _contiguous(framework, "data", data),
        "indices": device_calls.view_or_convert(framework, NAME, "indices", indices, None),
        "scales": _contiguous(framework, "scales", scales),
        "out": None,
        "zero_points": None,
    }
    if zero_points is not None:
        operands["zero_points"] = _contiguous(framework, "zero_points", zero_points)
    spec = spec_of(attributes, *(_described(operands[name]) for name in _TABLES))  # type: ignore[arg-type]  # two of them are there
    plan = _plan(attributes, spec, operands["indices"].spec)  # type: ignore[union-attr]  # it is there
    device_number = device_calls.common_device(NAME, operands)
    arrays = [each for each in (data, indices, scales, zero_points) if framework.owns(each)]
    stream = framework.stream(device_number, arrays)
    device_calls.check_capture(framework, NAME, plan, operands, device_number, stream)
    addresses, holders = device_calls.copy_host_operands(framework, operands, device_number, stream)
    dtype = load_dtype(spec.result)
    result, addresses["out"] = framework.empty(plan.shape, dtype, like, device_number, stream)
    device = device_calls.open_device(framework, device_number, stream)
    try:
        _run(device, plan, spec, tuple(addresses.values()))
    finally:
        framework.keep(holders, device_number, stream)
    return result


_CALLER = Caller(NAME, "indices").text
_TABLES = "data", "scales", "zero_points"


def _contiguous(framework: DeviceFramework, name: str, value: Any) -> Operand:
    """Return an operand in C order. An array on the device is copied if it has other strides."""
    if not framework.owns(value):
        return device_calls.host_operand(conversion.as_array(NAME, name, value))
    view = framework.view(NAME, name, value)
    strides = shape_limits.contiguous_strides(view.spec.shape, view.spec.dtype.itemsize)
    if view.spec.strides == strides:
        return view
    copy = Attributes("gather_nd", mode="clip")
    copied = device_calls.call_on_device(framework, copy, value, ALL, None, lambda _: b"")
    return framework.view(NAME, name, copied)


def _described(operand: Operand | None) -> tuple[tuple[int, ...], str] | None:
    return None if operand is None else (operand.spec.shape, name_of(operand.spec.dtype))


def _plan(attributes: QuantizedAttributes, spec: Spec, indices: ArraySpec) -> Plan:
    """Check the indices and the result. Return the plan of a gather of one-byte items."""
    if not is_index(indices.dtype):
        raise errors.not_an_index_dtype(NAME, indices.dtype, False)
    shape_limits.check_rank(NAME, "`indices`", len(indices.shape))
    shape_limits.check_result(NAME, spec.result_shape(indices.shape), load_dtype(spec.result))
    mode, negative = attributes.mode, attributes.negative
    gather = Attributes("gather", spec.axis, mode=mode, negative=negative, caller=_CALLER)
    values = ArraySpec.contiguous(spec.values, np.dtype(np.uint8))
    return build_once(Call(gather, values, indices, None, None))


def _run(device: Device, plan: Plan, spec: Spec, addresses: tuple[int, ...]) -> None:
    data, indices, _, out, zeros = addresses
    operands = data, indices, 0, out
    placement = Placement.of(operands, False)
    nowhere = unaddressable(plan)
    if nowhere >= 0:
        plan_launches.raise_first(device, plan, placement, operands, nowhere)
    program = _program(plan, placement, device.processors, spec, zeros != 0)
    if checks.is_invalid(device.run_program(program, addresses)):
        plan_launches.raise_first(device, plan, placement, operands)


@native.emptied_at_exit
@lru_cache(maxsize=256)
def _program(
    plan: Plan, placement: Placement, processors: int, spec: Spec, has_zeros: bool
) -> DeviceProgram:
    """Return the program of a call. `placement` has no updates."""
    recorder, nest = Recorder(_ZEROS + 1), device_nest(plan)
    slots = Slot(DATA, placement.data), Slot(INDICES, placement.indices), Slot(_RESULT)
    recording = CallRecording(recorder, processors, plan, nest, *slots)
    record = checks.new_record(recording)
    if not nest.block:
        if record:
            checks.check_indices(recording, record)
    else:
        chunk_items, codes = recording.alignment(_MOST_VALUES, nest.block), spec.codes
        macros = recording.index_macros(plan.call.mode) | {
            "CHUNK_ITEMS": chunk_items,
            "CODE": f"code_{codes.value}",
            "CODE_BITS": codes.bits,
            "PACKED": int(codes.in_byte > 1),
            "SCALE": f"scale_{spec.scale}",
            "VALUE": kernels.value_macro(spec.result),
        }
        loops = (*nest.tuple_loops, *nest.row_chunk_loops(chunk_items))
        bits = offset_bits(kernel_tables.largest_number(loops, nest.components, WIDEST))
        leading_fields = [slots[0], slots[1], slots[2], checks.or_null(record), Slot(_SCALES)]
        leading_fields += [Slot(_ZEROS) if has_zeros else 0, *_divisors(spec, bits)]
        recording.launch_nest("dequantize", leading_fields, loops, nest.components, macros)
    checks.read_record(recording, record)
    return recorder.program()


def _divisors(spec: Spec, bits: int) -> list[Field]:
    """Return the fields that find the scale and the zero point of a value."""
    q = spec.quantize_axis
    behind, extent = prod(spec.values[q + 1 :]), spec.values[q]
    (zero,) = struct.unpack("=I", struct.pack("=f", spec.codes.zero))
    fields: list[Field] = [zero]
    for divisor in (behind, extent, spec.block_size):
        fields += kernel_tables.divisor_of(divisor, bits)
    return [
        *fields,
        -(-extent // spec.block_size),
        *kernel_tables.divisor_of(spec.scales[-1], bits),
    ]
