"""pyarrow: groups of a table's rows, and rows of a column."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..jobs import QUERIES, Answer, Job, by_group
from . import Methods

pyarrow: Any = import_module("pyarrow")


def _by_groups(job: Job, asked: list[tuple[str, str]]) -> Methods:
    table = pyarrow.table(dict(job.operands))
    names = [f"{name}_{func}" for name, func in asked]

    def arranged(result: Any) -> Any:
        listed = by_group(result["groups"], *(result[name] for name in names))
        return listed[0] - listed[1] if job.func == "range" else listed

    def run() -> Answer:
        return Answer(table.group_by("groups").aggregate(asked), arranged)

    return {"group_by().aggregate": run}


def _groups(job: Job) -> Methods:
    return _by_groups(job, [("values", job.func)])


def _query(job: Job) -> Methods:
    if job.func == "range":
        return _by_groups(job, [("v1", "max"), ("v2", "min")])
    return _by_groups(job, list(QUERIES[job.func]))


def _counts(job: Job) -> Methods:
    column = pyarrow.array(job["groups"])

    def arranged(counted: Any) -> Any:
        return by_group(counted.field("values"), counted.field("counts"))

    return {
        **_by_groups(job, [("groups", "count")]),
        "value_counts": lambda: Answer(column.value_counts(), arranged),
    }


def _take(job: Job) -> Methods:
    column, rows = pyarrow.array(job["table"]), pyarrow.array(job["rows"])
    return {"take": lambda: column.take(rows)}


JOBS = {"groups": _groups, "query": _query, "counts": _counts, "take": _take}
