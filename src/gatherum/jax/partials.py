"""What derivatives ask of the places that the indices of a call address.

A scatter is ``out[p] = op(data[p], updates that go to p)``. `none`, `add` and `mean` are linear in
data and updates together, so that their tangent is the same scatter of tangents. The tangents of
the others are a scatter-add of tangents, weighted:

    d out[p] = B[p] * (D[p] * d data[p] + sum over updates j that go to p of U[j] * d updates[j])

| reduction | B | D | U |
|---|---|---|---|
| max, min | 1 / N | 1 where the old value is the result | 1 for updates that equal the result |
| mul | P | the product of the others, over P | the same |

N is how many attain the result, P the product of all that are not 0. Where the old value takes no
part (`include_self` false), B * D is 1 where nothing arrives and 0 elsewhere. Skipped updates have
no derivative.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

import jax.numpy as jnp
import numpy as np

from ..operators import ELEMENTS, OPERATORS, SLICES, Operator
from . import dtypes
from .ops import Array, Call, bind

Shape = tuple[int, ...]


def _inverse(operator: Operator) -> Operator:
    """Return the operator of the same indices that goes the other way."""
    return next(
        other
        for other in OPERATORS.values()
        if other.addressing is operator.addressing and other.scatters is not operator.scatters
    )


@dataclass(frozen=True, slots=True)
class Places:
    """The places that the indices of one call address, as a gather and as a scatter.

    Attributes
    ----------
    call : Call
        A gather or a scatter, with its axis counted from the front.
    indices : array
        Its indices.
    shape : tuple of int
        The shape of its data.
    """

    call: Call
    indices: Array
    shape: Shape

    @classmethod
    def of(cls, call: Call, shape: Shape, indices: Array) -> Places:
        """Return the places of a call on data of a shape."""
        axis = call.operator.resolve(shape, tuple(indices.shape), call.axis)
        return cls(Call(call.op, axis, call.mode, call.negative), indices, shape)

    def _op(self, scatters: bool) -> Call:
        operator = self.call.operator
        name = operator.name if operator.scatters is scatters else _inverse(operator).name
        return replace(self.call, op=name)

    def take(self, table: Array) -> Array:
        """Gather from an array of the data's shape; skipped entries take zeros."""
        return bind(self._op(False), table, self.indices)

    def put(
        self, table: Array, updates: Array, reduction: str = "none", include_self: bool = True
    ) -> Array:
        """Scatter into an array of the data's shape."""
        call = replace(self._op(True), reduction=reduction, include_self=include_self)
        return bind(call, table, self.indices, updates)

    def total(self, updates: Array) -> Array:
        """Add updates up in each place, in a type that has sums, and return their own."""
        dtype = updates.dtype
        wide = dtype if dtypes.folds(dtype) else dtypes.wide(dtype)
        zeros = jnp.zeros(self.shape, wide)
        return self.put(zeros, updates.astype(wide), "add").astype(dtype)

    def emptied(self, table: Array) -> Array:
        """Return an array of the data's shape with zeros wherever an index points."""
        return self.put(table, jnp.zeros((), table.dtype))

    # Where whole slices move together, one number a destination is enough.

    def destinations(self) -> Places:
        """Return the same places without the dimensions that move whole."""
        operator, found = self.call.operator, tuple(self.indices.shape)
        shape, axis = operator.space(self.shape, found, self.call.axis)
        return Places(replace(self.call, axis=axis), self.indices, shape)

    def over_data(self, table: Array) -> Array:
        """Give a number for each destination the data's rank."""
        before = self.call.axis if self.call.operator.addressing is SLICES else 0
        behind = len(self.shape) - before - table.ndim
        return table.reshape((1,) * before + table.shape + (1,) * behind)

    def over_updates(self, table: Array) -> Array:
        """Give a number for each entry the rank of what moves."""
        operator = self.call.operator
        if operator.addressing is ELEMENTS:
            return table
        moved = operator.moved(self.shape, tuple(self.indices.shape), self.call.axis)
        before = self.call.axis if operator.addressing is SLICES else 0
        behind = len(moved) - before - table.ndim
        return table.reshape((1,) * before + table.shape + (1,) * behind)

    def counts(self) -> Array:
        """Count the updates that arrive in each destination, with the data's rank."""
        at, one = self.destinations(), jnp.ones((), jnp.int32)
        return self.over_data(at.put(jnp.zeros(at.shape, jnp.int32), one, "add"))

    def valid(self) -> Array:
        """Return which entries are not skipped, with the rank of what moves."""
        at = self.destinations()
        return self.over_updates(at.take(jnp.ones(at.shape, np.bool_)))

    def staying(self) -> Array:
        """Return which entries are the last of their destination, with the rank of what moves.

        Entries are numbered from 1, and the numbers scattered: the last one stays.
        """
        at = self.destinations()
        entries = at.call.operator.moved(at.shape, tuple(self.indices.shape), at.call.axis)
        n = prod(entries)
        kind = jnp.uint32 if n < 2**32 - 1 else jnp.uint64
        number = jnp.arange(1, 1 + n, dtype=kind).reshape(entries)
        return self.over_updates(at.take(at.put(jnp.zeros(at.shape, kind), number)) == number)


def is_equal(one: Array, other: Array) -> Array:
    """Whether values are equal, or both NaN."""
    return (one == other) | (jnp.isnan(one) & jnp.isnan(other))


def extreme(
    places: Places, include_self: bool, operands: tuple[Array, Array], result: Array,
    tangents: tuple[Array, Array],
) -> Array:  # fmt: skip
    """Return the tangent of a maximum or minimum: shared by all that attain it."""
    mine = is_equal(operands[1], places.take(result))
    olds = is_equal(operands[0], result)
    first = olds.astype(jnp.int32) if include_self else jnp.zeros(places.shape, jnp.int32)
    number = jnp.maximum(places.put(first, mine.astype(jnp.int32), "add"), 1)
    of_data = jnp.where(olds, tangents[0], 0) if include_self else tangents[0]
    total = places.put(of_data, jnp.where(mine, tangents[1], 0), "add", include_self)
    return total / number.astype(total.dtype)


def product(
    places: Places, include_self: bool, operands: tuple[Array, Array], tangents: tuple[Array, Array]
) -> Array:
    """Return the tangent of a product, which may be 0 for one factor or for several.

    P is the product of what is not 0, `zeros` how many are 0, and `low` their sum: 0, but with a
    derivative, so that second derivatives hold at any number of zeros.
    """
    data, updates = operands
    none_d, none_u = data == 0, updates == 0
    one, zero = jnp.ones((), data.dtype), jnp.zeros((), data.dtype)
    every = places.put(
        jnp.where(none_d, one, data), jnp.where(none_u, one, updates), "mul", include_self
    )
    nothing = jnp.zeros(places.shape, np.bool_)
    first = none_d if include_self else nothing
    zeros = places.put(first.astype(jnp.int32), none_u.astype(jnp.int32), "add")
    low = places.put(jnp.where(first, data, zero), jnp.where(none_u, updates, zero), "add")
    rest = jnp.where(zeros == 0, one, jnp.where(zeros == 1, low, zero))

    def share(value: Array, none: Array, rest: Array, zeros: Array, low: Array) -> Array:
        of_zero = jnp.where(zeros == 1, one, jnp.where(zeros == 2, low - value, zero))
        return jnp.where(none, of_zero, rest / jnp.where(none, one, value))

    of_updates = share(updates, none_u, places.take(rest), places.take(zeros), places.take(low))
    weighted = tangents[1] * (of_updates * places.take(every))
    of_data = tangents[0]
    if include_self:
        of_data = of_data * (share(data, none_d, rest, zeros, low) * every)
    return places.put(of_data, weighted, "add", include_self)
