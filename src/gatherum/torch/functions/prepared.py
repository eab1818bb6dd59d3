"""Run calls prepared by `gatherum.prepare` on tensors."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gatherum._functions.prepared_adapters import PreparedOnDevices, check_data
from gatherum._model import errors
from gatherum._model.call import ArraySpec, Attributes
from gatherum.torch import dtypes, private, shared_results
from gatherum.torch.autograd import recording

from . import api, tensor_calls


class PreparedOnTensors(PreparedOnDevices):
    """A call on tensors with indices that are already checked."""

    def __init__(self, attributes: Attributes, like: ArraySpec, *call: Any) -> None:
        super().__init__(attributes, like, *call)
        self._dtype = dtypes.of_name(like.dtype.name)
        self._function = getattr(api, attributes.op)
        self._keywords = attributes.keywords
        self._scatters = attributes.operator.scatters
        self._indices = torch.from_numpy(self.indices.copy())

    def __call__(self, data: Any, updates: Any, out: Any, fill_value: Any) -> Any:
        """Run the call. Use the prepared order of updates if the call is not recorded."""
        op, dtype = self.attributes.op, self.like.dtype
        if data.dtype != self._dtype:
            dtype = dtypes.plan_dtype(op, "data", data.dtype)
        check_data(op, self.like, tuple(data.shape), dtype)
        if not torch.compiler.is_compiling() and shared_results.on_device(data):
            return self._on_device(data, updates, out, fill_value)
        if not self._scatters:
            return self._function(
                data, self._indices.to(data.device), out=out, fill_value=fill_value,
                **self._keywords,
            )  # fmt: skip
        if not torch.compiler.is_compiling() and out is None and _are_plain(data, updates):
            return torch.from_numpy(self.on_arrays(data.numpy(), updates.numpy()))
        indices = self._indices.to(data.device)
        return self._function(data, indices, updates, out=out, **self._keywords)

    def _on_device(self, data: Tensor, updates: Any, out: Any, fill_value: Any) -> Any:
        """Run the call with the indices and their order on the device of the data."""

        def copy() -> tuple[Tensor, int]:
            with torch.inference_mode(False):  # a tensor of inference mode has no gradients
                indices = self._indices.to(data.device)
            return indices, indices.data_ptr()

        indices, shared = self.indices_at(data.device, copy)
        if not self.attributes.fills:
            fill_value = 0
        attributes = self.unchecked
        with shared_results.sharing_calls(shared), errors.for_tensors():
            if out is None and self._scatters and _are_unobserved(data, updates):
                from gatherum.torch import cuda

                return cuda.run(attributes, data, indices, updates, 0, None)
            return tensor_calls.call(attributes, data, indices, updates, fill_value, out)


def _are_unobserved(*tensors: Any) -> bool:
    """Return True if all operands are plain tensors and the call is not recorded."""
    if private.transforms_active() or private.count_dispatch_modes():
        return False
    return all(type(tensor) is Tensor for tensor in tensors) and not recording.requires_recording(
        tensors
    )


def _are_plain(*tensors: Any) -> bool:
    """Return True if all tensors are plain CPU tensors and the call is not recorded."""
    return _are_unobserved(*tensors) and all(
        tensor.device.type == "cpu"
        and tensor.layout is torch.strided
        and dtypes.is_of_numpy(tensor.dtype)
        and not (tensor.is_conj() or tensor.is_neg() or tensor.requires_grad)
        for tensor in tensors
    )
