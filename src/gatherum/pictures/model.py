"""Model a call small enough to be drawn: which cell goes where, and what each index does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..call import Array, Call
from ..errors import Shape
from ..indices import number_entries, resolve
from ..modes import MOVING
from .example import example_indices
from .roles import MOST_ACROSS, MOST_OF_A_DIMENSION, MOST_PLACES, Form, reduce

Selection = tuple[int | slice, ...]
ALL = slice(None)


class Entry(NamedTuple):
    """One index, or one tuple of them: where it stands, how it reads, and what it addresses."""

    where: Shape
    values: tuple[int, ...]
    wrong: tuple[bool, ...]
    place: Shape | None
    again: bool


class Link(NamedTuple):
    """A slice of the data and the slice that it meets, each in the arrays as they are drawn; `data`
    is None where the index addresses nothing.
    """

    entry: Entry
    data: Selection | None
    moved: Selection
    colour: int
    repeat: bool


@dataclass(frozen=True, slots=True)
class Scene:
    """A call as it is drawn.

    Attributes
    ----------
    call : Call
        The call itself.
    full, form : Form
        Its dimensions, and those that are drawn.
    made_up : bool
        Whether the indices are an example, and the places those of a small call.
    shown : tuple of tuple of int
        The places that are drawn of each dimension of the data.
    entries : tuple of Entry
        The indices that are drawn.
    refused : bool
        Whether the call raises, so that nothing moves.
    """

    call: Call
    full: Form
    form: Form
    made_up: bool
    shown: tuple[Shape, ...]
    entries: tuple[Entry, ...]
    refused: bool

    @property
    def complete(self) -> bool:
        """Whether every index is drawn."""
        return self.form.indices == self.full.indices

    @property
    def reduced(self) -> bool:
        """Whether less is drawn than the call has."""
        return self.form != self.full

    def links(self) -> Iterator[Link]:
        """Pair the slices, in row-major order of the indices."""
        colours: dict[object, int] = {}
        for entry in self.entries:
            place = None if entry.place is None else self._drawn(entry.place)
            key = place
            if place is not None and self.form.elements:
                key = (place[self.form.axis],)
            none = key is None or self.refused  # then nothing moves
            colour = -1 if none else colours.setdefault(key, len(colours))
            for number, (data, moved) in enumerate(self._slices(entry, place)):
                yield Link(entry, None if self.refused else data, moved, colour, number > 0)

    def _drawn(self, place: Shape) -> Shape:
        """Return where among the drawn places of the data a place is."""
        first = len(self.form.outer) if self.form.slices else 0
        return tuple(self.shown[first + d].index(p) for d, p in enumerate(place))

    def _slices(
        self, entry: Entry, place: Shape | None
    ) -> Iterator[tuple[Selection | None, Selection]]:
        form, where = self.form, entry.where
        if not form.slices:
            column = len(form.drawn_data) - len(form.data)
            end = (0,) * (len(form.drawn_moved) - len(form.moved))
            yield None if place is None else place + (0,) * column, where + end
            return
        # Down the page a whole column of the data is one slice.
        columns = not form.across and not form.congruent and bool(form.outer)
        walked = form.outer[:-1] if columns else form.outer
        rest: Selection = (ALL,) if columns else ()
        end = (0,) * (len(form.drawn_moved) - len(form.moved))
        for outer in np.ndindex(walked):
            data = None if place is None else (*outer, *rest, *place)
            yield data, (*outer, *rest, *where, *end)


def scene_of(
    s: Call,
    indices: Array | None = None,
    raises: bool = False,
    most_across: int = MOST_ACROSS,
) -> Scene:
    """Make the scene of a call.

    Parameters
    ----------
    s : Call
        The call.
    indices : numpy.ndarray, optional
        The call's indices; an example is made up where they are left out.
    raises : bool
        Whether the call is known to raise, perhaps for an index that is not drawn.
    most_across : int
        How many cells may stand side by side.
    """
    full = Form.of(s)
    if indices is None:
        form = reduce(full, None, most_across)
        drawn = example_indices(s, form)
        entries = _entries(s, form, form.data, drawn)
        shown = tuple(tuple(range(size)) for size in form.data)
    else:
        spare = int(most_across == MOST_ACROSS)  # where there is space, one more than is addressed

        def named(form: Form) -> Shape:
            return tuple(map(len, _shown(form, full, _entries_of(form), spare)))

        def _entries_of(form: Form) -> tuple[Entry, ...]:
            return at(form.outer, form.inner)

        @cache
        def at(outer: Shape, inner: Shape) -> tuple[Entry, ...]:
            part = full._replace(outer=outer, inner=inner)
            return _entries(s, part, full.data, _leading(part, indices))

        form = reduce(full, named, most_across)
        entries = _entries_of(form)
        places = _shown(form, full, entries, spare)
        outer = tuple(tuple(range(size)) for size in form.outer)
        shown = (*outer, *places, *(tuple(range(size)) for size in form.suffix))
    strict = s.mode in ("raise", "clip", "wrap")
    refused = raises or (strict and any(entry.place is None for entry in entries))
    return Scene(s, full, form, indices is None, shown, entries, refused)


def _leading(form: Form, indices: Array) -> Array:
    """Return the indices that are drawn: the first of each dimension."""
    return np.asarray(indices[tuple(map(slice, form.entries))])


def _shown(form: Form, full: Form, entries: tuple[Entry, ...], spare: int) -> tuple[Shape, ...]:
    """Return the places to draw of each dimension that is indexed: all of a short one; else those
    that the entries address, or, where each element has its own index, as far as the indices go.
    Short dimensions are shown whole, and with spare places, only as long as they are few.
    """
    shown = _places(form, full, entries, spare, bool(spare) or not form.elements)
    if prod(map(len, shown)) > MOST_PLACES:
        shown = _places(form, full, entries, 0, False)
    return shown


def _places(
    form: Form, full: Form, entries: tuple[Entry, ...], spare: int, whole: bool
) -> tuple[Shape, ...]:
    first = 0 if form.slices else len(form.outer)
    shown: list[Shape] = []
    for d, size in enumerate(full.named):
        if form.elements and d != form.axis:
            shown.append(tuple(range(min(size, form.inner[d] + spare))))
        elif size <= MOST_OF_A_DIMENSION and whole:
            shown.append(tuple(range(size)))
        else:
            met = {entry.place[first + d] for entry in entries if entry.place is not None}
            shown.append(tuple(sorted(met)) or tuple(range(min(size, 1))))
    return tuple(shown)


def _entries(s: Call, form: Form, data: Shape, indices: NDArray[Any]) -> tuple[Entry, ...]:
    """Say what each index addresses: a place along the axis, or in the leading dimensions."""
    drawn = (*form.outer, *data[len(form.outer) :])
    space, axis = form.operator.space(drawn, form.indices, form.axis)
    numbers = number_entries(form.operator, space, indices, axis, "drop", s.negative)
    wrong = _wrong(form, space[axis:], indices, s.negative)
    if s.mode in MOVING:
        numbers = number_entries(form.operator, space, indices, axis, s.mode, s.negative)
    entries, met = [], set()
    for number, where in enumerate(np.ndindex(form.entries)):
        address = int(numbers[number])
        place = None
        if address >= 0:
            place = tuple(int(p) for p in np.unravel_index(address, space)) if space else ()
        again = place is not None and place in met
        met.add(place)
        values = tuple(int(value) for value in np.atleast_1d(indices[where]))
        entries.append(Entry(where, values, wrong[number], place, again))
    return tuple(entries)


def _wrong(
    form: Form, sizes: Shape, indices: NDArray[Any], negative: bool
) -> list[tuple[bool, ...]]:
    """Say of each index, and of each component of a tuple, whether it is out of bounds."""
    if not form.tuples:
        columns, sizes = [indices.ravel()], sizes[:1]
    else:
        columns = [indices[..., c].ravel() for c in range(len(form.named))]
    count = columns[0].size if columns else int(np.prod(indices.shape[:-1]))
    found = [
        resolve(column, size, "drop", negative)[1]
        for size, column in zip(sizes, columns, strict=True)
    ]
    return [tuple(wrong is not None and bool(wrong[n]) for wrong in found) for n in range(count)]
