"""`gatherum.gather_quantized` on tensors: ``torch.ops.gatherum.gather_quantized``.

Only the scales have a gradient. Except for rounding, the result is linear in them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from gatherum._arguments import conversion
from gatherum._functions import quantized
from gatherum._functions.quantized.formats import NAME
from gatherum._functions.quantized.gather import run_on_arrays
from gatherum._functions.quantized.spec import QuantizedAttributes, Spec, codes_of, spec_of
from gatherum._model import errors
from gatherum.torch import checks, dtypes, operands
from gatherum.torch import errors as torch_errors
from gatherum.torch.library.ops import LIBRARY, overload

_OPERANDS = ("data", "indices", "scales", "zero_points")


@torch.compiler.allow_in_graph  # type: ignore[untyped-decorator]
def gather_quantized(data: Tensor, *operands: Any, **options: Any) -> Any:
    """Gather slices of a quantized tensor and dequantize them; see `gatherum.gather_quantized`."""
    return quantized.gather_quantized(data, *operands, **options)


def run(
    attributes: QuantizedAttributes, data: Any, indices: Any, scales: Any, zero_points: Any
) -> Tensor:
    """Run `gather_quantized` with a tensor as data."""
    checks.check_container(NAME, "data", data)
    zero_point_tensor = (
        None if zero_points is None else _as_tensor("zero_points", zero_points, data)
    )
    scale_tensor = _as_tensor("scales", scales, data)
    with errors.for_tensors():
        index_tensor = operands.as_indices(NAME, indices, data)
    result: Tensor = overload(NAME)(
        data, index_tensor, scale_tensor, zero_point_tensor, *attributes
    )
    return result


def _as_tensor(operand: str, value: Any, data: Tensor) -> Tensor:
    if isinstance(value, Tensor):
        return value
    checks.check_container(NAME, operand, value)
    with errors.for_tensors():
        array = conversion.as_array(NAME, operand, value)
    return operands.as_tensor(NAME, operand, array, data)


def _checked_spec(
    attributes: QuantizedAttributes,
    data: Tensor,
    indices: Tensor,
    scales: Tensor,
    zero_points: Tensor | None,
) -> Spec:
    """Check tensors, but not their values."""
    tensors = (data, indices, scales, zero_points)
    for name, tensor in zip(_OPERANDS, tensors, strict=True):
        if tensor is not None:
            checks.check_dense(NAME, name, tensor, data.device)
            if name != "scales" and tensor.requires_grad:
                raise torch_errors.no_gradient_of(NAME, name)
    if scales.requires_grad and scales.dtype.itemsize == 1:
        raise torch_errors.no_gradient_of(NAME, "scales")
    if indices.is_floating_point() or indices.is_complex() or indices.dtype == torch.bool:
        dtype = dtypes.plan_dtype(NAME, "indices", indices.dtype)
        with errors.for_tensors():
            raise errors.not_an_index_dtype(NAME, dtype, False)
    described = [
        None if t is None else (tuple(t.shape), _dtype_name(t)) for t in (data, scales, zero_points)
    ]
    with errors.for_tensors():
        return spec_of(attributes, *described)  # type: ignore[arg-type]  # two of them are there


def _dtype_name(tensor: Tensor) -> str:
    return str(dtypes.plan_dtype(NAME, "data", tensor.dtype).name)


def _on_cpu(
    data: Tensor, indices: Tensor, scales: Tensor, zero_points: Tensor | None, *options: Any
) -> Tensor:
    attributes = QuantizedAttributes(*options)
    spec = _checked_spec(attributes, data, indices, scales, zero_points)
    tensors = (data, indices, scales, *([] if zero_points is None else [zero_points]))
    checks.check_storages(NAME, _OPERANDS, tensors)
    table, index_array, scale_array, *zero_point_arrays = map(dtypes.as_array, tensors)
    stored_dtype = np.dtype(np.float32 if spec.result == "float32" else np.uint16)
    with errors.for_tensors():
        result = run_on_arrays(
            attributes,
            spec,
            table,
            index_array,
            scale_array,
            zero_point_arrays[0] if zero_point_arrays else None,
            stored_dtype,
        )
    return torch.from_numpy(result).view(_result_dtype(attributes))


def _result_dtype(attributes: QuantizedAttributes) -> torch.dtype:
    dtype: torch.dtype = getattr(torch, attributes.result)
    return dtype


def _on_cuda(
    data: Tensor, indices: Tensor, scales: Tensor, zero_points: Tensor | None, *options: Any
) -> Tensor:
    from gatherum.torch import cuda

    attributes = QuantizedAttributes(*options)
    _checked_spec(attributes, data, indices, scales, zero_points)
    tensors = (data, indices, scales, *([] if zero_points is None else [zero_points]))
    checks.check_storages(NAME, _OPERANDS, tensors)
    with errors.for_tensors():
        return cuda.gather_quantized(
            attributes, data, indices, scales, zero_points, _result_dtype(attributes)
        )


def _refuse_device(data: Tensor, *arguments: Any) -> Tensor:
    for name, tensor in zip(_OPERANDS, (data, *arguments[:3]), strict=True):
        if tensor is not None:
            checks.check_dense(NAME, name, tensor, data.device)
    raise torch_errors.no_device(NAME, str(data.device))


def _fake(
    data: Tensor, indices: Tensor, scales: Tensor, zero_points: Tensor | None, *options: Any
) -> Tensor:
    attributes = QuantizedAttributes(*options)
    spec = _checked_spec(attributes, data, indices, scales, zero_points)
    shape = spec.result_shape(tuple(indices.shape))
    return data.new_empty(shape, dtype=_result_dtype(attributes))


def _save_inputs(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    data, indices, scales, zero_points, *options = inputs
    ctx.save_for_backward(data, indices, *([] if zero_points is None else [zero_points]))
    ctx.attributes, ctx.shape = QuantizedAttributes(*options), tuple(scales.shape)
    ctx.dtype = scales.dtype


def _backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
    """Return the gradient of the scales.

    It is the sum, over each block, of the gradient times the values before scaling.
    """
    no_gradients = (None,) * (len(QuantizedAttributes._fields) + 1)
    if not ctx.needs_input_grad[2]:
        return None, None, None, *no_gradients
    data, indices, *zero_points = ctx.saved_tensors
    attributes = ctx.attributes._replace(result="float32")
    ones = torch.ones(ctx.shape, device=data.device)
    values = overload(NAME)(
        data, indices, ones, zero_points[0] if zero_points else None, *attributes
    )
    scaled = gradient.float() * values
    rank = len(ctx.shape)
    axis, quantize_axis = attributes.axis % rank, attributes.quantize_axis % rank
    block_size = attributes.block_size
    if quantize_axis != axis:
        result_axis = quantize_axis if quantize_axis < axis else quantize_axis + indices.dim() - 1
        scaled = _block_sums(scaled, result_axis, block_size, ctx.shape[quantize_axis])
        block_size = 1
    positions = torch.arange(_value_count(data, attributes, axis), device=data.device)
    block_numbers = overload("gather")(
        positions // block_size, indices, 0, attributes.mode, attributes.negative, -1
    )
    zero = torch.zeros(ctx.shape, device=data.device)
    scaled = overload("scatter_slices")(
        zero, block_numbers, scaled, axis, "add", True, "drop", False
    )
    return None, None, scaled.to(ctx.dtype), *no_gradients


def _value_count(data: Tensor, attributes: QuantizedAttributes, axis: int) -> int:
    """Return the number of values along the axis."""
    in_byte = codes_of(_dtype_name(data), attributes.bits).in_byte if axis == data.dim() - 1 else 1
    return int(data.shape[axis]) * in_byte


def _block_sums(x: Tensor, dim: int, block_size: int, block_count: int) -> Tensor:
    """Sum the blocks of a dimension in order, so that all devices return the same bits."""
    block_numbers = torch.arange(x.shape[dim], device=x.device) // block_size
    zeros = x.new_zeros((*x.shape[:dim], block_count, *x.shape[dim + 1 :]))
    sums: Tensor = overload("scatter_slices")(
        zeros, block_numbers, x, dim, "add", True, "drop", False
    )
    return sums


_SCHEMA = (
    "(Tensor data, Tensor indices, Tensor scales, Tensor? zero_points, int axis, "
    "int quantize_axis, int block_size, int? bits, str result, str bounds, bool negative) -> Tensor"
)
LIBRARY.define(NAME + _SCHEMA, tags=torch.Tag.pt2_compliant_tag)
LIBRARY.impl(NAME, _on_cpu, "CPU")
LIBRARY.impl(NAME, _on_cuda, "CUDA")
LIBRARY.impl(NAME, _refuse_device, "CompositeExplicitAutograd")
torch.library.register_fake(f"gatherum::{NAME}", _fake, lib=LIBRARY)
torch.library.register_autograd(
    f"gatherum::{NAME}", _backward, setup_context=_save_inputs, lib=LIBRARY
)
