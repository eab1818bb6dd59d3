"""Run prepared calls of `gatherum.prepare` on arrays on a CUDA device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gatherum._arguments import conversion
from gatherum._model import errors
from gatherum._model.call import ArraySpec, Attributes
from gatherum._model.dtypes import AnyDType
from gatherum._model.errors import frameworks as framework_errors
from gatherum._plans.sharing import Shared, Sharing

from . import device_calls
from .device_views import DeviceFramework, View
from .driver import open_driver


class PreparedOnDevice:
    """A call on device arrays of one type, with indices that are already checked.

    `framework_of` returns the framework of an array on a device, or None for any other value.
    """

    def __init__(
        self,
        framework_of: Callable[[object], DeviceFramework | None],
        attributes: Attributes,
        like: ArraySpec,
        indices: NDArray[Any],
        on_arrays: Callable[..., Any],
    ) -> None:
        self._framework_of, self._on_arrays = framework_of, on_arrays
        self._like, self._indices = like, np.ascontiguousarray(indices)
        self._fills = attributes.fills
        if attributes.mode == "raise":  # checked already: the call does not wait
            attributes = attributes._replace(mode="drop")
        self._attributes = attributes
        # By device and stream, the indices there and their order.
        self._places: dict[tuple[int, int], tuple[Any, Shared]] = {}

    def __call__(self, data: Any, updates: Any, out: Any, fill_value: Any) -> Any:
        """Run the call with the indices and their order on the device of the data."""
        op, framework = self._attributes.op, self._framework_of(data)
        if framework is None:
            return self._on_arrays(data, updates, out=out, fill_value=fill_value)
        view = framework.view(op, "data", data)
        if view.spec.shape != self._like.shape:
            raise errors.other_prepared_shape(op, self._like.shape, view.spec.shape)
        if view.spec.dtype != self._like.dtype:
            raise errors.other_prepared_dtype(op, self._like.dtype, view.spec.dtype)

        def fill(dtype: AnyDType) -> bytes:
            if not self._fills:
                return b""
            item = conversion.fill_item(op, dtype, fill_value).tobytes()
            return item if any(item) else b""

        indices, shared = self._place(framework, view, [data, updates, out])
        with Sharing(shared):
            call = self._attributes, data, indices, updates, fill, out
            return device_calls.call(framework, *call)

    def _place(self, framework: DeviceFramework, view: View, operands: list[Any]) -> Any:
        """Return the indices on a device, copied by the first call, and their shared results."""
        device = view.device or 0
        owned = [value for value in operands if framework.owns(value)]
        stream = framework.stream(device, owned)
        place = self._places.get((device, stream))
        if place is None:
            driver, host = open_driver(), self._indices
            with driver.on(device):
                if driver.captures(stream):
                    raise framework_errors.copy_in_capture(self._attributes.op, "indices")
                like = operands[0], device, stream
                array, address = framework.empty(host.shape, host.dtype, *like)
                driver.copy_in(address, host.ctypes.data, host.nbytes, stream)
            place = self._places[device, stream] = array, Shared(address=address)
        return place
