"""Runs the six functions on NumPy arrays by the kernels on the shim."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

import gatherum
from canaries import guarded, strays
from gatherum._arguments import conversion
from gatherum.cuda.device import Device
from gatherum.cuda.plan_launches import program_of, run

from .device import ShimDevice

__all__ = ["ShimFunctions"]

Array = NDArray[Any]


class ShimFunctions:
    """Six functions, for `strategies.Call.run` and `cases.Case.run`.

    `last` is the device of the last call.
    """

    def __init__(self, new_device: Callable[[], ShimDevice] = ShimDevice) -> None:
        self.new_device = new_device
        self.last = new_device()

    def __getattr__(self, op: str) -> Callable[..., Array]:
        if op not in gatherum._model.operators.OPERATORS:
            raise AttributeError(op)
        return lambda *operands, **attributes: self.call(op, *operands, **attributes)

    def call(
        self,
        op: str,
        data: Array,
        indices: Array,
        updates: Array | None = None,
        *,
        out: Array | None = None,
        **attributes: Any,
    ) -> Array:
        fill = attributes.pop("fill_value", 0)
        data, indices = conversion.as_array(op, "data", data), conversion.as_indices(op, indices)
        if updates is not None:  # an array, a scalar or a list
            updates = conversion.as_updates(op, updates, data.dtype)
        plan = gatherum.plan(op, data, indices, updates, **attributes, out=out)
        result = guarded(plan.shape, data.dtype) if out is None else out
        item = b""
        if plan.call.mode in ("fill", "drop") and updates is None:
            item = conversion.fill_item(op, data.dtype, fill).tobytes()
        self.last = self.new_device()
        device: Device = self.last
        program_of.cache_clear()  # tests replace thresholds
        run(device, plan, *map(address, (data, indices, updates, result)), item)
        assert not self.last.strays()
        assert out is not None or strays(result) == []
        return result


def address(array: Array | None) -> int:
    """Return the address of an array's first element, or 0 for None."""
    return 0 if array is None else int(array.__array_interface__["data"][0])
