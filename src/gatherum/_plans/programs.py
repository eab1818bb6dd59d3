"""Compile a call to a program: check it here, then check its shapes and lower it in the core."""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

from gatherum import _core
from gatherum._arguments.checks import check_attributes, check_dtypes, check_out_dtype, shape_error
from gatherum._model.call import Call
from gatherum._model.dtypes import index_fields
from gatherum._model.errors import Shape
from gatherum._model.nests import Nest
from gatherum._system import native


class Compiled(NamedTuple):
    """The fields of a plan except its call; `plans.Plan` describes them."""

    shape: Shape
    kernel: str
    nest: Nest
    bytes: int
    program: native.Program


def compile_call(call: Call) -> Compiled:
    """Check attributes, dtypes, shapes and `out`, in this order, and lower a call."""
    check_attributes(call)
    check_dtypes(call)
    # Errors of the inputs are raised before errors of `out`.
    has_same_dtype = call.out is not None and call.out.dtype == call.data.dtype
    lowered = _core.lower(
        call.operator.addressing.shape_flags,
        call.resolved_axis,
        call.data.layout,
        call.indices.layout,
        None if call.updates is None else call.updates.layout,
        call.out.layout if has_same_dtype and call.out is not None else None,
        _fields(call),
    )
    if not isinstance(lowered[0], native.Program):
        raise shape_error(call, lowered)
    program, moved_shape = lowered
    if call.out is not None and not has_same_dtype:
        check_out_dtype(call.op, call.data.dtype, call.out.dtype)
    nest, moved_bytes = Nest.of(program.nest), _bytes_moved(call, moved_shape)
    return Compiled(program.shape, _core.kernel_name(program), nest, moved_bytes, program)


def _fields(call: Call) -> dict[str, Any]:
    """Return the fields of the program that do not depend on shapes."""
    return {
        **index_fields(call.indices.dtype, call.mode, call.negative),
        "scatter": call.operator.scatters,
        "item": call.data.dtype.itemsize,
        **call.attributes.fold.fields(call.data.dtype),
    }


def _bytes_moved(call: Call, moved_shape: Shape) -> int:
    item = call.data.dtype.itemsize
    index_bytes = prod(call.indices.shape) * call.indices.dtype.itemsize
    bytes_moved = 2 * prod(moved_shape) * item + index_bytes
    functional = call.updates is not None and call.out is None
    return bytes_moved + (2 * prod(call.data.shape) * item if functional else 0)
