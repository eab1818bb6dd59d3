"""The roofline picture: how near each case comes to what the memory can do, as an SVG."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from . import peers
from .records import Record

TEXT_WIDTH, PLOT_WIDTH, ROW, MARGIN = 330, 560, 20, 16
HEAD, FOOT = 76, 58
MARKS = {"ours": "#0b6e4f", "recycled": "#6bbf9c", "peer": "#c8553d"}
LEGEND = {
    "ours": "gatherum, out=",
    "recycled": "gatherum, recycled result",
    "peer": "best peer",
}


@dataclass(frozen=True, slots=True)
class Row:
    """One case: what each reaches, as a share of the read bandwidth beside it."""

    title: str
    ours: float
    recycled: float
    peer: float | None
    peer_name: str


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
        An SVG document. The roof is the read bandwidth that was measured beside each case; a
        mark is the case's least bytes over its time.
    """
    rows = [_row(record) for record in report["cases"] if "floor" in record]
    top = max([1.0, *(max(row.ours, row.recycled, row.peer or 0.0) for row in rows)]) * 1.05
    height = HEAD + ROW * max(1, len(rows)) + FOOT
    width = TEXT_WIDTH + PLOT_WIDTH + 2 * MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        *_heading(report),
        *_axis(top, len(rows), report),
    ]
    for number, row in enumerate(rows):
        parts.extend(_marks(row, HEAD + ROW * number + ROW / 2, top))
    return "\n".join([*parts, "</svg>", ""])


def write(report: dict[str, Any], file: Path) -> None:
    """Write the picture of a report to a file."""
    file.write_text(draw(report))


def _row(record: Record) -> Row:
    floor, ours, best = record["floor"]["median"], record["ours"], record["best_peer"]
    peer = None if best is None else floor / record["peers"][best]["median"]
    return Row(
        record["title"],
        floor / ours["out"]["median"],
        floor / ours["recycled"]["median"],
        peer,
        "" if best is None else peers.PEERS[best],
    )


def _heading(report: dict[str, Any]) -> Iterator[str]:
    machine, read = report["machine"], max(report["limits"]["read_gb_s"].values())
    title = f"Share of the memory's limit: {machine['cpu']}, {machine['cores']} cores"
    yield f'<text x="{MARGIN}" y="22" font-size="15" font-weight="bold">{escape(title)}</text>'
    note = (
        f"{report['date'][:10]}, scale {report['scale']:g}; the roof is the read bandwidth "
        f"measured beside each case ({read:.1f} GB/s at best)"
    )
    yield f'<text x="{MARGIN}" y="40" fill="#555">{escape(note)}</text>'
    x = float(TEXT_WIDTH + MARGIN)
    for kind, text in LEGEND.items():
        yield f'<circle cx="{x:.1f}" cy="58" r="5" fill="{MARKS[kind]}"/>'
        yield f'<text x="{x + 9:.1f}" y="62">{text}</text>'
        x += 30 + 7 * len(text)


def _axis(top: float, rows: int, report: dict[str, Any]) -> Iterator[str]:
    bottom = HEAD + ROW * max(1, rows)
    step = 0.25 if top <= 3 else 1.0
    for number in range(int(top / step) + 1):
        share = number * step
        x = _x(share, top)
        roof = share == 1.0
        style = 'stroke="#222" stroke-width="2"' if roof else 'stroke="#ddd"'
        yield f'<line x1="{x:.1f}" y1="{HEAD - 4}" x2="{x:.1f}" y2="{bottom}" {style}/>'
        yield f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{100 * share:.0f} %</text>'
    read, copy = (max(report["limits"][f"{kind}_gb_s"].values()) for kind in ("read", "copy"))
    x = _x(min(2 * copy / read, top), top)  # a copied byte is read and written
    yield (
        f'<line x1="{x:.1f}" y1="{HEAD - 4}" x2="{x:.1f}" y2="{bottom}" stroke="#888" '
        'stroke-dasharray="5 4"/>'
    )
    yield f'<text x="{x:.1f}" y="{bottom + 32}" text-anchor="middle" fill="#555">plain copy</text>'
    middle = TEXT_WIDTH + MARGIN + PLOT_WIDTH / 2
    yield (
        f'<text x="{middle:.1f}" y="{bottom + 48}" text-anchor="middle">least bytes over time, '
        "as a share of read bandwidth (cache hits can pass it)</text>"
    )


def _marks(row: Row, y: float, top: float) -> Iterator[str]:
    yield (
        f'<text x="{TEXT_WIDTH + MARGIN - 10}" y="{y + 4:.1f}" text-anchor="end">'
        f"{escape(row.title)}</text>"
    )
    shares = {"peer": row.peer, "recycled": row.recycled, "ours": row.ours}
    ends = [_x(share, top) for share in shares.values() if share is not None]
    yield (
        f'<line x1="{min(ends):.1f}" y1="{y:.1f}" x2="{max(ends):.1f}" y2="{y:.1f}" '
        'stroke="#bbb" stroke-width="2"/>'
    )
    for kind, share in shares.items():
        if share is not None:
            name = row.peer_name if kind == "peer" else LEGEND[kind]
            yield (
                f'<circle cx="{_x(share, top):.1f}" cy="{y:.1f}" r="5" fill="{MARKS[kind]}">'
                f"<title>{escape(name)}: {100 * share:.0f} %</title></circle>"
            )


def _x(share: float, top: float) -> float:
    return MARGIN + TEXT_WIDTH + PLOT_WIDTH * share / top
