"""Route lines from one box to another, between the cells and never over them."""

from __future__ import annotations

from typing import NamedTuple

from .grids import LANE, TIGHT
from .svg import Box

BEND = 5.0


class ArrowEnd(NamedTuple):
    """One end of a line: a box, the box around its neighbours, and the lane beside it."""

    box: Box
    edges: Box
    lane: int


class Route(NamedTuple):
    """The path of a line, and where it arrives in which direction."""

    path: str
    tip: tuple[float, float]
    direction: tuple[float, float]


def route(start: ArrowEnd, end: ArrowEnd, across: bool) -> Route:
    """Draw a line that leaves `start` and arrives at `end`, left to right or top to bottom."""
    s, e = (start, end) if across else (_turned(start), _turned(end))
    path: list[tuple[str, list[tuple[float, float]]]] = []
    if s.box.right >= s.edges.right - 1:
        point = (s.box.right, s.box.middle[1])
        path.append(("M", [point]))
    else:
        x, y = s.box.middle[0], _lane(s)
        path.append(("M", [(x, s.box.bottom)]))
        path.append(("Q", [(x, y), (x + BEND, y)]))
        point = (s.edges.right, y)
        path.append(("L", [point]))
    direct = e.box.left <= e.edges.left + 1
    target = (e.box.left, e.box.middle[1]) if direct else (e.edges.left, _lane(e))
    middle = (point[0] + target[0]) / 2
    path.append(("C", [(middle, point[1]), (middle, target[1]), target]))
    direction = (1.0, 0.0)
    if not direct:
        x, y = e.box.middle[0], target[1]
        path.append(("L", [(x - BEND, y)]))
        target = (x, e.box.bottom)
        path.append(("Q", [(x, y), target]))
        direction = (0.0, -1.0)
    if not across:
        path = [(letter, [(y, x) for x, y in points]) for letter, points in path]
        target, direction = target[::-1], direction[::-1]
    text = " ".join(
        letter + " ".join(f"{x:.1f} {y:.1f}" for x, y in points) for letter, points in path
    )
    return Route(text, target, direction)


def _lane(end: ArrowEnd) -> float:
    return end.box.bottom + TIGHT / 2 + LANE * (end.lane + 1)


def _turned(end: ArrowEnd) -> ArrowEnd:
    """Swap the axes."""
    box, edges = (Box(b.top, b.left, b.bottom, b.right) for b in (end.box, end.edges))
    return ArrowEnd(box, edges, end.lane)
