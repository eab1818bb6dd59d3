"""Run prepared calls of `gatherum.prepare` on tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gatherum._model import errors
from gatherum._model.call import ArraySpec, Attributes
from gatherum._plans.sharing import Shared
from gatherum.torch import dtypes, namespace, private
from gatherum.torch.autograd import recording

from . import api, tensor_calls


class PreparedOnTensors:
    """A call on tensors with indices that are already checked."""

    def __init__(
        self,
        attributes: Attributes,
        like: ArraySpec,
        indices: np.ndarray[Any, Any],
        on_arrays: Callable[..., Any],
    ) -> None:
        self._op, self._shape, self._kind = attributes.op, like.shape, like.dtype
        self._dtype = dtypes.of_name(like.dtype.name)
        self._function = getattr(api, attributes.op)
        self._keywords = attributes.keywords
        self._scatters = attributes.operator.scatters
        self._attributes = attributes
        self._indices = torch.from_numpy(indices.copy())
        self._on_arrays = on_arrays
        # By device, the indices there and their order.
        self._places: dict[torch.device, tuple[Tensor, Shared]] = {}

    def __call__(self, data: Any, updates: Any, out: Any, fill_value: Any) -> Any:
        """Run the call. Use the prepared order of updates if the call is not recorded."""
        if tuple(data.shape) != self._shape:
            raise errors.other_prepared_shape(self._op, self._shape, tuple(data.shape))
        if data.dtype != self._dtype:
            dtype = dtypes.plan_dtype(self._op, "data", data.dtype)
            raise errors.other_prepared_dtype(self._op, self._kind, dtype)
        if not torch.compiler.is_compiling() and namespace.on_device(data):
            return self._on_device(data, updates, out, fill_value)
        if not self._scatters:
            return self._function(
                data, self._indices.to(data.device), out=out, fill_value=fill_value,
                **self._keywords,
            )  # fmt: skip
        if not torch.compiler.is_compiling() and out is None and _are_plain(data, updates):
            return torch.from_numpy(self._on_arrays(data.numpy(), updates.numpy()))
        indices = self._indices.to(data.device)
        return self._function(data, indices, updates, out=out, **self._keywords)

    def _on_device(self, data: Tensor, updates: Any, out: Any, fill_value: Any) -> Any:
        """Run the call with the indices and their order on the device of the data."""
        indices, shared = self._place(data.device)
        attributes = self._attributes
        if attributes.mode == "raise":  # checked already: the call does not wait
            attributes, fill_value = attributes._replace(mode="drop"), 0
        with namespace.sharing_calls(shared), errors.for_tensors():
            if out is None and self._scatters and _are_unobserved(data, updates):
                from gatherum.torch import cuda

                return cuda.run(attributes, data, indices, updates, 0, None)
            return tensor_calls.call(attributes, data, indices, updates, fill_value, out)

    def _place(self, device: torch.device) -> tuple[Tensor, Shared]:
        """Return the indices on a device, copied by the first call, and their shared results."""
        place = self._places.get(device)
        if place is None:
            with torch.inference_mode(False):  # a tensor of inference mode has no gradients
                indices = self._indices.to(device)
            place = self._places[device] = indices, Shared(address=indices.data_ptr())
        return place


def _are_unobserved(*tensors: Any) -> bool:
    """Return True if all operands are plain tensors and the call is not recorded."""
    if private.transforms_active() or private.count_dispatch_modes():
        return False
    return all(type(tensor) is Tensor for tensor in tensors) and not recording.records(tensors)


def _are_plain(*tensors: Any) -> bool:
    """Return True if all tensors are plain CPU tensors and the call is not recorded."""
    return _are_unobserved(*tensors) and all(
        tensor.device.type == "cpu"
        and tensor.layout is torch.strided
        and dtypes.is_of_numpy(tensor.dtype)
        and not (tensor.is_conj() or tensor.is_neg() or tensor.requires_grad)
        for tensor in tensors
    )
