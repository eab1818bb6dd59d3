"""The roofline picture: how near each case comes to what the memory can do, as an SVG."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from . import peers
from .records import Record

TEXT_WIDTH, PLOT_WIDTH, ROW, MARGIN = 330, 450, 22, 12
HEAD, FOOT = 78, 58
LEGEND = {
    "ours": "gatherum, out=",
    "recycled": "gatherum, recycled result",
    "peer": "best peer",
}
TICKS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
# Colours for light pages, and for dark ones.
LIGHT = {
    "ours": "#0b6e4f", "recycled": "#4fa37f", "peer": "#c8553d",
    "ink": "#1b1f24", "muted": "#59636e", "grid": "#d5dae0", "way": "#b4bbc3", "roof": "#1b1f24",
}  # fmt: skip
DARK = {
    "ours": "#35c08e", "recycled": "#8fdcbd", "peer": "#f08a72",
    "ink": "#f0f3f6", "muted": "#aab4bf", "grid": "#39414a", "way": "#5b6570", "roof": "#f0f3f6",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Row:
    """One case: what each moves at least, in GB/s, and what was read beside it."""

    title: str
    ours: float
    recycled: float
    peer: float | None
    peer_name: str
    read: float


def draw(report: dict[str, Any]) -> str:
    """Return the picture of a report.

    Parameters
    ----------
    report : dict
        What `gatherum.bench.main` returns; tiny cases are left out, for memory does not limit
        them.

    Returns
    -------
    str
        An SVG document. A mark is the case's least bytes over its time. The roof is the most bytes
        a second that were seen: the bandwidth varies during a run, and caches serve some cases.
    """
    rows = [_row(record) for record in report["cases"] if "floor" in record]
    reads = report["limits"]["read_gb_s"].values()
    marks = (mark for row in rows for mark in (row.ours, row.recycled, row.peer or 0.0, row.read))
    roof = max([*reads, *marks])
    height = HEAD + ROW * max(1, len(rows)) + FOOT
    width = TEXT_WIDTH + PLOT_WIDTH + 2 * MARGIN + 20
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="roofline" width="{width}" '
        f'height="{height}" viewBox="0 0 {width} {height}" font-family="sans-serif" '
        'font-size="13">',
        _style(),
        *_heading(report),
        *_axis(roof, len(rows), report),
    ]
    for number, row in enumerate(rows):
        parts.extend(_marks(row, HEAD + ROW * number + ROW / 2, roof))
    return "\n".join([*parts, "</svg>", ""])


def write(report: dict[str, Any], file: Path) -> None:
    """Write the picture of a report to a file."""
    file.write_text(draw(report))


def _style() -> str:
    """Return the colours: of a light page, and of a dark one where the reader prefers that."""
    light, dark = (
        "".join(
            f".roofline .{name}{{{'stroke' if name in ('grid', 'way', 'roof') else 'fill'}:{c}}}"
            for name, c in colours.items()
        )
        for colours in (LIGHT, DARK)
    )
    return f"<style>{light}@media (prefers-color-scheme:dark){{{dark}}}</style>"


def _row(record: Record) -> Row:
    gigabytes = record["floor_bytes"] / 1e6  # times are in ms
    ours, best = record["ours"], record["best_peer"]
    return Row(
        record["title"],
        gigabytes / ours["out"]["median"],
        gigabytes / ours["recycled"]["median"],
        None if best is None else gigabytes / record["peers"][best]["median"],
        "" if best is None else peers.PEERS[best],
        gigabytes / record["floor"]["min"],
    )


def _heading(report: dict[str, Any]) -> Iterator[str]:
    machine = report["machine"]
    title = f"Least bytes over time: {machine['cpu']}, {machine['cores']} cores"
    yield _text(MARGIN, 22, title, "ink", 'font-size="16" font-weight="bold"')
    yield _text(MARGIN, 41, f"{report['date'][:10]}, scale {report['scale']:g}", "muted")
    x = float(TEXT_WIDTH + MARGIN)
    for kind, text in LEGEND.items():
        yield f'<circle cx="{x:.1f}" cy="58" r="5" class="{kind}"/>'
        yield _text(x + 9, 62, text, "ink")
        x += 30 + 7 * len(text)


def _axis(roof: float, rows: int, report: dict[str, Any]) -> Iterator[str]:
    bottom = HEAD + ROW * max(1, rows)
    step = next((tick for tick in TICKS if roof / tick <= 8), TICKS[-1])
    for number in range(int(roof / step) + 1):
        x = _x(number * step, roof)
        yield _upright(x, bottom, "grid")
        if roof - number * step > step / 2:  # there, the roof has its own
            yield _text(x, bottom + 17, str(number * step), "ink", 'text-anchor="middle"')
    copied = 2 * max(report["limits"]["copy_gb_s"].values())  # a copied byte is read and written
    x = _x(min(copied, roof), roof)
    yield _upright(x, bottom, "way", 'stroke-width="2" stroke-dasharray="5 4"')
    yield _text(x, bottom + 33, "plain copy", "muted", 'text-anchor="middle"')
    x = _x(roof, roof)
    yield _upright(x, bottom, "roof", 'stroke-width="2"')
    yield _text(x, bottom + 17, f"{roof:.1f}", "ink", 'text-anchor="middle" font-weight="bold"')
    middle = TEXT_WIDTH + MARGIN + PLOT_WIDTH / 2
    label = "GB/s; the roof is the most that was seen in the run"
    yield _text(middle, bottom + 50, label, "ink", 'text-anchor="middle"')


def _marks(row: Row, y: float, roof: float) -> Iterator[str]:
    yield _text(TEXT_WIDTH + MARGIN - 10, y + 4, row.title, "ink", 'text-anchor="end"')
    speeds = {"peer": row.peer, "recycled": row.recycled, "ours": row.ours}
    ends = [_x(speed, roof) for speed in speeds.values() if speed is not None]
    yield (
        f'<line x1="{min(ends):.1f}" y1="{y:.1f}" x2="{max(ends):.1f}" y2="{y:.1f}" '
        'class="way" stroke-width="2"/>'
    )
    for kind, speed in speeds.items():
        if speed is not None:
            name = row.peer_name if kind == "peer" else LEGEND[kind]
            yield (
                f'<circle cx="{_x(speed, roof):.1f}" cy="{y:.1f}" r="5" class="{kind}">'
                f"<title>{escape(name)}: {speed:.1f} GB/s</title></circle>"
            )


def _text(x: float, y: float, text: str, look: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{look}" {more}>{escape(text)}</text>'


def _upright(x: float, bottom: float, look: str, more: str = "") -> str:
    return f'<line x1="{x:.1f}" y1="{HEAD - 4}" x2="{x:.1f}" y2="{bottom}" class="{look}" {more}/>'


def _x(speed: float, roof: float) -> float:
    return MARGIN + TEXT_WIDTH + PLOT_WIDTH * speed / roof
