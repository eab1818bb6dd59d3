"""Model a call small enough to draw: the links between cells, and the effect of each index."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gatherum._arguments.indices import number_rows
from gatherum._model.arrays import NumpyArray
from gatherum._model.call import Call
from gatherum._model.errors import Shape
from gatherum._model.modes import FILLING, MOVING

from .roles import MOST_ACROSS, MOST_OF_A_DIMENSION, MOST_PLACES, CallShapes, reduce
from .svg import HUES


class Entry(NamedTuple):
    """One index or index tuple.

    `where` is the position of the entry in the indices, and `wrong` marks the components that are
    out of bounds. `position` is the position in the `named` dimensions that the entry addresses, or
    None.
    """

    where: Shape
    values: tuple[int, ...]
    wrong: tuple[bool, ...]
    position: Shape | None


class Link(NamedTuple):
    """An index and the numbers of the cells that it links, in the data and in the moved array.

    There are no cells if the index addresses nothing or if the call raises an error. `is_duplicate`
    is True if an earlier index addresses the same position. `is_repeated` is True if the index
    already has a link to another slice.
    """

    entry: Entry
    data: list[int]
    moved: list[int]
    colour: int
    is_duplicate: bool
    is_repeated: bool


class Scene(NamedTuple):
    """A call as it is drawn.

    `call_shapes` has the shapes of the call, and `drawn` the shapes that are drawn. `shown` has the
    positions that are drawn, for each dimension of the data. The links are in row-major order of
    the indices.
    """

    call: Call
    call_shapes: CallShapes
    drawn: CallShapes
    has_example_indices: bool  # whether the indices and the positions are examples
    shown: tuple[Shape, ...]
    links: list[Link]
    is_refused: bool  # whether the call raises and moves no data

    @property
    def gathers(self) -> bool:
        """Whether cells of the data move to a result; otherwise updates move to the data."""
        return self.call.updates is None

    @property
    def is_reduced(self) -> bool:
        """Whether the picture is smaller than the call."""
        return self.drawn != self.call_shapes


def scene_of(
    call: Call,
    indices: NumpyArray | None = None,
    raises: bool = False,
    most_across: int = MOST_ACROSS,
) -> Scene:
    """Create the scene of a call, with example indices if there are none.

    Set `raises` if the call is known to raise, possibly for an index that is not drawn.
    """
    full = CallShapes.of(call)
    if indices is None:
        drawn = reduce(full, None, most_across)
        entries = _entries(call, drawn, example_indices(call, drawn))
        named = positions_of(drawn.named)
    else:
        known_indices = indices
        spare = int(most_across == MOST_ACROSS)  # one unaddressed position, if there is space

        @cache
        def entries_of(outer: Shape, inner: Shape) -> tuple[Entry, ...]:
            drawn_shapes = full._replace(outer=outer, inner=inner)
            return _entries(
                call,
                drawn_shapes,
                np.asarray(known_indices[tuple(map(slice, drawn_shapes.entries))]),
            )

        def shown(drawn: CallShapes) -> tuple[Shape, ...]:
            return _shown(drawn, full, entries_of(drawn.outer, drawn.inner), spare)

        drawn = reduce(full, lambda drawn: tuple(map(len, shown(drawn))), most_across)
        entries, named = entries_of(drawn.outer, drawn.inner), shown(drawn)
    shown_positions = (*positions_of(drawn.outer), *named, *positions_of(drawn.suffix))
    refused = raises or (call.mode not in FILLING and any(e.position is None for e in entries))
    links = list(_links(drawn, entries, named, refused))
    return Scene(call, full, drawn, indices is None, shown_positions, links, refused)


def positions_of(shape: Shape) -> tuple[Shape, ...]:
    """Return all positions of each dimension."""
    return tuple(tuple(range(size)) for size in shape)


def _shown(
    shapes: CallShapes, full: CallShapes, entries: tuple[Entry, ...], spare: int
) -> tuple[Shape, ...]:
    """Return the positions of each indexed dimension that are drawn.

    A short dimension is drawn completely. Only the addressed positions of a long dimension are
    drawn. If each element has a separate index, only positions that have indices are drawn. If
    there are too many positions, short dimensions are not drawn completely, and unaddressed
    positions are omitted.
    """
    shown: list[Shape] = []
    for more, whole in ((spare, bool(spare) or not shapes.has_index_per_element), (0, False)):
        shown = []
        for d, size in enumerate(full.named):
            if shapes.has_index_per_element and d != shapes.axis:
                shown.append(tuple(range(min(size, shapes.inner[d] + more))))
            elif size <= MOST_OF_A_DIMENSION and whole:
                shown.append(tuple(range(size)))
            else:
                met = {entry.position[d] for entry in entries if entry.position is not None}
                shown.append(tuple(sorted(met)) or tuple(range(min(size, 1))))
        if prod(map(len, shown)) <= MOST_PLACES:
            break
    return tuple(shown)


def _entries(call: Call, shapes: CallShapes, indices: NDArray[Any]) -> tuple[Entry, ...]:
    """Return the indices and the positions that the core resolves them to."""
    rows = indices.reshape(prod(shapes.entries), len(shapes.sizes))

    def resolved(mode: str) -> list[list[int]]:
        pairs = zip(rows.T, shapes.sizes, strict=True)
        resolved_rows = (
            number_rows(values, size, mode, call.negative)[0] for values, size in pairs
        )
        return [positions.tolist() for positions in resolved_rows]

    valid = resolved("drop")
    brought = resolved(call.mode) if call.mode in MOVING else valid
    entries = []
    for i, where in enumerate(np.ndindex(shapes.entries)):
        position = tuple(positions[i] for positions in brought)
        met = min(position, default=0) >= 0
        if shapes.has_index_per_element:
            position = (*where[: shapes.axis], *position, *where[shapes.axis + 1 :])
        wrong = tuple(positions[i] < 0 for positions in valid)
        entries.append(Entry(where, tuple(rows[i].tolist()), wrong, position if met else None))
    return tuple(entries)


def _links(
    shapes: CallShapes, entries: tuple[Entry, ...], named: tuple[Shape, ...], refused: bool
) -> Iterator[Link]:
    """Yield the links in row-major order of the indices.

    Links to the same position in the data have the same colour. If each element has a separate
    index, only the position along the axis counts.
    """
    data, moved = (np.arange(prod(shape)).reshape(shape) for shape in (shapes.data, shapes.moved))
    # In a picture that runs downwards, a column of the data is one slice.
    columns = not shapes.runs_across and not shapes.draws_index_array and bool(shapes.outer)
    walked = shapes.outer[:-1] if columns else shapes.outer
    whole_column = (slice(None),) if columns else ()
    colours: dict[object, int] = {}
    met: set[Shape] = set()
    for entry in entries:
        split = len(entry.where) - len(shapes.inner)
        front, inner = entry.where[:split], entry.where[split:]
        is_duplicate, colour, position = False, -1, None
        if entry.position is not None:
            key = front + entry.position
            is_duplicate = key in met
            met.add(key)
            if not refused and 0 not in shapes.moved:
                place = key[shapes.axis] if shapes.has_index_per_element else key
                colour = colours.setdefault(place, len(colours) % len(HUES))
                position = tuple(map(tuple.index, named, entry.position))
        if 0 in shapes.moved:
            yield Link(entry, [], [], colour, is_duplicate, False)
            continue
        for i, outer in enumerate(np.ndindex(walked) if shapes.has_index_per_slice else [front]):
            source = (
                []
                if position is None
                else data[(*outer, *whole_column, *position)].ravel().tolist()
            )
            target = moved[(*outer, *whole_column, *inner)].ravel().tolist()
            yield Link(entry, source, target, colour, is_duplicate, i > 0)


def example_indices(call: Call, shapes: CallShapes) -> NDArray[np.int64]:
    """Create indices for a small call.

    They are unordered and contain a duplicate. If the call supports them, they contain an index
    that counts from the end and, unless the mode raises, an index that is out of bounds.
    """
    # Flat, because entries may have as many dimensions as NumPy supports.
    example = np.zeros((prod(shapes.entries), len(shapes.sizes)), np.int64)
    signed = call.negative and call.indices.dtype.kind == "i"
    for entry, where in enumerate(np.ndindex(shapes.entries)):
        position = where[shapes.axis] if shapes.has_index_per_element else entry
        for c, size in enumerate(shapes.sizes):
            shift = sum(where) - position if shapes.has_index_per_element else c
            pattern = (2, 0, 2, size - 1, 1)
            value = pattern[position] if position < len(pattern) else 2 * position - 7
            value = (value + shift) % size if size else 0
            if c == len(shapes.sizes) - 1:
                if position == 1 and shift == 0 and call.mode != "raise":
                    value = size + 1
                elif position == 3 and signed and size:
                    value = -1
            example[entry, c] = value
    return example.reshape(shapes.indices)
