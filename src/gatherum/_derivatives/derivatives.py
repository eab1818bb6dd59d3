"""Derivatives of the six operators, written once for all frameworks.

The rules consist of a framework's differentiable operations (see `array_ops.DerivativeOps`), so
they are valid for derivatives of any order.

A gather is linear. A scatter is ``out[p] = op(data[p], updates of p)``, where the updates of p are
those with destination p. Its derivative has two factors for each destination p and one for each
update j:

    d out[p] = B[p] * (D[p] * d data[p] + sum over updates j of p of U[j] * d updates[j])

| reduction | B | D | U |
|---|---|---|---|
| none | 1 | 1 if p has no update | 1 for the last update |
| add | 1 | 1 | 1 |
| mean | 1 / count | 1 | 1 |
| max, min | 1 / N | 1 if the old value equals the result | 1 for updates that equal the result |
| mul | 1 | the product of all other factors | the product of all other factors |

N is the number of values that equal the result. If the old value is excluded (`include_self` is
false), B * D is 1 for a destination without updates and 0 otherwise. Skipped updates have no
derivative.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple, TypeAlias

from gatherum._model import errors
from gatherum._model.arrays import AnyArray
from gatherum._model.call import Attributes, FoldRule
from gatherum._model.reductions import ROWS

from .array_ops import ADD, ArrayOps, DerivativeOps, Destinations

Times: TypeAlias = Callable[[AnyArray], AnyArray]


class ScatterValues(NamedTuple):
    """The operands and the result of a scatter, from which its factors are computed."""

    data: AnyArray
    updates: AnyArray
    result: AnyArray


class Factors(NamedTuple):
    """The factors of one scatter, as functions that multiply an array by them."""

    common: Times  # multiplies an array of the data's shape by B
    data: Times  # multiplies an array of the data's shape by D, if the old value is included
    updates: Times  # multiplies an array of the updates' shape by U
    moves: bool = False  # whether values are only copied, so that no wider type is needed


class DerivativeRule(NamedTuple):
    """The derivative of one reduction."""

    # Equal to `is_linear` in the reduction's row of `reductions`. Factors of a linear reduction do
    # not depend on values, and the tangent of its result is the same scatter applied to the
    # tangents of its operands.
    is_linear: bool
    factors: Callable[[Destinations, Any], Factors]  # of the destinations and the values
    replaces: bool  # whether the old value is never included


def derivative_rule(reduction: str) -> DerivativeRule:
    """Return the derivative of a reduction, or raise NotImplementedError."""
    factors = FACTORS.get(reduction)
    if factors is None:
        raise errors.no_derivative(reduction)
    return DerivativeRule(ROWS[reduction].is_linear, factors, replaces=reduction == "none")


def tangent(
    destinations: Destinations, values: Any, of_data: AnyArray, of_updates: AnyArray
) -> AnyArray:
    """Return the tangent of a scatter's result.

    `of_data` and `of_updates` are the tangents of its operands; None means zero. A linear
    reduction does not need `values`.
    """
    xp, fold = destinations.xp, destinations.attributes.fold
    reduction_rule = derivative_rule(fold.reduction)
    dtype = (of_updates if of_data is None else of_data).dtype
    if reduction_rule.is_linear:
        data_tangent = destinations.full(0, dtype) if of_data is None else of_data
        updates_tangent = (
            xp.full((), 0, dtype, destinations.indices) if of_updates is None else of_updates
        )
        return destinations.scatter(data_tangent, updates_tangent, fold)
    wide_dtype, factors = xp.derivative_dtype(dtype), reduction_rule.factors(destinations, values)
    data_tangent = destinations.full(0, wide_dtype)
    updates_tangent = xp.full((), 0, wide_dtype, destinations.indices)
    if of_updates is not None:
        wide_updates = xp.astype(of_updates, wide_dtype)
        updates_tangent = factors.updates(xp.broadcast_to(wide_updates, destinations.moved_shape()))
    if of_data is not None:
        data_tangent = xp.astype(of_data, wide_dtype)
        data_tangent = factors.data(data_tangent) if fold.include_self else data_tangent
    total = destinations.scatter(data_tangent, updates_tangent, fold._replace(reduction="add"))
    return xp.astype(factors.common(total), dtype)


def cotangents(
    destinations: Destinations, values: Any, gradient: AnyArray, needed: tuple[bool, bool]
) -> tuple[AnyArray, AnyArray]:
    """Return the gradients of a scatter's data and updates, or None for one that is not needed.

    The gradient of the updates has the moved shape. Complex factors that depend on values are
    conjugated, as torch does.
    """
    xp, dtype, fold = destinations.xp, gradient.dtype, destinations.attributes.fold
    reduction_rule = derivative_rule(fold.reduction)
    (needs_data, needs_updates), of_data, of_updates = needed, None, None
    if needs_data and (reduction_rule.replaces or not fold.include_self):
        needs_data, of_data = False, destinations.zeroed(gradient)
    if not (needs_data or needs_updates):
        return of_data, None
    factors = reduction_rule.factors(destinations, values)

    def conjugated(value: AnyArray) -> AnyArray:
        return value if reduction_rule.is_linear else xp.conj(value)

    scaled = (
        gradient if factors.moves else xp.astype(conjugated(gradient), xp.derivative_dtype(dtype))
    )
    scaled = factors.common(scaled)
    if needs_data:
        of_data = xp.astype(conjugated(factors.data(scaled)), dtype)
    if needs_updates:
        of_updates = xp.astype(conjugated(factors.updates(destinations.gather(scaled))), dtype)
    return of_data, of_updates


# --- the factors of each reduction


def equal(xp: ArrayOps, first: AnyArray, second: AnyArray) -> AnyArray:
    """Return a mask of the equal numbers, where NaN equals NaN."""
    return (first == second) | (xp.isnan(first) & xp.isnan(second))


def _unchanged(value: AnyArray) -> AnyArray:
    return value


def _divided_by(destinations: Destinations, counts: AnyArray) -> Times:
    return lambda value: value / destinations.xp.astype(counts, value.dtype)


def _masked(destinations: Destinations, mask: AnyArray) -> Times:
    """Return a function that sets values outside a mask to zero, even infinity and NaN."""
    return lambda value: destinations.xp.where(mask, value, 0)


def _of_none(destinations: Destinations, _: Any) -> Factors:
    return Factors(
        _unchanged,
        _unchanged,
        lambda value: destinations.xp.where(destinations.last_entries(), value, 0),
        moves=True,
    )


def _of_add(_: Destinations, __: Any) -> Factors:
    return Factors(_unchanged, _unchanged, _unchanged, moves=True)


def _of_mean(destinations: Destinations, _: Any) -> Factors:
    counts = destinations.counts()
    counts = (
        counts + 1 if destinations.attributes.include_self else destinations.xp.maximum(counts, 1)
    )
    return Factors(
        _divided_by(destinations, destinations.with_data_rank(counts)), _unchanged, _unchanged
    )


def _of_extreme(destinations: Destinations, values: ScatterValues) -> Factors:
    xp = destinations.xp
    data, updates, result = map(xp.stop_gradient, values)

    updates_equal = equal(
        xp, xp.broadcast_to(updates, destinations.moved_shape()), destinations.gather(result)
    )
    data_equal = equal(xp, data, result)
    dtype = xp.count_dtype(prod(destinations.indices.shape))
    initial_counts = (
        xp.astype(data_equal, dtype)
        if destinations.attributes.include_self
        else destinations.full(0, dtype)
    )
    tie_counts = xp.maximum(
        destinations.scatter(initial_counts, xp.astype(updates_equal, dtype), ADD), 1
    )
    return Factors(
        _divided_by(destinations, tie_counts),
        _masked(destinations, data_equal),
        _masked(destinations, updates_equal),
    )


def _of_product(destinations: Destinations, values: ScatterValues) -> Factors:
    xp, wide_dtype = destinations.xp, destinations.xp.derivative_dtype(values.data.dtype)
    data, updates = (xp.astype(value, wide_dtype) for value in values[:2])
    updates = xp.broadcast_to(updates, destinations.moved_shape())

    def of_data(value: AnyArray) -> AnyArray:
        reversed_destinations, reversed_updates = destinations.reversed(updates)
        return value * reversed_destinations.scatter(
            destinations.full(1, wide_dtype), reversed_updates, FoldRule("mul")
        )

    def of_updates(value: AnyArray) -> AnyArray:
        return value * xp.product_of_others(destinations, data, updates)

    return Factors(_unchanged, of_data, of_updates)


FACTORS: dict[str, Callable[[Destinations, Any], Factors]] = {
    "none": _of_none,
    "add": _of_add,
    "mul": _of_product,
    "max": _of_extreme,
    "min": _of_extreme,
    "mean": _of_mean,
    "fsum": _of_add,
    "fmean": _of_mean,
}


# --- the product of the other values. It uses only multiplications, so 0 and infinity need no
# special case, and derivatives of any order are derivatives of a polynomial


def product_of_others(destinations: Destinations, data: AnyArray, updates: AnyArray) -> AnyArray:
    """Return the product of the other values of the destination, for each update.

    The old value is one of these values if `include_self` is true. The updates have the moved
    shape.
    """
    earlier, later = _other_updates(destinations, updates)
    earlier = (
        destinations.gather(data) * earlier if destinations.attributes.include_self else earlier
    )
    return earlier * later


def _other_updates(destinations: Destinations, updates: AnyArray) -> tuple[AnyArray, AnyArray]:
    """For each update, return the products of the earlier and later updates of its destination.

    Entries are sorted by destination; for the second product, their order is reversed.
    """
    xp, addressed = destinations.xp, destinations.addressed()
    if destinations.skips:  # skipped updates are not factors
        updates = xp.where(destinations.valid_entries(), updates, 1)
    moved_shape, entries = destinations.moved_shape(), addressed.moved_shape()
    first = destinations.entries_begin()
    end = first + len(entries)
    entry_count, before, after = prod(entries), prod(moved_shape[:first]), prod(moved_shape[end:])
    length = 1  # a power of 2, so that every pairing is complete
    while length < entry_count:
        length *= 2
    destination_numbers = xp.reshape(
        xp.arange(1, 1 + prod(addressed.shape), addressed.indices), addressed.shape
    )
    destination_numbers = xp.reshape(addressed.gather(destination_numbers), (entry_count,))
    order = xp.argsort(destination_numbers)
    steps = xp.arange(0, length, order)
    positions_from_ends = xp.stack((steps, entry_count - 1 - steps), 0)  # left end, right end

    def gather_filled(
        table: AnyArray, indices: AnyArray, fill_value: int, axis: int = 0
    ) -> AnyArray:
        gather = Attributes("gather", axis, mode="fill", negative=False)
        return xp.gather(gather, table, indices, fill_value)

    sorted_entries = gather_filled(order, positions_from_ends, -1)
    sorted_destinations = gather_filled(destination_numbers, sorted_entries, 0)
    # Whether an entry has the same destination as the previous one.
    continues = sorted_destinations == xp.roll(sorted_destinations, 1, 1)
    continues = continues & xp.reshape(steps > 0, (1, length))
    factors = gather_filled(xp.reshape(updates, (before, entry_count, after)), sorted_entries, 1, 1)
    products = _products_in_front(xp, factors, continues, continues)
    entry_numbers = xp.arange(0, entry_count, order)
    sorted_positions = xp.scatter(
        Attributes("scatter_elements", negative=False), entry_numbers, order, entry_numbers
    )
    positions_in_products = xp.stack(
        (sorted_positions, length + entry_count - 1 - sorted_positions), 0
    )
    products = gather_filled(
        xp.reshape(products, (before, 2 * length, after)), positions_in_products, 1, 1
    )
    earlier, later = xp.unstack(products, 1)
    return xp.reshape(earlier, moved_shape), xp.reshape(later, moved_shape)


def _products_in_front(
    xp: DerivativeOps, x: AnyArray, continues: AnyArray, is_uniform: AnyArray
) -> AnyArray:
    """Return a product of earlier entries for each block of entries.

    The factors are the entries before the block that have the same destination as the first entry
    of the block. `x` contains one product for each block. The factors of this product are the
    entries at the end of the block that have the same destination as the last entry of the block.
    `x` has four dimensions. The third is the block index; the number of blocks is a power of 2.
    `continues` is a mask over the second and third dimensions. It is True if the first entry of a
    block has the same destination as the entry before it. `is_uniform` is a mask of the blocks in
    which this is true for all entries. Blocks are merged in pairs recursively, which takes two
    multiplications for each entry.
    """
    before, direction_count, length, behind = x.shape
    if length == 1:
        return xp.full((before, direction_count, length, behind), 1, x.dtype, x)
    half = length // 2

    def halves(array: AnyArray) -> tuple[AnyArray, AnyArray]:
        left, right = xp.unstack(xp.reshape(array, (direction_count, half, 2)), 2)
        return left, right

    def where(mask: AnyArray, factor: AnyArray) -> AnyArray:
        return xp.where(xp.reshape(mask, (1, direction_count, half, 1)), factor, 1)

    left, right = xp.unstack(xp.reshape(x, (before, direction_count, half, 2, behind)), 3)
    continues_left, continues_right = halves(continues)
    uniform_left, uniform_right = halves(is_uniform)
    merged = right * where(uniform_right, left)
    of_left = _products_in_front(xp, merged, continues_left, uniform_left & uniform_right)
    of_right = where(continues_right, left * where(uniform_left, of_left))
    return xp.reshape(xp.stack((of_left, of_right), 3), (before, direction_count, length, behind))
