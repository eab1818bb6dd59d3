"""Calls on sharded arrays: devices divide the work along independent dimensions.

Each dimension of the operands and of the result has a number. Dimensions with the same number are
divided in the same way, because a device needs the same shard of each. Two kinds of dimensions are
whole on every device: those that indices address, and a scatter's entries, whose order decides the
result.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import count
from math import prod
from typing import Any, TypeAlias

import jax
from jax.interpreters import mlir
from jax.sharding import NamedSharding, PartitionSpec

from gatherum._model.call import Attributes

from . import errors as jax_errors
from . import private
from .primitives import GATHER, SCATTER, bind, lower_to_custom_call

Shape: TypeAlias = tuple[int, ...]
DimensionNumbers: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DimensionNumbering:
    """The number that identifies each dimension of the operands and of the result of a call."""

    operands: tuple[DimensionNumbers, ...]  # of data, indices and updates
    result: DimensionNumbers
    divisible: frozenset[int]  # numbers of dimensions that devices may divide

    @classmethod
    def of(
        cls, attributes: Attributes, data: Shape, indices: Shape, *updates: Shape
    ) -> DimensionNumbering:
        """Return the numbers of a call with a nonnegative axis."""
        new_numbers, operator, axis = count(), attributes.operator, attributes.axis
        dimensions = operator.dimensions(len(data), indices, axis)
        data_dimensions = [next(new_numbers) for _ in data]
        index_dimensions = [next(new_numbers) for _ in indices]
        undivided = {data_dimensions[d] for d in dimensions.indexed}
        for d in dimensions.shared:
            if data[d] == indices[d]:
                index_dimensions[d] = data_dimensions[d]
            else:  # index i addresses element i, and their shards would differ
                undivided |= {data_dimensions[d], index_dimensions[d]}
        moved_dimensions = dimensions.choose(data_dimensions, index_dimensions)
        result = data_dimensions if updates else moved_dimensions
        operands = [data_dimensions, index_dimensions]
        for shape in updates:
            sizes = operator.moved_shape(data, indices, axis)
            missing = len(sizes) - len(shape)
            dimensions_and_sizes = zip(
                moved_dimensions[missing:], sizes[missing:], shape, strict=True
            )
            # Broadcast dimensions get new numbers.
            operands.append(
                [
                    dimension if n == size else next(new_numbers)
                    for dimension, size, n in dimensions_and_sizes
                ]
            )
        divisible = frozenset(result) - undivided
        return cls(tuple(map(tuple, operands)), tuple(result), divisible)

    def sharding_rule(self) -> Any:
        """Return the sharding rule with these numbers for JAX's partitioner."""
        operands = tuple(
            private.ArrayMapping(*map(_letters, operand_dimensions))
            for operand_dimensions in self.operands
        )
        return private.SdyShardingRule(
            operands, (private.ArrayMapping(*map(_letters, self.result)),)
        )


def _letters(dimension: int) -> str:
    return f"d{dimension}"


def _shares(numbering: DimensionNumbering, mesh: Any, result: Any) -> dict[int, Any]:
    """Return the axes of the mesh that divide the dimensions of each number.

    The axes follow from the requested sharding of the result. A dimension whose size is not a
    multiple of the number of shards stays whole, because padding does not hold valid indices.
    """
    shares = {}
    for dimension, size, axes in zip(
        numbering.result, result.shape, result.sharding.spec, strict=True
    ):
        axis_names = axes if isinstance(axes, tuple) else () if axes is None else (axes,)
        shard_count = prod(mesh.shape[name] for name in axis_names)
        if dimension in numbering.divisible and size % shard_count == 0:
            shares[dimension] = axes
    return shares


def _sharding(
    mesh: Any, operand_dimensions: DimensionNumbers, shares: dict[int, Any]
) -> NamedSharding:
    return NamedSharding(
        mesh, PartitionSpec(*(shares.get(dimension) for dimension in operand_dimensions))
    )


def lower(ctx: Any, *operands: Any, attributes: Attributes, platform: str) -> Any:
    """Lower a call. On several devices, lower to a call that XLA divides."""
    if private.is_old and private.device_count(ctx) > 1:
        raise jax_errors.several_devices(attributes.op, jax.__version__)
    context_of_devices = _of_devices(ctx, platform)
    if context_of_devices is None or 0 in ctx.avals_out[0].shape:
        return lower_to_custom_call(ctx, *operands, attributes=attributes, platform=platform)
    data, indices, *updates = [tuple(aval.shape) for aval in ctx.avals_in]
    axis = attributes.operator.resolve(data, indices, attributes.axis)
    attributes = attributes._replace(axis=axis)
    numbering = DimensionNumbering.of(attributes, data, indices, *updates)

    def partition(mesh: Any, _: Any, result: Any) -> tuple[Any, Any, Any, Any]:
        shares = _shares(numbering, mesh, result)
        operand_shardings = tuple(
            _sharding(mesh, operand_dimensions, shares) for operand_dimensions in numbering.operands
        )
        return (
            mesh,
            partial(bind, attributes),
            _sharding(mesh, numbering.result, shares),
            operand_shardings,
        )

    call_of_all = private.custom_partitioning(lambda *shards: bind(attributes, *shards))
    call_of_all.def_partition(partition, sharding_rule=numbering.sharding_rule())
    return mlir.lower_fun(call_of_all, multiple_results=False)(context_of_devices, *operands)


def _of_devices(ctx: Any, platform: str) -> Any:
    """Return a context with the mesh and its devices, or None if a call is not to be divided.

    A call is not divided if there is only one device, if it is inside ``shard_map``, if there is no
    mesh whose axes XLA may choose, or if it is being exported. No other process could run the
    export of a divided call.
    """
    device_count = private.device_count(ctx)
    if device_count == 1 or not private.divides:
        return None
    shardings = (getattr(aval, "sharding", None) for aval in ctx.avals_in)
    meshes = (
        sharding.mesh for sharding in shardings if sharding is not None and not sharding.mesh.empty
    )
    mesh, devices = next(meshes, None), private.devices_of(platform)[:device_count]
    if mesh is None or mesh.size != len(devices):
        return None
    has_fixed_axes = any(axis_type is not private.AxisType.Auto for axis_type in mesh.axis_types)
    return (
        None
        if has_fixed_axes or private.is_for_export(ctx)
        else private.with_devices(ctx, mesh, platform)
    )


for primitive in (GATHER, SCATTER):
    for name in ("cpu", "cuda"):
        mlir.register_lowering(primitive, partial(lower, platform=name), platform=name)
