"""Draw a call as text: the cells of its arrays, in columns or below each other."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

from gatherum._model.call import Call
from gatherum._model.errors import Shape

from .captions import notes, titles
from .cells import CallValues, Cell, Cells, fill_cells
from .drawing import LEGEND
from .layout import index_texts
from .model import Scene, positions_of, scene_of
from .roles import MOST_ACROSS, planes

# Colours of the 256-colour palette, in the order of `svg.HUES`.
HUES = (33, 208, 34, 199, 37, 99, 142, 137)
GAP = "   "
MARKS = {"again": "=", "wrong": "!", "filled": "~", "dropped": "x", "lost": "/"}
NAMES = ("before", "indices", "moved", "data")


class Part(NamedTuple):
    """A string, and the number of its colour, or -1 if it has none."""

    text: str
    colour: int = -1


Line = list[Part]
# Characters in pictures that some terminals cannot display, and their replacements.
PLAIN = str.maketrans(
    {
        "\N{HORIZONTAL ELLIPSIS}": "...",
        "\N{RIGHTWARDS ARROW}": "->",
        "\N{NO-BREAK SPACE}": " ",
        "\N{MULTIPLICATION SIGN}": "*",
        "\N{DIVISION SIGN}": "/",
    }
)


def sketch(s: Call, operands: CallValues, raises: bool, width: int, colours: bool) -> str:
    """Draw a call as lines of at most `width` characters, if that is possible."""
    lines: list[Line] = []
    for most_across in (MOST_ACROSS, 8, 5, 2):
        scene = scene_of(s, operands.indices, raises, most_across)
        cells = fill_cells(scene, operands)
        drawings = list(_drawings(scene, cells))
        lines = _side_by_side(drawings)
        if _width(lines) > width:
            lines = _stacked(drawings)
        if _width(lines) <= width:
            break
    written = ["".join(_written(part, colours) for part in line).rstrip() for line in lines]
    marks = _marks(scene, cells)
    legend = [f"{sign}  {LEGEND[mark]}" for mark, sign in MARKS.items() if mark in marks]
    captions = [*legend, notes(scene, cells.has_values)]
    wrapped = (textwrap.wrap(caption, max(width, 20)) for caption in captions)
    texts = [_plain(part) for parts in wrapped for part in parts]
    return "\n".join([*written, *([""] if texts else []), *texts])


def _plain(text: str) -> str:
    """Replace control characters, code points that are not characters, and those in `PLAIN`."""
    return re.sub("[^\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "?", text).translate(
        PLAIN
    )


def _written(part: Part, colours: bool) -> str:
    if part.colour < 0 or not colours:
        return part.text
    return f"\x1b[38;5;{HUES[part.colour]}m{part.text}\x1b[0m"


def _marks(scene: Scene, cells: Cells) -> set[str]:
    marks = {cell.mark for cell in [*cells.data, *cells.moved]}
    marks |= {"again"} if any(link.is_duplicate for link in scene.links) else set()
    return marks | ({"wrong"} if any(any(link.entry.wrong) for link in scene.links) else set())


def _drawings(scene: Scene, cells: Cells) -> Iterator[list[Line]]:
    """Yield the lines of each array, in the order of the call's operands."""
    headings = titles(scene)
    drawn = scene.drawn
    for name in ("data", "indices", "moved") if scene.gathers else NAMES:
        title, shape = headings[name]
        head = [[Part(_plain(f"{title} {shape}"))]]
        if scene.is_refused and name == ("moved" if scene.gathers else "data"):
            yield [*head, [Part("IndexError")]]
        elif name == "indices":
            yield head + list(_rows(_index_parts(scene), positions_of(drawn.entries)))
        else:
            array = {"before": cells.before, "data": cells.data, "moved": cells.moved}[name]
            positions = positions_of(drawn.moved) if name == "moved" else scene.shown
            yield head + list(_rows([_cell_part(cell) for cell in array], positions))


def _cell_part(cell: Cell) -> Part:
    text = "".join(f" {line}" if line.startswith("= ") else line for line in cell.lines)
    return Part(_plain(text) + MARKS.get(cell.mark, ""), cell.colour)


def _index_parts(scene: Scene) -> list[Part]:
    """Return the text of each index, or index tuple, in row-major order."""
    parts = []
    for link in scene.links:
        if not link.is_repeated:
            text = _plain(",".join(index_texts(scene.drawn, link.entry)))
            signs = MARKS["wrong"] * any(link.entry.wrong) + MARKS["again"] * link.is_duplicate
            parts.append(Part(text + signs, link.colour))
    return parts


def _rows(parts: list[Part], positions: tuple[Shape, ...]) -> Iterator[Line]:
    """Yield the rows of an array, with the positions of rows and columns."""
    if not parts:
        yield [Part("empty")]
        return
    column = len(positions) == 1  # a vector is drawn as a column
    count = planes(tuple(map(len, positions)), column)[2]
    rows = list(product(*(positions if column else positions[:-1])))
    labels = [f"[{', '.join(map(str, row))}]" if row else "" for row in rows]
    start = max(map(len, labels))
    column_width = max(len(part.text) for part in parts)
    if count > 1:
        heads = [f"[{position}]" for position in positions[-1]]
        column_width = max(column_width, *map(len, heads))
        yield [Part(" " * start), *(Part(f" {head:>{column_width}}") for head in heads)]
    for n, label in enumerate(labels):
        cells = parts[n * count : (n + 1) * count]
        aligned = (Part(f" {part.text:>{column_width}}", part.colour) for part in cells)
        yield [Part(f"{label:<{start}}"), *aligned]


def _side_by_side(drawings: list[list[Line]]) -> list[Line]:
    height, lines = max(map(len, drawings)), []
    widths = [_width(drawing) for drawing in drawings]
    for n in range(height):
        line: Line = []
        for drawing, width in zip(drawings, widths, strict=True):
            parts = drawing[n] if n < len(drawing) else []
            line += [*parts, Part(" " * (width - _width([parts])) + GAP)]
        lines.append(line)
    return lines


def _stacked(drawings: list[list[Line]]) -> list[Line]:
    lines: list[Line] = []
    for drawing in drawings:
        lines += [*([[]] if lines else []), *drawing]
    return lines


def _width(lines: list[Line]) -> int:
    return max((len("".join(part.text for part in line).rstrip()) for line in lines), default=0)
