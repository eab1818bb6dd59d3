"""The six functions on arrays that are on a CUDA device: one line each."""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

from .. import conversion, frameworks
from ..call import Attributes
from ..dtypes import AnyDType
from ..names import ModeName, ReductionName
from . import errors as cuda_errors
from .execute import call
from .protocols import Protocols
from .views import Framework


def gather(
    data: Any,
    indices: Any,
    axis: int = 0,
    *,
    mode: ModeName = "raise",
    negative: bool = True,
    fill_value: object = 0,
) -> Any:
    """Take slices of an array along one axis, by their numbers: see `gatherum.gather`."""
    return _run("gather", data, indices, None, axis, "none", True, mode, negative, fill_value)


def gather_elements(
    data: Any,
    indices: Any,
    axis: int = 0,
    *,
    mode: ModeName = "raise",
    negative: bool = True,
    fill_value: object = 0,
) -> Any:
    """Take one element of an array for every index: see `gatherum.gather_elements`."""
    return _run(
        "gather_elements", data, indices, None, axis, "none", True, mode, negative, fill_value
    )


def gather_nd(
    data: Any,
    indices: Any,
    batch_dims: int = 0,
    *,
    mode: ModeName = "raise",
    negative: bool = True,
    fill_value: object = 0,
) -> Any:
    """Take elements or slices of an array by tuples of indices: see `gatherum.gather_nd`."""
    return _run(
        "gather_nd", data, indices, None, batch_dims, "none", True, mode, negative, fill_value
    )


def scatter_slices(
    data: Any,
    indices: Any,
    updates: Any,
    axis: int = 0,
    *,
    reduction: ReductionName = "none",
    include_self: bool = True,
    mode: ModeName = "raise",
    negative: bool = True,
) -> Any:
    """Write slices along one axis, by their numbers: see `gatherum.scatter_slices`."""
    return _run(
        "scatter_slices", data, indices, updates, axis, reduction, include_self, mode, negative, 0
    )


def scatter_elements(
    data: Any,
    indices: Any,
    updates: Any,
    axis: int = 0,
    *,
    reduction: ReductionName = "none",
    include_self: bool = True,
    mode: ModeName = "raise",
    negative: bool = True,
) -> Any:
    """Write one element for every index: see `gatherum.scatter_elements`."""
    return _run(
        "scatter_elements", data, indices, updates, axis, reduction, include_self, mode, negative, 0
    )


def scatter_nd(
    data: Any,
    indices: Any,
    updates: Any,
    batch_dims: int = 0,
    *,
    reduction: ReductionName = "none",
    include_self: bool = True,
    mode: ModeName = "raise",
    negative: bool = True,
) -> Any:
    """Write elements or slices by tuples of indices: see `gatherum.scatter_nd`."""
    return _run(
        "scatter_nd", data, indices, updates, batch_dims, reduction, include_self, mode, negative, 0
    )


_protocols = Protocols()


@cache
def _cupy() -> Framework:
    from .cupy import CuPy

    return CuPy()


def _framework_of(value: object) -> Framework | None:
    """Return the framework of an array on a CUDA device, None for any other value."""
    if (found := frameworks.foreign(type(value))) is None:
        return None
    if found.framework.name == "cupy":
        loaded = "cupy" in sys.modules
        return _cupy() if loaded and _cupy().owns(value) else None
    return _protocols if found.framework is frameworks.CUDA and _protocols.owns(value) else None


def is_on_cuda(value: object) -> bool:
    """Whether a value is an array of a framework of this room, on a CUDA device."""
    return _framework_of(value) is not None


def _run(
    op: str, data: Any, indices: Any, updates: Any, axis: Any, reduction: Any, include_self: Any,
    mode: Any, negative: Any, fill_value: Any,
) -> Any:  # fmt: skip
    _, *attributes = conversion.as_attributes(
        op, axis, reduction, include_self, mode, negative
    ).positional
    operands = {"data": data, "indices": indices, "updates": updates, "fill_value": fill_value}
    frameworks.check_one_framework(op, operands)
    if not frameworks.is_on_cuda(data):
        raise cuda_errors.not_on_cuda(
            op, "data", type(data).__name__, getattr(data, "device", None)
        )
    to = frameworks.room_for(type(data))
    if to is None:
        raise AssertionError("what is on a device has a room")
    return to(op, data, indices, updates, *attributes, fill_value, None)


def room(
    op: str, data: Any, indices: Any, updates: Any, axis: Any, reduction: Any, include_self: Any,
    mode: Any, negative: Any, fill_value: Any, out: Any,
) -> Any:  # fmt: skip
    """Take the arguments of a functional call on arrays of CuPy, or with a CUDA protocol."""
    attributes = Attributes(op, axis, mode, negative, reduction, include_self)
    if (framework := _framework_of(data)) is None:  # of a type that may be on a device, and is not
        return conversion.normalise(
            op, data, indices, updates, *attributes.positional[1:], fill_value, out
        )
    if out is not None:
        raise cuda_errors.no_cuda_out(op)

    def fill(dtype: AnyDType) -> bytes:
        item = conversion.fill_item(op, dtype, fill_value).tobytes()
        return item if any(item) else b""

    return call(framework, attributes, data, indices, updates, fill)


def look(op: str, operand: str, value: object) -> object:
    """Return what a plan sees of an array: its shape, dtype and strides."""
    if (framework := _framework_of(value)) is None:
        return value
    return framework.view(op, operand, value).spec.plain
