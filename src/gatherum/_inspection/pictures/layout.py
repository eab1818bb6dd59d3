"""Arrange the arrays of a picture, and each index next to the cells that it moves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from .arrows import ArrowEnd, Route, route, step
from .captions import titles
from .cells import Cells, shortened
from .grids import FONT, LEAST, TIGHT, Grid
from .model import Entry, Link, Scene, positions_of
from .roles import CallShapes
from .svg import Box, width_of

GAP, NEAR, ASIDE = 74.0, 30.0, 40.0  # between consecutive arrays
TITLE, TITLE_FONT, NOTE = 40.0, 14.0, 13.0
APART = 16.0  # between two titles
Before = Literal["", "aside", "over"]


class Label(NamedTuple):
    """An index as it is drawn.

    It contains a label for each component, the box around the labels, and the lanes in which its
    arrow is drawn: one next to the data and one next to the indices.
    """

    link: Link
    texts: list[str]
    box: Box
    lanes: tuple[int, int]


class Layout:
    """The positions of grids, indices and titles, starting at (0, 0).

    If the picture runs downwards, x and y are swapped for drawing, except in `titles`, `width` and
    `height`. There is a grid for the data (for a scatter, its result), one for the moved array, and
    optionally one for a scatter's data. `before` places the latter "aside", next to the other
    arrays, or "over" the result. `band` is the box of the indices.
    """

    def __init__(self, scene: Scene, cells: Cells, before: Before = "") -> None:
        self.shapes, self.gathers, links = scene.drawn, scene.gathers, scene.links
        across, columns = self.shapes.runs_across, self.shapes.columns
        self.data = Grid(cells.data, scene.shown, columns[0], across)
        self.moved = Grid(cells.moved, positions_of(self.shapes.moved), columns[1], across)
        target = self.moved if self.gathers else self.data
        target.last, target.refused = True, scene.is_refused
        self.grids = {"data": self.data, "moved": self.moved}
        texts = [index_texts(self.shapes, link.entry) for link in links]
        widest = max((width_of(text, FONT, True) for line in texts for text in line), default=0.0)
        component = max(LEAST, widest + 12)
        self._index = (component, LEAST) if across else (LEAST, component)
        lanes = self._choose_lanes(links)
        self._size_cells()
        self._over = before == "over" and across
        if before:
            self._add_before(cells, scene)
        self.titles: dict[str, tuple[float, float]] = {}
        self._stack(titles(scene), len(links), max(map(len, texts), default=1))
        self.labels = [
            Label(link, line, self._index_box(link, i, len(line)), pair)
            for i, (link, line, pair) in enumerate(zip(links, texts, lanes, strict=True))
        ]

    def _choose_lanes(self, links: list[Link]) -> list[tuple[int, int]]:
        lined = [
            link.moved if self.shapes.draws_index_array and link.data else [] for link in links
        ]
        at_data = self.data.choose_lanes(link.data for link in links)
        return list(zip(at_data, self.moved.choose_lanes(lined), strict=True))

    def _size_cells(self) -> None:
        shapes, data, moved_grid = self.shapes, self.data, self.moved
        if (
            shapes.draws_index_array or not shapes.runs_across
        ):  # an index is drawn over the cell that it moves
            moved_grid.length = max(moved_grid.length, self._index[0])
            moved_grid.breadth = max(moved_grid.breadth, self._index[1])
        if shapes.has_index_per_element:  # cells with the same index are drawn in one line
            data.lanes = moved_grid.lanes = max(data.lanes, moved_grid.lanes)
            data.breadth = moved_grid.breadth = max(data.breadth, moved_grid.breadth)

    def _add_before(self, cells: Cells, scene: Scene) -> None:
        """Add the data of a scatter; if it is over its result, their columns are aligned."""
        across, result = self.shapes.runs_across, self.data
        grid = Grid(cells.before, scene.shown, result.column, across, last=self._over)
        if self._over:
            grid.length = result.length = max(grid.length, result.length)
        elif not across:
            grid.lanes = result.lanes
            grid.breadth = result.breadth = max(grid.breadth, result.breadth)
        self.grids = {"before": grid, **self.grids}

    def _stack(self, named: dict[str, tuple[str, str]], count: int, components: int) -> None:
        """Arrange data, indices and the moved array consecutively.

        The order is from left to right with titles above, or from top to bottom with titles on the
        left. The data of a scatter is at the start, or over its result if the picture is wide.
        """
        across, grids, before = self.shapes.runs_across, self.grids, self.grids.get("before")
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
        if before and self._over:
            start += TITLE + before.size[1] + NEAR
        elif before:
            order = {"before": ASIDE, **order}
        extent = max(breadth for _, breadth in sizes.values())
        position = end = 0.0
        for name, gap in order.items():
            length, breadth = sizes[name]
            x, y = position, start + (extent - breadth) / 2
            self.titles[name] = (x, y - TITLE + 14) if across else (0.0, x + length / 2 - 3)
            if name == "indices":
                self.band = Box(x, y, x + length, y + breadth)
            else:
                grids[name].x, grids[name].y = x, y
            title = widths[name] if across else 0.0
            end = max(end, position + length, position + title)
            position += max(length + gap, title + APART)
        self.width, self.height = (end, start + extent) if across else (start + extent, end)
        if before and self._over:
            before.x, before.y = self.data.x, TITLE
            self.titles["before"] = (self.data.x, 14.0)

    def _band_size(self, count: int, components: int) -> tuple[float, float]:
        """Return the size of all indices together."""
        length, breadth = self._index
        if self.moved.empty:  # indices that move nothing are drawn in a separate line
            return length * components, max(count, 1) * (breadth + TIGHT)
        if self.shapes.draws_index_array:
            return self.moved.size
        return length * components, self.moved.size[1]

    def _index_box(self, link: Link, i: int, components: int) -> Box:
        """Return the box of an index, next to the cells that it moves."""
        length, breadth = self._index
        x, y = self.band.left, self.band.top + i * (breadth + TIGHT)
        if not self.moved.empty:
            around = self.moved.around(link.moved)
            if self.shapes.draws_index_array:
                around = around.shifted(*self._shift)
                x = around.left
            y = around.middle[1] - breadth / 2
        return Box(x, y, x + length * components, y + breadth)

    @property
    def _shift(self) -> tuple[float, float]:
        """The offset from the moved array to the indices."""
        return self.band.left - self.moved.x, self.band.top - self.moved.y

    def route(self, label: Label) -> Route:
        """Return the arrow between an index and the data."""
        link, edges = label.link, label.box
        if self.shapes.draws_index_array:
            edges = self.moved.edges(link.moved).shifted(*self._shift)
        data = ArrowEnd(self.data.around(link.data), self.data.edges(link.data), label.lanes[0])
        index = ArrowEnd(label.box, edges, label.lanes[1])
        return route(*((data, index) if self.gathers else (index, data)), self.shapes.runs_across)

    def steps(self) -> Iterator[Route]:
        """Yield the short arrows between indices and the cells that they move."""
        pairs = [(label.box, self.moved.around(label.link.moved)) for label in self.labels]
        for pair in [(self.band, self.moved.whole)] if self.shapes.draws_index_array else pairs:
            yield step(*(pair if self.gathers else pair[::-1]), self.shapes.runs_across)


def index_texts(shapes: CallShapes, entry: Entry) -> list[str]:
    """Format the components of an index, and the positions that they resolve to."""
    texts = [_brief(value) for value in entry.values] or ["( )"]
    if entry.position is not None:
        first = shapes.axis if shapes.has_index_per_element else 0
        for c, wrong in enumerate(entry.wrong):
            if wrong:
                texts[c] += f"\N{RIGHTWARDS ARROW}{_brief(entry.position[first + c])}"
    return texts if len(texts) <= 4 else [", ".join(shortened(texts, 4))]


def _brief(value: int) -> str:
    text = str(value)
    return text if len(text) < 10 else f"{text[:3]}\N{HORIZONTAL ELLIPSIS}{text[-3:]}"
