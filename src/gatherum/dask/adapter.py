"""Runs calls on Dask's arrays: they return lazy arrays."""

from __future__ import annotations

from typing import Any, TypeAlias

import dask.array as da
import numpy as np
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph

from .. import conversion
from ..call import ArraySpec, Attributes, is_spec
from ..frameworks import Framework, source_named
from ..functions import Functions
from . import errors as dask_errors
from .costs import cost
from .graphs import CallLayer
from .operands import normalise, spec
from .strategy import choose
from .tasks import Source

# A dask.array.Array.
Array: TypeAlias = Any


def _run(op: str, data: Any, indices: Any, updates: Any, *given: Any) -> Array:
    *how, fill_value = given
    return _lazy(conversion.as_attributes(op, *how), data, indices, updates, fill_value)


FUNCTIONS: Functions[Array] = Functions(__name__, _run)


def _lazy(
    attributes: Attributes, data: Any, indices: Any, updates: Any, fill_value: object
) -> Array:
    call, arrays, layout = normalise(attributes, data, indices, updates, fill_value)
    strategy = choose(call, layout)
    sources = [Source(*each) for each in zip(arrays, layout.operands, strict=True)]
    token = tokenize(repr(call), [array.name for array in arrays], layout, strategy)
    name = f"{attributes.op}-{token}"
    layer = CallLayer(name, token, call, layout, strategy, sources)
    graph = HighLevelGraph.from_collections(name, layer, dependencies=arrays)
    meta = np.empty((0,) * len(layer.chunks), call.dtype)
    return da.Array(graph, name, layer.chunks, meta=meta)


class DaskAdapter(Framework):
    """The adapter of Dask's arrays."""

    name = "dask"
    modules = ("dask",)
    to_numpy = source_named("dask").to_numpy

    def owns(self, kind: type) -> bool:
        """Return whether a type is that of arrays; Dask's other collections are refused."""
        return issubclass(kind, da.Array)

    def call(
        self,
        attributes: Attributes,
        data: Any,
        indices: Any,
        updates: Any,
        fill_value: object,
        out: object,
    ) -> Array:
        """Return a lazy array; `out` is refused."""
        if out is not None:
            raise dask_errors.no_dask_out(attributes.op)
        return _lazy(attributes, data, indices, updates, fill_value)

    def spec(self, op: str, operand: str, value: Any) -> ArraySpec:
        """Return the spec of an array in C order: its chunks are not known to lie otherwise."""
        return spec(op, operand, value)

    def describe(self, attributes: Attributes, data: Any, indices: Any, updates: Any) -> str:
        """Return how the rows of a call would move, and what that costs."""
        if any(is_spec(value) for value in (indices, updates)):
            return ""
        call, _, layout = normalise(attributes, data, indices, updates, 0)
        strategy = choose(call, layout)
        return f"{strategy}; {cost(call, layout, strategy)}"
