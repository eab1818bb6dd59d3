"""The six functions on Dask's arrays return lazy arrays of Dask."""

from __future__ import annotations

from typing import Any, TypeAlias

import dask.array as da
import numpy as np
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph
from numpy.typing import ArrayLike

from ..call import is_plain_spec
from ..names import ModeName, ReductionName
from . import errors as dask_errors
from .costs import cost
from .graphs import CallLayer
from .operands import normalise
from .strategy import choose
from .tasks import Source

# A dask.array.Array.
Array: TypeAlias = Any


def gather(
    data: Array | ArrayLike,
    indices: Array | ArrayLike,
    axis: int = 0,
    *,
    mode: ModeName = "raise",
    negative: bool = True,
    fill_value: object = 0,
) -> Array:
    """Take slices of an array along one axis, by their numbers: see `gatherum.gather`."""
    return _lazy("gather", data, indices, None, axis, "none", True, mode, negative, fill_value)


def gather_elements(
    data: Array | ArrayLike,
    indices: Array | ArrayLike,
    axis: int = 0,
    *,
    mode: ModeName = "raise",
    negative: bool = True,
    fill_value: object = 0,
) -> Array:
    """Take one element of an array for every index: see `gatherum.gather_elements`."""
    return _lazy(
        "gather_elements", data, indices, None, axis, "none", True, mode, negative, fill_value
    )


def gather_nd(
    data: Array | ArrayLike,
    indices: Array | ArrayLike,
    batch_dims: int = 0,
    *,
    mode: ModeName = "raise",
    negative: bool = True,
    fill_value: object = 0,
) -> Array:
    """Take elements or slices of an array by tuples of indices: see `gatherum.gather_nd`."""
    return _lazy(
        "gather_nd", data, indices, None, batch_dims, "none", True, mode, negative, fill_value
    )


def scatter_slices(
    data: Array | ArrayLike,
    indices: Array | ArrayLike,
    updates: Array | ArrayLike,
    axis: int = 0,
    *,
    reduction: ReductionName = "none",
    include_self: bool = True,
    mode: ModeName = "raise",
    negative: bool = True,
) -> Array:
    """Write slices along one axis, by their numbers: see `gatherum.scatter_slices`."""
    return _lazy(
        "scatter_slices", data, indices, updates, axis, reduction, include_self, mode, negative, 0
    )


def scatter_elements(
    data: Array | ArrayLike,
    indices: Array | ArrayLike,
    updates: Array | ArrayLike,
    axis: int = 0,
    *,
    reduction: ReductionName = "none",
    include_self: bool = True,
    mode: ModeName = "raise",
    negative: bool = True,
) -> Array:
    """Write one element for every index: see `gatherum.scatter_elements`."""
    return _lazy(
        "scatter_elements", data, indices, updates, axis, reduction, include_self, mode, negative, 0
    )


def scatter_nd(
    data: Array | ArrayLike,
    indices: Array | ArrayLike,
    updates: Array | ArrayLike,
    batch_dims: int = 0,
    *,
    reduction: ReductionName = "none",
    include_self: bool = True,
    mode: ModeName = "raise",
    negative: bool = True,
) -> Array:
    """Write elements or slices by tuples of indices: see `gatherum.scatter_nd`."""
    return _lazy(
        "scatter_nd", data, indices, updates, batch_dims, reduction, include_self, mode, negative, 0
    )


def _lazy(
    op: str, data: Any, indices: Any, updates: Any, axis: Any, reduction: Any, include_self: Any,
    mode: Any, negative: Any, fill_value: Any,
) -> Array:  # fmt: skip
    given = axis, reduction, include_self, mode, negative, fill_value
    call, arrays, layout = normalise(op, data, indices, updates, *given)
    strategy = choose(call, layout)
    sources = [Source(*each) for each in zip(arrays, layout.operands, strict=True)]
    token = tokenize(repr(call), [array.name for array in arrays], layout, strategy)
    name = f"{op}-{token}"
    layer = CallLayer(name, token, call, layout, strategy, sources)
    graph = HighLevelGraph.from_collections(name, layer, dependencies=arrays)
    meta = np.empty((0,) * len(layer.chunks), call.dtype)
    return da.Array(graph, name, layer.chunks, meta=meta)


def describe(op: str, data: Any, indices: Any, updates: Any, attributes: dict[str, Any]) -> str:
    """Return how the rows of a call would move, for `gatherum.explain`."""
    if any(is_plain_spec(value) for value in (indices, updates)):
        return ""
    a = {"reduction": "none", "include_self": True, "mode": "raise", "negative": True}
    a |= {"axis": 0, "fill_value": 0} | attributes
    axis = a.get("batch_dims", a["axis"])
    given = axis, a["reduction"], a["include_self"], a["mode"], a["negative"], a["fill_value"]
    call, _, layout = normalise(op, data, indices, updates, *given)
    strategy = choose(call, layout)
    return f"{strategy}; {cost(call, layout, strategy)}"


def call(
    op: str, data: Any, indices: Any, updates: Any, axis: Any, reduction: Any, include_self: Any,
    mode: Any, negative: Any, fill_value: Any, out: Any,
) -> Array:  # fmt: skip
    """Run a functional call on Dask's arrays."""
    if out is not None:
        raise dask_errors.no_dask_out(op)
    return _lazy(
        op, data, indices, updates, axis, reduction, include_self, mode, negative, fill_value
    )
