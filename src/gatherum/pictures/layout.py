"""Lay a picture out: the arrays in their order, each index beside what it moves."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ..errors import Shape
from .arrows import ArrowEnd, Route, route
from .cells import Cell, Cells
from .grids import TIGHT, Box, Grid
from .model import Entry, Link, Scene, Selection
from .roles import Form, planes
from .svg import width_of

FONT, LINE, NAME = 14.0, 17.0, 12.0
LEAST = 27.0
GAP, NEAR, ASIDE, TITLE = 74.0, 30.0, 40.0, 20.0
MARGIN = 16.0


class Label(NamedTuple):
    """An index as it is drawn: a box, a text for each component, and which are out of bounds."""

    entry: Entry
    box: Box
    texts: tuple[str, ...]
    colour: int
    repeat: bool
    lost: bool


@dataclass(slots=True)
class Composition:
    """Grids, indices and lines in their places, and the places of titles.

    `data` is a scatter's result, and `before` its data, where there is space. `lines` run between
    data and indices, `steps` between an index and what it moves; `band` is the box of the indices.
    """

    data: Grid
    moved: Grid
    band: Box
    before: Grid | None = None
    labels: list[Label] = field(default_factory=list)
    lines: list[tuple[Link, Route]] = field(default_factory=list)
    steps: list[tuple[Box, Box, bool]] = field(default_factory=list)
    titles: dict[str, tuple[float, float]] = field(default_factory=dict)
    width: float = 0.0
    height: float = 0.0


class Lanes:
    """Lines between the cells of one row (or column): a lane for each cell that has any."""

    def __init__(self, shape: Shape, across: bool, leaving: bool) -> None:
        self._shape, self._across, self._leaving = shape, across, leaving
        self._taken: dict[tuple[int, int], dict[int, int]] = {}

    def take(self, selection: Selection) -> int:
        """Return the lane of some cells; 0 too where they need none."""
        grid = Grid(self._shape, (1, 1), self._across, 0, (0, False))
        numbers = grid.numbers(selection)
        plane, row, column = grid.place(max(numbers) if self._leaving else min(numbers))
        _, rows, columns = planes(self._shape)
        along, other, last = (column, row, columns) if self._across else (row, column, rows)
        if along == (last - 1 if self._leaving else 0):
            return 0
        taken = self._taken.setdefault((plane, other), {})
        return taken.setdefault(along, len(taken))

    @property
    def most(self) -> int:
        """How many lanes the fullest row has."""
        return max((len(taken) for taken in self._taken.values()), default=0)


def arrange(
    scene: Scene, cells: Cells, titles: dict[str, tuple[str, ...]], before: bool = False
) -> Composition:
    """Put everything in its place, beginning at (0, 0); the data of a scatter too, if asked."""
    form, links = scene.form, cells.links
    gathers = scene.call.updates is None
    texts = {entry.where: index_texts(scene, entry) for entry in scene.entries}
    index = _index_size(texts.values())
    data_lanes = Lanes(form.drawn_data, form.across, gathers)
    index_lanes = Lanes(form.drawn_moved, form.across, not gathers)
    lanes = [_take(link, form, data_lanes, index_lanes) for link in links]
    shown = tuple(tuple(range(size)) for size in form.moved)
    data = _grid(form.drawn_data, scene.shown, cells.data, form.across, data_lanes.most)
    moved = _grid(form.drawn_moved, shown, cells.moved, form.across, index_lanes.most)
    target = moved if gathers else data
    target.last, target.refused = True, scene.refused
    if form.congruent or not form.across:  # an index stands over the cell that it moves
        wide = moved.cell[0] if len(moved.shape) == 0 else max(moved.cell[0], index[0])
        moved.cell = (wide, max(moved.cell[1], index[1]))
    if form.elements:  # what belongs together stands in one row or column
        data.lanes = moved.lanes = max(data.lanes, moved.lanes)
        along = 1 if form.across else 0
        most = max(data.cell[along], moved.cell[along])
        data.cell, moved.cell = (
            (most, grid.cell[1]) if along == 0 else (grid.cell[0], most) for grid in (data, moved)
        )
    layout = Composition(data, moved, Box(0, 0, 0, 0))
    if before:
        layout.before = _before(scene, cells, data)
    _stack(layout, scene, gathers, index, titles)
    _place_indices(layout, scene, cells, texts, index)
    _draw_lines(layout, scene, links, lanes, gathers)
    return layout


def _before(scene: Scene, cells: Cells, result: Grid) -> Grid:
    """Return the grid of a scatter's data, which stands over the result, column over column."""
    form = scene.form
    lanes = 0 if form.across else result.lanes
    grid = _grid(form.drawn_data, scene.shown, cells.before, form.across, lanes)
    width = max(grid.cell[0], result.cell[0])
    grid.cell, result.cell = (width, grid.cell[1]), (width, result.cell[1])
    grid.last = form.across
    return grid


def index_texts(scene: Scene, entry: Entry) -> tuple[str, ...]:
    """Write the components of an index, and where it is brought to."""
    if not entry.values:
        return ("( )",)
    texts = [_brief(value) for value in entry.values]
    if entry.place is not None:
        axis = 0 if scene.form.slices else scene.form.axis
        for c, wrong in enumerate(entry.wrong):
            if wrong:
                brought = entry.place[axis + c]
                texts[c] += f"\N{RIGHTWARDS ARROW}{_brief(brought)}"
    if len(texts) > 4:
        return (", ".join([*texts[:2], "\N{HORIZONTAL ELLIPSIS}", texts[-1]]),)
    return tuple(texts)


def _brief(value: int) -> str:
    text = str(value)
    return text if len(text) < 10 else f"{text[:3]}\N{HORIZONTAL ELLIPSIS}{text[-3:]}"


def _index_size(texts: Iterable[tuple[str, ...]]) -> tuple[float, float]:
    """Return the size of a component."""
    longest = max((width_of(text, FONT, True) for line in texts for text in line), default=0.0)
    return max(LEAST, longest + 12), LEAST


def _grid(
    drawn: Shape, shown: tuple[Shape, ...], cells: list[Cell], across: bool, lanes: int
) -> Grid:
    widest = max((width_of(text, FONT, True) for cell in cells for text in cell.lines), default=0)
    tallest = max((len(cell.lines) for cell in cells), default=1)
    size = max(LEAST, widest + 10), max(LEAST, LINE * tallest + 8)
    beside = 0.0
    if len(drawn) > 1 and planes(drawn)[1] > 1:
        positions = shown[len(drawn) - 2]
        beside = max((width_of(str(position), 11) for position in positions), default=0.0) + 10
    grid = Grid(drawn, size, across, lanes, (beside, 0 < len(drawn) == len(shown)))
    if planes(drawn)[0] > 1:
        axes = [*shown, *[(0,)] * (len(drawn) - len(shown))]
        names = (plane_name(axes, plane, len(shown)) for plane in range(planes(drawn)[0]))
        grid.name = max(width_of(name, NAME) for name in names)
    return grid


def plane_name(axes: list[Shape], plane: int, rank: int) -> str:
    """Write which plane of an array is drawn: ``[0, 2, :, :]``."""
    leading = axes[:-2]
    where = np.unravel_index(plane, [len(axis) for axis in leading])
    places = [str(axis[int(p)]) for axis, p in zip(leading, where, strict=True)]
    if len(places) > 6:
        places = [*places[:2], "\N{HORIZONTAL ELLIPSIS}", places[-1]]
    return f"[{', '.join(places + [':'] * (rank - len(leading)))}]"


def _take(link: Link, form: Form, data: Lanes, indices: Lanes) -> tuple[int, int]:
    """Take the lanes of a line, beside the data and beside the indices."""
    if link.data is None or 0 in form.moved:
        return 0, 0
    return data.take(link.data), indices.take(link.moved) if form.congruent else 0


def _stack(
    layout: Composition,
    scene: Scene,
    gathers: bool,
    index: tuple[float, float],
    titles: dict[str, tuple[str, ...]],
) -> None:
    """Put data, indices and what moves behind each other: from left to right with their titles
    above, or from top to bottom with their titles to the left. The data of a scatter stand over its
    result: pictures are no wider for them.
    """
    form, data, moved = scene.form, layout.data, layout.moved
    count = len(scene.entries)
    components = max((len(index_texts(scene, entry)) for entry in scene.entries), default=1)
    single = (index[0] * components, index[1])
    grids = {"data": data, "moved": moved}
    if layout.before is not None:
        grids["before"] = layout.before
    sizes = {name: grid.size for name, grid in grids.items()}
    if moved.empty or not count:  # indices that move nothing stand in a row of their own
        height = max(count, 1) * (LEAST + TIGHT)
        band = (single[0], height) if form.across else (max(count, 1) * (index[0] + TIGHT), LEAST)
    elif form.congruent:
        band = moved.size
    else:
        band = (single[0], moved.size[1]) if form.across else (moved.size[0], LEAST)
    sizes["indices"] = band
    # What stands behind what, and the gap between them.
    gap = {"data": GAP, "indices": NEAR, "moved": 0.0}
    if not gathers:
        gap = {"moved": NEAR, "indices": GAP, "data": 0.0}
    if "before" in grids and not form.across:
        gap = {"before": ASIDE, **gap}
    heading = {
        name: max(width_of(text, 13 if n else 14) for n, text in enumerate(lines))
        for name, lines in titles.items()
        if name in sizes
    }
    beside = 0.0 if form.across else max(heading.values()) + 14
    above = 2 * TITLE + _place_before(layout) if form.across else 0.0
    extent = max(size[1] if form.across else size[0] for size in sizes.values())
    at = 0.0
    for name, behind in gap.items():
        width, height = sizes[name]
        if form.across:
            x, y = at, above + (extent - height) / 2
            layout.titles[name] = (x, y - 2 * TITLE + 14)
            at += max(width, heading[name] - 20)
            layout.width = max(layout.width, x + width, x + heading[name])
            layout.height = above + extent
        else:
            x, y = beside + (extent - width) / 2, at
            layout.titles[name] = (0.0, y + height / 2 - 3)
            at += height
            layout.width, layout.height = beside + extent, at
        at += behind
        if name == "indices":
            layout.band = Box(x, y, x + width, y + height)
        else:
            grids[name].x, grids[name].y = x, y
    if layout.before is not None and form.across:
        layout.before.x = data.x
        layout.titles["before"] = (data.x, 14.0)


def _place_before(layout: Composition) -> float:
    """Put the data of a scatter at the top, and return the height that they take there."""
    if layout.before is None:
        return 0.0
    layout.before.y = 2 * TITLE
    return 2 * TITLE + layout.before.size[1] + NEAR


def _place_indices(
    layout: Composition,
    scene: Scene,
    cells: Cells,
    texts: dict[Shape, tuple[str, ...]],
    index: tuple[float, float],
) -> None:
    form, moved, band = scene.form, layout.moved, layout.band
    if moved.empty or not cells.links:
        for number, entry in enumerate(scene.entries):
            shift = number * ((LEAST if form.across else index[0]) + TIGHT)
            x, y = (0.0, shift) if form.across else (shift, 0.0)
            box = _index_box(band.left + x, band.top + y, texts[entry.where], index)
            layout.labels.append(Label(entry, box, texts[entry.where], -1, False, False))
        return
    for link in cells.links:
        around, text = moved.around(link.moved), texts[link.entry.where]
        if form.across:
            x = band.left + (around.left - moved.x if form.congruent else 0)
            y = around.middle[1] - LEAST / 2
        else:
            x = around.middle[0] - index[0] / 2
            y = band.top + (around.middle[1] - LEAST / 2 - moved.y if form.congruent else 0)
        box = _index_box(x, y, text, index)
        lost = bool(numbers_of(moved, link)) and all(
            "lost" in cells.moved[number].marks for number in numbers_of(moved, link)
        )
        label = Label(link.entry, box, text, link.colour, link.repeat, lost)
        layout.labels.append(label)
        if not form.congruent:
            layout.steps.append((box, around, link.repeat))


def numbers_of(grid: Grid, link: Link) -> list[int]:
    """Return the numbers of the cells that an index moves."""
    return grid.numbers(link.moved)


def _index_box(x: float, y: float, text: tuple[str, ...], index: tuple[float, float]) -> Box:
    return Box(x, y, x + index[0] * len(text), y + index[1])


def _draw_lines(
    layout: Composition,
    scene: Scene,
    links: list[Link],
    lanes: list[tuple[int, int]],
    gathers: bool,
) -> None:
    form, data, moved = scene.form, layout.data, layout.moved
    if moved.empty:
        return
    for link, label, (at_data, at_index) in zip(links, layout.labels, lanes, strict=True):
        if link.data is None:
            continue
        source = ArrowEnd(data.around(link.data), data.edges(link.data), at_data)
        edges = label.box
        if form.congruent:
            shift = (layout.band.left - moved.x, layout.band.top - moved.y)
            edges = moved.edges(link.moved).moved(*shift)
        target = ArrowEnd(label.box, edges, at_index)
        ends = (source, target) if gathers else (target, source)
        layout.lines.append((link, route(*ends, form.across)))
