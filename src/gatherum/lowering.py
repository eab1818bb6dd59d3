"""Lower every operator to one loop nest over three operands.

    addr = D + p . sD + sum over components c of check(X[p . sX + x_c], n_c) * d_c
    gather: *U(p . sU) = *addr        scatter: *addr op= *U(p . sU)

D is the data (a scatter's output), X the indices, U the other operand. The differences between the
operators end here: prefix shapes, batch dimensions, strided and broadcast operands are loops like
any other. All strides and offsets are bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import NamedTuple

from .dimensions import Dimensions
from .shapes import Layout


class Loop(NamedTuple):
    """One dimension of the nest: its extent and the byte steps of the three operands."""

    extent: int
    data: int
    index: int  # type: ignore[assignment]  # hides tuple.index
    other: int


class Component(NamedTuple):
    """One component of an index tuple: the size it is checked against, the step in the data that
    it selects, and its place in the tuple.
    """

    size: int
    stride: int
    offset: int


class Nest(NamedTuple):
    """Loops in the order they run: outer ones, the line (number `line`), then the row loops.

    The points of the line are staged together; row loops move with no index. Every point moves
    `block` contiguous bytes.
    """

    line: int
    loops: tuple[Loop, ...]
    components: tuple[Component, ...]
    block: int

    @property
    def rows(self) -> tuple[Loop, ...]:
        """The loops inside the line."""
        return self.loops[self.line + 1 :]


class Lowered(NamedTuple):
    """A nest, and how it may be cut: points of the leading `units` loops are independent of each
    other, and so are those of the line when `split_line`; then at most `line_chunk` of them (0: any
    number) make one unit.
    """

    nest: Nest
    units: int
    split_line: bool
    line_chunk: int


ONCE = Loop(1, 0, 0, 0)
EMPTY = Nest(0, (ONCE,), (), 0)
# Columns walked together where the indexed axis is not the last: 128 lines of the data at a time.
LINE_CHUNK = 128


def call_loops(
    dimensions: Dimensions, data: Layout, indices: Layout, other: Layout
) -> tuple[list[Loop], list[Component]]:
    """Return the loops over what moves, and the components of an index or of a tuple of them.

    Without components there is no index to read, and nothing steps through the indices.
    """
    of_data = data.strides
    of_indices = indices.strides if dimensions.indexed else (0,) * len(indices.strides)
    loops = [
        Loop(extent, 0 if d is None else of_data[d], 0 if e is None else of_indices[e], step)
        for extent, step, (d, e) in zip(*other, dimensions.moved, strict=True)
    ]
    # The components of a tuple stand in the last dimension of the indices.
    components = [
        Component(data.shape[d], of_data[d], c and c * indices.strides[-1])
        for c, d in enumerate(dimensions.indexed)
    ]
    return loops, components


def copy_loops(source: Layout, target: Layout) -> list[Loop]:
    """``target[...] = source[...]``, the start of a functional scatter."""
    return [
        Loop(extent, s, 0, t)
        for extent, s, t in zip(source.shape, source.strides, target.strides, strict=True)
    ]


def collapse(loops: Iterable[Loop]) -> list[Loop]:
    """Drop loops of one step and merge neighbours that step as one."""
    merged: list[Loop] = []
    for loop in loops:
        if loop.extent == 1:
            continue
        if merged and merged[-1][1:] == tuple(loop.extent * step for step in loop[1:]):
            merged[-1] = Loop(merged[-1].extent * loop.extent, *loop[1:])
        else:
            merged.append(loop)
    return merged


def _split_rows(loops: list[Loop], scatter: bool, item: int) -> tuple[list[Loop], list[Loop], int]:
    """Part the loops into (body, rows, block). Rows move with no index; in a scatter they must also
    move the data, so that they are independent of each other.
    """
    end = len(loops)
    while end and loops[end - 1].index == 0 and not (scatter and loops[end - 1].data == 0):
        end -= 1
    # Rows may run in any order: the smallest steps innermost.
    rows = collapse(sorted(loops[end:], key=lambda loop: -abs(loop.data) - abs(loop.other)))
    block = item
    while rows and rows[-1].data == block and rows[-1].other == block:
        block *= rows.pop().extent
    return loops[:end], rows, block


def lower_gather(loops: Sequence[Loop], components: Sequence[Component], item: int) -> Lowered:
    """Order the loops of a gather, whose points are all independent."""
    body, rows, block = _split_rows(collapse(loops), False, item)
    line = body.pop() if body else ONCE
    chunk = 0
    if line.data:  # columns: walk them in chunks, so that the lines read stay in cache
        apart = [loop for loop in body if loop.data]
        along = [loop for loop in body if not loop.data]
        body, chunk = apart + along, LINE_CHUNK if along else 0
        units = len(apart)
    else:
        units = len(body)
    nest = Nest(len(body), (*body, line, *rows), tuple(components), block)
    return Lowered(nest, units, True, chunk)


def lower_scatter(loops: Sequence[Loop], components: Sequence[Component], item: int) -> Lowered:
    """Order the loops of a scatter: loops that move the data are independent of each other and may
    go first; the others are the ordered fold and keep their order.
    """
    body, rows, block = _split_rows(collapse(loops), True, item)
    line = body.pop() if body else ONCE
    apart = [loop for loop in body if loop.data]
    along = [loop for loop in body if not loop.data]
    nest = Nest(len(body), (*apart, *along, line, *rows), tuple(components), block)
    split_line = line.data != 0
    return Lowered(nest, len(apart), split_line, LINE_CHUNK if split_line and along else 0)


def lower_grouped(loops: Sequence[Loop], components: Sequence[Component], item: int) -> Lowered:
    """As `lower_scatter`, with the whole fold inside each unit: no line moves the data."""
    body, rows, block = _split_rows(collapse(loops), True, item)
    apart = [loop for loop in body if loop.data]
    along = [loop for loop in body if not loop.data] or [ONCE]
    line = len(apart) + len(along) - 1
    nest = Nest(line, (*apart, *along, *rows), tuple(components), block)
    return Lowered(nest, len(apart), False, 0)


def lower_checks(tuples: Layout, components: Sequence[Component]) -> Nest:
    """Return the index space alone, in row-major order: what a check of every index walks."""
    loops = [Loop(extent, 0, step, 0) for extent, step in zip(*tuples, strict=True)]
    body = collapse(loops) or [ONCE]
    return Nest(len(body) - 1, tuple(body), tuple(components), 0)


def lower_copy(source: Layout, target: Layout, item: int) -> Nest:
    """Return a gather without components; the outermost loop is the line, so that it can be cut."""
    _, rows, block = _split_rows(copy_loops(source, target), False, item)
    rows = rows or [ONCE]
    return Nest(0, tuple(rows), (), block)


def points(nest: Nest) -> int:
    """How many blocks the nest moves."""
    return prod(loop.extent for loop in nest.loops)
