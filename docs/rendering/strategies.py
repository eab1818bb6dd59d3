"""Draw how rows move between chunks: a small gather and a small scatter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np

import gatherum
from gatherum._inspection.pictures import svg
from gatherum._inspection.pictures.svg import Box

from .pictures import figure

# Narrow enough for a phone.
WIDTH, CELL, LEFT = 360, 27, 6
# The height of the space for arrows.
ACROSS = 48
SIZE, SMALL = 13.0, 12.0
# The example has three chunks of a table and two chunks of indices.
TABLE = np.array(list("abcdef"))
OWNERS = 3
INDICES = (np.array([5, 0, 2, 0]), np.array([1, 4, 5, 3]))
SUMS = np.array([10, 20, 30, 40, 50, 60])
UPDATES = (np.array([1, 2, 3, 4]), np.array([5, 6, 7, 8]))
CHUNK = len(TABLE) // OWNERS


@dataclass
class Drawing:
    """SVG elements, drawn from top to bottom."""

    lines: list[str] = field(default_factory=list)
    y: float = 8.0

    def say(self, *texts: str) -> None:
        """Write lines of text across the picture."""
        for text in texts:
            self.y += 17
            self.lines.append(svg.words(LEFT, self.y, text, SIZE, "ink"))
        self.y += 9

    def blocks(self, name: str, blocks: Sequence[Sequence[tuple[str, int]]]) -> list[Box]:
        """Draw a row of blocks above their name, each cell with its text and colour.

        Return the boxes of the blocks.
        """
        boxes = []
        share, bottom = (WIDTH - 2 * LEFT) / len(blocks), self.y + CELL
        for number, cells in enumerate(blocks):
            wide = CELL * len(cells)
            left = LEFT + number * share + (share - wide) / 2
            for place, (text, colour) in enumerate(cells):
                x = left + CELL * place
                box = Box(x + 1, self.y, x + CELL - 1, bottom - 2)
                middle, down = box.middle
                self.lines += [
                    svg.rectangle(box, f"fill{colour}", rx=3),
                    svg.words(middle, down + 4.5, text, SIZE, "ink", "mono", "middle"),
                ]
            title = f"{name} {number}"
            self.lines.append(
                svg.words(left + wide / 2, bottom + 12, title, SMALL, "muted", "middle")
            )
            boxes.append(Box(left, self.y, left + wide, bottom + 16))
        self.y = bottom + 18
        return boxes

    def arrows(
        self, pairs: Sequence[tuple[float, float, int]], top: float, boxes: Sequence[Box]
    ) -> None:
        """Draw coloured arrows downwards. They end at a line above the block."""
        bottom = boxes[0].top - 4
        half = (top + bottom) / 2
        for box in boxes:
            path = f"M{box.left:.1f} {bottom:.1f}H{box.right:.1f}"
            self.lines.append(svg.line(path, "thin", stroke_width=1.5))
        for start, end, colour in pairs:
            path = f"M{start:.1f} {top:.1f}C{start:.1f} {half:.1f} {end:.1f} {half:.1f}"
            path += f" {end:.1f} {bottom - 7:.1f}"
            self.lines.append(svg.line(path, f"line{colour}", stroke_width=1.6))
            self.lines.append(svg.arrow_head((end, bottom), (0, 1), f"tip{colour}"))


def owner(row: int) -> int:
    """Return the chunk of the table that has a row."""
    return int(row) // CHUNK


def routes() -> list[list[int]]:
    """Return the positions of the entries of each block, ordered by the owners of their rows."""
    return [sorted(range(len(block)), key=lambda n, b=block: owner(b[n])) for block in INDICES]


def to_owners(asked: Sequence[Box], owners: Sequence[Box]) -> list[tuple[float, float, int]]:
    """Return an arrow for each run of entries in a route with the same owner."""
    arrows = []
    for number, (block, route) in enumerate(zip(INDICES, routes(), strict=True)):
        place = 0
        for who, run in groupby(route, key=lambda n, b=block: owner(b[n])):
            many = len(list(run))
            start = asked[number].left + CELL * (place + many / 2)
            end = _beside(owners[who], number, len(INDICES))
            arrows.append((start, end, who))
            place += many
    return arrows


def _beside(box: Box, number: int, count: int) -> float:
    """Return the x coordinate at which the arrow of a sender ends at a block."""
    return box.left + (box.right - box.left) * (number + 1) / (count + 1)


def _back(owners: Sequence[Box], results: Sequence[Box]) -> list[tuple[float, float, int]]:
    """Return an arrow for the rows that an owner sends to a block of the result."""
    arrows = []
    for number, block in enumerate(INDICES):
        named = sorted({owner(row) for row in block})
        for place, who in enumerate(named):
            start = _beside(owners[who], number, len(INDICES))
            arrows.append((start, _beside(results[number], place, len(named)), who))
    return arrows


def _entries(drawing: Drawing, name: str, values: Sequence[Sequence[object]]) -> list[Box]:
    """Draw one value for each entry, in the order of the entries."""
    pairs = (zip(texts, block, strict=True) for texts, block in zip(values, INDICES, strict=True))
    return drawing.blocks(name, [[(str(text), owner(row)) for text, row in pair] for pair in pairs])


def _routed(drawing: Drawing, values: Sequence[Sequence[object]]) -> list[Box]:
    """Draw one value for each entry, in the order of the routes."""
    triples = zip(values, INDICES, routes(), strict=True)
    cells = [[(str(texts[n]), owner(rows[n])) for n in route] for texts, rows, route in triples]
    return drawing.blocks("route", cells)


def _chunks(drawing: Drawing, name: str, values: Sequence[object]) -> list[Box]:
    """Draw the chunks of a table."""
    chunks = (values[n * CHUNK : (n + 1) * CHUNK] for n in range(OWNERS))
    return drawing.blocks(name, [[(str(v), n) for v in chunk] for n, chunk in enumerate(chunks)])


def draw_gather() -> str:
    """Return the picture of a gather."""
    drawing = Drawing()
    drawing.say("Two chunks of indices. The colour shows", "which chunk of the table has the row.")
    _entries(drawing, "indices", [block.tolist() for block in INDICES])
    drawing.say("1. A route orders the entries by owner, and", "has the row numbers in the chunks.")
    asked = _routed(drawing, [(block % CHUNK).tolist() for block in INDICES])
    drawing.y += ACROSS
    owners = _chunks(drawing, "table", TABLE.tolist())
    drawing.arrows(to_owners(asked, owners), asked[0].bottom, owners)
    drawing.say("2. Each owner reads the requested rows,", "and sends them back.")
    top = drawing.y
    drawing.y += ACROSS
    gathered = [gatherum.gather(TABLE, block).tolist() for block in INDICES]
    results = _entries(drawing, "result", gathered)
    drawing.arrows(_back(owners, results), top, results)
    drawing.say("3. The routes give the positions of the rows.")
    return svg.document(
        WIDTH, drawing.y + 6, "a gather: three chunks of a table, two of indices", drawing.lines
    )


def draw_scatter() -> str:
    """Return the picture of a scatter that adds."""
    drawing = Drawing()
    drawing.say("Two chunks of updates, for the same indices.")
    _entries(drawing, "updates", [block.tolist() for block in UPDATES])
    drawing.say("1. A route orders the updates by owner.")
    asked = _routed(drawing, [block.tolist() for block in UPDATES])
    drawing.y += ACROSS
    owners = _chunks(drawing, "data", SUMS.tolist())
    drawing.arrows(to_owners(asked, owners), asked[0].bottom, owners)
    drawing.say(
        "2. Each owner adds its updates in the order", "of the indices, not in order of arrival."
    )
    where, updates = np.concatenate(INDICES), np.concatenate(UPDATES)
    sums = gatherum.scatter_slices(SUMS, where, updates, reduction="add")
    _chunks(drawing, "result", sums.tolist())
    return svg.document(
        WIDTH, drawing.y + 6, "a scatter: three chunks of data, two of updates", drawing.lines
    )


def render(operation: str) -> str:
    """Return the picture of a ``gather`` or a ``scatter``."""
    return figure({"gather": draw_gather, "scatter": draw_scatter}[operation]())
