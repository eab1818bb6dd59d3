"""Compile a call to its program: check it, lower it, and write the numbers for the core."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from . import lowering, native
from ._core import Reduction
from .checks import Checked, Signature, check
from .dtypes import core_mode, value_of
from .errors import Shape
from .lowering import Component, Loop, Lowered, Nest
from .shapes import Layout


class Compiled(NamedTuple):
    """What a plan has beside its signature, see `plan.Plan`."""

    shape: Shape
    kernel: str
    nest: Nest
    bytes: int
    program: native.Program


def compile_call(s: Signature) -> Compiled:
    """Check a call's shapes, dtypes and attributes, and lower it."""
    checked = check(s)
    loops, components = s.operator.loops(
        checked.data, s.indices.layout, checked.other, checked.axis
    )
    entries = s.operator.entries(s.indices.layout)
    lowered, whole = _lower(s, checked, loops, components)
    return Compiled(
        shape=checked.shape,
        kernel=_kernel(s, lowered.nest),
        nest=lowered.nest,
        bytes=_bytes_moved(s, checked, prod(entries.shape) * len(components)),
        program=_program(s, checked, lowered, whole, components, entries),
    )


_NOTHING = Lowered(lowering.EMPTY, 0, False, 0)


def _lower(
    s: Signature, checked: Checked, loops: list[Loop], components: list[Component]
) -> tuple[Lowered, Lowered]:
    """Lower a call; and, for a scatter, once more with the whole fold inside each unit."""
    item = s.data.dtype.itemsize
    if not _moves(s, checked):
        return _NOTHING, _NOTHING
    if s.updates is None:
        return lowering.lower_gather(loops, components, item), _NOTHING
    return (
        lowering.lower_scatter(loops, components, item),
        lowering.lower_grouped(loops, components, item),
    )


def _moves(s: Signature, checked: Checked) -> bool:
    """Whether there is any byte to move; indices are checked in any case."""
    return 0 not in checked.other.shape and s.data.dtype.itemsize > 0


# Bytes of a block that kernels load and store as one value.
WIDTHS = (1, 2, 4, 8, 16)


def _kernel(s: Signature, nest: Nest) -> str:
    if s.updates is None or s.reduction == "none":
        line = not nest.rows and nest.block in WIDTHS
    else:
        line = not nest.rows and nest.block == s.data.dtype.itemsize
    return s.operator.family + ("_lines" if line else "_rows")


def _bytes_moved(s: Signature, checked: Checked, indices: int) -> int:
    item = s.data.dtype.itemsize
    moved = 2 * prod(checked.other.shape) * item + indices * s.indices.dtype.itemsize
    functional = s.updates is not None and s.out is None
    return moved + (2 * prod(checked.shape) * item if functional else 0)


def _program(
    s: Signature,
    checked: Checked,
    lowered: Lowered,
    whole: Lowered,
    components: list[Component],
    entries: Layout,
) -> native.Program:
    """Compile the plan's numbers for the core."""
    item, index = s.data.dtype.itemsize, s.indices.dtype
    copies = s.operator.scatters and 0 not in s.data.shape and item > 0
    checks = components and 0 not in entries.shape
    return native.Program(
        scatter=s.operator.scatters,
        mode=core_mode(s.mode),
        negative=s.negative,
        index_width=index.itemsize,
        index_signed=index.kind == "i",
        index_swapped=not index.isnative,
        item=item,
        reduction=Reduction[s.reduction],
        value=value_of(s.data.dtype),
        include_self=s.include_self,
        nest=lowered.nest,
        units=lowered.units,
        split_line=lowered.split_line,
        line_chunk=lowered.line_chunk,
        whole=whole.nest,
        whole_units=whole.units,
        tiles=_tiles(s, checked),
        checks=lowering.lower_checks(entries, components) if checks else lowering.EMPTY,
        copy=lowering.lower_copy(s.data.layout, checked.data, item) if copies else lowering.EMPTY,
        shape=checked.shape,
    )


def _tiles(s: Signature, checked: Checked) -> bool:
    """Whether the destinations of all units together are all of the data, laid out as the result:
    then an accumulating scatter reads the data itself and needs no copy made beforehand.
    """
    if checked.data.strides != s.data.strides:
        return False
    if s.operator.elements:
        across = s.indices.shape[: checked.axis] + s.indices.shape[checked.axis + 1 :]
        return across == s.data.shape[: checked.axis] + s.data.shape[checked.axis + 1 :]
    return True
