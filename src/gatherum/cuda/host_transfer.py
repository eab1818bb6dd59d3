"""Run the six functions on NumPy arrays on a device, for checks and benchmarks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from gatherum._model.arrays import NumpyArray
from gatherum._model.operators import OPERATORS

from .adapter import FUNCTIONS


@dataclass(frozen=True, slots=True)
class OnDevice:
    """Copy operands to a device, call `gatherum.cuda`, and copy the result back."""

    name: str  # of the device and of the framework in use
    to_device: Callable[[NumpyArray], Any]  # converts a NumPy array to a device array
    # Converts a device array and its dtype to a NumPy array.
    to_host: Callable[[Any, np.dtype[Any]], NumpyArray]

    def __getattr__(self, op: str) -> Callable[..., NumpyArray]:
        if op not in OPERATORS:
            raise AttributeError(op)
        return partial(self._call, op)

    def _call(self, op: str, *operands: Any, **attributes: Any) -> NumpyArray:
        result = FUNCTIONS.named(op)(*map(self._on_device, operands), **attributes)
        return self.to_host(result, operands[0].dtype)

    def _on_device(self, value: Any) -> Any:
        """Return an array on the device. Return lists and numbers unchanged."""
        if not isinstance(value, np.ndarray):
            return value
        return self.to_device(value.astype(value.dtype.newbyteorder("="), copy=False))


def functions() -> OnDevice | None:
    """Return the six functions for NumPy arrays, run on CuPy's current device.

    Return None if CuPy finds no device.
    """
    cupy: Any = import_module("cupy")
    if not cupy.cuda.is_available():
        return None
    device_number = cupy.cuda.Device().id
    device_name = cupy.cuda.runtime.getDeviceProperties(device_number)["name"].decode()

    def to_host(array: Any, dtype: np.dtype[Any]) -> NumpyArray:
        values: NumpyArray = cupy.asnumpy(array).view(dtype)
        return values

    name = f"cuda:{device_number}, {device_name}, arrays of CuPy {cupy.__version__}"
    return OnDevice(name, cupy.array, to_host)
