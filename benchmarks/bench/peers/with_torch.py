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
        calls: Methods = {"torch.index_select": lambda: torch.index_select(data, axis, indices)}
        if axis == 0 and data.ndim == 2:
            embedding = torch.nn.functional.embedding
            calls["F.embedding"] = lambda: embedding(indices, data)
        if data.ndim == 1:
            calls["torch.gather"] = lambda: torch.gather(data, 0, indices)
            calls["torch.take"] = lambda: torch.take(data, indices)
        return calls
    if case.op == "gather_elements":
        return {"torch.gather": lambda: torch.gather(data, axis, indices)}
    place = indices.unbind(1)
    calls = {"data[indices]": lambda: data[place]}
    if len(place) == 1:
        calls["torch.index_select"] = lambda: torch.index_select(data, 0, place[0])
    return calls


def _scatters(case: Case, data: Any, indices: Any, updates: Any) -> Methods:
    axis, reduction = case.axis, case.reduction
    if case.op == "scatter_elements":
        if reduction == "add":
            return {"torch.scatter_add": lambda: torch.scatter_add(data, axis, indices, updates)}
        return {"torch.scatter": lambda: torch.scatter(data, axis, indices, updates)}
    row = indices[:, 0].contiguous()
    if reduction == "none":
        calls: Methods = {
            "torch.index_put": lambda: torch.index_put(data, (row,), updates),
            "torch.index_copy": lambda: torch.index_copy(data, 0, row, updates),
        }
        if data.ndim == 1:
            calls["torch.scatter"] = lambda: torch.scatter(data, 0, row, updates)
        return calls
    if reduction == "max":
        wide = row[:, None].expand_as(updates)
        return {
            "torch.index_reduce": lambda: torch.index_reduce(data, 0, row, updates, "amax"),
            "torch.scatter_reduce": lambda: torch.scatter_reduce(data, 0, wide, updates, "amax"),
        }
    calls = {
        "torch.index_add": lambda: torch.index_add(data, 0, row, updates),
        "torch.index_put(accumulate)": lambda: torch.index_put(data, (row,), updates, True),
    }
    wide = row if data.ndim == 1 else row[:, None].expand_as(updates)
    calls["torch.scatter_add"] = lambda: torch.scatter_add(data, 0, wide, updates)
    return calls


def _tensors(job: Job) -> dict[str, Any]:
    return {name: torch.from_numpy(array) for name, array in job.operands.items()}


def _sparse(indptr: Any, rows: Any, weights: Any, shape: tuple[int, int]) -> Any:
    return torch.sparse_csr_tensor(indptr, rows, weights, shape)


def _messages(job: Job) -> Methods:
    tensors = _tensors(job)
    table, sources, targets = tensors["table"], tensors["sources"], tensors["targets"]
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
    matrix = torch.sparse_coo_tensor(ends, ones, shape).to_sparse_csr()
    return {
        "table[sources], index_add_": add,
        "torch.sparse, matrix built": lambda: matrix @ table,
        "torch.sparse, matrix and product": lambda: (
            torch.sparse_coo_tensor(ends, ones, shape).to_sparse_csr() @ table
        ),
    }


def _product(job: Job) -> Methods:
    tensors = _tensors(job)
    table = tensors["table"]
    matrix = _sparse(tensors["indptr"], tensors["rows"], tensors["weights"], (job.size, len(table)))
    return {"torch.sparse_csr_tensor @ table": lambda: matrix @ table}


def _bags(job: Job) -> Methods:
    tensors = _tensors(job)
    table, rows, indptr = tensors["table"], tensors["rows"], tensors["indptr"]
    bag, starts = torch.nn.functional.embedding_bag, indptr[:-1].contiguous()
    return {"F.embedding_bag": lambda: bag(rows, table, starts, mode="sum")}


def _combine(job: Job) -> Methods:
    tensors = _tensors(job)
    table, rows, weights = tensors["table"], tensors["rows"], tensors["weights"]
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
    tensors = _tensors(job)
    groups, values = tensors["groups"], tensors["values"]
    start = torch.zeros(job.size, dtype=values.dtype)
    reduction = {"sum": "sum", "mean": "mean", "max": "amax"}[job.func]
    methods: Methods = {
        f"torch.scatter_reduce, {reduction}": lambda: torch.scatter_reduce(
            start, 0, groups, values, reduction, include_self=False
        )
    }
    if job.func == "sum":
        methods["torch.index_add"] = lambda: torch.index_add(start, 0, groups, values)
        methods["torch.scatter_add"] = lambda: torch.scatter_add(start, 0, groups, values)
        methods["torch.bincount"] = lambda: torch.bincount(groups, values, job.size)
    if job.func == "mean":
        methods["torch.bincount, twice"] = lambda: (
            torch.bincount(groups, values, job.size) / torch.bincount(groups, minlength=job.size)
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
        positions = torch.scatter_reduce(most, 0, wide, places, "amin")
        return Answer(positions, partial(at_positions, job["values"]))

    return {"torch.scatter_reduce of maxima, then of positions": compared}


def _counts(job: Job) -> Methods:
    groups = torch.from_numpy(job["groups"])
    return {"torch.bincount": lambda: Answer(torch.bincount(groups, minlength=job.size), columns)}


def _take(job: Job) -> Methods:
    table, rows = torch.from_numpy(job["table"]), torch.from_numpy(job["rows"])
    calls: Methods = {"torch.index_select": lambda: torch.index_select(table, 0, rows)}
    if table.ndim == 2:
        embedding = torch.nn.functional.embedding
        return {**calls, "F.embedding": lambda: embedding(rows, table)}
    return {**calls, "torch.take": lambda: torch.take(table, rows)}


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
