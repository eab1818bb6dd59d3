"""Draw the charts of the last report of ``nox -s bench``; requires the group `charts`.

    python benchmarks/charts.py

Reads results.json in the same folder, and writes two charts there, each for light and dark pages:
the README's times (speed-*.svg), and each case with the memory bandwidth (roofline-*.svg).
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import peers, report

FOLDER = Path(__file__).parent
RESULTS = FOLDER / "results.json"
OURS, RECYCLED, PEER = "gatherum, out=", "gatherum, recycled result", "best peer"
# Ink, muted ink, grid, and a colour for each mark, in the order of their legends.
THEMES = {
    "light": ("#1b1f24", "#59636e", "#d5dae0", ("#0b6e4f", "#4fa37f", "#c8553d")),
    "dark": ("#f0f3f6", "#aab4bf", "#39414a", ("#35c08e", "#8fdcbd", "#f08a72")),
}
MARKERS = "sDv^P"


@dataclass(frozen=True)
class Row:
    """A case: its minimum bytes divided by its times, in GB/s, and the read bandwidth."""

    title: str
    speeds: dict[str, float]
    read: float


def roofline_rows(report: dict[str, Any]) -> list[Row]:
    """Return the cases of the roofline: calls with ``out=``, except tiny calls, which memory does
    not limit.
    """
    return [
        _row(record) for record in report["cases"] if "floor" in record and "out" in record["ours"]
    ]


def _row(record: dict[str, Any]) -> Row:
    gigabytes = record["floor_bytes"] / 1e6  # times are in ms
    times = {OURS: record["ours"]["out"], RECYCLED: record["ours"]["recycled"]}
    if record["best_peer"] is not None:
        times[PEER] = record["peers"][record["best_peer"]]
    speeds = {name: gigabytes / time["median"] for name, time in times.items()}
    return Row(record["title"], speeds, gigabytes / record["floor"]["min"])


def roof(report: dict[str, Any]) -> float:
    """Return the highest measured bandwidth: bandwidth varies, and caches increase it."""
    rows = roofline_rows(report)
    marks = (mark for row in rows for mark in (*row.speeds.values(), row.read))
    return max(*report["limits"]["read_gb_s"].values(), copied(report), *marks)


def copied(report: dict[str, Any]) -> float:
    """Return the highest bandwidth of a plain copy: a copied byte is read and written."""
    fastest: float = max(report["limits"]["copy_gb_s"].values())
    return 2 * fastest


def digest() -> str:
    """Return an identifier of the report of a chart."""
    return f"sha256 of results.json: {hashlib.sha256(RESULTS.read_bytes()).hexdigest()}"


def _axes(theme: str, height: float) -> tuple[Any, Any]:
    import matplotlib as mpl
    from matplotlib import pyplot

    ink, muted, grid, _ = THEMES[theme]
    # The same report produces the same bytes; text is stored as text.
    mpl.rcParams.update({
        "svg.hashsalt": "gatherum", "svg.fonttype": "none", "font.size": 10, "text.color": ink,
        "axes.edgecolor": grid, "axes.labelcolor": ink, "xtick.color": muted, "ytick.color": ink,
        "legend.frameon": False,
    })  # fmt: skip
    figure, axes = pyplot.subplots(figsize=(9, height), layout="constrained")
    axes.grid(axis="x", color=grid)
    axes.set_axisbelow(True)
    axes.tick_params(length=0)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    return figure, axes


def _save(figure: Any, axes: Any, titles: list[str], name: str) -> None:
    from matplotlib import pyplot

    axes.set_yticks(range(len(titles)), titles)
    axes.set_ylim(len(titles) - 0.5, -0.5)  # the first case at the top
    figure.legend(loc="outside upper center", ncols=7, handletextpad=0.3, columnspacing=1.2)
    file = FOLDER / f"{name}.svg"
    figure.savefig(file, transparent=True, metadata={"Date": None, "Description": digest()})
    pyplot.close(figure)
    text = file.read_text(encoding="utf-8")
    file.write_text("\n".join(line.rstrip() for line in text.splitlines()) + "\n", encoding="utf-8")


def draw_roofline(report: dict[str, Any], theme: str) -> None:
    """Draw each case's speeds, and the machine's limits as lines."""
    rows, (ink, muted, grid, colours) = roofline_rows(report), THEMES[theme]
    figure, axes = _axes(theme, 0.27 * len(rows) + 1.2)
    spans = [(min(row.speeds.values()), max(row.speeds.values())) for row in rows]
    axes.hlines(range(len(rows)), *zip(*spans, strict=True), color=grid, linewidth=2)
    for name, colour in zip((OURS, RECYCLED, PEER), colours, strict=True):
        points = [(row.speeds[name], y) for y, row in enumerate(rows) if name in row.speeds]
        axes.scatter(*zip(*points, strict=True), color=colour, label=name, zorder=3)
    axes.axvline(copied(report), color=muted, linestyle="--", label="plain copy")
    axes.axvline(roof(report), color=ink, label=f"most that was seen ({roof(report):.1f})")
    axes.set_xlim(0, roof(report) * 1.02)
    axes.set_xlabel("least bytes over time, GB/s")
    _save(figure, axes, [row.title for row in rows], f"roofline-{theme}")


def draw_speed(results: dict[str, Any], theme: str) -> None:
    """Draw the README's cases: the time of each library."""
    from matplotlib import ticker

    ink, _, _, colours = THEMES[theme]
    records = {record["name"]: record for record in results["cases"]}
    shown = [records[name] for name in report.SHOWN]
    figure, axes = _axes(theme, 3)
    ours = [record["ours"]["recycled"]["median"] for record in shown]
    axes.scatter(ours, range(len(shown)), color=colours[0], s=70, label="gatherum", zorder=3)
    for marker, (family, name) in zip(MARKERS, peers.PEERS.items(), strict=False):
        points = [
            (record["peers"][family]["median"], y)
            for y, record in enumerate(shown)
            if record["peers"].get(family, {}).get("answer", "differs") != "differs"
        ]
        if points:
            axes.scatter(
                *zip(*points, strict=True), marker=marker, s=42, facecolors="none", edgecolors=ink,
                label=name,
            )  # fmt: skip
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.minorticks_off()
    axes.set_xlabel("milliseconds on a log scale; left is faster, wrong answers are left out")
    _save(figure, axes, [report.SHOWN[record["name"]].replace("`", "") for record in shown],
          f"speed-{theme}")  # fmt: skip


def main() -> None:
    """Draw both charts for both themes."""
    report = json.loads(RESULTS.read_text(encoding="utf-8"))
    for theme in THEMES:
        draw_speed(report, theme)
        draw_roofline(report, theme)


if __name__ == "__main__":
    main()
