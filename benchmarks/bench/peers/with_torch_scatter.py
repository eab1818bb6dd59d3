"""torch_scatter, which is built from its source package against PyTorch."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Any

from ..jobs import Answer, Job, at_positions
from . import Methods

torch: Any = import_module("torch")
torch_scatter: Any = import_module("torch_scatter")


def _edges(job: Job) -> Methods:
    table, sources, targets = (
        torch.from_numpy(job[name]) for name in ("table", "sources", "targets")
    )

    def scattered() -> Any:
        rows = table[sources]
        return torch_scatter.scatter(rows, targets, 0, dim_size=job.size, reduce=job.func)

    return {"table[sources], torch_scatter.scatter": scattered}


def _bags(job: Job) -> Methods:
    table, rows, indptr = (torch.from_numpy(job[name]) for name in ("table", "rows", "indptr"))
    return {
        "table[rows], torch_scatter.segment_csr": lambda: torch_scatter.segment_csr(
            table[rows], indptr
        )
    }


def _groups(job: Job) -> Methods:
    groups, values = torch.from_numpy(job["groups"]), torch.from_numpy(job["values"])
    scatter = torch_scatter.scatter
    return {
        "torch_scatter.scatter": lambda: scatter(
            values, groups, 0, dim_size=job.size, reduce=job.func
        )
    }


def _positions(job: Job) -> Methods:
    groups, values = torch.from_numpy(job["groups"]), torch.from_numpy(job["values"])
    arranged = partial(at_positions, job["values"])
    scatter_max = torch_scatter.scatter_max
    return {
        "torch_scatter.scatter_max": lambda: Answer(
            scatter_max(values, groups, 0, dim_size=job.size)[1], arranged
        )
    }


JOBS = {
    "messages": _edges,
    "maxima": _edges,
    "bags": _bags,
    "groups": _groups,
    "positions": _positions,
}
