"""Run calls prepared by `gatherum.prepare` on arrays on a CUDA device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gatherum._arguments import conversion
from gatherum._functions.prepared_adapters import PreparedOnDevices, check_data
from gatherum._model.dtypes import AnyDType
from gatherum._model.errors import frameworks as framework_errors
from gatherum._plans.sharing import Sharing

from . import device_calls
from .device_views import DeviceFramework
from .driver import open_driver


class PreparedOnDevice(PreparedOnDevices):
    """A call on device arrays of one type, with indices that are already checked.

    `framework_of` returns the framework of an array on a device, or None for any other value.
    """

    def __init__(
        self, framework_of: Callable[[object], DeviceFramework | None], *call: Any
    ) -> None:
        super().__init__(*call)
        self._framework_of = framework_of

    def __call__(self, data: Any, updates: Any, out: Any, fill_value: Any) -> Any:
        """Run the call with the indices and their order on the device of the data."""
        op, framework = self.attributes.op, self._framework_of(data)
        if framework is None:
            return self.on_arrays(data, updates, out=out, fill_value=fill_value)
        view = framework.view(op, "data", data)
        check_data(op, self.like, view.spec.shape, view.spec.dtype)

        def fill_item(dtype: AnyDType) -> bytes:
            if not self.attributes.fills:
                return b""
            item = conversion.fill_item(op, dtype, fill_value).tobytes()
            return item if any(item) else b""

        device_number = view.device_number or 0
        owned = [value for value in (data, updates, out) if framework.owns(value)]
        device_and_stream = device_number, framework.stream(device_number, owned)
        indices, shared = self.indices_at(
            device_and_stream, lambda: self._copy(framework, data, *device_and_stream)
        )
        with Sharing(shared):
            return device_calls.call_on_device(
                framework, self.unchecked, data, indices, updates, fill_item, out
            )

    def _copy(
        self, framework: DeviceFramework, data: Any, device_number: int, stream: int
    ) -> tuple[Any, int]:
        """Copy the indices to a device. Return the copy and its address."""
        driver, host = open_driver(), self.indices
        with driver.on(device_number):
            if driver.captures(stream):
                raise framework_errors.copy_in_capture(self.attributes.op, "indices")
            array, address = framework.empty(host.shape, host.dtype, data, device_number, stream)
            driver.copy_to_device(address, host.ctypes.data, host.nbytes, stream)
        return array, address
