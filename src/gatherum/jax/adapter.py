"""Run calls of `gatherum.jax`, and calls of `gatherum` on JAX arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from gatherum._arguments import plain_values
from gatherum._edges.edge_reductions import NAME, AggregateOptions
from gatherum._frameworks.operator_functions import Functions
from gatherum._frameworks.registry import Framework, source_named
from gatherum._functions.prepared_adapters import run_as_call
from gatherum._model.call import ArraySpec, Attributes
from gatherum._model.call_types import OperatorName
from gatherum._model.operators import GATHERS
from gatherum._system import native

from . import aggregation, namespace
from . import errors as jax_errors
from .namespace import destinations_of
from .operands import is_jax, is_on_cpu, is_on_cuda, normalize
from .primitives import Tracer, bind, core_call, eager_call, spec_of

_Positional: TypeAlias = tuple[object, ...]
# Functions that run eager calls, by operator, array type and attributes. For each operator the core
# caches the last function, and compares the attributes by identity.
_Run: TypeAlias = Callable[..., Array]
_cached_runs: dict[tuple[object, ...], tuple[_Run | None, _Run]] = {}
_MOST_CACHED = 1024


def _run_uncached(
    op: OperatorName, data: Any, indices: Any, updates: Any, *positional: Any
) -> Array:  # fmt: skip
    operands = (data, indices) if op in GATHERS else (data, indices, updates)
    array_types = {type(operand) for operand in operands}
    if len(array_types) == 1 and _are_plain(positional):
        array_type = array_types.pop()
        if (runs := _cached_runs.get((op, array_type, *positional))) is not None:
            native.remember_call(op, array_type, *runs, op not in GATHERS, positional)
            return runs[1](*operands)
    return _run_any(op, data, indices, updates, positional)


# Accepts a call's arguments by position, up to `fill_value`.
_run = native.cached_call_entry(_run_uncached)


def _are_plain(positional: _Positional) -> bool:
    """Return True if attributes can be a key of a dictionary.

    Values of other types can be equal but differ in meaning, such as True and 1, or -0.0 and 0.
    """
    return tuple(map(type, positional)) == (int, str, bool, str, bool, int)


def _run_any(
    op: OperatorName, data: Any, indices: Any, updates: Any, positional: _Positional
) -> Array:
    fill_value: Any = positional[-1]
    checked_attributes = plain_values.as_attributes(op, *positional[:-1])
    attributes, arrays = normalize(checked_attributes, data, indices, updates, fill_value)
    if _are_plain(positional) and not attributes.fill and len(_cached_runs) < _MOST_CACHED:
        for array_type in {type(array) for array in arrays if isinstance(array, jax.Array)}:
            if not issubclass(array_type, Tracer):
                _cached_runs[(op, array_type, *positional)] = (
                    core_call(attributes),
                    eager_call(attributes),
                )
    result: Array = bind(attributes, *arrays)
    if not (attributes.fills and is_jax(fill_value)):
        return result
    # A fill value that is a JAX array has derivatives, and may differ within a batch of `vmap`.
    valid = destinations_of(attributes, arrays[0].shape, arrays[1]).valid_entries()
    return jnp.where(valid, result, fill_value.astype(result.dtype))


FUNCTIONS: Functions[Array] = Functions(__name__, _run)


class JaxAdapter(Framework):
    """The adapter of JAX."""

    name = "jax"
    modules = ("jax", "jaxlib")
    to_numpy = source_named("jax").to_numpy
    groups = namespace

    def prepared(
        self, attributes: Attributes, like: ArraySpec, indices: NDArray[Any], _: object
    ) -> Callable[..., Array]:
        """Return the function that runs a call prepared by `gatherum.prepare` on JAX arrays."""
        return run_as_call(self.call, attributes, like, indices)

    def aggregate(
        self,
        data: Any,
        sources: Any,
        targets: Any,
        options: AggregateOptions,
        weights: Any,
        out: object,
    ) -> Array:
        """Run `gatherum.aggregate` on a JAX array."""
        if out is not None:
            raise jax_errors.no_jax_out(NAME)
        options = options._replace(size=namespace.as_size(NAME, "size", options.size))
        return aggregation.run(data, sources, targets, options, weights)

    def owns(self, array_type: type) -> bool:
        """Return True for the types of arrays and tracers, and for `jax.ShapeDtypeStruct`."""
        return issubclass(array_type, (Array, Tracer, jax.ShapeDtypeStruct))

    def call(
        self,
        attributes: Attributes,
        data: Any,
        indices: Any,
        updates: Any,
        fill_value: object,
        out: object,
    ) -> Array:
        """Run a call. Raise TypeError if `out` is passed, because JAX arrays are immutable."""
        if out is not None:
            raise jax_errors.no_jax_out(attributes.op)
        positional = *attributes.positional, fill_value
        return _run(attributes.op, data, indices, updates, *positional)

    def device(self, value: Any) -> str:
        """Return "cuda" for an array on CUDA devices, and "cpu" for any other value."""
        return "cuda" if is_on_cuda(value) else "cpu"

    def spec(self, op: str, operand: str, value: Any) -> NDArray[Any] | ArraySpec:
        """Return a NumPy view of an array on one CPU device, or the spec of any other array."""
        if operand == "out":
            raise jax_errors.no_jax_out(op)
        array_spec = spec_of(op, operand, value)
        if not is_jax(value) or not is_on_cpu(value):
            return array_spec
        return np.asarray(value) if len(value.devices()) == 1 else array_spec
