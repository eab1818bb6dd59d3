"""`gatherum.aggregate` on Dask arrays: a gather, a product and a scatter of each chunk of edges."""

from __future__ import annotations

from typing import Any

import dask.array as da

from gatherum._arguments import conversion
from gatherum._edges import edge_reductions
from gatherum._edges.edge_reductions import NAME, AggregateOptions
from gatherum._model.arrays import AnyArray

from . import namespace
from .operands import is_dask


def run(data: Any, sources: Any, targets: Any, options: AggregateOptions, weights: Any) -> AnyArray:
    """Return the lazy result of `aggregate` with a Dask array as data."""
    data = namespace.as_values(NAME, "data", data)
    sources, targets = (
        namespace.as_groups(NAME, operand, ends, data)
        if is_dask(ends)
        else conversion.as_indices(NAME, ends, operand)
        for operand, ends in (("gather_indices", sources), ("scatter_indices", targets))
    )
    if is_dask(weights):
        weights = namespace.as_values(NAME, "weights", weights)
    elif weights is not None:
        weights = da.from_array(conversion.as_updates(NAME, weights, data.dtype, "weights"))
    axis = edge_reductions.check_edges(
        namespace.plan_dtype, data, sources, targets, weights, options.reduction, options.axis
    )
    options = options._replace(axis=axis)
    return edge_reductions.aggregate_with_messages(
        namespace, data, sources, targets, weights, options
    )
