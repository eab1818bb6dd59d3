"""The loop nest to which the core lowers a call (src/core/model/lowering.hpp).

    addr = D + p . sD + sum over components c of check(X[p . sX + x_c], n_c) * d_c
    gather: *U(p . sU) = *addr        scatter: *addr op= *U(p . sU)

D is the data (a scatter's output), X the indices, U the moved array. A nest does not depend on
the operator: leading dimensions, batch dimensions, strided and broadcast operands all become
ordinary loops. All strides and offsets are in bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any, NamedTuple

from gatherum import _core

from .errors import Shape
from .shape_limits import OperandLayout


class Loop(NamedTuple):
    """One dimension of the nest: its extent and the byte steps of the three operands."""

    extent: int
    data: int
    index: int  # type: ignore[assignment]  # hides tuple.index
    moved: int


class Component(NamedTuple):
    """One component of an index tuple.

    It contains the size that bounds the index, the step in the data, and the offset in the tuple.
    """

    size: int
    stride: int
    offset: int


class Nest(NamedTuple):
    """Loops in execution order: outer loops, the line (number `line`), then the row loops.

    The points of the line are staged together; row loops need no indices. Every point moves `block`
    contiguous bytes.
    """

    line: int
    loops: tuple[Loop, ...]
    components: tuple[Component, ...]
    block: int

    @classmethod
    def of(cls, nest: tuple[Any, ...]) -> Nest:
        """Create a nest from the core's tuples."""
        line, loops, components, block = nest
        named = (
            tuple(Loop(*loop) for loop in loops),
            tuple(Component(*component) for component in components),
        )
        return cls(line, *named, block)

    @property
    def rows(self) -> tuple[Loop, ...]:
        """The loops inside the line."""
        return self.loops[self.line + 1 :]


ONCE = Loop(1, 0, 0, 0)
EMPTY = Nest(0, (ONCE,), (), 0)


def collapse(loops: Iterable[Loop]) -> list[Loop]:
    """Drop loops of extent 1, and merge adjacent loops that one loop can replace."""
    return [Loop(*loop) for loop in _core.collapse(loops)]


def lower_numbers(
    addressing: tuple[bool, bool, bool], axis: int, space: Shape, indices: OperandLayout
) -> Nest:
    """Return the loops that assign row-major numbers to the addressed elements of a space."""
    return Nest.of(_core.lower_numbers(addressing, axis, space, indices))


def lower_checks(entries: OperandLayout, components: Sequence[Component]) -> Nest:
    """Return the loops over the index space in row-major order, which check every index."""
    return Nest.of(_core.lower_checks(entries, components))


def lower_copy(source: OperandLayout, target: OperandLayout, item: int) -> Nest:
    """Return the loops of ``target[...] = source[...]``.

    This is a gather without components. The line of this nest is the outermost loop, so that the
    copy can be divided along it.
    """
    return Nest.of(_core.lower_copy(source, target, item))


def points(nest: Nest) -> int:
    """Return the number of blocks that the nest moves."""
    return prod(loop.extent for loop in nest.loops)
