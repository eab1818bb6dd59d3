"""Run calls on Dask arrays. The calls return lazy arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dask.array as da
from numpy.typing import NDArray

from gatherum._arguments import plain_values
from gatherum._edges.edge_reductions import NAME, AggregateOptions
from gatherum._frameworks.operator_functions import Functions
from gatherum._frameworks.registry import Framework, source_named
from gatherum._functions.prepared_adapters import run_as_call
from gatherum._model.arrays import AnyArray
from gatherum._model.call import ArraySpec, Attributes, is_spec
from gatherum.dask.planning.choice import choose
from gatherum.dask.planning.costs import cost

from . import aggregation, namespace
from . import errors as dask_errors
from .lazy_calls import lazy_call
from .operands import normalize, spec


def _run(op: str, data: Any, indices: Any, updates: Any, *positional: Any) -> AnyArray:
    *values, fill_value = positional
    return lazy_call(plain_values.as_attributes(op, *values), data, indices, updates, fill_value)


FUNCTIONS: Functions[AnyArray] = Functions(__name__, _run)


class DaskAdapter(Framework):
    """The adapter for Dask arrays."""

    name = "dask"
    modules = ("dask",)
    to_numpy = source_named("dask").to_numpy
    groups = namespace

    def prepared(
        self, attributes: Attributes, like: ArraySpec, indices: NDArray[Any], _: object
    ) -> Callable[..., AnyArray]:
        """Return the function that runs a call prepared by `gatherum.prepare` on Dask arrays."""
        return run_as_call(self.call, attributes, like, indices)

    def aggregate(
        self,
        data: Any,
        sources: Any,
        targets: Any,
        options: AggregateOptions,
        weights: Any,
        out: object,
    ) -> AnyArray:
        """Return the lazy result of `gatherum.aggregate`."""
        if out is not None:
            raise dask_errors.no_dask_out(NAME)
        options = options._replace(size=namespace.as_size(NAME, "size", options.size))
        return aggregation.run(data, sources, targets, options, weights)

    def owns(self, array_type: type) -> bool:
        """Return True for array types. Dask's other collections are not supported."""
        return issubclass(array_type, da.Array)

    def call(
        self,
        attributes: Attributes,
        data: Any,
        indices: Any,
        updates: Any,
        fill_value: object,
        out: object,
    ) -> AnyArray:
        """Return a lazy array. Raise TypeError if `out` is passed."""
        if out is not None:
            raise dask_errors.no_dask_out(attributes.op)
        return lazy_call(attributes, data, indices, updates, fill_value)

    def spec(self, op: str, operand: str, value: Any) -> ArraySpec:
        """Return an array's spec in C order, because the order of the array's chunks is unknown."""
        return spec(op, operand, value)

    def describe(self, attributes: Attributes, data: Any, indices: Any, updates: Any) -> str:
        """Return the strategy of a call and its predicted cost."""
        if any(is_spec(value) for value in (indices, updates)):
            return ""
        call, _, layout = normalize(attributes, data, indices, updates, 0)
        choice = choose(call, layout)
        return f"{choice}; {cost(call, layout, choice)}"
