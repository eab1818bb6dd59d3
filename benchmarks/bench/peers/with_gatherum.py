"""gatherum: the same call into fresh, recycled and given memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import gatherum
from gatherum import clear_output_cache
from gatherum._model import operators

from ..cases import Array, Case
from ..jobs import QUERIES, Answer, Job, at_positions, columns
from . import Methods

OPERATORS: dict[str, Callable[..., Any]] = {
    name: getattr(gatherum, name) for name in operators.OPERATORS
}

# Untimed preparation of a timed call. The order matters: the result of "fresh" is dropped, and
# "recycled" reuses its memory.
BEFORE = {"fresh": clear_output_cache}


def methods(case: Case) -> Methods:
    """Return the call into fresh memory, into recycled memory, and with ``out=``."""
    operator, operands, arguments = OPERATORS[case.op], case.arrays, case.arguments
    out = np.empty(case.result_shape, case.data.dtype)
    return {
        "fresh": lambda: operator(*operands, **arguments),
        "recycled": lambda: operator(*operands, **arguments),
        "out": lambda: operator(*operands, **arguments, out=out),
    }


def _in_memory(run: Callable[[], Any]) -> Methods:
    return {"fresh": run, "recycled": run}


def _into_out(operator: Callable[..., Any], *operands: Any) -> Methods:
    out = np.empty_like(operator(*operands))
    return {
        **_in_memory(lambda: operator(*operands)),
        "out": lambda: operator(*operands, out=out),
    }


def _edges(table: Array, sources: Array, func: str, weights: Any = None, **ends: Any) -> Methods:
    """Return the calls for edges with both ends, or with a pointer array for the second end."""
    targets, size = ends.pop("targets", None), ends.pop("size", None)
    reduction = "add" if func == "sum" else func
    aggregate = partial(gatherum.aggregate, **ends)
    return _into_out(aggregate, table, sources, targets, size, reduction, weights)


def _messages(job: Job) -> Methods:
    return _edges(job["table"], job["sources"], job.func, targets=job["targets"], size=job.size)


def _pointed(job: Job) -> Methods:
    weights = job.operands.get("weights")
    return _edges(job["table"], job["rows"], job.func, weights, indptr=job["indptr"])


def _groups(job: Job) -> Methods:
    reduce = gatherum.groups.reduce
    return _in_memory(lambda: reduce(job["values"], job["groups"], job.size, job.func))


def _positions(job: Job) -> Methods:
    groups, values, reduce = job["groups"], job["values"], gatherum.groups.reduce
    arranged = partial(at_positions, values)
    return _in_memory(lambda: Answer(reduce(values, groups, job.size, job.func), arranged))


def _query(job: Job) -> Methods:
    def reduced(column: str, func: str) -> Array:
        return gatherum.groups.reduce(job[column], job["groups"], job.size, func)

    if job.func == "range":
        return _in_memory(lambda: Answer(reduced("v1", "max") - reduced("v2", "min"), columns))
    asked = QUERIES[job.func]
    return _in_memory(lambda: Answer([reduced(*part) for part in asked], lambda a: columns(*a)))


def _counts(job: Job) -> Methods:
    groups, reduce = job["groups"], gatherum.groups.reduce
    return _in_memory(lambda: Answer(reduce(groups, groups, job.size, "count"), columns))


def _take(job: Job) -> Methods:
    return _into_out(gatherum.gather, job["table"], job["rows"])


JOBS = {
    "messages": _messages,
    "maxima": _messages,
    "product": _pointed,
    "bags": _pointed,
    "combine": _pointed,
    "groups": _groups,
    "positions": _positions,
    "query": _query,
    "counts": _counts,
    "take": _take,
    "permute": _take,
}
