"""Draw a call as an SVG: the moves of its cells, and a legend of all marks."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from gatherum._model.call import Call

from . import svg
from .captions import call_text, notes, shapes_text, titles
from .cells import CallValues, Cell, Cells, fill_cells
from .grids import FONT, HEAD, LINE, NAME, POSITION, Grid
from .layout import NOTE, TITLE_FONT, Label, Layout
from .model import Scene, scene_of
from .roles import MOST_ACROSS
from .svg import Box

NARROWEST, WIDEST, MARGIN = 430.0, 640.0, 16.0
MOST_BEFORE = 24  # the maximum number of cells of a scatter's data to draw with its result
LEGEND = {
    "again": "a duplicate: an index before it names the same place",
    "wrong": "out of bounds",
    "filled": "filled: its index is out of bounds",
    "dropped": "dropped: its index is out of bounds",
    "lost": "overwritten by a later update",
    "repeat": "the same indices once more",
}


def draw(call: Call, operands: CallValues, refusal: str = "") -> str:
    """Draw a call as an SVG document, with the values that are known.

    `refusal` is the message of the IndexError that the call raises, if any.
    """
    scene, cells, layout = _fitting(call, operands, bool(refusal))
    width = max(layout.width, NARROWEST) + 2 * MARGIN
    head, top = _heading(scene, cells.has_values, width - 2 * MARGIN, refusal)
    legend, bottom = _legend(cells, layout, top + layout.height + 14)
    left = (width - layout.width) / 2
    shift = f'<g transform="translate({left:.1f} {top:.1f})">'
    lines = [*head, shift, *_body(scene, layout), "</g>", *legend]
    return svg.document(width, bottom, f"{call_text(call)}: {shapes_text(call)}", lines)


def _fitting(call: Call, operands: CallValues, raises: bool) -> tuple[Scene, Cells, Layout]:
    """Lay out a call so that it is readable.

    Use letters if the values are too wide. Draw fewer cells if the picture is still too wide.
    """
    for most_across in (MOST_ACROSS, 8, 5, 2):
        scene = scene_of(call, operands.indices, raises, most_across)
        cells = fill_cells(scene, operands)
        layout = Layout(scene, cells)
        if cells.has_values and layout.width > WIDEST:
            cells = fill_cells(scene, CallValues(fill_value=operands.fill_value))
            layout = Layout(scene, cells)
        if layout.width <= WIDEST:
            break
    if 0 < len(cells.before) <= MOST_BEFORE:
        larger = (Layout(scene, cells, before) for before in ("aside", "over"))
        layout = next(
            (larger_layout for larger_layout in larger if larger_layout.width <= WIDEST), layout
        )
    return scene, cells, layout


def _heading(scene: Scene, values: bool, width: float, refusal: str) -> tuple[list[str], float]:
    """Return the lines of text above the picture, and the y coordinate of their end."""
    texts: list[tuple[str, float, str, tuple[svg.Option, ...]]] = [
        (call_text(scene.call), 15, "ink", ("bold",)),
        (shapes_text(scene.call), NOTE, "muted", ()),
        (notes(scene, values), NOTE, "ink", ()),
        (refusal, NOTE, "warning", ()),
    ]
    lines, y = [], MARGIN
    for text, size, style, options in texts:
        advance = size * (svg.BOLD_ADVANCE if options else svg.SANS_ADVANCE)
        for part in textwrap.wrap(text, max(20, int(width / advance))):
            y += size + 5
            lines.append(svg.words(MARGIN, y, part, size, style, *options))
    return lines, y + 22


def _body(scene: Scene, layout: Layout) -> Iterator[str]:
    for name, (x, y) in layout.titles.items():
        title, shape = titles(scene)[name]
        yield svg.words(x, y, title, TITLE_FONT, "ink", "bold")
        yield svg.words(x, y + 16, shape, NOTE, "muted")
    if not (scene.is_refused or layout.moved.empty):
        for step in layout.steps():
            yield svg.line(step.path, "thin", stroke_width=2)
            yield svg.arrow_head(step.tip, step.direction, "arrow")
    for grid in layout.grids.values():
        yield from _grid(grid)
    for label in layout.labels:
        if label.link.data:
            yield from _arrow(layout, label)
    for label in layout.labels:
        yield from _index(label, label.box.on_page(scene.drawn.runs_across))


def _arrow(layout: Layout, label: Label) -> Iterator[str]:
    """Draw the arrow between an index and the data."""
    link, route = label.link, layout.route(label)
    lost = all(layout.moved.cells[i].mark == "lost" for i in link.moved)
    opacity, dashes = 0.45 if link.is_repeated else None, "5 4" if lost else None
    yield svg.line(
        route.path,
        f"line{link.colour}",
        stroke_width=2,
        stroke_opacity=opacity,
        stroke_dasharray=dashes,
    )
    if not lost:
        yield svg.arrow_head(route.tip, route.direction, f"tip{link.colour}")


def _grid(grid: Grid) -> Iterator[str]:
    if grid.empty or grid.refused:
        box = grid.whole.on_page(grid.across)
        baseline = _baseline(box)
        yield svg.rectangle(box, "hollow", stroke_dasharray="4 3", rx=4)
        if grid.empty:
            yield svg.words(*baseline, "empty", NOTE, "muted", "middle")
        else:
            yield svg.words(*baseline, "IndexError", 15, "warning", "middle", "bold")
        return
    yield from _positions(grid)
    for i, cell in enumerate(grid.cells):
        yield from _cell(grid.box(i).on_page(grid.across), cell)


def _positions(grid: Grid) -> Iterator[str]:
    """Write the positions of rows, columns and planes, on the side without arrows."""
    count, _, width = grid.planes
    rows, columns = grid.heads
    below = grid.last and not grid.across
    for plane in range(count):
        first = plane * len(grid.cells) // count
        edges = grid.edges([first]).on_page(grid.across)
        if count > 1:
            y = edges.bottom + HEAD * 2 - 4 if below else edges.top - HEAD * bool(columns) - 5
            yield svg.words(edges.left, y, grid.names[plane], NAME, "muted")
        for n, position in enumerate(columns):
            x = grid.box(first + n).on_page(grid.across).middle[0]
            y = edges.bottom + 13 if below else edges.top - 4
            yield svg.words(x, y, str(position), POSITION, "muted", "middle")
        half = (grid.beside - 1) / 2
        for n, position in enumerate(rows):
            x = edges.right + half if grid.last and grid.across else edges.left - half
            y = grid.box(first + n * width).on_page(grid.across).middle[1] + 4
            yield svg.words(x, y, str(position), POSITION, "muted", "middle")


def _baseline(box: Box, line: int = 0, lines: int = 1) -> tuple[float, float]:
    """Return the centre of the baseline of a line of text in a box."""
    x, y = box.middle
    return x, y + LINE * (line - (lines - 1) / 2) + 5


def _cell(box: Box, cell: Cell) -> Iterator[str]:
    style = "hollow" if cell.mark in ("filled", "dropped") else "plain"
    if cell.colour >= 0:
        style = f"fill{cell.colour}"
    yield svg.rectangle(
        box, style, cell.tip, rx=3, stroke_dasharray="4 3" if style == "hollow" else None,
        stroke_width=1 if cell.colour < 0 else 1.5,
    )  # fmt: skip
    if style == "hollow":
        yield svg.hatching(box, "thin")
        yield from _cleared(box, cell.lines[0], style)
    ink = "muted" if cell.mark in ("lost", "dropped") else "ink"
    for i, text in enumerate(cell.lines):
        if text:
            baseline = _baseline(box, i, len(cell.lines))
            yield svg.words(*baseline, text, FONT, ink, "mono", "middle")
    if cell.mark == "lost":
        left, top, right, bottom = box
        path = f"M{left + 3:.1f} {bottom - 4:.1f}L{right - 3:.1f} {top + 4:.1f}"
        yield svg.line(path, "strong", stroke_width=1.5)


def _cleared(box: Box, text: str, style: str) -> Iterator[str]:
    """Clear the area of the text in the centre of a box."""
    (x, y), half = box.middle, svg.width_of(text, FONT, True) / 2 + 2
    if text:
        area = Box(x - half, y - FONT / 2, x + half, y + FONT / 2)
        yield svg.rectangle(area, style, stroke="none", rx=3)


def _index(label: Label, box: Box) -> Iterator[str]:
    """Draw an index or an index tuple."""
    link, texts, entry = label.link, label.texts, label.link.entry
    yield '<g opacity="0.5">' if link.is_repeated else "<g>"
    style = "hollow" if link.colour < 0 else f"fill{link.colour}"
    dashes = "4 3" if link.is_repeated else None
    tip = f"indices{list(entry.where)} = {', '.join(map(str, entry.values)) or 'no component'}"
    yield svg.rectangle(box, style, tip, rx=10, stroke_width=1.5, stroke_dasharray=dashes)
    width = (box.right - box.left) / len(texts)
    wrong = entry.wrong if len(entry.wrong) == len(texts) else (any(entry.wrong),)
    for i, text in enumerate(texts):
        left = box.left + i * width
        part = Box(left, box.top, left + width, box.bottom)
        if wrong[i]:
            yield from _wrong(part)
            yield from _cleared(part, text, style)
        elif i:
            yield svg.line(f"M{left:.1f} {box.top:.1f}V{box.bottom:.1f}", "thin", stroke_width=1)
        yield svg.words(*_baseline(part), text, FONT, "ink", "mono", "middle")
    if link.is_duplicate:
        yield _dog_ear(box, f"tip{link.colour}" if link.colour >= 0 else "arrow")
    yield "</g>"


def _wrong(box: Box) -> Iterator[str]:
    inner = Box(box.left + 1.5, box.top + 1.5, box.right - 1.5, box.bottom - 1.5)
    yield svg.hatching(Box(box.left + 5, box.top + 2, box.right - 5, box.bottom - 2), "bad")
    yield svg.rectangle(inner, "bad", fill="none", rx=9, stroke_width=2, stroke_dasharray="5 3")


def _dog_ear(box: Box, style: str) -> str:
    """Return a triangle in the upper right corner."""
    x, y = box.right + 1, box.top - 1
    return svg.element("path", style, d=f"M{x - 12:.1f} {y:.1f}H{x:.1f}V{y + 12:.1f}Z")


def _legend(cells: Cells, layout: Layout, y: float) -> tuple[list[str], float]:
    """Explain the marks that occur; return the lines and the y coordinate of their end."""
    marks = {cell.mark for cell in [*cells.data, *cells.moved]}
    for link in (label.link for label in layout.labels):
        link_marks = {
            "again": link.is_duplicate,
            "wrong": any(link.entry.wrong),
            "repeat": link.is_repeated,
        }
        marks |= {mark for mark, occurs in link_marks.items() if occurs}
    lines: list[str] = []
    for mark, text in LEGEND.items():
        if mark in marks:
            box = Box(MARGIN, y, MARGIN + 26, y + 20)
            lines += [*_sample(mark, box), svg.words(box.right + 9, y + 15, text, NOTE, "ink")]
            y += 26
    return lines, y + (MARGIN if lines else 2)


def _sample(mark: str, box: Box) -> Iterator[str]:
    if mark in ("filled", "dropped", "lost"):
        yield from _cell(box, Cell([""], colour=0 if mark == "lost" else -1, mark=mark))
        return
    style, dashes = "fill0" if mark == "again" else "hollow", "4 3" if mark == "repeat" else None
    yield svg.rectangle(box, style, rx=9, stroke_dasharray=dashes)
    if mark == "wrong":
        yield from _wrong(box)
    elif mark == "again":
        yield _dog_ear(box, "tip0")
