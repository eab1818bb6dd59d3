"""Reports of `check_model`, as objects, text, tables and JSON."""

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
    """Whether a DirectML feature level supports one node.

    Attributes
    ----------
    name : str
        The node's name, which may be empty.
    op_type : str
        The node's ONNX operator.
    path : str
        The node's location: ``graph``, followed by the nodes whose bodies contain it.
    output : str
        The name of the node's output.
    opset : int
        The ONNX opset at that location.
    operator : str
        The node's DirectML operator, empty if the node is not valid.
    feature_level : FeatureLevel
        The checked feature level.
    accepted : bool or None
        Whether the level supports the node. None if that depends on an unknown type, shape or size.
    reasons : tuple of str
        The reasons for a rejection, or the unknowns. Empty if accepted.
    first_level : FeatureLevel or None
        The first level that supports the node, or, with unknowns, does not reject it. None if all
        levels reject it.
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
        """The operator, with the name of the node or, if that is empty, of its output."""
        if self.name:
            return f"{self.op_type} {self.name!r}"
        return f"{self.op_type} -> {self.output!r}"

    @property
    def answer(self) -> str:
        """``accepted``, ``rejected`` or ``unknown``."""
        return "unknown" if self.accepted is None else "accepted" if self.accepted else "rejected"

    def __str__(self) -> str:
        first = f"first accepted by {self.first_level}" if self.first_level else "by no level"
        verdict = {
            "accepted": f"accepted by {self.feature_level}",
            "rejected": f"rejected by {self.feature_level}, {first}",
            "unknown": f"unknown for {self.feature_level}",
        }[self.answer]
        target = f" as {self.operator}" if self.operator else ""
        lines = [f"{verdict}: {self.title}{target} ({self.path})"]
        return "\n    ".join([*lines, *self.reasons])


def report_lines(reports: Sequence[NodeReport]) -> list[str]:
    """Return a plain-text table, with each node's reasons below its row.

    Parameters
    ----------
    reports : sequence of NodeReport

    Returns
    -------
    list of str
        The lines of the table. The last line is a summary.

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
    """Return the reports as a table of the optional package rich.

    Parameters
    ----------
    reports : sequence of NodeReport

    Returns
    -------
    rich.table.Table

    Raises
    ------
    ImportError
        If rich is not installed. `report_lines` does not need it.
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
        An object with ``nodes`` and ``accepted``. The latter is false if any node is rejected, and
        otherwise null if any node is unknown.

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
    first_level = "none" if report.first_level is None else str(report.first_level)
    answer = f"{report.answer} by {report.feature_level}"
    if report.accepted is None:
        answer = f"unknown for {report.feature_level}"
    return (report.title, report.path, report.operator or "-", answer, first_level)


def _summary(reports: Sequence[NodeReport]) -> str:
    if not reports:
        return "no gather or scatter node"
    counts = dict.fromkeys(("accepted", "rejected", "unknown"), 0)
    for report in reports:
        counts[report.answer] += 1
    parts = ", ".join(f"{count} {answer}" for answer, count in counts.items())
    noun = "node" if len(reports) == 1 else "nodes"
    return f"{len(reports)} gather or scatter {noun}: {parts}; other nodes are not judged"
