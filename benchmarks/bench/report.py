"""Reports: a table for the terminal, JSON for programs, Markdown for a README."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from . import peers
from .records import Record

Cells = tuple[str, ...]
MISSED = "MISSED"
MEMORY = ("fresh", "recycled", "out")
HEADINGS = ("case", "floor", "fresh", "recycled", "out=", "best peer", "x peer", "x floor")


def rows_of(report: dict[str, Any]) -> list[Cells]:
    """Return the cells of the main table, with one row per case."""
    return [_row(record) for record in report["cases"]]


def _row(record: Record) -> Cells:
    unit, ratios = record["unit"], record["ratios"]
    times = [_our_time(record, memory) for memory in MEMORY]
    best = record["best_peer"]
    peer = "-"
    if best is not None:
        peer = f"{peers.PEERS[best]} {_time(record['peers'][best]['median'], unit)}"
    floor = _time(record["floor"]["median"], unit) if "floor" in record else "-"
    return (
        record["title"], floor, *times, peer,
        _ratio(record, "peer", ">="), _ratio(record, "floor", "<=") if ratios["floor"] else "-",
    )  # fmt: skip


def _time(value: float, unit: str) -> str:
    return f"{value:.3g} {unit}" if value < 100 else f"{value:.0f} {unit}"


def _ratio(record: Record, ratio_name: str, sign: str) -> str:
    value, goal, met = (
        record["ratios"][ratio_name],
        record["goals"][ratio_name],
        record["met"][ratio_name],
    )
    if value is None:
        return "-"
    if goal is None:
        return f"{value:.2f}"
    return f"{value:.2f} ({sign} {goal:g}{'' if met else ' ' + MISSED})"


def peer_rows(report: dict[str, Any]) -> list[Cells]:
    """Return the cells of the peers' table: each peer's time and verdict."""
    rows = []
    for record in report["cases"]:
        cells = [_peer_cell(record["peers"].get(name), record["unit"]) for name in _present(report)]
        rows.append((record["title"], *cells))
    return rows


def _present(report: dict[str, Any]) -> list[str]:
    """Return the peers of a case, in the order of the reports."""
    present = {name for record in report["cases"] for name in record["peers"]}
    return [name for name in peers.PEERS if name in present]


def _peer_cell(peer: Record | None, unit: str) -> str:
    if peer is None:
        return "-"
    if "failed" in peer:
        return "failed"
    text = _time(peer["median"], unit)
    if peer["answer"] == "differs":
        return f"{text} (differs: {peer['detail']})"
    return f"{text} (order of sums)" if peer["answer"] == "order of sums" else text


# The workloads that a README shows, with their titles.
SHOWN = {
    "rows-f32": "`gather`: 1M rows of 64 float32, out of 2M",
    "elements-last": "`gather_elements`: 8192 x 4096 float32 along the last axis",
    "nd-cube": "`gather_nd`: 10M elements of a 256 x 256 x 256 volume",
    "set-rows": "`scatter_nd`: write 200k rows of 64 float32 into 2M",
    "add-1M-f32": "`scatter_nd`: add 20M float32 into 1M bins",
    "fold-rows-add": "`scatter_nd`: add 1M rows of 64 float32 into 100k",
}
SHOWN_JOBS = {
    "job-messages-sum": "message passing: add 1M edges of 64 float32 to 100k nodes",
    "job-bags": "embedding bags: add 800k rows of 64 float32, out of 1M, to 20k",
    "job-sum-10k": "group by: sum 10M float64 of 10k groups",
    "job-max-10k": "group by: maximum of the same",
    "job-query-5": "group by: sum three columns of 10M rows of 100k groups",
    "job-counts": "counts: 20M values of 50k kinds",
}


def speed(report: dict[str, Any], titles: dict[str, str] | None = None) -> str:
    """Return a Markdown table of the times of gatherum and the peers, for the cases in `titles`."""
    families = _present(report)
    head = ("case", "gatherum", "first call", *(peers.PEERS[name] for name in families))
    rows = []
    for record in report["cases"]:
        title = record["title"] if titles is None else titles.get(record["name"])
        if title is not None:
            ours = [_our_time(record, memory) for memory in ("recycled", "fresh")]
            others = [_brief(record["peers"].get(name), record["unit"]) for name in families]
            rows.append((title, *ours, *others))
    return _markdown_table(head, rows)


def _our_time(record: Record, memory: str) -> str:
    if memory not in record["ours"]:
        return "-"
    return _time(record["ours"][memory]["median"], record["unit"])


def _brief(peer: Record | None, unit: str) -> str:
    """Return a peer's time, with a mark if its result is wrong."""
    if peer is None or "failed" in peer:
        return "-"
    return _time(peer["median"], unit) + (" (wrong)" if peer["answer"] == "differs" else "")


def readme(report: dict[str, Any]) -> str:
    """Return a README's section on speed: some cases or jobs, and the machine."""
    machine, core = report["machine"], report["gatherum"]
    versions = ", ".join(
        f"{peers.PEERS[name]} {report['versions'][name]}" for name in _present(report)
    )
    return (
        f"{speed(report, SHOWN | SHOWN_JOBS)}\n\n"
        f"Medians of {report['rounds']} runs on {core['threads']} threads "
        f"({machine['cpu']}, {report['date'][:10]};\n{versions}).\n"
    )


def heading(report: dict[str, Any]) -> list[str]:
    """Return the lines before the tables: date, machine, limits and versions."""
    machine, limits, core = report["machine"], report["limits"], report["gatherum"]
    loads = _by_threads(limits["random_load_ns"], ".2f")
    touch = ", ".join(
        f"{value:.0f} ms in {size} pages" for size, value in limits["first_touch_ms"].items()
    )
    caches = ", ".join(f"{name} {size}" for name, size in machine["caches"].items())
    versions = ", ".join(f"{name} {text}" for name, text in report["versions"].items() if text)
    statistic = report.get("statistic", "medians")
    return [
        f"{report['date']}, {machine['cpu']}, {machine['cores']} cores, {caches}, "
        f"{machine['system']} {machine['kernel']}",
        f"{versions}; level {core['level']}, {core['threads']} threads",
        f"by threads: read {_by_threads(limits['read_gb_s'], '.1f')} GB/s, "
        f"copy {_by_threads(limits['copy_gb_s'], '.1f')} GB/s copied, "
        f"random 4-byte loads {loads} ns each ({limits['random_load_by']}); "
        f"first touch of {limits['bytes'] / 2**20:.0f} MiB {touch}",
        f"scale {report['scale']:g}, {statistic} of {report['rounds']} rounds: {report['command']}",
    ]


def _by_threads(values: dict[str, float], form: str) -> str:
    return " / ".join(f"{threads}: {value:{form}}" for threads, value in values.items())


def problems(report: dict[str, Any]) -> list[str]:
    """Return a line for each skipped case, failed peer and wrong result of gatherum."""
    lines = [f"{name}: skipped: {why}" for name, why in report["skipped"].items()]
    for record in report["cases"]:
        answer = record["ours"].get("answer", {"answer": "exact"})
        if answer["answer"] != "exact":
            lines.append(f"{record['name']}: OUR ANSWER DIFFERS: {answer['detail']}")
        for name, peer in record["peers"].items():
            if "failed" in peer:
                lines.append(f"{record['name']}: {peers.PEERS[name]} failed: {peer['failed']}")
    return lines


def tables(report: dict[str, Any]) -> list[tuple[Cells, list[Cells]]]:
    """Return the head and the rows of each table: gatherum with its goals, and the peers."""
    names = ("case", *(peers.PEERS[name] for name in _present(report)))
    return [(HEADINGS, rows_of(report)), (names, peer_rows(report))]


def show(report: dict[str, Any]) -> None:
    """Print a report, with rich if it is installed and the output is a terminal."""
    drawn = sys.stdout.isatty() and find_spec("rich") is not None
    for line in heading(report):
        print(line)
    for head, rows in tables(report):
        print()
        if drawn:
            _draw(head, rows)
        else:
            print("\n".join(_aligned(head, rows)))
    for line in problems(report):
        print(line)


def _draw(head: Cells, rows: list[Cells]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table()
    for number, name in enumerate(head):
        table.add_column(name, justify="left" if number == 0 else "right")
    for row in rows:
        table.add_row(*row, style="red" if any(MISSED in cell for cell in row) else None)
    Console().print(table)


def _aligned(head: Cells, rows: Sequence[Cells]) -> list[str]:
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    return [
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in (head, *rows)
    ]


def markdown(report: dict[str, Any]) -> str:
    """Return a Markdown page: the machine, the versions, and the tables."""
    parts = [_head(report), *(_markdown_table(*table) for table in tables(report))]
    return "\n\n".join(parts) + "\n"


def markdown_of_times(report: dict[str, Any]) -> str:
    """Return a Markdown page without goals: the machine, the versions, and all times."""
    return f"{_head(report)}\n\n{speed(report)}\n"


def _head(report: dict[str, Any]) -> str:
    return "\n".join(f"{line}  " for line in heading(report))


def _markdown_table(head: Cells, rows: Sequence[Cells]) -> str:
    table = [head, ("---", *["---:"] * (len(head) - 1)), *rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in table)


def write_json(report: dict[str, Any], file: Path) -> None:
    """Write a report as JSON."""
    file.write_text(json.dumps(report, indent=1) + "\n")
