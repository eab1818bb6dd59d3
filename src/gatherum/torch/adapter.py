"""Run calls on tensors that the core does not run itself."""

from __future__ import annotations

import sys
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from gatherum._edges.edge_reductions import NAME, AggregateOptions
from gatherum._frameworks.registry import Framework, source_named
from gatherum._model import errors
from gatherum._model.call import ArraySpec, Attributes
from gatherum.torch.functions.tensor_calls import call

from . import checks, dlpack, namespace
from .functions import aggregation, prepared, quantized
from .strategies import strategy


class TorchAdapter(Framework):
    """Adapter for PyTorch."""

    name = "torch"
    modules = ("torch",)
    to_numpy = source_named("torch").to_numpy
    groups = namespace
    prepared = prepared.PreparedOnTensors
    quantized = staticmethod(quantized.run)
    array_types = Tensor, torch.nn.Parameter

    def aggregate(
        self,
        data: Any,
        sources: Any,
        targets: Any,
        options: AggregateOptions,
        weights: Any,
        out: Any,
    ) -> Tensor:
        """Run `gatherum.aggregate` on a tensor."""
        checks.check_out_tensor(NAME, out)
        return aggregation.run(data, sources, targets, options, weights, out)

    def accumulator(self, data: Any) -> Any:
        """Return the accumulator class for a tensor on a CUDA device, or None on other devices."""
        if self.device(data) != "cuda":
            return None
        from gatherum.torch import cuda

        return cuda.TensorAccumulator

    def owns(self, array_type: type) -> bool:
        """Return True for a tensor type or the type of a graph proxy."""
        fx = sys.modules.get("torch.fx")
        return issubclass(array_type, Tensor) or (
            fx is not None and issubclass(array_type, fx.Proxy)
        )

    def call(
        self,
        attributes: Attributes,
        data: Any,
        indices: Any,
        updates: Any,
        fill_value: object,
        out: object,
    ) -> Tensor:
        """Run a call that the core declined. The core handles most calls on plain CPU tensors
        itself.
        """
        checks.check_container(attributes.op, "data", data)
        with errors.for_tensors():
            return call(attributes, data, indices, updates, fill_value, out)

    def spec(self, op: str, operand: str, value: Any) -> NDArray[Any] | ArraySpec:
        """Return an array of a tensor's memory, or its spec if NumPy cannot read the values.

        NumPy cannot read memory on other devices, lazy conjugates and dtypes that only torch has.
        """
        checks.check_container(op, operand, value)
        return dlpack.array_or_spec(op, operand, value)

    def describe(self, attributes: Attributes, data: Any, indices: Any, updates: Any) -> str:
        """Return the strategy of a call with the default `out` and `fill_value`."""
        return strategy(data, indices, updates)

    def device(self, value: Any) -> str:
        """Return "cuda" for a tensor on a CUDA device, and "cpu" for any other value."""
        return "cuda" if isinstance(value, Tensor) and value.is_cuda else "cpu"
