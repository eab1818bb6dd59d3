"""Render the tables of the benchmarks from the last reports."""

import json
import runpy
from html import escape
from pathlib import Path
from typing import Any

from bench import peers, report

FOLDER = Path(__file__).parents[2] / "benchmarks"


def render() -> str:
    """Return the times of all libraries in the last report of ``nox -s bench``."""
    return report.markdown_of_times(_last())


def render_jobs() -> str:
    """Return the times of all libraries in the last ``nox -s bench -- --only job``."""
    return report.markdown_of_times(_last("jobs"))


def render_goals() -> str:
    """Return the output of ``benchmarks/show.py benchmarks/results.json --markdown``."""
    return report.markdown(_last())


def render_roofline() -> str:
    """Return the roofline charts of ``benchmarks/charts.py`` for light and dark pages."""
    return "\n".join(
        f"```{{image}} ../benchmarks/roofline-{theme}.svg\n:class: only-{theme}\n"
        ":alt: bytes per second of each case\n```"
        for theme in ("light", "dark")
    )


def render_bars(name: str) -> str:
    """Return a bar chart of the times of a case, sorted by time."""
    (record,) = (one for one in _last()["cases"] if one["name"] == name)
    times = {"gatherum": (record["ours"]["recycled"]["median"], "")}
    for family, peer in record["peers"].items():
        if "median" in peer:
            wrong = ", wrong" if peer["answer"] == "differs" else ""
            times[peers.PEERS[family]] = (peer["median"], wrong)
    longest = max(time for time, _ in times.values())
    rows = "".join(
        f'<tr{" class=ours" if who == "gatherum" else ""}><th scope="row">{who}</th>'
        f'<td><i style="width:{100 * time / longest:.1f}%"></i></td>'
        f"<td>{time:.0f} {record['unit']}{wrong}</td></tr>\n"
        for who, (time, wrong) in sorted(times.items(), key=lambda item: item[1])
    )
    title = escape(report.SHOWN[name].replace("`", ""))
    table = f'<table class="bars">\n<caption>{title}</caption>\n{rows}</table>'
    return f"````{{raw}} html\n{table}\n````\n"


def _last(name: str = "results") -> dict[str, Any]:
    report: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text())
    return report


def render_files() -> str:
    """Return the output of ``benchmarks/files_bench.py --show benchmarks/files.json``."""
    markdown = runpy.run_path(str(FOLDER / "files_bench.py"))["markdown"]
    return str(markdown(json.loads((FOLDER / "files.json").read_text())))


def render_limits() -> str:
    """Return the output of ``benchmarks/limits/report.py benchmarks/limits.json``."""
    load = runpy.run_path(str(FOLDER / "limits" / "report.py"))["load"]
    return str(load(FOLDER / "limits.json").markdown())


def render_curve() -> str:
    """Return the output of ``benchmarks/limits/curve.py --show benchmarks/curve.json``."""
    markdown = runpy.run_path(str(FOLDER / "limits" / "curve.py"))["markdown"]
    return str(markdown(json.loads((FOLDER / "curve.json").read_text())))
