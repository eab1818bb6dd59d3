"""Derivatives of the two primitives: tangents, and transposes for linear operands.

They evaluate the rules of `gatherum._derivatives.derivatives` with the same primitives.
"""

from __future__ import annotations

from typing import Any

from jax.interpreters import ad

from gatherum._derivatives import derivatives
from gatherum._derivatives.derivatives import ScatterValues
from gatherum._model.arrays import AnyArray
from gatherum._model.call import Attributes

from .namespace import destinations_of, sum_to
from .primitives import GATHER, SCATTER, bind


def _gather_tangent(
    tangent: AnyArray, _: AnyArray, indices: AnyArray, *, attributes: Attributes
) -> AnyArray:
    """Gather the tangents; filled entries have the tangent 0."""
    return bind(attributes._replace(fill=b""), tangent, indices)


def _gather_transpose(
    cotangent: Any, data: Any, indices: AnyArray, *, attributes: Attributes
) -> list[Any]:
    """Add each cotangent to the element that it was gathered from."""
    if type(cotangent) is ad.Zero:
        return [ad.Zero(data.aval), None]
    return [destinations_of(attributes, data.aval.shape, indices).sum_updates(cotangent), None]


def _scatter_jvp(
    primals: Any, tangents: Any, *, attributes: Attributes
) -> tuple[AnyArray, AnyArray]:
    data, indices, updates = primals
    result = bind(attributes, data, indices, updates)
    of_data, _, of_updates = (None if type(tangent) is ad.Zero else tangent for tangent in tangents)
    destinations = destinations_of(attributes, data.shape, indices)
    values = ScatterValues(data, updates, result)
    return result, derivatives.tangent(destinations, values, of_data, of_updates)


def _scatter_transpose(
    cotangent: Any, data: Any, indices: AnyArray, updates: Any, *, attributes: Attributes
) -> list[Any]:
    """Propagate the cotangent to the linear operands."""
    to_data, to_updates = ad.is_undefined_primal(data), ad.is_undefined_primal(updates)
    if type(cotangent) is ad.Zero:
        return [
            ad.Zero(data.aval) if to_data else None, None,
            ad.Zero(updates.aval) if to_updates else None,
        ]  # fmt: skip
    destinations = destinations_of(attributes, cotangent.shape, indices)
    of_data, of_updates = derivatives.cotangents(
        destinations, None, cotangent, (to_data, to_updates)
    )
    return [of_data, None, sum_to(of_updates, updates.aval.shape) if to_updates else None]


ad.defjvp(GATHER, _gather_tangent, None)
ad.primitive_transposes[GATHER] = _gather_transpose
ad.primitive_jvps[SCATTER] = _scatter_jvp
ad.primitive_transposes[SCATTER] = _scatter_transpose
