"""Model a call small enough to be drawn: which cell goes where, and what each index does."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gatherum._arguments.indices import number_rows
from gatherum._model.call import Array, Call
from gatherum._model.errors import Shape
from gatherum._model.modes import FILLING, MOVING

from .roles import MOST_ACROSS, MOST_OF_A_DIMENSION, MOST_PLACES, Form, reduce
from .svg import HUES


class Entry(NamedTuple):
    """One index, or one tuple of them: where it stands, how it reads, which of its components are
    out of bounds, and the place of the `named` dimensions that it addresses, if any.
    """

    where: Shape
    values: tuple[int, ...]
    wrong: tuple[bool, ...]
    place: Shape | None


class Link(NamedTuple):
    """An index and the numbers of the cells that it pairs: of the data, and of what moves. It
    pairs none where it addresses nothing or the call raises.

    `again` says whether an index before it addresses the same; `repeat` whether the index has a
    link already, to another slice.
    """

    entry: Entry
    data: list[int]
    moved: list[int]
    colour: int
    again: bool
    repeat: bool


class Scene(NamedTuple):
    """A call as it is drawn: its dimensions and those that are drawn, the places that are drawn of
    each dimension of the data, and the links, in row-major order of the indices.
    """

    call: Call
    full: Form
    form: Form
    made_up: bool  # whether the indices are an example, and the places those of a small call
    shown: tuple[Shape, ...]
    links: list[Link]
    refused: bool  # whether the call raises, so that nothing moves

    @property
    def gathers(self) -> bool:
        """Whether cells of the data go to a result; else those of updates go to the data."""
        return self.call.updates is None

    @property
    def reduced(self) -> bool:
        """Whether less is drawn than the call has."""
        return self.form != self.full


def scene_of(
    s: Call, indices: Array | None = None, raises: bool = False, most_across: int = MOST_ACROSS
) -> Scene:
    """Make the scene of a call. Indices are made up where there are none; `raises` says whether it
    is known to raise, perhaps for an index that is not drawn.
    """
    full = Form.of(s)
    if indices is None:
        form = reduce(full, None, most_across)
        entries = _entries(s, form, example_indices(s, form))
        named = places_of(form.named)
    else:
        given = indices
        spare = int(most_across == MOST_ACROSS)  # where there is space, one more than is addressed

        @cache
        def entries_of(outer: Shape, inner: Shape) -> tuple[Entry, ...]:
            part = full._replace(outer=outer, inner=inner)
            return _entries(s, part, np.asarray(given[tuple(map(slice, part.entries))]))

        def shown(form: Form) -> tuple[Shape, ...]:
            return _shown(form, full, entries_of(form.outer, form.inner), spare)

        form = reduce(full, lambda form: tuple(map(len, shown(form))), most_across)
        entries, named = entries_of(form.outer, form.inner), shown(form)
    places = (*places_of(form.outer), *named, *places_of(form.suffix))
    refused = raises or (s.mode not in FILLING and any(e.place is None for e in entries))
    links = list(_links(form, entries, named, refused))
    return Scene(s, full, form, indices is None, places, links, refused)


def places_of(shape: Shape) -> tuple[Shape, ...]:
    """Return all places of each dimension."""
    return tuple(tuple(range(size)) for size in shape)


def _shown(form: Form, full: Form, entries: tuple[Entry, ...], spare: int) -> tuple[Shape, ...]:
    """Return the places to draw of each dimension that is indexed: all of a short one; else those
    that the entries address, or, where each element has its own index, as far as the indices go.
    Short dimensions are shown whole, and with spare places, only as long as they are few.
    """
    shown: list[Shape] = []
    for more, whole in ((spare, bool(spare) or not form.elements), (0, False)):
        shown = []
        for d, size in enumerate(full.named):
            if form.elements and d != form.axis:
                shown.append(tuple(range(min(size, form.inner[d] + more))))
            elif size <= MOST_OF_A_DIMENSION and whole:
                shown.append(tuple(range(size)))
            else:
                met = {entry.place[d] for entry in entries if entry.place is not None}
                shown.append(tuple(sorted(met)) or tuple(range(min(size, 1))))
        if prod(map(len, shown)) <= MOST_PLACES:
            break
    return tuple(shown)


def _entries(s: Call, form: Form, indices: NDArray[Any]) -> tuple[Entry, ...]:
    """Say what each index addresses, as the core resolves it."""
    rows = indices.reshape(prod(form.entries), len(form.sizes))

    def resolved(mode: str) -> list[list[int]]:
        pairs = zip(rows.T, form.sizes, strict=True)
        found = (number_rows(values, size, mode, s.negative)[0] for values, size in pairs)
        return [positions.tolist() for positions in found]

    valid = resolved("drop")
    brought = resolved(s.mode) if s.mode in MOVING else valid
    entries = []
    for number, where in enumerate(np.ndindex(form.entries)):
        place = tuple(positions[number] for positions in brought)
        met = min(place, default=0) >= 0
        if form.elements:
            place = (*where[: form.axis], *place, *where[form.axis + 1 :])
        wrong = tuple(positions[number] < 0 for positions in valid)
        entries.append(Entry(where, tuple(rows[number].tolist()), wrong, place if met else None))
    return tuple(entries)


def _links(
    form: Form, entries: tuple[Entry, ...], named: tuple[Shape, ...], refused: bool
) -> Iterator[Link]:
    """Pair the cells, in row-major order of the indices. What has the same place in the data, or
    along the axis where each element has its own index, has one colour.
    """
    data, moved = (np.arange(prod(shape)).reshape(shape) for shape in (form.data, form.moved))
    # Down the page a whole column of the data is one slice.
    columns = not form.across and not form.congruent and bool(form.outer)
    walked = form.outer[:-1] if columns else form.outer
    rest = (slice(None),) if columns else ()
    colours: dict[object, int] = {}
    met: set[Shape] = set()
    for entry in entries:
        split = len(entry.where) - len(form.inner)
        front, inner = entry.where[:split], entry.where[split:]
        again, colour, place = False, -1, None
        if entry.place is not None:
            key = front + entry.place
            again = key in met
            met.add(key)
            if not refused and 0 not in form.moved:
                shared = key[form.axis] if form.elements else key
                colour = colours.setdefault(shared, len(colours) % len(HUES))
                place = tuple(map(tuple.index, named, entry.place))
        if 0 in form.moved:
            yield Link(entry, [], [], colour, again, False)
            continue
        for number, outer in enumerate(np.ndindex(walked) if form.slices else [front]):
            source = [] if place is None else data[(*outer, *rest, *place)].ravel().tolist()
            target = moved[(*outer, *rest, *inner)].ravel().tolist()
            yield Link(entry, source, target, colour, again, number > 0)


def example_indices(s: Call, form: Form) -> NDArray[np.int64]:
    """Make indices up for a small call: out of order, with a duplicate, with one from the end where
    the call takes it, and, where the mode says what becomes of it, with one out of bounds.
    """
    # Flat: the entries of a call may have as many dimensions as NumPy allows.
    found = np.zeros((prod(form.entries), len(form.sizes)), np.int64)
    signed = s.negative and s.indices.dtype.kind == "i"
    for entry, where in enumerate(np.ndindex(form.entries)):
        number = where[form.axis] if form.elements else entry
        for c, size in enumerate(form.sizes):
            shift = sum(where) - number if form.elements else c
            pattern = (2, 0, 2, size - 1, 1)
            value = pattern[number] if number < len(pattern) else 2 * number - 7
            value = (value + shift) % size if size else 0
            if c == len(form.sizes) - 1:
                if number == 1 and shift == 0 and s.mode != "raise":
                    value = size + 1
                elif number == 3 and signed and size:
                    value = -1
            found[entry, c] = value
    return found.reshape(form.indices)
