"""Draw a call as an SVG: cells go to their places, and every mark on them is explained."""

from __future__ import annotations

from collections.abc import Iterator

from ..call import Call
from ..errors import Shape
from . import svg
from .captions import call_text, notes, shapes_text, titles, wrapped
from .cells import CallValues, Cell, Cells, fill_cells
from .grids import HEAD, Box, Grid
from .layout import FONT, LINE, MARGIN, NAME, Composition, Label, arrange, plane_name
from .model import Scene, scene_of
from .roles import MOST_ACROSS, planes

WIDEST = 640.0
MOST_BEFORE = 24  # cells of a scatter's data that are drawn above its result
NARROWEST = 430.0
NOTE = 13.0
LEGEND = {
    "again": "a duplicate: an index before it names the same place",
    "wrong": "out of bounds",
    "filled": "filled: its index is out of bounds",
    "dropped": "dropped: its index is out of bounds",
    "lost": "overwritten by a later update",
    "repeat": "the same indices once more",
}


def draw(s: Call, operands: CallValues | None = None, refusal: str = "") -> str:
    """Draw a call.

    Parameters
    ----------
    s : Call
        The call.
    operands : CallValues, optional
        Its values, as far as they are known.
    refusal : str, optional
        The message with which the call raises for its indices.

    Returns
    -------
    str
        An SVG document.
    """
    operands = operands or CallValues()
    scene, cells, layout = _fitting(s, operands, bool(refusal))
    width = max(layout.width, NARROWEST) + 2 * MARGIN
    head, top = _heading(scene, cells.values, width, refusal)
    body = _body(scene, cells, layout)
    legend, bottom = _legend(cells, layout, width, top + layout.height + 14)
    left = (width - layout.width) / 2
    return svg.document(
        width,
        bottom,
        f"{call_text(s)}: {shapes_text(s)}",
        [*head, f'<g transform="translate({left:.1f} {top:.1f})">', *body, "</g>", *legend],
    )


def _fitting(s: Call, operands: CallValues, raises: bool) -> tuple[Scene, Cells, Composition]:
    """Lay a call out so that it can be read: with letters if its values are too wide, and with
    fewer cells if they still are.
    """
    for most_across in (MOST_ACROSS, 8, 5, 2):
        scene = scene_of(s, operands.indices, raises, most_across)
        cells = fill_cells(scene, operands)
        layout = arrange(scene, cells, titles(scene))
        if cells.values and layout.width > WIDEST:
            cells = fill_cells(scene, CallValues(None, operands.indices, None, operands.fill_value))
            layout = arrange(scene, cells, titles(scene))
        if layout.width <= WIDEST:
            break
    if cells.before and len(cells.before) <= MOST_BEFORE:
        whole = arrange(scene, cells, titles(scene), before=True)
        layout = whole if whole.width <= WIDEST else layout
    return scene, cells, layout


def _heading(scene: Scene, values: bool, width: float, refusal: str) -> tuple[list[str], float]:
    """Return the lines above the picture and where they end."""
    width -= 2 * MARGIN
    lines = []
    y = MARGIN
    for text, size, style, bold in _head_texts(scene, values, refusal):
        for part in wrapped(text, size, width, bold):
            y += size + 5
            lines.append(svg.words(MARGIN, y, part, size, style, bold=bold))
    return lines, y + 22


def _head_texts(scene: Scene, values: bool, refusal: str) -> Iterator[tuple[str, float, str, bool]]:
    s = scene.call
    yield call_text(s), 15, "ink", True
    yield shapes_text(s), NOTE, "muted", False
    for note in notes(scene, values):
        yield note, NOTE, "ink", False
    if refusal:
        yield refusal, NOTE, "warning", False


def _body(scene: Scene, cells: Cells, layout: Composition) -> Iterator[str]:
    form = scene.form
    yield from _titles_drawn(scene, layout)
    if not scene.refused:
        yield from _steps(layout, form.congruent, scene.call.updates is None, form.across)
    if layout.before is not None:
        yield from _grid(layout.before, cells.before, scene.shown)
    yield from _grid(layout.data, cells.data, scene.shown)
    shown = tuple(tuple(range(size)) for size in form.moved)
    yield from _grid(layout.moved, cells.moved, shown)
    lost = {id(label.entry): label.lost for label in layout.labels}
    for link, route in layout.lines:
        n = svg.hue(link.colour)
        gone = lost[id(link.entry)]
        faded = 0.45 if link.repeat else None
        yield svg.line(
            route.path, f"line{n}", stroke_width=2, stroke_opacity=faded,
            stroke_dasharray="5 4" if gone else None,
        )  # fmt: skip
        if not gone:
            yield svg.arrow_head(route.tip, route.direction, f"tip{n}")
    for label in layout.labels:
        yield from _index(label)


def _titles_drawn(scene: Scene, layout: Composition) -> Iterator[str]:
    named = titles(scene)
    for name, (x, y) in layout.titles.items():
        title, shape = named[name]
        yield svg.words(x, y, title, 14, bold=True)
        yield svg.words(x, y + 16, shape, NOTE, "muted")


def _grid(grid: Grid, cells: list[Cell], shown: tuple[Shape, ...]) -> Iterator[str]:
    if grid.empty:
        yield svg.rectangle(grid.whole, "hollow", stroke_dasharray="4 3", rx=4)
        yield svg.words(*_baseline(grid.whole, 0, 1), "empty", NOTE, "muted", middle=True)
        return
    if grid.refused:
        at = _baseline(grid.whole, 0, 1)
        yield svg.rectangle(grid.whole, "hollow", stroke_dasharray="4 3", rx=4)
        yield svg.words(*at, "IndexError", 15, "warning", bold=True, middle=True)
        return
    yield from _positions(grid, shown)
    for number, cell in enumerate(cells):
        yield from _cell(grid.box(number), cell)


def _positions(grid: Grid, shown: tuple[Shape, ...]) -> Iterator[str]:
    """Write the positions of rows, columns and planes, on the side where no lines come in."""
    count, rows, columns = planes(grid.shape)
    axes = [*shown, *[(0,)] * (len(grid.shape) - len(shown))]
    below = grid.last and not grid.across
    for plane in range(count):
        first = plane * rows * columns
        edges = grid.edges_of(plane)
        if count > 1:
            y = edges.bottom + HEAD * 2 - 4 if below else edges.top - HEAD * grid.heads[1] - 5
            name = plane_name(axes, plane, len(shown))
            yield svg.words(edges.left, y, name, NAME, "muted")
        if grid.heads[1]:
            y = edges.bottom + 13 if below else edges.top - 4
            for column, position in enumerate(axes[-1]):
                x = grid.box(first + column).middle[0]
                yield svg.words(x, y, str(position), 11, "muted", middle=True)
        if grid.heads[0]:
            half = (grid.heads[0] - 1) / 2
            x = edges.right + half if grid.last and grid.across else edges.left - half
            for row, position in enumerate(axes[-2]):
                y = grid.box(first + row * columns).middle[1] + 4
                yield svg.words(x, y, str(position), 11, "muted", middle=True)


def _baseline(box: Box, line: int, lines: int) -> tuple[float, float]:
    """Return where the middle of a line of text goes in a box."""
    x, y = box.middle
    return x, y + LINE * (line - (lines - 1) / 2) + 5


def _cell(box: Box, cell: Cell) -> Iterator[str]:
    n = svg.hue(cell.colour)
    marks = cell.marks
    style = "hollow" if marks & {"none", "filled", "dropped"} else "plain"
    style = style if cell.colour < 0 else f"fill{n}"
    dashes = "4 3" if style == "hollow" else None
    yield svg.rectangle(
        box, style, cell.tip, rx=3, stroke_dasharray=dashes,
        stroke_width=1 if cell.colour < 0 else 1.5,
    )  # fmt: skip
    if marks & {"filled", "dropped"}:
        yield svg.hatching(box, "thin")
        for number, text in enumerate(cell.lines):
            shift = _baseline(box, number, len(cell.lines))[1] - 5 - box.middle[1]
            yield svg.rectangle(_behind(box.moved(0, shift), text), style, stroke="none", rx=3)
    faint = marks & {"lost", "dropped"}
    for number, text in enumerate(cell.lines):
        if not text:
            continue
        at = _baseline(box, number, len(cell.lines))
        yield svg.words(*at, text, FONT, "muted" if faint else "ink", mono=True, middle=True)
    if "lost" in marks:
        yield _struck(box)


def _behind(box: Box, text: str) -> Box:
    """Return the area of a text in the middle of a box, to clear it."""
    (x, y), half = box.middle, svg.width_of(text, FONT, True) / 2 + 2
    return Box(x - half, y - FONT / 2, x + half, y + FONT / 2) if text else Box(x, y, x, y)


def _struck(box: Box) -> str:
    left, top, right, bottom = box
    path = f"M{left + 3:.1f} {bottom - 4:.1f}L{right - 3:.1f} {top + 4:.1f}"
    return svg.line(path, "strong", stroke_width=1.5)


def _index(label: Label) -> Iterator[str]:
    """Draw an index, or a tuple of them."""
    box, entry = label.box, label.entry
    n = svg.hue(label.colour)
    faded = 0.5 if label.repeat else None
    yield f'<g opacity="{faded}">' if faded else "<g>"
    style = "hollow" if label.colour < 0 else f"fill{n}"
    dashes = "4 3" if label.repeat else None
    tip = f"indices{list(entry.where)} = {', '.join(map(str, entry.values)) or 'no component'}"
    yield svg.rectangle(box, style, tip, rx=10, stroke_width=1.5, stroke_dasharray=dashes)
    width = (box.right - box.left) / len(label.texts)
    wrong = entry.wrong if len(entry.wrong) == len(label.texts) else (any(entry.wrong),)
    for number, text in enumerate(label.texts):
        left = box.left + number * width
        part = Box(left, box.top, left + width, box.bottom)
        if entry.values and wrong[number]:
            yield from _wrong(part)
            yield svg.rectangle(_behind(part, text), style, stroke="none", rx=3)
        elif number:
            yield svg.line(f"M{left:.1f} {box.top:.1f}V{box.bottom:.1f}", "thin", stroke_width=1)
        yield svg.words(*_baseline(part, 0, 1), text, FONT, mono=True, middle=True)
    if entry.again:
        yield _dog_ear(box, f"tip{n}" if label.colour >= 0 else "arrow")
    yield "</g>"


def _wrong(box: Box) -> Iterator[str]:
    inner = Box(box.left + 1.5, box.top + 1.5, box.right - 1.5, box.bottom - 1.5)
    yield svg.hatching(Box(box.left + 5, box.top + 2, box.right - 5, box.bottom - 2), "bad")
    yield svg.rectangle(inner, "bad", fill="none", rx=9, stroke_width=2, stroke_dasharray="5 3")


def _dog_ear(box: Box, style: str) -> str:
    """Return a triangle in the upper right corner."""
    x, y = box.right + 1, box.top - 1
    return svg.element("path", style, d=f"M{x - 12:.1f} {y:.1f}H{x:.1f}V{y + 12:.1f}Z")


def _steps(layout: Composition, congruent: bool, gathers: bool, across: bool) -> Iterator[str]:
    """Draw the short arrows between indices and what they move."""
    if layout.moved.empty or not layout.labels:
        return
    pairs = [(index, moved) for index, moved, _ in layout.steps]
    if congruent:
        pairs = [(layout.band, layout.moved.whole)]
    for index, moved_box in pairs:
        one, other = (index, moved_box) if gathers else (moved_box, index)
        if across:
            y = index.middle[1]
            start, end, direction = (one.right + 4, y), (other.left - 3, y), (1.0, 0.0)
        else:
            x = index.middle[0]
            start, end, direction = (x, one.bottom + 4), (x, other.top - 3), (0.0, 1.0)
        path = f"M{start[0]:.1f} {start[1]:.1f}L{end[0]:.1f} {end[1]:.1f}"
        yield svg.line(path, "thin", stroke_width=2)
        yield svg.arrow_head(end, direction, "arrow")


def _legend(cells: Cells, layout: Composition, width: float, top: float) -> tuple[list[str], float]:
    """Explain the marks that occur; return the lines and where they end."""
    marks = set().union(*(cell.marks for cell in [*cells.data, *cells.moved]))
    if any(label.entry.again for label in layout.labels):
        marks.add("again")
    if any(any(label.entry.wrong) for label in layout.labels):
        marks.add("wrong")
    if any(label.repeat for label in layout.labels):
        marks.add("repeat")
    found = [(mark, text) for mark, text in LEGEND.items() if mark in marks]
    lines: list[str] = []
    y = top
    for mark, text in found:
        box = Box(MARGIN, y, MARGIN + 26, y + 20)
        lines.extend(_sample(mark, box))
        lines.append(svg.words(box.right + 9, y + 15, text, NOTE))
        y += 26
    return lines, y + (MARGIN if found else 2)


def _sample(mark: str, box: Box) -> Iterator[str]:
    style = "fill0" if mark in ("again", "lost") else "hollow"
    if mark in ("again", "wrong", "repeat"):
        dashes = "4 3" if mark == "repeat" else None
        yield svg.rectangle(box, style, rx=9, stroke_dasharray=dashes)
        if mark == "wrong":
            yield from _wrong(box)
        elif mark == "again":
            yield _dog_ear(box, "tip0")
    else:
        yield from _cell(box, Cell([""], 0 if mark == "lost" else -1, {mark}))
