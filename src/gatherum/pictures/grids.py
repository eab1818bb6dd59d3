"""Place the cells of an array in a picture."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ..errors import Shape
from .cells import Cell, shortened
from .roles import planes
from .svg import Box, width_of

FONT, LINE, NAME, POSITION = 14.0, 17.0, 12.0, 11.0
LEAST = 27.0  # the least width and height of a cell
TIGHT = 3.0  # between cells
LANE = 4.0  # between lines that run between cells
PLANE_GAP = 12.0
HEAD = 17.0  # a line of positions above or beside cells


@dataclass
class Grid:
    """An array's cells: planes of rows and columns, planes below each other (`across`) or side by
    side, and the positions along each dimension. Lines run in lanes between the cells.
    """

    cells: list[Cell]
    positions: tuple[Shape, ...]
    column: bool  # whether the last dimension is drawn as rows
    across: bool
    last: bool = False  # whether lines come in: then positions stand where they do not
    refused: bool = False  # whether there is no such array, because the call raises
    lanes: int = 0
    x: float = 0.0
    y: float = 0.0
    width: float = field(init=False)  # of a cell
    height: float = field(init=False)
    planes: tuple[int, int, int] = field(init=False)

    def __post_init__(self) -> None:
        lines = [cell.lines for cell in self.cells]
        widths = [width_of(text, FONT, True) + 10 for texts in lines for text in texts]
        self.width = max([LEAST, *widths])
        self.height = max([LEAST, *(LINE * len(texts) + 8 for texts in lines)])
        self.planes = planes(tuple(map(len, self.positions)), self.column)

    @property
    def heads(self) -> tuple[Shape, Shape]:
        """The positions of the rows, where there are several, and of the columns."""
        rows = self.positions[self.column - 2] if self.planes[1] > 1 else ()
        return rows, () if self.column or not self.positions else self.positions[-1]

    @property
    def beside(self) -> float:
        """The width of the positions of rows."""
        return max((width_of(str(p), POSITION) + 10 for p in self.heads[0]), default=0.0)

    @cached_property
    def names(self) -> list[str]:
        """The names of planes, where there are several: ``[0, 2, :, :]``."""
        count, rank = self.planes[0], len(self.positions)
        leading = self.positions[: rank - 2 + self.column]
        found = []
        for plane in range(count if count > 1 else 0):
            where = np.unravel_index(plane, [len(axis) for axis in leading])
            places = [str(axis[int(p)]) for axis, p in zip(leading, where, strict=True)]
            places = [*shortened(places, 6), *[":"] * (rank - len(leading))]
            found.append(f"[{', '.join(places)}]")
        return found

    @property
    def gaps(self) -> tuple[float, float]:
        """The gaps between columns and between rows; one of the two is wide enough for lines."""
        wide = TIGHT + LANE * (self.lanes + 1 if self.lanes else 0)
        return (TIGHT, wide) if self.across else (wide, TIGHT)

    @cached_property
    def margin(self) -> Box:
        """The space for positions on each side of a plane."""
        beside, above = self.beside, HEAD * (bool(self.heads[1]) + (self.planes[0] > 1))
        if self.last and self.across:
            return Box(0, above, beside, 0)
        return Box(beside, 0, 0, above) if self.last else Box(beside, above, 0, 0)

    @property
    def plane(self) -> tuple[float, float]:
        """Width and height of a plane, with its positions."""
        _, rows, columns = self.planes
        (gap_x, gap_y), margin = self.gaps, self.margin
        # Lines run behind the last cells too, but cells need no gap there.
        width = margin.left + columns * (self.width + gap_x) + margin.right - TIGHT
        height = margin.top + rows * (self.height + gap_y) + margin.bottom - TIGHT
        name = max((width_of(text, NAME) for text in self.names), default=0.0)
        return max(width, margin.left + name), height

    @property
    def empty(self) -> bool:
        """Whether there are no cells."""
        return not self.cells

    @property
    def size(self) -> tuple[float, float]:
        """Width and height of the whole."""
        if self.empty:
            return 74.0, 28.0
        count, (width, height) = self.planes[0], self.plane
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
        _, rows, columns = self.planes
        return number // (rows * columns), number // columns % rows, number % columns

    def box(self, number: int) -> Box:
        """Return where a cell is."""
        plane, row, column = self.place(number)
        x, y = self.corner(plane)
        x += self.margin.left + column * (self.width + self.gaps[0])
        y += self.margin.top + row * (self.height + self.gaps[1])
        return Box(x, y, x + self.width, y + self.height)

    def around(self, numbers: Sequence[int]) -> Box:
        """Return the smallest box around some cells."""
        first, last = self.box(numbers[0]), self.box(numbers[-1])
        return Box(first.left, first.top, last.right, last.bottom)

    def edges(self, numbers: Sequence[int]) -> Box:
        """Return the box around all cells of the planes that hold some cells."""
        area = self.planes[1] * self.planes[2]
        first, last = numbers[0] // area, numbers[-1] // area
        return self.around((first * area, (last + 1) * area - 1))

    def take_lanes(self, lines: Iterable[Sequence[int]]) -> list[int]:
        """Choose the lanes of lines to or from some cells: those of a row (or column) that have any
        have one each, but for the cell at the edge, which needs none.
        """
        _, rows, columns = self.planes
        taken: dict[tuple[int, int], dict[int, int]] = {}
        found = []
        for numbers in lines:
            lane = 0
            if numbers:
                plane, row, column = self.place(numbers[0 if self.last else -1])
                other, along, end = (row, column, columns) if self.across else (column, row, rows)
                if along != (0 if self.last else end - 1):
                    lanes = taken.setdefault((plane, other), {})
                    lane = lanes.setdefault(along, len(lanes))
            found.append(lane)
        self.lanes = max(map(len, taken.values()), default=0)
        return found
