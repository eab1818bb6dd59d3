"""Route arrows from one box to another, between cells but never over a cell."""

from __future__ import annotations

from typing import NamedTuple

from .grids import LANE, TIGHT
from .svg import Box

BEND = 5.0

Point = tuple[float, float]


class ArrowEnd(NamedTuple):
    """One end of an arrow: a box, the box around its neighbours, and the lane next to it."""

    box: Box
    edges: Box
    lane: int

    @property
    def y(self) -> float:
        """The y coordinate of the lane."""
        return self.box.bottom + TIGHT / 2 + LANE * (self.lane + 1)


class Route(NamedTuple):
    """The path of an arrow, its end point, and its direction there."""

    path: str
    tip: Point
    direction: Point


def step(start: Box, end: Box, across: bool) -> Route:
    """Draw a short straight arrow."""
    y = start.middle[1]
    target = (end.left - 3, y)
    return _on_page([("M", [(start.right + 4, y)]), ("L", [target])], target, (1.0, 0.0), across)


def route(start: ArrowEnd, end: ArrowEnd, across: bool) -> Route:
    """Draw an arrow that leaves `start` on the right and ends on the left of `end`.

    If other cells are in between, the arrow uses the lane next to `start` or `end`.
    """
    point = (start.box.right, start.box.middle[1])
    path = [("M", [point])]
    if start.box.right < start.edges.right - 1:
        x, y, point = start.box.middle[0], start.y, (start.edges.right, start.y)
        path = [("M", [(x, start.box.bottom)]), ("Q", [(x, y), (x + BEND, y)]), ("L", [point])]
    direct = end.box.left <= end.edges.left + 1
    target = (end.box.left, end.box.middle[1]) if direct else (end.edges.left, end.y)
    middle = (point[0] + target[0]) / 2
    path.append(("C", [(middle, point[1]), (middle, target[1]), target]))
    if direct:
        return _on_page(path, target, (1.0, 0.0), across)
    x, tip = end.box.middle[0], (end.box.middle[0], end.box.bottom)
    path += [("L", [(x - BEND, end.y)]), ("Q", [(x, end.y), tip])]
    return _on_page(path, tip, (0.0, -1.0), across)


def _on_page(
    path: list[tuple[str, list[Point]]], tip: Point, direction: Point, across: bool
) -> Route:
    """Format a path, with x and y swapped if the picture runs downwards."""
    if not across:
        path = [(letter, [(y, x) for x, y in points]) for letter, points in path]
        tip, direction = (tip[1], tip[0]), (direction[1], direction[0])
    text = " ".join(
        letter + " ".join(f"{x:.1f} {y:.1f}" for x, y in points) for letter, points in path
    )
    return Route(text, tip, direction)
