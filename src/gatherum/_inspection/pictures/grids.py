"""Arrange the cells of an array in a picture."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from gatherum._model.errors import Shape

from .cells import Cell, shortened
from .roles import planes
from .svg import Box, width_of

FONT, LINE, NAME, POSITION = 14.0, 17.0, 12.0, 11.0
LEAST = 27.0  # the minimum width and height of a cell
TIGHT = 3.0  # between cells
LANE = 4.0  # between arrows that run between cells
PLANE_GAP = 12.0
HEAD = 17.0  # a line of positions above or next to cells


@dataclass
class Grid:
    """The cells of an array, and the positions along each dimension.

    Cells are arranged in lines, and lines in planes. Planes are stacked vertically. Lines are rows.
    If the picture runs downwards (not `across`), lines are columns, and x and y are swapped for
    drawing.
    """

    cells: list[Cell]
    positions: tuple[Shape, ...]
    column: bool  # whether the last dimension is drawn as rows
    across: bool
    last: bool = False  # whether arrows end here; positions are then on the opposite side
    refused: bool = False  # whether the array does not exist because the call raises
    lanes: int = 0  # for arrows between lines of cells
    x: float = 0.0
    y: float = 0.0
    length: float = field(init=False)  # of a cell
    breadth: float = field(init=False)
    planes: tuple[int, int, int] = field(init=False)

    def __post_init__(self) -> None:
        texts = [cell.lines for cell in self.cells]
        width = max([LEAST, *(width_of(t, FONT, True) + 10 for lines in texts for t in lines)])
        height = max([LEAST, *(LINE * len(lines) + 8 for lines in texts)])
        self.length, self.breadth = (width, height) if self.across else (height, width)
        self.planes = planes(tuple(map(len, self.positions)), self.column)

    @property
    def empty(self) -> bool:
        """Whether the array has no cells."""
        return not self.cells

    @property
    def heads(self) -> tuple[Shape, Shape]:
        """The positions of the rows, if there are several, and of the columns."""
        rows = self.positions[self.column - 2] if self.planes[1] > 1 else ()
        return rows, () if self.column or not self.positions else self.positions[-1]

    @property
    def beside(self) -> float:
        """The width of the positions of rows."""
        return max((width_of(str(p), POSITION) + 10 for p in self.heads[0]), default=0.0)

    @cached_property
    def names(self) -> list[str]:
        """The names of planes, if there are several: ``[0, 2, :, :]``."""
        count, rank = self.planes[0], len(self.positions)
        leading = self.positions[: rank - 2 + self.column]
        names = []
        for plane in range(count if count > 1 else 0):
            where = np.unravel_index(plane, [len(axis) for axis in leading])
            labels = [str(axis[int(p)]) for axis, p in zip(leading, where, strict=True)]
            labels = [*shortened(labels, 6), *[":"] * (rank - len(leading))]
            names.append(f"[{', '.join(labels)}]")
        return names

    @cached_property
    def margin(self) -> Box:
        """The space for positions on each side of a plane."""
        above = HEAD * (bool(self.heads[1]) + (self.planes[0] > 1))
        side, top = (self.beside, above) if self.across else (above, self.beside)
        return Box(0, top, side, 0) if self.last else Box(side, top, 0, 0)

    @property
    def gap(self) -> float:
        """The gap between lines of cells, with space for arrows."""
        return TIGHT + LANE * (self.lanes + 1 if self.lanes else 0)

    @property
    def plane(self) -> tuple[float, float]:
        """The length and breadth of a plane, with its positions and its name."""
        lines, count = self._lines
        margin = self.margin
        # Arrows also run behind the last cells, but cells need no gap there.
        length = margin.left + count * (self.length + TIGHT) + margin.right - TIGHT
        breadth = margin.top + lines * (self.breadth + self.gap) - TIGHT
        name = max((width_of(text, NAME) for text in self.names), default=0.0)
        if self.across:
            return max(length, margin.left + name), breadth
        return length, max(breadth, margin.top + name)

    @property
    def size(self) -> tuple[float, float]:
        """The length and breadth of the whole grid."""
        if self.empty:
            return (74.0, 28.0) if self.across else (28.0, 74.0)
        length, breadth = self.plane
        breadth = self.planes[0] * (breadth + PLANE_GAP) - PLANE_GAP
        least = 108.0 if self.refused else 0.0
        return (max(length, least), breadth) if self.across else (length, max(breadth, least))

    @property
    def whole(self) -> Box:
        """The box around the whole grid."""
        return Box(self.x, self.y, self.x + self.size[0], self.y + self.size[1])

    @property
    def _lines(self) -> tuple[int, int]:
        """The number of lines in a plane, and of cells in a line."""
        _, rows, columns = self.planes
        return (rows, columns) if self.across else (columns, rows)

    def _locate(self, ordinal: int) -> tuple[int, int, int]:
        """Return the plane of a cell, its line in the plane, and its position in the line."""
        _, rows, columns = self.planes
        plane = ordinal // (rows * columns)
        row = ordinal // columns % rows
        column = ordinal % columns
        return (plane, row, column) if self.across else (plane, column, row)

    def box(self, ordinal: int) -> Box:
        """Return the box of a cell."""
        plane, line, offset = self._locate(ordinal)
        x = self.x + (self.margin.left + offset * (self.length + TIGHT))
        y = self.y + plane * (self.plane[1] + PLANE_GAP)
        y += self.margin.top + line * (self.breadth + self.gap)
        return Box(x, y, x + self.length, y + self.breadth)

    def around(self, ordinals: Sequence[int]) -> Box:
        """Return the smallest box around some cells."""
        first, last = self.box(ordinals[0]), self.box(ordinals[-1])
        return Box(first.left, first.top, last.right, last.bottom)

    def edges(self, ordinals: Sequence[int]) -> Box:
        """Return the box around all planes that contain the cells."""
        area = self.planes[1] * self.planes[2]
        first, last = ordinals[0] // area, ordinals[-1] // area
        return self.around((first * area, (last + 1) * area - 1))

    def choose_lanes(self, arrows: Iterable[Sequence[int]]) -> list[int]:
        """Choose the lanes of arrows to or from cells.

        In each line, every cell with an arrow gets a lane, except the cell at the edge, which needs
        none.
        """
        edge = 0 if self.last else self._lines[1] - 1
        taken: dict[tuple[int, int], dict[int, int]] = {}
        chosen = []
        for ordinals in arrows:
            lane = 0
            if ordinals:
                plane, line, offset = self._locate(ordinals[0 if self.last else -1])
                if offset != edge:
                    lanes = taken.setdefault((plane, line), {})
                    lane = lanes.setdefault(offset, len(lanes))
            chosen.append(lane)
        self.lanes = max(map(len, taken.values()), default=0)
        return chosen
