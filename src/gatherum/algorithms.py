"""Which algorithm runs a call: the cost rules, all in one place.

Every algorithm gives the same bits: each destination meets its updates in row-major order of the
indices, or in any where that gives the same bits (integers). They differ in what they stream, what
they keep in cache, and what they need besides.

==============  ==================================================================================
``units``       Points in the order of the nest. Independent pieces go to threads; where there is
                one piece only, each thread takes the updates of its own share of the destinations.
``stretches``   A gather whose every line reads a short stretch of the data: the next stretch is
                fetched while one is gathered; indices common to all lines are staged once.
``packed``      A gather along an axis that is not the last: columns are packed side by side first.
``slabs``       A scatter into accumulators in cache, one slab a unit; one a thread where many
                updates of integers go to a few destinations of one unit.
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
from .lowering import Component, Loop, Lowered, Nest
from .signature import Signature

ALGORITHMS = ("units", "stretches", "packed", "slabs", "partition", "grouped")

# About what a core keeps to itself, and what it has of the cache that it shares.
OWN = 1 << 19
CACHE = 4 << 20
# A stretch of data that is fetched ahead as a whole.
STRETCH = 1 << 18
# Where a scatter's destinations outgrow the caches and random writes go to memory.
FAR = 8 << 20
# Updates from which on a partition's two passes pay.
MANY = 1 << 18
# Calls that move less are over before anything but the plain walk could pay.
SMALL = 1 << 16
# Bytes of a block that kernels load and store as one value.
WIDTHS = (1, 2, 4, 8, 16)


class Choice(NamedTuple):
    """An algorithm, the nest made for it, its working memory in bytes, at the most, and why it was
    chosen: written where the choice is made, for people.
    """

    algorithm: str
    lowered: Lowered
    scratch: int
    reason: str


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
    if plain := _why_plain(nest):
        return Choice("units", lowered, 0, plain)
    size, step, _ = components[0]
    stretch = size * step
    short = 0 < stretch <= STRETCH and line.extent <= STRETCH
    if line.data == 0 and nest.line and short and line.extent * 64 >= stretch // 2:
        why = f"each line of {line.extent:,} indices reads a stretch of {stretch:,} bytes, at most "
        why += f"{STRETCH:,}, and enough of it to fetch the next stretch meanwhile"
        return Choice("stretches", lowered, 8 * line.extent, why)
    rows = prod(loop.extent for loop in nest.loops[lowered.units : nest.line])
    column = size * nest.block
    if line.data == nest.block and step > 0 and 2 * rows >= size and column <= CACHE // 32:
        chunk = _columns(column, nest.block, line.extent)
        packed = lowered._replace(line_chunk=chunk)
        why = f"neighbouring indices read from different columns of {size:,} items: "
        why += f"{chunk:,} of them fit in cache, packed side by side"
        return Choice("packed", packed, chunk * column, why)
    return Choice("units", lowered, 0, _why_neither(nest, stretch))


def _why_plain(nest: Nest) -> str:
    """Return why nothing but the plain walk is considered for a gather, or nothing."""
    if not nest.components:
        return "there is no index to follow: blocks are copied"
    if nest.rows or nest.block not in WIDTHS:
        return f"each index tuple moves {_row_bytes(nest):,} bytes, copied as they are met"
    if len(nest.components) > 1:
        return f"blocks are picked one by one, by tuples of {len(nest.components)} indices"
    moved = lowering.points(nest) * nest.block
    if moved < SMALL:
        return f"{moved:,} bytes, fewer than {SMALL:,}, are over before anything else could pay"
    return ""


def _why_neither(nest: Nest, stretch: int) -> str:
    """Return why a gather of items neither fetches stretches ahead nor packs columns."""
    line = nest.loops[nest.line]
    if line.data:
        return "neighbouring indices read from different columns, which packing would not speed up"
    if not nest.line:
        return f"there is one line of {line.extent:,} indices, and no next one to fetch ahead for"
    return (
        f"each line of {line.extent:,} indices reads from {stretch:,} bytes, too many or too "
        "sparsely to fetch them all ahead"
    )


def _row_bytes(nest: Nest) -> int:
    return prod(loop.extent for loop in nest.rows) * nest.block


def _columns(column: int, item: int, most: int) -> int:
    """How many columns of so many bytes to keep in cache: whole cache lines of them.

    Four to eight, or as many as `CACHE` has room for. Where eight outgrow `OWN`, four are up to a
    third faster (sums along axis 0 of 8192 x 4096 float32); else eight are a fifth faster.
    """
    line = max(1, 64 // item)
    wanted = 8 * line if 8 * line * column <= OWN else 4 * line
    return min(most, max(line, min(wanted, CACHE // max(column, 1) // line * line)))


def choose_scatter(
    s: Signature, value: Value, loops: list[Loop], components: list[Component]
) -> Choice:
    """Choose how a scatter runs."""
    item = s.data.dtype.itemsize
    lowered = lowering.lower_scatter(loops, components, item)
    nest = lowered.nest
    accumulates = needs_accumulator(value, s.reduction, s.include_self)
    target = target_of(components)
    found = _why_no_items(nest, target, item) or _choose_items(
        s, value, lowered, target, accumulates
    )
    if isinstance(found, Choice):
        return found
    if accumulates:
        grouped = lowering.lower_grouped(loops, components, item)
        why = f"{found}; the fold needs accumulators, so the updates of a destination are put "
        why += "side by side first"
        return Choice("grouped", grouped, 16 * _fold_length(grouped), why)
    return Choice("units", lowered, 0, f"{found}; updates go straight to their places")


def _why_no_items(nest: Nest, target: Target, item: int) -> str:
    """Return why a scatter is not one of items with destinations side by side, or nothing."""
    if nest.rows or nest.block != item or item not in WIDTHS:
        return f"each index tuple moves a row of {_row_bytes(nest):,} bytes"
    if target.count == 0:
        return "every update is dropped"  # the plain walk does nothing either
    if target.step == 0:
        return "the destinations do not lie at even steps"
    return ""


def _choose_items(
    s: Signature, value: Value, lowered: Lowered, target: Target, accumulates: bool
) -> Choice | str:
    """Choose among the ways to scatter single items; or say why none of them is better than the
    plain walk, or than grouping where accumulators are needed.
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
    far = target.count * slot > FAR and updates * 8 >= target.count and item <= 8
    if alone and updates >= MANY and far:
        why = f"{updates:,} updates, at least {MANY:,}, go to {target.count:,} destinations, more "
        why += "than a cache holds: sorted into blocks first, each block is folded in cache"
        # An eighth of the lists may be waste, and the chains of their runs take up to half a byte.
        return Choice("partition", lowered, updates * (9 * (4 + item) + 6) // 8, why)
    counts = f"{updates:,} updates{'' if alone else ' a unit'} go to {target.count:,} destinations"
    # Accumulators for all destinations, touched or not, cost at most 16 bytes an update.
    if target.count * slot > max(16 * updates, 1024):
        return f"{counts}, too many to keep an accumulator of {slot} bytes for each"
    if alone and (accumulates or updates >= MANY):
        why = f"{counts}: few enough for an accumulator of {slot} bytes each"
        return Choice("slabs", lowered, target.count * slot, why)
    small = updates * units * max(1, line.extent if lowered.split_line else 1) * item < SMALL
    if accumulates or (not small and not alone and target.count * slot <= CACHE and updates >= 64):
        chunk = _columns(target.count * slot, item, line.extent) if lowered.split_line else 0
        why = f"{counts}: few enough to accumulate in cache, unit by unit"
        return Choice(
            "slabs",
            lowered._replace(line_chunk=chunk),
            target.count * slot * (chunk or 1),
            why,
        )
    if target.count * slot > CACHE and not small and not alone:
        return f"{counts}, whose accumulators would outgrow the cache"
    return f"{counts}, too little work for accumulators to pay"


def _fold_length(lowered: Lowered) -> int:
    return prod(loop.extent for loop in lowered.nest.loops[lowered.units : lowered.nest.line + 1])
