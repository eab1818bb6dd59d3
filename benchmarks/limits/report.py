"""Print, store and show the results of a comparison with the limit kernels.

python benchmarks/limits/report.py benchmarks/limits.json    # as a table in Markdown
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import geometric_mean


@dataclass(frozen=True, slots=True)
class Row:
    """The results of a case, in milliseconds."""

    name: str
    limit: float
    out: float
    recycled: float
    peer: str
    best: float
    spread: float  # the distance of the quartiles of the ratio of our time to the limit
    goal: float
    settings: dict[str, int]

    @property
    def ratio(self) -> float:
        """The ratio of the time with `out=` to the limit."""
        return self.out / self.limit

    @property
    def verdict(self) -> str:
        """Whether the goal is met, or "open" if the spread is too large to decide."""
        if abs(self.ratio - self.goal) < self.spread / 2:
            return "open"
        return "met" if self.ratio <= self.goal else "missed"

    def line(self) -> str:
        """Return the row as text."""
        return (
            f"{self.name:<25}{self.limit:>9.2f}{self.out:>9.2f}{self.recycled:>10.2f}"
            f"{self.best:>9.2f} {self.peer:<12}{self.ratio:>7.2f}{self.spread:>7.2f}"
            f"{self.goal:>6.2f}  {self.verdict:<7}{self.best / self.recycled:>7.2f}  "
            f"{' '.join(f'{name}={value}' for name, value in self.settings.items())}"
        )


@dataclass(frozen=True, slots=True)
class Report:
    """All rows of a run, and the machine."""

    measured_on: str
    command: str
    rows: list[Row] = field(default_factory=list)

    def head(self) -> str:
        """Return the lines that are printed before the rows."""
        return (
            f"{self.measured_on}\n{self.command}\n"
            "milliseconds; x limit: out= over limit kernel; x peer: best peer over recycled\n"
            f"{'case':<25}{'limit':>9}{'out=':>9}{'recycled':>10}{'peer':>9} {'':<12}{'x limit':>7}"
            f"{'spread':>7}{'goal':>6}  {'':<7}{'x peer':>7}  settings"
        )

    def means(self) -> str:
        """Return the geometric means of all rows."""
        limit = geometric_mean(row.ratio for row in self.rows)
        peer = geometric_mean(row.best / row.recycled for row in self.rows)
        return f"geometric mean x limit: {limit:.2f}\ngeometric mean x peer: {peer:.2f}"

    def save(self, path: Path) -> None:
        """Write the report to a file."""
        path.write_text(json.dumps(asdict(self), indent=1) + "\n")

    def markdown(self) -> str:
        """Return a table for the documentation."""
        lines = [
            f"{self.measured_on}, by",
            "",
            f"    {self.command}",
            "",
            "| case | limit kernel | with `out=` | recycled | best peer | x limit | spread | goal "
            "| | x peer |",
            "|---|--:|--:|--:|--:|--:|--:|--:|---|--:|",
        ]
        lines += (
            f"| {r.name} | {r.limit:.1f} ms | {r.out:.1f} ms | {r.recycled:.1f} ms "
            f"| {r.best:.1f} ms ({r.peer}) | {r.ratio:.2f} | {r.spread:.2f} | {r.goal} "
            f"| {r.verdict} | {r.best / r.recycled:.2f} |"
            for r in self.rows
        )
        return "\n".join([*lines, "", self.means().replace("\n", "; ") + "."])


def load(path: Path) -> Report:
    """Read a report from a file."""
    entry = json.loads(path.read_text())
    return Report(entry["measured_on"], entry["command"], [Row(**row) for row in entry["rows"]])


if __name__ == "__main__":
    print(load(Path(sys.argv[1])).markdown())
