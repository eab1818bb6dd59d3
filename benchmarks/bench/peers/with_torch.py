"""PyTorch on the CPU."""

from __future__ import annotations

import warnings
from functools import partial
from importlib import import_module
from typing import Any

from ..cases import Case
from ..jobs import Answer, Job, at_positions, columns
from . import Methods

torch: Any = import_module("torch")
torch.sparse.check_sparse_tensor_invariants.disable()
warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta state")


def methods(case: Case) -> Methods:
    """Return PyTorch's methods for a case."""
    data, indices, axis = torch.from_numpy(case.data), torch.from_numpy(case.indices), case.axis
    if case.updates is not None:
        return _scatters(case, data, indices, torch.from_numpy(case.updates))
    if case.op == "gather":
        found: Methods = {"torch.index_select": lambda: torch.index_select(data, axis, indices)}
        if axis == 0 and data.ndim == 2:
            embedding = torch.nn.functional.embedding
            found["F.embedding"] = lambda: embedding(indices, data)
        if data.ndim == 1:
            found["torch.gather"] = lambda: torch.gather(data, 0, indices)
            found["torch.take"] = lambda: torch.take(data, indices)
        return found
    if case.op == "gather_elements":
        return {"torch.gather": lambda: torch.gather(data, axis, indices)}
    place = indices.unbind(1)
    found = {"data[indices]": lambda: data[place]}
    if len(place) == 1:
        found["torch.index_select"] = lambda: torch.index_select(data, 0, place[0])
    return found


def _scatters(case: Case, data: Any, indices: Any, updates: Any) -> Methods:
    axis, reduction = case.axis, case.reduction
    if case.op == "scatter_elements":
        if reduction == "add":
            return {"torch.scatter_add": lambda: torch.scatter_add(data, axis, indices, updates)}
        return {"torch.scatter": lambda: torch.scatter(data, axis, indices, updates)}
    row = indices[:, 0].contiguous()
    if reduction == "none":
        found: Methods = {
            "torch.index_put": lambda: torch.index_put(data, (row,), updates),
            "torch.index_copy": lambda: torch.index_copy(data, 0, row, updates),
        }
        if data.ndim == 1:
            found["torch.scatter"] = lambda: torch.scatter(data, 0, row, updates)
        return found
    if reduction == "max":
        wide = row[:, None].expand_as(updates)
        return {
            "torch.index_reduce": lambda: torch.index_reduce(data, 0, row, updates, "amax"),
            "torch.scatter_reduce": lambda: torch.scatter_reduce(data, 0, wide, updates, "amax"),
        }
    found = {
        "torch.index_add": lambda: torch.index_add(data, 0, row, updates),
        "torch.index_put(accumulate)": lambda: torch.index_put(data, (row,), updates, True),
    }
    wide = row if data.ndim == 1 else row[:, None].expand_as(updates)
    found["torch.scatter_add"] = lambda: torch.scatter_add(data, 0, wide, updates)
    return found


def _tensors(job: Job) -> dict[str, Any]:
    return {name: torch.from_numpy(array) for name, array in job.operands.items()}


def _sparse(indptr: Any, rows: Any, weights: Any, shape: tuple[int, int]) -> Any:
    return torch.sparse_csr_tensor(indptr, rows, weights, shape)


def _messages(job: Job) -> Methods:
    given = _tensors(job)
    table, sources, targets = given["table"], given["sources"], given["targets"]
    if job.func != "sum":
        wide, start = targets[:, None].expand(-1, table.shape[1]), table.new_zeros(())

        def greatest() -> Any:
            begin = start.expand(job.size, table.shape[1])
            return torch.scatter_reduce(begin, 0, wide, table[sources], "amax", include_self=False)

        return {"table[sources], torch.scatter_reduce": greatest}

    def add() -> Any:
        return torch.zeros((job.size, table.shape[1])).index_add_(0, targets, table[sources])

    ends = torch.stack((targets, sources))
    ones = torch.ones(len(targets), dtype=table.dtype)
    shape = (job.size, len(table))
    made = torch.sparse_coo_tensor(ends, ones, shape).to_sparse_csr()
    return {
        "table[sources], index_add_": add,
        "torch.sparse, matrix built": lambda: made @ table,
        "torch.sparse, matrix and product": lambda: (
            torch.sparse_coo_tensor(ends, ones, shape).to_sparse_csr() @ table
        ),
    }


def _product(job: Job) -> Methods:
    given = _tensors(job)
    table = given["table"]
    made = _sparse(given["indptr"], given["rows"], given["weights"], (job.size, len(table)))
    return {"torch.sparse_csr_tensor @ table": lambda: made @ table}


def _bags(job: Job) -> Methods:
    given = _tensors(job)
    table, rows, indptr = given["table"], given["rows"], given["indptr"]
    bag, starts = torch.nn.functional.embedding_bag, indptr[:-1].contiguous()
    return {"F.embedding_bag": lambda: bag(rows, table, starts, mode="sum")}


def _combine(job: Job) -> Methods:
    given = _tensors(job)
    table, rows, weights = given["table"], given["rows"], given["weights"]
    each = len(rows) // job.size
    targets = torch.arange(job.size).repeat_interleave(each)

    def summed() -> Any:
        messages = table[rows].mul_(weights[:, None])
        return messages.view(job.size, each, -1).sum(1)

    def multiplied() -> Any:
        messages = table[rows].view(job.size, each, -1)
        return torch.bmm(weights.view(job.size, 1, each), messages)[:, 0]

    def added() -> Any:
        out = torch.zeros((job.size, table.shape[1]), dtype=table.dtype)
        return out.index_add_(0, targets, table[rows].mul_(weights[:, None]))

    return {"table[rows], sum": summed, "table[rows], bmm": multiplied, "index_add_": added}


def _groups(job: Job) -> Methods:
    given = _tensors(job)
    groups, found = given["groups"], given["values"]
    start = torch.zeros(job.size, dtype=found.dtype)
    how = {"sum": "sum", "mean": "mean", "max": "amax"}[job.func]
    methods: Methods = {
        f"torch.scatter_reduce, {how}": lambda: torch.scatter_reduce(
            start, 0, groups, found, how, include_self=False
        )
    }
    if job.func == "sum":
        methods["torch.index_add"] = lambda: torch.index_add(start, 0, groups, found)
        methods["torch.scatter_add"] = lambda: torch.scatter_add(start, 0, groups, found)
        methods["torch.bincount"] = lambda: torch.bincount(groups, found, job.size)
    if job.func == "mean":
        methods["torch.bincount, twice"] = lambda: (
            torch.bincount(groups, found, job.size) / torch.bincount(groups, minlength=job.size)
        )
    return methods


def _positions(job: Job) -> Methods:
    groups, values = torch.from_numpy(job["groups"]), torch.from_numpy(job["values"])
    wide, shape = groups[:, None].expand_as(values), (job.size, values.shape[1])
    numbers = torch.arange(len(values))[:, None].expand_as(values)
    start, most = torch.zeros(shape), torch.full(shape, len(values))

    def compared() -> Answer:
        greatest = torch.scatter_reduce(start, 0, wide, values, "amax", include_self=False)
        places = torch.where(values == greatest[groups], numbers, len(values))
        found = torch.scatter_reduce(most, 0, wide, places, "amin")
        return Answer(found, partial(at_positions, job["values"]))

    return {"torch.scatter_reduce of maxima, then of positions": compared}


def _counts(job: Job) -> Methods:
    groups = torch.from_numpy(job["groups"])
    return {"torch.bincount": lambda: Answer(torch.bincount(groups, minlength=job.size), columns)}


def _take(job: Job) -> Methods:
    table, rows = torch.from_numpy(job["table"]), torch.from_numpy(job["rows"])
    found: Methods = {"torch.index_select": lambda: torch.index_select(table, 0, rows)}
    if table.ndim == 2:
        embedding = torch.nn.functional.embedding
        return {**found, "F.embedding": lambda: embedding(rows, table)}
    return {**found, "torch.take": lambda: torch.take(table, rows)}


JOBS = {
    "messages": _messages,
    "maxima": _messages,
    "product": _product,
    "bags": _bags,
    "combine": _combine,
    "groups": _groups,
    "positions": _positions,
    "counts": _counts,
    "take": _take,
    "permute": _take,
}
