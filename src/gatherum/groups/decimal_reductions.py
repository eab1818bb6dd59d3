"""Reduce groups of decimal numbers exactly, as integers of the smallest unit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from . import errors
from .decimal_numbers import DecimalNumbers, decimal_of
from .evaluation import check_nonempty

FUNCTIONS = ("sum", "mean", "max", "min", "count")

# A function that runs `reduce` on integers of 64 bits, given several names, the integers, and
# `fill_value`.
ReduceIntegers: TypeAlias = Callable[[Sequence[str], Any, Any], dict[str, NDArray[Any]]]


class Numbers(Protocol):
    """Decimal numbers, as integers of the smallest unit in memory or in a file."""

    @property
    def scale(self) -> int:
        """The number of digits after the point."""

    @property
    def size(self) -> int:
        """The number of numbers."""

    def integers(self) -> Any:
        """Return the integers, or None if some have more than 64 bits."""

    def largest(self) -> int:
        """Return the largest absolute value of the integers, which have been read."""

    def parts(self) -> Iterator[tuple[int, Any]]:
        """Yield parts of the integers that add up to them, and the first bit of each part.

        The parts have so few bits that their sums do not wrap around.
        """


def reduce_decimals(
    op: str,
    names: Sequence[str],
    numbers: Numbers,
    reduce_integers: ReduceIntegers,
    axis: int,
    fill_value: object,
) -> dict[str, NDArray[Any]]:
    """Return the result of each function as an array of `Decimal`.

    `axis` is the axis of the groups, for messages.
    """
    for name in names:
        if name not in FUNCTIONS:
            raise errors.not_for_decimals(op, name, FUNCTIONS)
    fill = None if fill_value is None else _as_fill(op, fill_value)
    needed = {"sum" if name == "mean" else name for name in names} | {"count"}
    totals = _totals([name for name in FUNCTIONS if name in needed], numbers, reduce_integers)
    counts = totals["count"]
    is_empty = counts == 0
    results = {}
    for name in names:
        if name == "count":
            results[name] = counts
            if fill is not None:
                whole_fill = int(fill) if fill.is_finite() and not fill % 1 else fill_value
                results[name] = reduce_integers(["count"], _countable(numbers), whole_fill)["count"]
            continue
        if fill is None and name != "sum":
            check_nonempty(op, name, "Decimal", ~is_empty, axis, per_value=True)
        total = totals["sum" if name == "mean" else name].astype(object)
        if name == "mean":
            total = _NEAREST(total, np.maximum(counts, 1).astype(object))
        result = _DECIMALS(total, numbers.scale)
        if fill is not None:
            result[is_empty] = fill
        results[name] = result
    return results


def _as_fill(op: str, value: object) -> Decimal:
    if isinstance(value, Decimal) or type(value) is int:
        return Decimal(value)
    raise errors.not_a_decimal_fill(op, value)


def _totals(
    needed: list[str], numbers: Numbers, reduce_integers: ReduceIntegers
) -> dict[str, NDArray[Any]]:
    """Return counts, sums, maxima and minima of the integers. Those of an empty group are 0."""
    integers = numbers.integers()
    extremes = [name for name in needed if name in ("max", "min")]
    if integers is not None:
        totals = reduce_integers(needed, integers, 0)
    else:
        totals = reduce_integers(["count"], _countable(numbers), 0)
        totals |= _extremes(extremes, numbers, reduce_integers) if extremes else {}
    if "sum" in needed and (integers is None or numbers.largest() * numbers.size >= 2**63):
        totals["sum"] = _sums(numbers, reduce_integers)
    return totals


def _countable(numbers: Numbers) -> Any:
    """Return integers of 64 bits, one for each number."""
    integers = numbers.integers()
    return next(numbers.parts())[1] if integers is None else integers


def _sums(numbers: Numbers, reduce_integers: ReduceIntegers) -> NDArray[Any]:
    """Return the exact sums as Python integers."""
    total: Any = 0
    for first_bit, part in numbers.parts():
        total = total + reduce_integers(["sum"], part, 0)["sum"].astype(object) * 2**first_bit
    return np.asarray(total, object)


def _extremes(
    names: list[str], numbers: Numbers, reduce_integers: ReduceIntegers
) -> dict[str, NDArray[Any]]:
    """Return the largest or smallest numbers as Python integers, or any for an empty group."""
    assert isinstance(numbers, DecimalNumbers)
    order = np.lexsort((numbers.low.ravel(), numbers.high.ravel()))
    ranks = np.empty(order.size, np.int64)
    ranks[order] = np.arange(order.size)
    best = reduce_integers(names, ranks.reshape(numbers.high.shape), 0)
    sorted_numbers = numbers.python_integers().ravel()[order]
    return {name: sorted_numbers[best[name]] for name in names}


def _nearest(total: int, count: int) -> int:
    """Return the integer nearest to ``total / count``, or the even one if two are equally near."""
    quotient, remainder = divmod(total, count)
    return quotient + (2 * remainder + (quotient & 1) > count)


_NEAREST = np.frompyfunc(_nearest, 2, 1)
_DECIMALS = np.frompyfunc(decimal_of, 2, 1)
