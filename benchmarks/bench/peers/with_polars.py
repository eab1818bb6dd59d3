"""Polars: groups of a frame's rows, and rows of a column."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..jobs import QUERIES, Answer, Job, by_group
from . import Methods

polars: Any = import_module("polars")


def _by_groups(job: Job, *asked: Any) -> Methods:
    frame = polars.DataFrame(dict(job.operands))

    def run() -> Answer:
        return Answer(frame.group_by("groups").agg(*asked), lambda a: by_group(*a.get_columns()))

    return {"group_by().agg": run}


def _groups(job: Job) -> Methods:
    return _by_groups(job, getattr(polars.col("values"), job.func)())


def _query(job: Job) -> Methods:
    col = polars.col
    if job.func == "range":
        return _by_groups(job, col("v1").max() - col("v2").min())
    return _by_groups(job, *(getattr(col(name), func)() for name, func in QUERIES[job.func]))


def _counts(job: Job) -> Methods:
    column = polars.Series("groups", job["groups"])
    return {
        **_by_groups(job, polars.len()),
        "value_counts": lambda: Answer(
            column.value_counts(), lambda counts: by_group(*counts.get_columns())
        ),
    }


def _take(job: Job) -> Methods:
    column, rows = polars.Series(job["table"]), polars.Series(job["rows"])
    return {"Series.gather": lambda: column.gather(rows)}


JOBS = {"groups": _groups, "query": _query, "counts": _counts, "take": _take}
