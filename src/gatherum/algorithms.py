"""Which algorithm runs a call: the cost rules, all in one place.

Every algorithm gives the same bits: each destination meets its updates in row-major order of the
indices. They differ in what they stream, what they keep in cache, and what they need besides.

==============  ==================================================================================
``units``       Points in the order of the nest. Independent pieces go to threads; where there is
                one piece only, each thread takes the updates of its own share of the destinations.
``stretches``   A gather whose every line reads a short stretch of the data: the next stretch is
                fetched while one is gathered; indices common to all lines are staged once.
``packed``      A gather along an axis that is not the last: columns are packed side by side first.
``slabs``       A scatter into accumulators in cache, one slab a unit.
``partition``   A scatter into more destinations than a cache holds: updates are first sorted,
                stably, into blocks of destinations, then each block is a slab.
``grouped``     A scatter whose updates are put in order of their destination first: for
                accumulators where updates are few or rows long.
==============  ==================================================================================
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from . import lowering
from .dtypes import Value, accumulator_bytes, needs_accumulator, needs_counter
from .lowering import Component, Loop, Lowered
from .signature import Signature

ALGORITHMS = ("units", "stretches", "packed", "slabs", "partition", "grouped")

# About what a core keeps to itself.
CACHE = 4 << 20
# A stretch of data that is fetched ahead as a whole.
STRETCH = 1 << 18
# Where a scatter's destinations outgrow the caches and random writes go to memory.
FAR = 4 << 20
# Updates from which on a partition's three passes pay.
MANY = 1 << 18
# Calls that move less are over before anything but the plain walk could pay.
SMALL = 1 << 16
_WIDTHS = (1, 2, 4, 8, 16)


class Choice(NamedTuple):
    """An algorithm, the nest made for it, and its working memory in bytes, at the most."""

    algorithm: str
    lowered: Lowered
    scratch: int


class Target(NamedTuple):
    """The destinations of one unit: how many, and the bytes from one to the next (0: uneven)."""

    count: int  # type: ignore[assignment]  # hides tuple.count
    step: int


def target_of(components: list[Component]) -> Target:
    """Count the destinations that index components address, the last component fastest."""
    count, step = 1, 0
    for component in reversed(components):
        if component.size == 1:
            continue
        if step == 0 and count == 1:
            step = component.stride
        elif component.stride != step * count:
            return Target(prod(c.size for c in components), 0)
        count *= component.size
    return Target(count, step or (components[-1].stride if components else 0))


def choose_gather(s: Signature, loops: list[Loop], components: list[Component]) -> Choice:
    """Choose how a gather runs."""
    item = s.data.dtype.itemsize
    lowered = lowering.lower_gather(loops, components, item)
    nest = lowered.nest
    line = nest.loops[nest.line]
    items = not nest.rows and nest.block in _WIDTHS and len(components) == 1
    if not items or lowering.points(nest) * nest.block < SMALL:
        return Choice("units", lowered, 0)
    size, step, _ = components[0]
    stretch = size * step
    short = 0 < stretch <= STRETCH and line.extent <= STRETCH
    if line.data == 0 and nest.line and short and line.extent * 64 >= stretch // 2:
        return Choice("stretches", lowered, 8 * line.extent)
    rows = prod(loop.extent for loop in nest.loops[lowered.units : nest.line])
    if (
        line.data == nest.block
        and step > 0
        and 2 * rows >= size
        and size * nest.block <= CACHE // 32
    ):
        chunk = _columns(size * nest.block, nest.block, line.extent)
        packed = lowered._replace(line_chunk=chunk)
        return Choice("packed", packed, size * chunk * nest.block)
    return Choice("units", lowered, 0)


def _columns(column: int, item: int, most: int) -> int:
    """How many columns of so many bytes to keep in cache: whole cache lines of them."""
    line = max(1, 64 // item)
    return min(most, max(line, min(512 // item, CACHE // max(column, 1) // line * line)))


def choose_scatter(
    s: Signature, value: Value, loops: list[Loop], components: list[Component]
) -> Choice:
    """Choose how a scatter runs."""
    item = s.data.dtype.itemsize
    lowered = lowering.lower_scatter(loops, components, item)
    nest = lowered.nest
    accumulates = needs_accumulator(value, s.reduction, s.include_self)
    target = target_of(components)
    items = (
        not nest.rows
        and nest.block == item
        and item in _WIDTHS
        and target.step != 0
        and target.count != 0  # every update is dropped: the plain walk does nothing either
    )
    if items:
        choice = _choose_items(s, value, lowered, target, accumulates)
        if choice is not None:
            return choice
    if accumulates:
        grouped = lowering.lower_grouped(loops, components, item)
        return Choice("grouped", grouped, 16 * _fold_length(grouped))
    return Choice("units", lowered, 0)


def _choose_items(
    s: Signature, value: Value, lowered: Lowered, target: Target, accumulates: bool
) -> Choice | None:
    """Choose among the ways to scatter single items; None when the plain walk, or grouping where
    accumulators are needed, is better.
    """
    nest, item = lowered.nest, s.data.dtype.itemsize
    line = nest.loops[nest.line]
    counted = needs_counter(s.reduction, s.include_self)
    slot = accumulator_bytes(value, item, s.reduction) + (8 if counted else 0)
    updates = prod(loop.extent for loop in nest.loops[lowered.units : nest.line])
    if not lowered.split_line:
        updates *= line.extent
    units = prod(loop.extent for loop in nest.loops[: lowered.units])
    alone = units == 1 and not lowered.split_line
    if (
        alone
        and updates >= MANY
        and target.count * item > FAR
        and updates * 8 >= target.count
        and item <= 8
    ):
        return Choice("partition", lowered, updates * (4 + item))
    # Accumulators for all destinations, touched or not, cost at most 16 bytes an update.
    dense = target.count * slot <= max(16 * updates, 1024)
    if not dense:
        return None
    if alone and (accumulates or updates >= MANY):
        return Choice("slabs", lowered, target.count * slot)
    small = updates * units * max(1, line.extent if lowered.split_line else 1) * item < SMALL
    if accumulates or (not small and not alone and target.count * slot <= CACHE and updates >= 64):
        chunk = _columns(target.count * slot, item, line.extent) if lowered.split_line else 0
        columns = chunk or 1
        return Choice("slabs", lowered._replace(line_chunk=chunk), target.count * slot * columns)
    return None


def _fold_length(lowered: Lowered) -> int:
    return prod(loop.extent for loop in lowered.nest.loops[lowered.units : lowered.nest.line + 1])
