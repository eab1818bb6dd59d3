"""numpy_groupies: functions over groups."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..jobs import QUERIES, Answer, Job, columns
from . import Methods

groupies: Any = import_module("numpy_groupies")


def _groups(job: Job) -> Methods:
    aggregate = groupies.aggregate_np
    return {"aggregate_np": lambda: aggregate(job["groups"], job["values"], job.func, job.size)}


def _query(job: Job) -> Methods:
    def reduced(column: str, func: str) -> Any:
        return groupies.aggregate_np(job["groups"], job[column], func, job.size)

    if job.func == "range":
        return {
            "aggregate_np": lambda: Answer(reduced("v1", "max") - reduced("v2", "min"), columns)
        }
    asked = QUERIES[job.func]
    return {
        "aggregate_np": lambda: Answer(
            [reduced(*part) for part in asked], lambda results: columns(*results)
        )
    }


def _counts(job: Job) -> Methods:
    aggregate, groups = groupies.aggregate_np, job["groups"]
    return {"aggregate_np": lambda: Answer(aggregate(groups, 1, "len", job.size), columns)}


JOBS = {"groups": _groups, "query": _query, "counts": _counts}
