"""pandas: groups of a frame's rows, and rows of a column."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..jobs import QUERIES, Answer, Job, by_group
from . import Methods

pandas: Any = import_module("pandas")


def _arranged(result: Any) -> Any:
    """Return a frame's columns, or a series, in the order of its groups."""
    listed = [result] if result.ndim == 1 else [result[name] for name in result]
    return by_group(result.index, *listed)


def _grouped(job: Job) -> dict[str, Any]:
    """Return a frame grouped with sorted groups, and with groups in order of appearance."""
    frame = pandas.DataFrame(dict(job.operands))
    return {
        f"groupby(sort={sort})": lambda sort=sort: frame.groupby("groups", sort=sort)
        for sort in (True, False)
    }


def _groups(job: Job) -> Methods:
    return {
        name: lambda group=group: Answer(getattr(group()["values"], job.func)(), _arranged)
        for name, group in _grouped(job).items()
    }


def _query(job: Job) -> Methods:
    if job.func == "range":
        asked = {"v1": ("v1", "max"), "v2": ("v2", "min")}
    else:
        asked = {name: (name, func) for name, func in QUERIES[job.func]}

    def run(group: Any) -> Answer:
        aggregated = group().agg(**asked)
        return Answer(
            aggregated["v1"] - aggregated["v2"] if job.func == "range" else aggregated, _arranged
        )

    return {name: lambda group=group: run(group) for name, group in _grouped(job).items()}


def _counts(job: Job) -> Methods:
    column = pandas.Series(job["groups"])
    return {"value_counts": lambda: Answer(column.value_counts(sort=False), _arranged)}


def _take(job: Job) -> Methods:
    column, rows = pandas.Series(job["table"]), job["rows"]
    return {"Series.take": lambda: column.take(rows), "iloc": lambda: column.iloc[rows]}


JOBS = {"groups": _groups, "query": _query, "counts": _counts, "take": _take}
