"""Runs calls on JAX's arrays: those of the six functions, and those of NumPy's on its arrays."""

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
from gatherum._model import errors
from gatherum._model.call import ArraySpec, Attributes
from gatherum._model.call_types import OperatorName
from gatherum._model.operators import GATHERS
from gatherum._system import native

from . import aggregation, namespace
from . import errors as jax_errors
from .namespace import places
from .operands import is_jax, normalise
from .primitives import Tracer, bind, direct, eager, spec_of

_Given: TypeAlias = tuple[object, ...]
# What runs eager calls, by operator, type of the arrays and attributes. The core keeps the last one
# of each operator, and knows it again by its attributes being the same objects.
_Run: TypeAlias = Callable[..., Array]
_known: dict[tuple[object, ...], tuple[_Run | None, _Run]] = {}
_KNOWN_MOST = 1024


def _run_unknown(
    op: OperatorName, data: Any, indices: Any, updates: Any, *given: Any
) -> Array:  # fmt: skip
    operands = (data, indices) if op in GATHERS else (data, indices, updates)
    kinds = {type(operand) for operand in operands}
    if len(kinds) == 1 and _are_plain(given):
        kind = kinds.pop()
        if (known := _known.get((op, kind, *given))) is not None:
            native.remember_call(op, kind, *known, op not in GATHERS, given)
            return known[1](*operands)
    return _run_any(op, data, indices, updates, given)


# Takes a call's arguments by position, up to `fill_value`.
_run = native.entry_of_known_calls(_run_unknown)


def _are_plain(given: _Given) -> bool:
    """Whether attributes can be a key: of other types, True equals 1 and -0.0 equals 0."""
    return tuple(map(type, given)) == (int, str, bool, str, bool, int)


def _run_any(op: OperatorName, data: Any, indices: Any, updates: Any, given: _Given) -> Array:
    fill_value: Any = given[-1]
    plain = plain_values.as_attributes(op, *given[:-1])
    attributes, arrays = normalise(plain, data, indices, updates, fill_value)
    if _are_plain(given) and not attributes.fill and len(_known) < _KNOWN_MOST:
        for kind in {type(array) for array in arrays if isinstance(array, jax.Array)}:
            if not issubclass(kind, Tracer):
                _known[(op, kind, *given)] = direct(attributes), eager(attributes)
    result: Array = bind(attributes, *arrays)
    if not (attributes.fills and is_jax(fill_value)):
        return result
    # An item that is computed: it has derivatives, and a batch has one for each member.
    valid = places(attributes, arrays[0].shape, arrays[1]).arriving()
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
        """Return what runs a call of `gatherum.prepare` on arrays of JAX."""

        def run(data: Any, updates: object, out: object, fill_value: object) -> Array:
            if tuple(data.shape) != like.shape:
                raise errors.other_prepared_shape(attributes.op, like.shape, tuple(data.shape))
            if data.dtype != like.dtype:
                raise errors.other_prepared_dtype(attributes.op, like.dtype, data.dtype)
            return self.call(attributes, data, indices, updates, fill_value, out)

        return run

    def aggregate(
        self,
        data: Any,
        sources: Any,
        targets: Any,
        fold: AggregateOptions,
        weights: Any,
        out: object,
    ) -> Array:
        """Run `gatherum.aggregate` on an array of JAX."""
        if out is not None:
            raise jax_errors.no_jax_out(NAME)
        fold = fold._replace(size=namespace.as_size(NAME, "size", fold.size))
        return aggregation.run(data, sources, targets, fold, weights)

    def owns(self, kind: type) -> bool:
        """Return whether a type is that of arrays, tracers, or what stands for their shapes."""
        return issubclass(kind, (Array, Tracer, jax.ShapeDtypeStruct))

    def call(
        self,
        attributes: Attributes,
        data: Any,
        indices: Any,
        updates: Any,
        fill_value: object,
        out: object,
    ) -> Array:
        """Run a call; `out` is refused, since arrays of JAX do not change."""
        if out is not None:
            raise jax_errors.no_jax_out(attributes.op)
        how = *attributes.positional, fill_value
        return _run(attributes.op, data, indices, updates, *how)

    def spec(self, op: str, operand: str, value: Any) -> NDArray[Any] | ArraySpec:
        """Return an array of NumPy on the same memory where it is whole in this processor's, and
        otherwise its spec.
        """
        if operand == "out":
            raise jax_errors.no_jax_out(op)
        found = spec_of(op, operand, value)
        if not is_jax(value) or isinstance(value, Tracer):
            return found
        devices = value.devices()
        near = len(devices) == 1 and next(iter(devices)).platform == "cpu"
        return np.asarray(value) if near else found
