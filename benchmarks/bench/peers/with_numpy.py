"""NumPy: also the reference, since its assignments and ``ufunc.at`` have a defined order."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ..cases import Array, Case
from ..jobs import Answer, Job, at_positions, columns
from . import Methods

UFUNCS: dict[str, Any] = {"add": np.add, "max": np.maximum}


def methods(case: Case) -> Methods:
    """Return NumPy's methods for a case; the first method defines the expected result."""
    data, indices, axis = case.data, case.indices, case.axis
    if case.updates is not None:
        return _scatters(case, case.updates)
    if case.op == "gather":
        place = (slice(None),) * axis + (indices,)
        return {
            "np.take": lambda: np.take(data, indices, axis),
            "np.take(mode='clip')": lambda: np.take(data, indices, axis, mode="clip"),
            "data[indices]": lambda: data[place],
        }
    if case.op == "gather_elements":
        return {"np.take_along_axis": lambda: np.take_along_axis(data, indices, axis)}
    place = tuple(indices.T)
    return {"data[tuple(indices.T)]": lambda: data[place]}


def _scatters(case: Case, updates: Array) -> Methods:
    data, indices, axis = case.data, case.indices, case.axis
    place: tuple[Array, ...] = tuple(indices.T)
    if case.op == "scatter_elements":
        own = tuple(np.ogrid[tuple(slice(n) for n in indices.shape)])
        place = own[:axis] + (indices,) + own[axis + 1 :]

    if case.reduction != "none":
        name, ufunc = f"np.{UFUNCS[case.reduction].__name__}.at", UFUNCS[case.reduction]
        calls: Methods = {name: _on_a_copy(data, lambda out: ufunc.at(out, place, updates))}
        if data.ndim == 1 and data.dtype.kind == "f":
            calls["data + np.bincount"] = lambda: (
                data + np.bincount(place[0], updates, len(data)).astype(data.dtype)
            )
        return calls
    if case.op == "scatter_elements":

        def put(out: Array) -> None:
            np.put_along_axis(out, indices, updates, axis)

        return {"np.put_along_axis": _on_a_copy(data, put)}

    def assign(out: Array) -> None:
        out[place] = updates

    return {"out[indices] = updates": _on_a_copy(data, assign)}


def _on_a_copy(data: Array, change: Callable[[Array], object]) -> Callable[[], Array]:
    def run() -> Array:
        out = data.copy()
        change(out)
        return out

    return run


def _sums_of_rows(table: Array, rows: Array, targets: Array, size: int, weights: Any) -> Array:
    """Add rows in order; float16 is added in float32 and rounded once."""
    messages = table[rows] if weights is None else table[rows] * weights[:, None]
    message_dtype = "f4" if table.dtype == np.float16 else table.dtype
    out = np.zeros((size, *table.shape[1:]), message_dtype)
    np.add.at(out, targets, messages.astype(message_dtype, copy=False))
    return out.astype(table.dtype, copy=False)


def _messages(job: Job) -> Methods:
    table, sources, targets, size = job["table"], job["sources"], job["targets"], job.size
    if job.func == "sum":
        return {"np.add.at": lambda: _sums_of_rows(table, sources, targets, size, None)}

    def greatest() -> Array:
        out = np.full((size, *table.shape[1:]), -np.inf, table.dtype)
        np.maximum.at(out, targets, table[sources])
        return out

    return {"np.maximum.at": greatest}


def _pointed(job: Job) -> Methods:
    weights, table, rows, indptr = (
        job.operands.get("weights"), job["table"], job["rows"], job["indptr"],
    )  # fmt: skip
    targets = np.repeat(np.arange(job.size), np.diff(indptr))

    def runs() -> Array:
        messages = table[rows] if weights is None else table[rows] * weights[:, None]
        return np.add.reduceat(messages, indptr[:-1], axis=0)

    return {
        "np.add.at": lambda: _sums_of_rows(table, rows, targets, job.size, weights),
        "np.add.reduceat": runs,
    }


def _extreme(ufunc: Any, start: Any, groups: Array, values: Array, size: int) -> Array:
    out = np.full(size, start, values.dtype)
    ufunc.at(out, groups, values)
    return out


def _groups(job: Job) -> Methods:
    groups, values, size = job["groups"], job["values"], job.size
    if job.func == "max":
        return {"np.maximum.at": lambda: _extreme(np.maximum, -np.inf, groups, values, size)}
    if job.func == "sum":
        return {"np.bincount": lambda: np.bincount(groups, values, size)}
    return {
        "np.bincount, twice": lambda: (
            np.bincount(groups, values, size) / np.bincount(groups, minlength=size)
        )
    }


def _positions(job: Job) -> Methods:
    groups, rows = job["groups"], job["values"]
    numbers = np.arange(len(rows))[:, None]

    def sorted_rows() -> Answer:
        order = np.argsort(groups, kind="stable")
        begin = np.searchsorted(groups[order], np.arange(job.size))
        greatest = np.maximum.reduceat(rows[order], begin)
        places = np.where(rows == greatest[groups], numbers, len(rows))
        positions = np.minimum.reduceat(places[order], begin)
        return Answer(positions, partial(at_positions, rows))

    return {"np.argsort, np.maximum.reduceat, np.minimum.reduceat": sorted_rows}


def _query(job: Job) -> Methods:
    groups, size = job["groups"], job.size
    v1, v2, v3 = job["v1"], job["v2"], job["v3"]

    def sums() -> Answer:
        totals = [np.bincount(groups, values, size) for values in (v1, v2, v3)]
        return Answer(totals, lambda a: columns(*a))

    def sum_and_mean() -> Answer:
        mean = np.bincount(groups, v3, size) / np.bincount(groups, minlength=size)
        return Answer((np.bincount(groups, v1, size), mean), lambda a: columns(*a))

    def between() -> Answer:
        greatest = _extreme(np.maximum, v1.min(), groups, v1, size)
        return Answer(greatest - _extreme(np.minimum, v2.max(), groups, v2, size), columns)

    name = "np.maximum.at, np.minimum.at" if job.func == "range" else "np.bincount"
    return {name: {"sums": sums, "sum, mean": sum_and_mean, "range": between}[job.func]}


def _counts(job: Job) -> Methods:
    return {"np.bincount": lambda: Answer(np.bincount(job["groups"], minlength=job.size), columns)}


def _take(job: Job) -> Methods:
    table, rows = job["table"], job["rows"]
    return {
        "np.take": lambda: np.take(table, rows, 0),
        "table[rows]": lambda: table[rows],
        "np.take(mode='clip')": lambda: np.take(table, rows, 0, mode="clip"),
    }


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
