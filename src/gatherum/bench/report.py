"""Reports: a table for people, JSON for programs, Markdown for a README."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from . import peers
from .records import Record

HEADINGS = ("case", "floor", "fresh", "recycled", "out=", "best peer", "x peer", "x floor")


def rows_of(report: dict[str, Any]) -> list[tuple[str, ...]]:
    """Return the cells of the main table, a row a case."""
    return [_row(record) for record in report["cases"]]


def _row(record: Record) -> tuple[str, ...]:
    unit, ours, ratios = record["unit"], record["ours"], record["ratios"]
    times = [_time(ours[way]["median"], unit) if way in ours else "-" for way in WAYS]
    best = record["best_peer"]
    peer = "-"
    if best is not None:
        peer = f"{peers.PEERS[best]} {_time(record['peers'][best]['median'], unit)}"
    floor = _time(record["floor"], unit) if "floor" in record else "-"
    return (
        record["title"], floor, *times, peer,
        _ratio(record, "peer", ">="), _ratio(record, "floor", "<=") if ratios["floor"] else "-",
    )  # fmt: skip


WAYS = ("fresh", "recycled", "out")


def _time(value: float, unit: str) -> str:
    return f"{value:.3g} {unit}" if value < 100 else f"{value:.0f} {unit}"


def _ratio(record: Record, kind: str, sign: str) -> str:
    value, goal, met = record["ratios"][kind], record["goals"][kind], record["met"][kind]
    if value is None:
        return "-"
    return f"{value:.2f} ({sign} {goal:g}{'' if met else ' MISSED'})"


def peer_rows(report: dict[str, Any]) -> list[tuple[str, ...]]:
    """Return the cells of the peers' table: each peer's time and what its answer is."""
    rows = []
    for record in report["cases"]:
        cells = [_peer_cell(record["peers"].get(name), record["unit"]) for name in _present(report)]
        rows.append((record["title"], *cells))
    return rows


def _present(report: dict[str, Any]) -> list[str]:
    return [name for name in peers.PEERS if name in report["families"]]


def _peer_cell(peer: Record | None, unit: str) -> str:
    if peer is None:
        return "-"
    if "failed" in peer:
        return "failed"
    text = _time(peer["median"], unit)
    if peer["answer"] == "differs":
        return f"{text} (differs: {peer['detail']})"
    return f"{text} (order of sums)" if peer["answer"] == "order of sums" else text


def heading(report: dict[str, Any]) -> list[str]:
    """Return the lines before the tables: date, machine, limits and versions."""
    machine, limits, core = report["machine"], report["limits"], report["gatherum"]
    loads = _by_threads(limits["random_load_ns"], ".2f")
    touch = ", ".join(
        f"{value:.0f} ms in {size} pages" for size, value in limits["first_touch_ms"].items()
    )
    caches = ", ".join(f"{name} {size}" for name, size in machine["caches"].items())
    versions = ", ".join(f"{name} {text}" for name, text in report["versions"].items() if text)
    return [
        f"{report['date']}, {machine['cpu']}, {machine['cores']} cores, {caches}, "
        f"{machine['system']} {machine['kernel']}",
        f"{versions}; level {core['level']}, {core['threads']} threads",
        f"by threads: read {_by_threads(limits['read_gb_s'], '.1f')} GB/s, "
        f"copy {_by_threads(limits['copy_gb_s'], '.1f')} GB/s copied, "
        f"random 4-byte loads {loads} ns each ({limits['random_load_by']}); "
        f"first touch of {limits['bytes'] / 2**20:.0f} MiB {touch}",
        f"scale {report['scale']:g}, medians of {report['rounds']} rounds: {report['command']}",
    ]


def _by_threads(values: dict[str, float], form: str) -> str:
    return " / ".join(f"{threads}: {value:{form}}" for threads, value in values.items())


def problems(report: dict[str, Any]) -> list[str]:
    """Return a line for every peer that failed, and for an answer of ours that is wrong."""
    lines = []
    for record in report["cases"]:
        answer = record["ours"].get("answer", {"answer": "exact"})
        if answer["answer"] != "exact":
            lines.append(f"{record['name']}: OUR ANSWER DIFFERS: {answer['detail']}")
        for name, peer in record["peers"].items():
            if "failed" in peer:
                lines.append(f"{record['name']}: {peers.PEERS[name]} failed: {peer['failed']}")
    return lines


def show(report: dict[str, Any], write: Callable[[str], object] = print) -> None:
    """Print a report for people, with rich if it is installed."""
    for line in heading(report):
        write(line)
    names = ("case", *(peers.PEERS[name] for name in _present(report)))
    for head, rows in ((HEADINGS, rows_of(report)), (names, peer_rows(report))):
        write("")
        write("\n".join(_aligned(head, rows)))
    for line in problems(report):
        write(line)


def _aligned(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    return [
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in (head, *rows)
    ]


def markdown(report: dict[str, Any]) -> str:
    """Return the README's section: what was measured where, and the tables."""
    names = ("case", *(peers.PEERS[name] for name in _present(report)))
    parts = ["\n".join(f"{line}  " for line in heading(report))]
    for head, rows in ((HEADINGS, rows_of(report)), (names, peer_rows(report))):
        table = [head, ("---", *["---:"] * (len(head) - 1)), *rows]
        parts.append("\n".join(f"| {' | '.join(row)} |" for row in table))
    return "\n\n".join(parts) + "\n"


def write_json(report: dict[str, Any], file: Path) -> None:
    """Write a report for programs."""
    file.write_text(json.dumps(report, indent=1) + "\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Show a report that was written before."""
    parser = argparse.ArgumentParser(prog="python -m gatherum.bench.report", description=__doc__)
    parser.add_argument("file", type=Path, help="what `gatherum bench --json` wrote")
    parser.add_argument("--markdown", action="store_true", help="tables for a README")
    options = parser.parse_args(arguments)
    report = json.loads(options.file.read_text())
    if options.markdown:
        sys.stdout.write(markdown(report))
    else:
        show(report)
    return 0


if __name__ == "__main__":
    sys.exit(main())
