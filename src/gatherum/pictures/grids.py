"""Place the cells of an array in a picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..errors import Shape
from .model import Selection
from .roles import planes

TIGHT = 3.0  # between cells
LANE = 4.0  # between lines that run between cells
PLANE_GAP = 12.0
HEAD = 17.0  # a line of positions above or beside cells


class Box(NamedTuple):
    """A rectangle."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def middle(self) -> tuple[float, float]:
        """The point in the middle."""
        return (self.left + self.right) / 2, (self.top + self.bottom) / 2

    def moved(self, x: float, y: float) -> Box:
        """Shift the box."""
        return Box(self.left + x, self.top + y, self.right + x, self.bottom + y)


@dataclass(slots=True)
class Grid:
    """An array's cells: planes of rows and columns, planes below each other (`across`) or side by
    side.
    """

    shape: Shape
    cell: tuple[float, float]
    across: bool
    lanes: int
    heads: tuple[float, bool]  # width of positions beside the rows; whether columns have any
    last: bool = False  # whether lines come in: then positions stand where they do not
    name: float = 0.0  # how wide the names of planes are
    refused: bool = False  # whether there is no such array, because the call raises
    x: float = 0.0
    y: float = 0.0

    @property
    def empty(self) -> bool:
        """Whether there are no cells."""
        return 0 in self.shape

    @property
    def gaps(self) -> tuple[float, float]:
        """The gaps between columns and between rows; one of the two is wide enough for lines."""
        wide = TIGHT + LANE * (self.lanes + 1 if self.lanes else 0)
        return (TIGHT, wide) if self.across else (wide, TIGHT)

    @property
    def margin(self) -> Box:
        """The space for positions on each side of a plane."""
        beside = self.heads[0]
        above = HEAD * self.heads[1] + HEAD * (planes(self.shape)[0] > 1)
        if self.last and self.across:
            return Box(0, above, beside, 0)
        return Box(beside, 0, 0, above) if self.last else Box(beside, above, 0, 0)

    @property
    def plane(self) -> tuple[float, float]:
        """Width and height of a plane, with its positions."""
        _, rows, columns = planes(self.shape)
        (w, h), (gap_x, gap_y), margin = self.cell, self.gaps, self.margin
        width = margin.left + columns * (w + gap_x) + margin.right
        height = margin.top + rows * (h + gap_y) + margin.bottom
        # Lines run behind the last cells too, but cells need no gap there.
        width, height = (
            (width - gap_x, height - TIGHT) if self.across else (width - TIGHT, height - gap_y)
        )
        return max(width, margin.left + self.name), height

    @property
    def size(self) -> tuple[float, float]:
        """Width and height of the whole."""
        if self.empty:
            return 74.0, 28.0
        count = planes(self.shape)[0]
        width, height = self.plane
        if self.across:
            height = count * (height + PLANE_GAP) - PLANE_GAP
        else:
            width = count * (width + PLANE_GAP) - PLANE_GAP
        return (max(width, 108.0), height) if self.refused else (width, height)

    @property
    def whole(self) -> Box:
        """The box around everything."""
        return Box(self.x, self.y, self.x + self.size[0], self.y + self.size[1])

    def corner(self, plane: int) -> tuple[float, float]:
        """Return the corner of a plane, its positions included."""
        width, height = self.plane
        if self.across:
            return self.x, self.y + plane * (height + PLANE_GAP)
        return self.x + plane * (width + PLANE_GAP), self.y

    def place(self, number: int) -> tuple[int, int, int]:
        """Return plane, row and column of a cell."""
        _, rows, columns = planes(self.shape)
        return number // (rows * columns), number // columns % rows, number % columns

    def box(self, number: int) -> Box:
        """Return where a cell is."""
        plane, row, column = self.place(number)
        (w, h), (gap_x, gap_y) = self.cell, self.gaps
        x, y = self.corner(plane)
        x += self.margin.left + column * (w + gap_x)
        y += self.margin.top + row * (h + gap_y)
        return Box(x, y, x + w, y + h)

    def numbers(self, selection: Selection) -> list[int]:
        """Return the numbers of some cells."""
        every = np.arange(int(np.prod(self.shape))).reshape(self.shape)
        return [int(number) for number in every[selection].ravel()]

    def around(self, selection: Selection) -> Box:
        """Return the smallest box around some cells."""
        numbers = self.numbers(selection)
        first, last = self.box(min(numbers)), self.box(max(numbers))
        return Box(first.left, first.top, last.right, last.bottom)

    def edges(self, selection: Selection) -> Box:
        """Return the box around all cells of the planes that hold some cells."""
        numbers = self.numbers(selection)
        first = self.edges_of(self.place(min(numbers))[0])
        last = self.edges_of(self.place(max(numbers))[0])
        return Box(first.left, first.top, last.right, last.bottom)

    def edges_of(self, plane: int) -> Box:
        """Return the box around all cells of a plane."""
        _, rows, columns = planes(self.shape)
        first, last = (self.box(plane * rows * columns + n) for n in (0, rows * columns - 1))
        return Box(first.left, first.top, last.right, last.bottom)
