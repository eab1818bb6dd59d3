"""ONNX Runtime's GatherBlockQuantized operator, for ONNX's evaluator.

It is specified in ``docs/ContribOperators.md`` of ONNX Runtime's repository.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import onnx

from gatherum._functions.quantized import gather_quantized
from gatherum._model.arrays import NumpyArray
from gatherum._model.callers import renamed

from .operators import NodeOp

DOMAIN = "com.microsoft"
_FLOAT8 = ("float8_e4m3fn", "float8_e5m2")
_DATA = ("int4", "uint4", "uint8", *_FLOAT8)
_SCALES = ("float32", "float16", "bfloat16")
_INDICES = ("int32", "int64")
_LEAST_BLOCK = 16


class GatherBlockQuantized(NodeOp):
    """Slices of quantized `data`, dequantized. Invalid indices return zeros, as specified."""

    op_domain = DOMAIN
    op = "gather_quantized"
    names = ("data", "indices", "scales", "zero_points")
    defaults: ClassVar = {"gather_axis": 0, "quantize_axis": 1, "block_size": 128, "bits": 4}

    def __init__(
        self, onnx_node: onnx.NodeProto, run_params: dict[str, Any], schema: Any = None
    ) -> None:
        super().__init__(onnx_node, run_params, schema)
        inputs = list(onnx_node.input)
        if not 3 <= len(inputs) <= 4 or "" in inputs[:3]:
            raise ValueError(
                self._said(f"must have 3 or 4 inputs ({', '.join(self.names)}), got {inputs}")
            )
        for attribute in onnx_node.attribute:
            if attribute.name not in self.defaults:
                attribute_names = ", ".join(sorted(self.defaults))
                raise ValueError(
                    self._said(f"has no attribute `{attribute.name}` ({attribute_names})")
                )
            if attribute.type != onnx.AttributeProto.INT:
                raise ValueError(self._said(f"`{attribute.name}` must be INT"))

    def _run(
        self,
        data: NumpyArray,
        indices: NumpyArray,
        scales: NumpyArray,
        zero_points: NumpyArray | None = None,
        **attributes: Any,
    ) -> tuple[NumpyArray]:
        attributes = self.defaults | attributes
        try:
            self._require_types(data, indices, scales)
            block_size = self._block_size(data, attributes)
            return (
                gather_quantized(
                    data,
                    indices,
                    _stretched(data, scales, attributes["quantize_axis"]),
                    zero_points,
                    axis=attributes["gather_axis"],
                    quantize_axis=attributes["quantize_axis"],
                    block_size=block_size,
                    bits=None if data.dtype.name in _FLOAT8 else attributes["bits"],
                    dtype=scales.dtype.name,
                    mode="fill",
                ),
            )
        except (TypeError, ValueError) as error:
            raise type(error)(self._worded(error)) from error

    def _require_types(self, data: NumpyArray, indices: NumpyArray, scales: NumpyArray) -> None:
        rows = ("data", data, _DATA), ("indices", indices, _INDICES), ("scales", scales, _SCALES)
        for name, operand, types in rows:
            if operand.dtype.name not in types:
                raise TypeError(
                    f"`{name}` must be one of {', '.join(types)}, got {operand.dtype.name}"
                )

    def _block_size(self, data: NumpyArray, attributes: dict[str, Any]) -> int:
        """Return the number of values in a block, by the rules of the specification."""
        block_size: int = attributes["block_size"]
        if data.dtype.name == "uint8" and attributes["gather_axis"] not in (0, -data.ndim):
            raise ValueError(f"`gather_axis` must be 0 for uint8, got {attributes['gather_axis']}")
        if data.dtype.name in _FLOAT8 and block_size == 0:  # one block for the whole axis
            return int(max((1, *data.shape)))
        if block_size < _LEAST_BLOCK or block_size & (block_size - 1):
            raise ValueError(
                f"`block_size` must be a power of 2 from {_LEAST_BLOCK} on, got {block_size}"
            )
        return block_size

    def _worded(self, error: Exception) -> str:
        names = {"`axis`": "`gather_axis`"}
        return super()._worded(renamed(error, self.op, names, of=(self.op,)) or error)


def _stretched(data: NumpyArray, scales: NumpyArray, axis: int) -> NumpyArray:
    """Broadcast the scales of float8 data, where one scale may apply to a whole dimension."""
    if (
        data.dtype.name not in _FLOAT8
        or scales.ndim != data.ndim
        or not -data.ndim <= axis < data.ndim
    ):
        return scales
    shape = list(data.shape)
    shape[axis] = scales.shape[axis]
    if any(have not in (1, want) for have, want in zip(scales.shape, shape, strict=True)):
        return scales
    return np.broadcast_to(scales, shape)
