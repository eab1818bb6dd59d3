"""Fold rows along the edges of a graph, straight from the data.

The edges are sorted by target, and the payload of the sort is the source of each edge. So the fold
reads rows of the data, and the rows of the edges are never stored.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gatherum._edges.edge_reductions import NAME
from gatherum._model.call import ArraySpec, Attributes, Call
from gatherum._model.callers import Caller
from gatherum._plans.plans import build_once
from gatherum._plans.sharing import Shared

from . import device_calls, plan_launches
from .device_views import DeviceFramework
from .orders import Carried, SharedIndices

_TARGETS = Caller(NAME, "scatter_indices").text


class Edges(NamedTuple):
    """The edges of a call: arrays of a framework, and how the targets are checked."""

    sources: Any  # as the caller passed them; they identify `numbers`
    # Returns the source of each edge as a nonnegative integer of the width of `source_dtype`, or
    # raises IndexError.
    numbers: Callable[[], Any]
    targets: Any
    mode: str
    negative: bool


def source_dtype(rows: int) -> np.dtype[Any]:
    """Return the dtype of the numbers of rows."""
    return np.dtype(np.int32 if rows < 1 << 31 else np.int64)


def fold_rows(
    framework: DeviceFramework,
    shared: Shared,
    data: Any,
    edges: Edges,
    table: Any,
    reduction: str,
) -> Any:
    """Return the fold of the rows of each target, or the row of `table` without edges.

    There are edges, rows and items of rows. All arrays are on one device.
    """
    rows, start, targets, sources = (
        framework.view(NAME, name, array)
        for name, array in (
            ("data", data),
            ("data", table),
            ("scatter_indices", edges.targets),
            ("gather_indices", edges.sources),
        )
    )
    device_number = rows.device or 0
    stream = framework.stream(device_number, (data, edges.targets))
    where = device_number, stream
    device = device_calls.open_device(framework, *where)
    number = source_dtype(rows.spec.shape[0])
    modes = edges.mode, edges.negative
    attributes = Attributes("scatter_slices", 0, "max", False, *modes, caller=_TARGETS)
    numbers = ArraySpec.contiguous(targets.spec.shape, number)
    ends = ArraySpec.contiguous(start.spec.shape[:1], number), targets.spec, numbers
    place = SharedIndices(shared, *where, targets.address, targets.spec, targets.holder)
    kept: list[Any] = []

    def numbers_address() -> int:
        kept.append(edges.numbers())
        return framework.view(NAME, "gather_indices", kept[0]).address

    identity = sources.address, sources.spec, edges.mode, edges.negative
    carried = Carried(number.itemsize, numbers_address, identity, sources.holder)
    pairs = place.sorted_pairs(device, build_once(Call(attributes, *ends)), carried)
    indices = ArraySpec.contiguous(rows.spec.shape[:1], np.dtype(np.int64))
    fold = Attributes("scatter_slices", 0, reduction, False, "drop", False)
    plan = build_once(Call(fold, start.spec, indices, rows.spec))
    result, out = framework.empty(plan.shape, rows.spec.dtype, data, *where)
    addresses = start.address, 0, rows.address, out
    plan_launches.run(device, plan, *addresses, order=pairs)
    framework.keep([rows.holder, start.holder, sources.holder, targets.holder, *kept], *where)
    return result
