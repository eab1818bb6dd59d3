"""Write the SVG elements of pictures, in colours for light and dark pages.

Every element has the light colours as attributes, for programs without support for style sheets.
The style sheet overrides them if the reader prefers a dark page. No element has an id, because a
page may contain several pictures.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape
from math import ceil
from typing import Literal, NamedTuple

CLASS = "gatherum-picture"
SANS = "system-ui, 'Segoe UI', Helvetica, Arial, 'DejaVu Sans', sans-serif"
MONO = "ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
# The maximum character widths, as a fraction of the font size.
MONO_ADVANCE, SANS_ADVANCE, BOLD_ADVANCE = 0.605, 0.58, 0.66
Option = Literal["mono", "middle", "bold"]
OPTIONS: dict[Option, tuple[str, str]] = {
    "mono": ("font_family", MONO),
    "middle": ("text_anchor", "middle"),
    "bold": ("font_weight", "bold"),
}

# The fill and line of eight colours that most readers can distinguish. The light version precedes
# the dark version.
HUES = (
    ("#cfe3fb", "#2b6cb8", "#1d436f", "#7db3f2"),
    ("#ffdfb5", "#a85b06", "#693f0e", "#f0ab57"),
    ("#cdeccb", "#2b7d36", "#1e5528", "#78cf80"),
    ("#f8d2e6", "#ae2f79", "#662450", "#ef8fc3"),
    ("#c4ecec", "#0f7680", "#12535a", "#5fccd5"),
    ("#e1d7fb", "#6343bd", "#413079", "#b19ef4"),
    ("#f4edaa", "#776900", "#524a0c", "#d6c74c"),
    ("#e7dccd", "#76593a", "#4f402d", "#cfb38f"),
)
# The properties of each class, first for light pages, then for dark pages.
COLOURS: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "paper": ({"fill": "#ffffff"}, {"fill": "#15181d"}),
    "ink": ({"fill": "#1b1f24"}, {"fill": "#f0f3f6"}),
    "muted": ({"fill": "#59636e"}, {"fill": "#aab4bf"}),
    "plain": ({"fill": "#f3f5f7", "stroke": "#c3cad2"}, {"fill": "#22282f", "stroke": "#4d5763"}),
    "hollow": ({"fill": "#ffffff", "stroke": "#8a939d"}, {"fill": "#15181d", "stroke": "#77818c"}),
    "bad": ({"stroke": "#c11f2b"}, {"stroke": "#ff8f88"}),
    "warning": ({"fill": "#c11f2b"}, {"fill": "#ff8f88"}),
    "thin": ({"stroke": "#8a939d"}, {"stroke": "#77818c"}),
    "arrow": ({"fill": "#8a939d"}, {"fill": "#8a939d"}),
    "strong": ({"stroke": "#1b1f24"}, {"stroke": "#f0f3f6"}),
} | {
    name: colours
    for n, (fill, line, dark_fill, dark_line) in enumerate(HUES)
    for name, colours in {
        f"fill{n}": ({"fill": fill, "stroke": line}, {"fill": dark_fill, "stroke": dark_line}),
        f"line{n}": ({"stroke": line}, {"stroke": dark_line}),
        f"tip{n}": ({"fill": line}, {"fill": dark_line}),
    }.items()
}


class Box(NamedTuple):
    """A rectangle."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def middle(self) -> tuple[float, float]:
        """The centre."""
        return (self.left + self.right) / 2, (self.top + self.bottom) / 2

    def shifted(self, x: float, y: float) -> Box:
        """Return the box, shifted."""
        return Box(self.left + x, self.top + y, self.right + x, self.bottom + y)

    def on_page(self, across: bool) -> Box:
        """Swap x and y for a picture that runs downwards."""
        return self if across else Box(self.top, self.left, self.bottom, self.right)


def plain(text: str) -> str:
    """Escape text for a document and replace characters that XML does not allow."""
    return escape(re.sub("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\ufffd", text))


def element(name: str, style: str, inside: str = "", /, **attributes: object) -> str:
    """Return an element of a class, with the class's colours for light pages."""
    overrides = {key.replace("_", "-"): value for key, value in attributes.items()}
    pairs = {"class": style} | COLOURS[style][0] | overrides
    shown = {key: _as_text(value) for key, value in pairs.items() if value is not None}
    text = "".join(f' {key}="{value}"' for key, value in shown.items())
    return f"<{name}{text}>{inside}</{name}>" if inside else f"<{name}{text}/>"


def _as_text(value: object) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else plain(str(value))


def rectangle(box: Box, style: str, tip: str = "", **attributes: object) -> str:
    """Return a rectangle."""
    inside = f"<title>{plain(tip)}</title>" if tip else ""
    size = {"width": box.right - box.left, "height": box.bottom - box.top}
    return element("rect", style, inside, **({"x": box.left, "y": box.top} | size | attributes))


def words(x: float, y: float, text: str, size: float, style: str, *options: Option) -> str:
    """Return a line of text that starts at a point or is centred on it."""
    settings = dict(OPTIONS[option] for option in options)
    return element("text", style, plain(text), x=x, y=y, font_size=size, **settings)


def line(path: str, style: str, **attributes: object) -> str:
    """Return a line without a fill."""
    return element("path", style, d=path, fill="none", **attributes)


def width_of(text: str, size: float, mono: bool = False) -> float:
    """Return the maximum width of a line of text."""
    wide_count = sum(ord(character) > 0x2E80 for character in text)  # wide characters are square
    advance = MONO_ADVANCE if mono else SANS_ADVANCE
    return size * (advance * (len(text) - wide_count) + wide_count)


def hatching(box: Box, style: str) -> str:
    """Return slanted lines in a box."""
    left, top, right, bottom = box
    pieces = []
    length = (right - left) + (bottom - top)
    for step in range(6, int(length), 6):
        x0, y0 = max(left, left + step - (bottom - top)), min(bottom, top + step)
        x1, y1 = min(right, left + step), max(top, top + step - (right - left))
        pieces.append(f"M{x0:.1f} {y0:.1f}L{x1:.1f} {y1:.1f}")
    return line("".join(pieces), style, stroke_width=1, stroke_opacity=0.55)


def arrow_head(tip: tuple[float, float], direction: tuple[float, float], style: str) -> str:
    """Return an arrow head with its tip at a point."""
    (x, y), (dx, dy) = tip, direction
    head_length, half = 8.0, 4.0
    points = [
        (x, y),
        (x - head_length * dx - half * dy, y - head_length * dy - half * dx),
        (x - head_length * dx + half * dy, y - head_length * dy + half * dx),
    ]
    return element("polygon", style, points=" ".join(f"{px:.1f},{py:.1f}" for px, py in points))


def document(width: float, height: float, title: str, lines: Iterable[str]) -> str:
    """Return a complete picture."""
    width, height = ceil(width), ceil(height)
    dark = "".join(
        f".{CLASS} .{name}{{{';'.join(f'{key}:{value}' for key, value in colours.items())}}}"
        for name, (_, colours) in COLOURS.items()
    )
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="{CLASS}" role="img" '
            f'width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
            f'font-family="{SANS}">',
            f"<title>{plain(title)}</title>",
            f"<style>@media (prefers-color-scheme:dark){{{dark}}}</style>",
            rectangle(Box(0, 0, width, height), "paper"),
            *lines,
            "</svg>",
            "",
        ]
    )
