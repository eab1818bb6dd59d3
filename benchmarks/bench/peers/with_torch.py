"""PyTorch on the processor."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..cases import Case
from . import Methods

torch: Any = import_module("torch")


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
