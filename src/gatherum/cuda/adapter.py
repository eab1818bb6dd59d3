"""Run calls on arrays that are on a CUDA device."""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

from gatherum._arguments import conversion, plain_values
from gatherum._frameworks import registry
from gatherum._frameworks.operator_functions import OutputFunctions
from gatherum._frameworks.registry import Framework, source_named
from gatherum._functions.accumulator import Accumulator
from gatherum._functions.quantized.formats import NAME
from gatherum._functions.quantized.spec import QuantizedAttributes
from gatherum._model.call import Attributes
from gatherum._model.dtypes import AnyDType
from gatherum._system import native

from . import driver, nvidia, replays
from . import errors as cuda_errors
from .accumulator import DeviceAccumulator
from .array_protocols import DeviceArray, MemorySlice, Protocols
from .device_calls import call_on_device
from .device_views import DeviceFramework
from .prepared import PreparedOnDevice
from .quantized import gather_quantized

_protocols = Protocols()
# Types of arrays that the core reads itself.
_types_of_core: set[type] = set()


def _sorter(arena: Any, stream: int, device_number: int) -> nvidia.Sorter:
    """Return the sort for one replay, whose scratch memory is `arena`."""
    return nvidia.sorter(_protocols, MemorySlice(arena, 0), device_number, stream)


def _register_types_in_core(*operands: object) -> None:
    """Let the core run later calls on arrays of these types if these have the CUDA interface."""
    for array_type in {type(operand) for operand in operands} - _types_of_core:
        foreign = registry.foreign_type(array_type)
        is_ours = foreign is not None and foreign.source is registry.CUDA
        if is_ours and hasattr(array_type, "__cuda_array_interface__"):
            if not _types_of_core:
                native.set_device_arrays(replays.make_program, _sorter, DeviceArray)
            _types_of_core.add(array_type)
            native.add_device_type(array_type)


@cache
def _cupy() -> DeviceFramework:
    from .cupy import CuPy

    return CuPy()


def _framework_of(value: object) -> DeviceFramework | None:
    """Return the framework of an array on a CUDA device, or None for any other value."""
    if (foreign := registry.foreign_type(type(value))) is None:
        return None
    if foreign.source.name == "cupy":
        loaded = "cupy" in sys.modules
        return _cupy() if loaded and _cupy().owns(value) else None
    return _protocols if foreign.source is registry.CUDA and _protocols.owns(value) else None


def _run(op: str, data: Any, indices: Any, updates: Any, *arguments: Any) -> Any:
    *options, fill_value, out = arguments
    attributes = plain_values.as_attributes(op, *options)
    operands = {"data": data, "indices": indices, "updates": updates, "fill_value": fill_value}
    operands["out"] = out
    registry.check_one_framework(op, operands)
    adapter = registry.adapter_of(type(data))
    if adapter is None or adapter.device(data) != "cuda":
        device = getattr(data, "device", None)
        raise cuda_errors.not_on_cuda(op, "data", type(data).__name__, device)
    return adapter.call(attributes, data, indices, updates, fill_value, out)


FUNCTIONS: OutputFunctions[Any] = OutputFunctions(__name__, _run)


class _Accumulator(DeviceAccumulator):
    """An accumulator of a CuPy array or of an array that implements a protocol."""

    @staticmethod
    def _framework_of(data: Any) -> DeviceFramework:
        framework = _framework_of(data)
        assert framework is not None  # Accumulator.__new__ has checked it
        return framework


class CudaAdapter(Framework):
    """Adapter for arrays on a CUDA device: CuPy arrays and arrays with a protocol."""

    def __init__(self, name: str) -> None:
        source = source_named(name)
        self.name, self.to_numpy = name, source.to_numpy
        self.modules: tuple[str, ...] = () if source is registry.CUDA else (name,)

    def owns(self, array_type: type) -> bool:
        """Return True. Whether an array is on a device depends on the array, not on its type."""
        return True

    def call(
        self,
        attributes: Attributes,
        data: Any,
        indices: Any,
        updates: Any,
        fill_value: object,
        out: object,
    ) -> Any:
        """Run a call on the device. Return the result, or `out`."""
        if (framework := _framework_of(data)) is None:
            return NotImplemented

        def fill_item(dtype: AnyDType) -> bytes:
            item = conversion.fill_item(attributes.op, dtype, fill_value).tobytes()
            return item if any(item) else b""

        result = call_on_device(framework, attributes, data, indices, updates, fill_item, out)
        if framework is _protocols and driver.open_driver().replays:
            _register_types_in_core(data, indices, updates)
        return result

    def quantized(
        self, attributes: QuantizedAttributes, data: Any, indices: Any, scales: Any, zeros: Any
    ) -> Any:
        """Run `gatherum.gather_quantized` on an array on a device."""
        if (framework := _framework_of(data)) is None:
            raise cuda_errors.not_on_cuda(NAME, "data", type(data).__name__, None)
        return gather_quantized(framework, attributes, data, indices, scales, zeros, data)

    @staticmethod
    def prepared(*call: Any) -> PreparedOnDevice:
        """Return the function that runs a call prepared by `gatherum.prepare`."""
        return PreparedOnDevice(_framework_of, *call)

    def accumulator(self, data: Any) -> type[Accumulator] | None:
        """Return the accumulator class for an array on a device."""
        return None if _framework_of(data) is None else _Accumulator

    def spec(self, op: str, operand: str, value: Any) -> Any:
        """Return the spec of an array on a device. Return any other value unchanged."""
        framework = _framework_of(value)
        return value if framework is None else framework.view(op, operand, value).spec

    def device(self, value: Any) -> str:
        """Return "cuda" for an array on a device, and "cpu" for any other value."""
        return "cpu" if _framework_of(value) is None else "cuda"
