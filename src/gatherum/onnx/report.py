"""A report says what `check_model` found about a node, for people and for machines."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from gatherum.directml import FeatureLevel

if TYPE_CHECKING:
    from rich.table import Table

_COLUMNS = ("node", "where", "DirectML", "answer", "from level")


@dataclass(frozen=True)
class NodeReport:
    """Whether a DirectML feature level takes one node.

    Attributes
    ----------
    name : str
        The node's name, empty if it has none.
    op_type : str
        Its ONNX operator.
    path : str
        Where it stands: ``graph``, then the nodes whose bodies lead to it.
    output : str
        The name of its output.
    opset : int
        The version of ONNX's operators that holds there.
    operator : str
        The DirectML operator that it becomes, empty if the node is not valid.
    feature_level : FeatureLevel
        The level asked about.
    accepted : bool or None
        None: it depends on a type, shape or size that is not known.
    reasons : tuple of str
        Why not, or what is not known; empty if accepted.
    first_level : FeatureLevel or None
        The first level that takes it (for unknowns: that does not reject it); None if none does.
    """

    name: str
    op_type: str
    path: str
    output: str
    opset: int
    operator: str
    feature_level: FeatureLevel
    accepted: bool | None
    reasons: tuple[str, ...]
    first_level: FeatureLevel | None

    @property
    def title(self) -> str:
        """The operator and the node's name, or its output where it has none."""
        if self.name:
            return f"{self.op_type} {self.name!r}"
        return f"{self.op_type} -> {self.output!r}"

    @property
    def answer(self) -> str:
        """``accepted``, ``rejected`` or ``unknown``."""
        return "unknown" if self.accepted is None else "accepted" if self.accepted else "rejected"

    def __str__(self) -> str:
        first = f"first accepted by {self.first_level}" if self.first_level else "by no level"
        found = {
            "accepted": f"accepted by {self.feature_level}",
            "rejected": f"rejected by {self.feature_level}, {first}",
            "unknown": f"unknown for {self.feature_level}",
        }[self.answer]
        target = f" as {self.operator}" if self.operator else ""
        lines = [f"{found}: {self.title}{target} ({self.path})"]
        return "\n    ".join([*lines, *self.reasons])


def report_lines(reports: Sequence[NodeReport]) -> list[str]:
    """Return a table in plain text, each node's reasons below its row.

    Parameters
    ----------
    reports : sequence of NodeReport

    Returns
    -------
    list of str
        The last line sums up.

    Examples
    --------
    >>> report_lines([])
    ['no gather or scatter node']
    """
    rows = [_row(report) for report in reports]
    widths = [max(len(row[c]) for row in (_COLUMNS, *rows)) for c in range(len(_COLUMNS))]

    def aligned(cells: Sequence[str]) -> str:
        return "  ".join(f"{cell:{w}}" for cell, w in zip(cells, widths, strict=True)).rstrip()

    lines = [aligned(_COLUMNS)] if reports else []
    for report, row in zip(reports, rows, strict=True):
        lines.append(aligned(row))
        lines += [f"    {reason}" for reason in report.reasons]
    return [*lines, _summary(reports)]


def report_table(reports: Sequence[NodeReport]) -> Table:
    """Return the same as a table of the optional package rich.

    Parameters
    ----------
    reports : sequence of NodeReport

    Returns
    -------
    rich.table.Table

    Raises
    ------
    ImportError
        If rich is not installed; `report_lines` does without.
    """
    from rich.table import Table
    from rich.text import Text

    table = Table(*_COLUMNS, "why", caption=_summary(reports))
    for report in reports:
        cells = (*_row(report), "\n".join(report.reasons))
        table.add_row(*(Text(cell) for cell in cells))
    return table


def reports_to_json(reports: Sequence[NodeReport]) -> str:
    """Return the reports as JSON text.

    Parameters
    ----------
    reports : sequence of NodeReport

    Returns
    -------
    str
        An object with ``accepted`` (false if any node is rejected, else null if any is unknown)
        and ``nodes``.

    Examples
    --------
    >>> print(reports_to_json([]))
    {
      "accepted": true,
      "nodes": []
    }
    """
    answers = {report.accepted for report in reports}
    accepted = False if False in answers else None if None in answers else True
    nodes = [_plain(report) for report in reports]
    return json.dumps({"accepted": accepted, "nodes": nodes}, indent=2)


def _plain(report: NodeReport) -> dict[str, Any]:
    level, first = report.feature_level, report.first_level
    levels = {"feature_level": str(level), "first_level": None if first is None else str(first)}
    return asdict(report) | {"operator": report.operator or None, **levels}


def _row(report: NodeReport) -> tuple[str, ...]:
    first = "none" if report.first_level is None else str(report.first_level)
    answer = f"{report.answer} by {report.feature_level}"
    if report.accepted is None:
        answer = f"unknown for {report.feature_level}"
    return (report.title, report.path, report.operator or "-", answer, first)


def _summary(reports: Sequence[NodeReport]) -> str:
    if not reports:
        return "no gather or scatter node"
    counts = dict.fromkeys(("accepted", "rejected", "unknown"), 0)
    for report in reports:
        counts[report.answer] += 1
    parts = ", ".join(f"{count} {answer}" for answer, count in counts.items())
    noun = "node" if len(reports) == 1 else "nodes"
    return f"{len(reports)} gather or scatter {noun}: {parts}; other nodes are not judged"
