"""Compile a call to its program: check it, lower it, and write the numbers for the core."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from . import lowering, native
from .call import Call
from .checks import Resolved, check
from .dimensions import Dimensions
from .dtypes import index_fields
from .errors import Shape
from .lowering import Component, Loop, Lowered, Nest
from .shapes import Layout


class Compiled(NamedTuple):
    """What a plan has beside its call, see `plan.Plan`."""

    shape: Shape
    kernel: str
    nest: Nest
    bytes: int
    program: native.Program


def compile_call(call: Call) -> Compiled:
    """Check a call and lower it."""
    resolved = check(call)
    dimensions = call.operator.dimensions(len(call.data.shape), call.indices.shape, resolved.axis)
    loops, components = lowering.call_loops(
        dimensions, resolved.data, call.indices.layout, resolved.other
    )
    entries = call.operator.entries(call.indices.layout)
    lowered, whole = _lower(call, resolved, loops, components)
    return Compiled(
        shape=resolved.shape,
        kernel=_kernel(call, lowered.nest),
        nest=lowered.nest,
        bytes=_bytes_moved(call, resolved, prod(entries.shape) * len(components)),
        program=_program(call, resolved, dimensions, lowered, whole, components, entries),
    )


_NOTHING = Lowered(lowering.EMPTY, 0, False, 0)


def _lower(
    call: Call, resolved: Resolved, loops: list[Loop], components: list[Component]
) -> tuple[Lowered, Lowered]:
    """Lower a call; and, for a scatter, once more with the whole fold inside each unit."""
    item = call.data.dtype.itemsize
    if not _moves(call, resolved):
        return _NOTHING, _NOTHING
    if call.updates is None:
        return lowering.lower_gather(loops, components, item), _NOTHING
    return (
        lowering.lower_scatter(loops, components, item),
        lowering.lower_grouped(loops, components, item),
    )


def _moves(call: Call, resolved: Resolved) -> bool:
    """Whether there is any byte to move; indices are checked in any case."""
    return 0 not in resolved.other.shape and call.data.dtype.itemsize > 0


# Bytes of a block that kernels load and store as one value.
WIDTHS = (1, 2, 4, 8, 16)


def _kernel(call: Call, nest: Nest) -> str:
    if call.updates is None or call.reduction == "none":
        line = not nest.rows and nest.block in WIDTHS
    else:
        line = not nest.rows and nest.block == call.data.dtype.itemsize
    return call.operator.family + ("_lines" if line else "_rows")


def _bytes_moved(call: Call, resolved: Resolved, indices: int) -> int:
    item = call.data.dtype.itemsize
    moved = 2 * prod(resolved.other.shape) * item + indices * call.indices.dtype.itemsize
    functional = call.updates is not None and call.out is None
    return moved + (2 * prod(resolved.shape) * item if functional else 0)


def _program(
    call: Call,
    resolved: Resolved,
    dimensions: Dimensions,
    lowered: Lowered,
    whole: Lowered,
    components: list[Component],
    entries: Layout,
) -> native.Program:
    """Compile the plan's numbers for the core."""
    item = call.data.dtype.itemsize
    copies = call.operator.scatters and 0 not in call.data.shape and item > 0
    checks = components and 0 not in entries.shape
    return native.Program(
        **index_fields(call.indices.dtype, call.mode, call.negative),
        scatter=call.operator.scatters,
        item=item,
        **call.attributes.fold.fields(call.data.dtype),
        nest=lowered.nest,
        units=lowered.units,
        split_line=lowered.split_line,
        line_chunk=lowered.line_chunk,
        whole=whole.nest,
        whole_units=whole.units,
        tiles=_tiles(call, resolved, dimensions),
        checks=lowering.lower_checks(entries, components) if checks else lowering.EMPTY,
        copy=lowering.lower_copy(call.data.layout, resolved.data, item)
        if copies
        else lowering.EMPTY,
        shape=resolved.shape,
    )


def _tiles(call: Call, resolved: Resolved, dimensions: Dimensions) -> bool:
    """Whether the destinations of all units together are all of the data, laid out as the result:
    then an accumulating scatter reads the data itself and needs no copy made beforehand.
    """
    return resolved.data.strides == call.data.strides and all(
        call.indices.shape[d] == call.data.shape[d] for d in dimensions.shared
    )
