"""`gatherum.aggregate` on arrays of JAX.

Outside of JAX's transforms the core folds the rows where they are. Inside, XLA stores what edges
carry: a gather, a product and a scatter, of which JAX makes derivatives.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .. import aggregation, conversion, edge_folds
from ..edge_folds import NAME, Fold
from . import namespace
from .operands import known
from .primitives import Array, Tracer

_on_arrays: Any = aggregation.aggregate


def run(data: Any, sources: Any, targets: Any, fold: Fold, weights: Any) -> Array:
    """Run `aggregate` where the data are an array of JAX."""
    data = namespace.as_values(NAME, "data", data)
    sources = namespace.as_groups(NAME, "gather_indices", sources, data)
    targets = namespace.as_groups(NAME, "scatter_indices", targets, data)
    if weights is not None and not isinstance(weights, jax.Array):
        weights = known(
            NAME, "weights", conversion.as_updates(NAME, weights, data.dtype, "weights")
        )
    given = data, sources, targets, weights
    if any(isinstance(each, Tracer) for each in given):
        edge_folds.check(namespace, *given, fold.reduction)
        return edge_folds.composed(namespace, *given, fold)
    table, *indices, scale = (None if each is None else np.asarray(each) for each in given)
    how: Any = {"mode": fold.mode, "negative": fold.negative}
    found = _on_arrays(table, *indices, fold.size, fold.reduction, scale, **how)
    return jnp.asarray(found)
