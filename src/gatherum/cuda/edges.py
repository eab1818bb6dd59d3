"""Fold rows along the edges of a graph, straight from the data.

The edges are sorted by target, and the payload of the sort is the source of each edge. So the fold
reads rows of the data, and the rows of the edges are never stored. With weights, the payload is the
number of the edge, and the fold also reads the source and the weight of the edge.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from gatherum._edges.edge_reductions import NAME
from gatherum._model.call import ArraySpec, Attributes, Call
from gatherum._model.callers import Caller
from gatherum._plans.plans import Plan, build_once
from gatherum._plans.sharing import Shared
from gatherum._system import native

from . import device_calls, plan_launches
from .device_views import DeviceFramework
from .orders import POSITIONS, SharedIndices, SortPayload
from .plan_launches import Weights

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
    weights: Any = None  # one contiguous item for each edge


def source_dtype(rows: int) -> np.dtype[Any]:
    """Return the dtype of row numbers."""
    return np.dtype(np.int32 if rows < 1 << 31 else np.int64)


def fold_rows(
    framework: DeviceFramework,
    shared: Shared,
    data: Any,
    edges: Edges,
    table: Any,
    reduction: str,
) -> Any:
    """Return the fold of the rows of each target, or its row of `table` if it has no edges.

    There is at least one edge, one row, and one item in a row. All arrays are on one device.
    """
    names = "data", "data", "scatter_indices", "gather_indices"
    arrays = data, table, edges.targets, edges.sources
    views = [framework.view(NAME, *named) for named in zip(names, arrays, strict=True)]
    rows, initial, targets, sources = views
    device_and_stream = (
        rows.device_number or 0,
        framework.stream(rows.device_number or 0, (data, edges.targets)),
    )
    device = device_calls.open_device(framework, *device_and_stream)
    specs = initial.spec, targets.spec, rows.spec
    sorting_plan, folding_plan = _plans(*specs, edges.mode, edges.negative, reduction)
    shared_targets = SharedIndices(
        shared, *device_and_stream, targets.address, targets.spec, targets.holder
    )
    numbers: list[Any] = []

    def numbers_address() -> int:
        numbers.append(edges.numbers())
        return framework.view(NAME, "gather_indices", numbers[0]).address

    row_number_bytes, weights = source_dtype(rows.spec.shape[0]).itemsize, None
    if edges.weights is None:
        identity = sources.address, sources.spec, edges.mode, edges.negative
        payload = SortPayload(row_number_bytes, numbers_address, identity, sources.holder)
    else:
        weights_view = framework.view(NAME, "weights", edges.weights)
        weights = Weights(row_number_bytes, numbers_address(), weights_view.address)
        payload = POSITIONS
    pairs = shared_targets.sorted_pairs(device, sorting_plan, payload)
    result, out = framework.empty(folding_plan.shape, rows.spec.dtype, data, *device_and_stream)
    addresses = initial.address, 0, rows.address, out
    plan_launches.run(device, folding_plan, *addresses, order=pairs, weights=weights)
    framework.keep([*(view.holder for view in views), *numbers], *device_and_stream)
    return result


@native.emptied_at_exit
@lru_cache(maxsize=1024)
def _plans(
    initial: ArraySpec,
    targets: ArraySpec,
    rows: ArraySpec,
    mode: str,
    negative: bool,
    reduction: str,
) -> tuple[Plan, Plan]:
    """Return two plans: of the scatter of edges, which is sorted, and of the fold of the rows."""
    number_dtype = source_dtype(rows.shape[0])
    ends = ArraySpec.contiguous(initial.shape[:1], number_dtype), targets
    sorted_attributes = Attributes(
        "scatter_slices", 0, "max", False, mode, negative, caller=_TARGETS
    )
    scatter_of_edges = Call(
        sorted_attributes, *ends, ArraySpec.contiguous(targets.shape, number_dtype)
    )
    indices = ArraySpec.contiguous(rows.shape[:1], np.dtype(np.int64))
    fold_attributes = Attributes("scatter_slices", 0, reduction, False, "drop", False)
    return build_once(scatter_of_edges), build_once(Call(fold_attributes, initial, indices, rows))
