"""`gatherum.aggregate` on JAX arrays.

Outside of JAX's transforms, for arrays on the CPU, the core reads and folds the rows in one pass.
Under a transform or on a CUDA device the call is a gather, a product and a scatter, which JAX
differentiates; XLA stores a row per edge.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from gatherum._arguments import conversion
from gatherum._edges import edge_reductions
from gatherum._edges.edge_reductions import NAME, AggregateOptions, Pointer
from gatherum._edges.sparse_edges import segment_numbers
from gatherum._functions import aggregation
from gatherum._model.arrays import AnyArray

from . import namespace
from .operands import as_jax_dtype, is_on_cpu

_aggregate_arrays: Any = aggregation.aggregate


def run(data: Any, sources: Any, targets: Any, options: AggregateOptions, weights: Any) -> AnyArray:
    """Run `aggregate` with a JAX array as data."""
    data = namespace.as_values(NAME, "data", data)
    sources = namespace.as_groups(NAME, "gather_indices", sources, data)
    pointed = isinstance(targets, Pointer)
    if not pointed:
        targets = namespace.as_groups(NAME, "scatter_indices", targets, data)
    if weights is not None and not isinstance(weights, jax.Array):
        weights = as_jax_dtype(
            NAME, "weights", conversion.as_updates(NAME, weights, data.dtype, "weights")
        )
    if not all(map(is_on_cpu, (data, sources, targets, weights))):
        if pointed:
            ends = np.asarray(targets.indptr)
            segments = segment_numbers(NAME, targets.operand, ends, sources.shape[0])
            targets = jnp.asarray(segments)
        axis = edge_reductions.check_edges(
            namespace.plan_dtype, data, sources, targets, weights, options.reduction, options.axis
        )
        options = options._replace(axis=axis)
        return edge_reductions.aggregate_with_messages(
            namespace, data, sources, targets, weights, options
        )
    operands = data, sources, weights
    table, source_array, scale = (
        None if operand is None else np.asarray(operand) for operand in operands
    )
    if pointed:
        target_array: Any = targets._replace(indptr=np.asarray(targets.indptr))
    else:
        target_array = np.asarray(targets)
    keywords: Any = {
        "mode": options.mode, "negative": options.negative, "fill_value": options.fill_value,
        "axis": options.axis,
    }  # fmt: skip
    result = _aggregate_arrays(
        table, source_array, target_array, options.size, options.reduction, scale, **keywords
    )
    return jnp.asarray(result)
