"""A call on arrays of Dask becomes a lazy array: a layer of a graph."""

from __future__ import annotations

from typing import Any, TypeAlias

import dask.array as da
import numpy as np
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph

from ..call import Attributes
from .graphs import CallLayer
from .operands import normalise
from .strategy import choose
from .tasks import RechunkedOperand

# A dask.array.Array.
Array: TypeAlias = Any


def lazy_call(
    attributes: Attributes, data: Any, indices: Any, updates: Any, fill_value: object
) -> Array:
    """Return the lazy array of a call, checked and lowered."""
    call, arrays, layout = normalise(attributes, data, indices, updates, fill_value)
    strategy = choose(call, layout)
    sources = [RechunkedOperand(*each) for each in zip(arrays, layout.operands, strict=True)]
    token = tokenize(repr(call), [array.name for array in arrays], layout, strategy)
    name = f"{attributes.op}-{token}"
    layer = CallLayer(name, token, call, layout, strategy, sources)
    graph = HighLevelGraph.from_collections(name, layer, dependencies=arrays)
    meta = np.empty((0,) * len(layer.chunks), call.dtype)
    return da.Array(graph, name, layer.chunks, meta=meta)
