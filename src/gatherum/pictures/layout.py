"""Lay a picture out: the arrays in their order, each index beside what it moves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from .arrows import ArrowEnd, Route, route
from .captions import titles
from .cells import Cells, shortened
from .grids import FONT, LEAST, TIGHT, Grid
from .model import Entry, Link, Scene, places_of
from .roles import Form
from .svg import Box, width_of

GAP, NEAR, ASIDE = 74.0, 30.0, 40.0  # between what stands behind each other
TITLE, TITLE_FONT, NOTE = 40.0, 14.0, 13.0


class Label(NamedTuple):
    """An index as it is drawn: its texts, one for each component, the box around them, and the
    lanes of its line beside the data and beside the indices.
    """

    link: Link
    texts: list[str]
    box: Box
    lanes: tuple[int, int]


class Layout:
    """Grids and indices in their places, beginning at (0, 0), and the places of titles.

    The grids are those of the data (of a scatter: its result), of what moves, and of a scatter's
    data, if asked for. `band` is the box of the indices.
    """

    def __init__(self, scene: Scene, cells: Cells, before: bool = False) -> None:
        self.form, self.gathers, links = scene.form, scene.gathers, scene.links
        across, columns = self.form.across, self.form.columns
        self.data = Grid(cells.data, scene.shown, columns[0], across)
        self.moved = Grid(cells.moved, places_of(self.form.moved), columns[1], across)
        target = self.moved if self.gathers else self.data
        target.last, target.refused = True, scene.refused
        self.grids = {"data": self.data, "moved": self.moved}
        texts = [index_texts(self.form, link.entry) for link in links]
        widest = max((width_of(text, FONT, True) for line in texts for text in line), default=0.0)
        self._component = max(LEAST, widest + 12)
        lanes = self._take_lanes(links)
        self._size_cells()
        if before:
            self._add_before(cells, scene)
        self.titles: dict[str, tuple[float, float]] = {}
        self._stack(titles(scene), len(links), max(map(len, texts), default=1))
        self.labels = [
            Label(link, line, self._index_box(link, number, len(line)), pair)
            for number, (link, line, pair) in enumerate(zip(links, texts, lanes, strict=True))
        ]

    def _take_lanes(self, links: list[Link]) -> list[tuple[int, int]]:
        lined = [link.moved if self.form.congruent and link.data else [] for link in links]
        at_data = self.data.take_lanes(link.data for link in links)
        return list(zip(at_data, self.moved.take_lanes(lined), strict=True))

    def _size_cells(self) -> None:
        form, data, moved = self.form, self.data, self.moved
        if form.congruent or not form.across:  # an index stands over the cell that it moves
            moved.width = max(moved.width, self._component)
        if form.elements:  # what belongs together stands in one row or column
            data.lanes = moved.lanes = max(data.lanes, moved.lanes)
            if form.across:
                data.height = moved.height = max(data.height, moved.height)
            else:
                data.width = moved.width = max(data.width, moved.width)

    def _add_before(self, cells: Cells, scene: Scene) -> None:
        """Add the data of a scatter, which stand over the result, column over column."""
        across, result = self.form.across, self.data
        grid = Grid(cells.before, scene.shown, result.column, across, last=across)
        grid.lanes = 0 if across else result.lanes
        grid.width = result.width = max(grid.width, result.width)
        self.grids = {"before": grid, **self.grids}

    def _stack(self, named: dict[str, tuple[str, str]], count: int, components: int) -> None:
        """Put data, indices and what moves behind each other: from left to right with their titles
        above, or from top to bottom with their titles to the left. The data of a scatter stand over
        its result: pictures are no wider for them.
        """
        across, grids = self.form.across, self.grids
        sizes = {name: grid.size for name, grid in grids.items()}
        sizes["indices"] = self._band_size(count, components)
        widths = {
            name: max(width_of(title, TITLE_FONT), width_of(shape, NOTE))
            for name, (title, shape) in named.items()
        }
        order = {"data": GAP, "indices": NEAR, "moved": 0.0}
        if not self.gathers:
            order = {"moved": NEAR, "indices": GAP, "data": 0.0}
        start = TITLE if across else max(widths[name] for name in sizes) + 14
        if "before" in grids and across:
            start += TITLE + sizes["before"][1] + NEAR
        elif "before" in grids:
            order = {"before": ASIDE, **order}
        extent = max(size[across] for size in sizes.values())
        at = end = 0.0
        for name, gap in order.items():
            width, height = sizes[name]
            if across:
                x, y = at, start + (extent - height) / 2
                self.titles[name] = (x, y - TITLE + 14)
                end = max(end, x + width, x + widths[name])
                at += max(width, widths[name] - 20)
            else:
                x, y = start + (extent - width) / 2, at
                self.titles[name] = (0.0, y + height / 2 - 3)
                at += height
                end = at
            at += gap
            if name == "indices":
                self.band = Box(x, y, x + width, y + height)
            else:
                grids[name].x, grids[name].y = x, y
        self.width, self.height = (end, start + extent) if across else (start + extent, end)
        if "before" in grids and across:
            grids["before"].x, grids["before"].y = self.data.x, TITLE
            self.titles["before"] = (self.data.x, 14.0)

    def _band_size(self, count: int, components: int) -> tuple[float, float]:
        """Return the size of the indices together."""
        across, (width, height) = self.form.across, self.moved.size
        tuple_width = self._component * components
        if self.moved.empty:  # indices that move nothing stand in a row of their own
            along = max(count, 1) * ((LEAST if across else self._component) + TIGHT)
            return (tuple_width, along) if across else (along, LEAST)
        if self.form.congruent:
            return width, height
        return (tuple_width, height) if across else (width, LEAST)

    def _index_box(self, link: Link, number: int, components: int) -> Box:
        """Return the box of an index, which stands beside what it moves."""
        across, band, width = self.form.across, self.band, self._component * components
        if self.moved.empty:
            step = number * ((LEAST if across else width) + TIGHT)
            x, y = (band.left, band.top + step) if across else (band.left + step, band.top)
        else:
            around = self.moved.around(link.moved)
            if self.form.congruent:
                around = around.moved(*self._shift)
            middle = around.middle
            x, y = middle[0] - width / 2, middle[1] - LEAST / 2
            if across:
                x = around.left if self.form.congruent else band.left
            elif not self.form.congruent:
                y = band.top
        return Box(x, y, x + width, y + LEAST)

    @property
    def _shift(self) -> tuple[float, float]:
        """From what moves to the indices."""
        return self.band.left - self.moved.x, self.band.top - self.moved.y

    def line(self, label: Label) -> Route:
        """Return the line between an index and the data."""
        link, box, edges = label.link, label.box, label.box
        if self.form.congruent:
            edges = self.moved.edges(link.moved).moved(*self._shift)
        data = ArrowEnd(self.data.around(link.data), self.data.edges(link.data), label.lanes[0])
        index = ArrowEnd(box, edges, label.lanes[1])
        return route(*((data, index) if self.gathers else (index, data)), self.form.across)

    def steps(self) -> Iterator[tuple[Box, Box]]:
        """Yield what short arrows join: indices and what they move."""
        if self.form.congruent:
            yield self.band, self.moved.whole
            return
        for label in self.labels:
            yield label.box, self.moved.around(label.link.moved)


def index_texts(form: Form, entry: Entry) -> list[str]:
    """Write the components of an index, and where they are brought to."""
    texts = [_brief(value) for value in entry.values] or ["( )"]
    if entry.place is not None:
        first = form.axis if form.elements else 0
        for c, wrong in enumerate(entry.wrong):
            if wrong:
                texts[c] += f"\N{RIGHTWARDS ARROW}{_brief(entry.place[first + c])}"
    return texts if len(texts) <= 4 else [", ".join(shortened(texts, 4))]


def _brief(value: int) -> str:
    text = str(value)
    return text if len(text) < 10 else f"{text[:3]}\N{HORIZONTAL ELLIPSIS}{text[-3:]}"
